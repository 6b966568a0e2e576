//! `embed`: makes a vector for each item's text, only for what changed.

use canonry_boxed::boxed;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use canonry_domain::{Extractor, Item, ItemNumber, ItemState, ItemType, render_intent_card};
use canonry_models::{EmbedError, Embedder, InputType, RemoteFailure};
use canonry_store::{EmbedFilter, EmbeddingKey, NewEmbedding, Repo, Store, StoreError};
use jiff::Timestamp;

use crate::retrieval::boilerplate::{refresh_boilerplate, stored_boilerplate};

/// The part of an item that is embedded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EmbedSource {
    #[default]
    Raw,
    /// The intent card by this extractor; also title and body, as a fallback.
    Intent(Extractor),
}

impl EmbedSource {
    /// The key under which vectors of this source by a model are stored.
    pub fn key(self, model: &str) -> EmbeddingKey {
        match self {
            Self::Raw => EmbeddingKey::raw(model),
            Self::Intent(extractor) => EmbeddingKey::intent(model, extractor),
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EmbedOptions {
    pub source: EmbedSource,
    pub item_type: Option<ItemType>,
    pub state: Option<ItemState>,
    /// Skip items that this model has embedded and that have not changed since.
    pub only_changed: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EmbedReport {
    /// The number of texts that were to be embedded when the run began.
    pub total: u64,
    pub discovered: u64,
    pub embedded: u64,
    /// Items without a card for their current text; they have only the vector of title and body.
    pub without_card: u64,
    /// Items whose text the model refuses, and its error; they have no vector.
    pub refused: Vec<(ItemNumber, String)>,
}

/// A run that ended early. Every batch before that is stored.
#[derive(Debug, thiserror::Error)]
#[error("{cause}{}", items(.numbers))]
pub struct EmbedFailure {
    pub so_far: EmbedReport,
    /// The items whose texts were in the batch that failed.
    pub numbers: Vec<ItemNumber>,
    #[source]
    pub cause: EmbedRunError,
}

#[derive(Debug, thiserror::Error)]
pub enum EmbedRunError {
    #[error("failed to {0}")]
    Model(#[from] EmbedError),
    /// The model's vectors have another length than the stored ones that stay.
    #[error(
        "failed to embed {item_type} #{number} with {model}: its vector has {found} numbers, the stored ones have \
         {stored}; to replace them all, embed everything, without --only-changed, --type and --state"
    )]
    OtherDimension {
        item_type: ItemType,
        /// The first item with such a vector.
        number: ItemNumber,
        model: String,
        stored: usize,
        found: usize,
    },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Names the items of a failed batch: one, or the first and the last.
fn items(numbers: &[ItemNumber]) -> String {
    match numbers {
        [] => String::new(),
        [one] => {
            format!("; the item was #{one}; what is embedded so far is kept, run it again with --only-changed to go on")
        }
        [first, .., last] => format!(
            "; the items were #{first} to #{last}; what is embedded so far is kept, run it again with --only-changed to go on"
        ),
    }
}

/// Texts that are embedded and committed together: enough to keep every core and worker busy, few enough that a kill
/// costs only seconds.
const BATCH: u32 = 256;
/// How many refused texts a run skips; more of them mean that the model refuses everything.
const REFUSALS: usize = 20;

#[boxed]
pub async fn embed(
    store: &Store,
    embedder: &dyn Embedder,
    repo: &Repo,
    options: EmbedOptions,
    now: Timestamp,
    progress: &mut (dyn FnMut(&EmbedReport) + Send),
) -> Result<EmbedReport, Box<EmbedFailure>> {
    let mut report = EmbedReport::default();
    let run = EmbedRun { store, embedder, repo, now };
    for item_type in ItemType::one_or_all(options.item_type) {
        if let Err(error) = refresh_boilerplate(store, repo, item_type, None, now).await {
            return Err(Box::new(EmbedFailure { so_far: report, numbers: Vec::new(), cause: error.into() }));
        }
    }
    let mut sources = vec![EmbedSource::Raw];
    if options.source != EmbedSource::Raw {
        sources.push(options.source);
    }
    for source in &sources {
        let key = source.key(embedder.model_id());
        match store.corpus().count_items_to_embed(repo.id, &key, filter_of(options)).await {
            Ok(count) => report.total += count,
            Err(error) => {
                return Err(Box::new(EmbedFailure { so_far: report, numbers: Vec::new(), cause: error.into() }));
            }
        }
    }
    for source in sources {
        if let Err(FailedBatch { numbers, cause }) = run.embed_all(source, options, &mut report, progress).await {
            return Err(Box::new(EmbedFailure { so_far: report, numbers, cause }));
        }
    }
    Ok(report)
}

fn filter_of(options: EmbedOptions) -> EmbedFilter {
    EmbedFilter { item_type: options.item_type, state: options.state, only_changed: options.only_changed }
}

/// The vector of an item's current text. It is made and stored unless it exists already. `None` for an item without a
/// card, if cards are embedded.
pub(crate) async fn embed_item(
    store: &Store,
    embedder: &dyn Embedder,
    repo: &Repo,
    item: &Item,
    source: EmbedSource,
    now: Timestamp,
) -> Result<Option<Vec<f32>>, EmbedRunError> {
    let key = source.key(embedder.model_id());
    if let Some(vector) = store.corpus().item_vector(repo.id, item.item_type, item.number, &key).await? {
        return Ok(Some(vector));
    }
    let run = EmbedRun { store, embedder, repo, now };
    let texts = run.texts(source, vec![item.clone()]).await?;
    let kept = run.stored_dimension(&key).await?;
    // A text that the model refuses must be an error here: nothing else would report it.
    let mut report = EmbedReport { refused: vec![(item.number, String::new()); REFUSALS], ..EmbedReport::default() };
    let mut made = run.embed_batch(&key, kept, texts.ready, &mut report).await.map_err(|stopped| stopped.cause)?;
    if let Some(dim) = embedder.dimension() {
        store.corpus().ensure_vector_index(dim).await?;
    }
    Ok(made.pop().map(|embedding| embedding.vector))
}

/// The items of the batch that failed, and why.
struct FailedBatch {
    numbers: Vec<ItemNumber>,
    cause: EmbedRunError,
}

impl From<StoreError> for FailedBatch {
    fn from(error: StoreError) -> Self {
        Self { numbers: Vec::new(), cause: error.into() }
    }
}

struct EmbedRun<'a> {
    store: &'a Store,
    embedder: &'a dyn Embedder,
    repo: &'a Repo,
    now: Timestamp,
}

impl EmbedRun<'_> {
    async fn embed_all(
        &self,
        source: EmbedSource,
        options: EmbedOptions,
        report: &mut EmbedReport,
        progress: &mut (dyn FnMut(&EmbedReport) + Send),
    ) -> Result<(), FailedBatch> {
        let key = source.key(self.embedder.model_id());
        let filter = filter_of(options);
        // A run over everything replaces every vector, whatever its length.
        let replaces_all = filter == EmbedFilter::default();
        let kept = if replaces_all { None } else { self.stored_dimension(&key).await? };
        let mut after = None;
        loop {
            let items = self.store.corpus().items_to_embed(self.repo.id, &key, filter, after, BATCH).await?;
            let Some(last) = items.last() else { break };
            after = Some((last.number, last.item_type));
            let texts = self.texts(source, items).await?;
            report.discovered += texts.found;
            report.without_card += texts.found - texts.ready.len() as u64;
            self.embed_batch(&key, kept, texts.ready, report).await?;
            progress(report);
        }
        if let Some(dim) = self.embedder.dimension() {
            self.store.corpus().ensure_vector_index(dim).await?;
        }
        Ok(())
    }

    /// The texts to embed; an item without a card for its current text has none.
    async fn texts(&self, source: EmbedSource, items: Vec<Item>) -> Result<EmbedTexts, StoreError> {
        let found = items.len() as u64;
        let mut shared = HashMap::new();
        for item_type in items.iter().map(|item| item.item_type) {
            if let Entry::Vacant(vacant) = shared.entry(item_type) {
                vacant.insert(stored_boilerplate(self.store, self.repo, item_type).await?);
            }
        }
        let mut ready = Vec::with_capacity(items.len());
        for item in items {
            let text = match source {
                EmbedSource::Raw => Some(shared[&item.item_type].embedded_text(&item.title, &item.body)),
                EmbedSource::Intent(extractor) => {
                    let card = self
                        .store
                        .corpus()
                        .fresh_intent_card(self.repo.id, item.item_type, item.number, extractor)
                        .await?;
                    card.as_ref().map(render_intent_card)
                }
            };
            ready.extend(text.map(|text| (item, text)));
        }
        Ok(EmbedTexts { found, ready })
    }

    /// The length of the vectors that the model made for other items of the repository.
    async fn stored_dimension(&self, key: &EmbeddingKey) -> Result<Option<usize>, StoreError> {
        for item_type in ItemType::ALL {
            if let Some(first) =
                self.store.corpus().embeddings_after(self.repo.id, key, *item_type, None, 1).await?.first()
            {
                return Ok(Some(first.vector.len()));
            }
        }
        Ok(None)
    }

    async fn embed_batch(
        &self,
        key: &EmbeddingKey,
        kept: Option<usize>,
        mut ready: Vec<(Item, String)>,
        report: &mut EmbedReport,
    ) -> Result<Vec<NewEmbedding>, FailedBatch> {
        let made = loop {
            let texts: Vec<String> = ready.iter().map(|(_, text)| text.clone()).collect();
            match self.embedder.embed_with_tokens(&texts, InputType::Document).await {
                Ok(made) => break made,
                Err(error) => match refused_text(&error).filter(|_| report.refused.len() < REFUSALS) {
                    // One text that the model never accepts must not prevent the others.
                    Some(index) if index < ready.len() => {
                        let (item, _) = ready.remove(index);
                        report.refused.push((item.number, error.to_string()));
                    }
                    _ => {
                        let range = error.texts().unwrap_or(0..ready.len());
                        let numbers = ready.get(range).unwrap_or(&ready).iter().map(|(item, _)| item.number).collect();
                        return Err(FailedBatch { numbers, cause: error.into() });
                    }
                },
            }
        };
        if let Some(stored) = kept
            && let Some(((item, _), made)) = ready.iter().zip(&made).find(|(_, made)| made.vector.len() != stored)
        {
            let (item_type, number, model, found) = (item.item_type, item.number, key.model.clone(), made.vector.len());
            let cause = EmbedRunError::OtherDimension { item_type, number, model, stored, found };
            return Err(FailedBatch { numbers: Vec::new(), cause });
        }
        let embeddings: Vec<NewEmbedding> = ready
            .iter()
            .zip(made)
            .map(|((item, _), made)| NewEmbedding {
                item_type: item.item_type,
                number: item.number,
                embedded_hash: item.content_hash.clone(),
                vector: made.vector,
                tokens: made.tokens,
            })
            .collect();
        self.store.corpus().write_embeddings(self.repo.id, key, &embeddings, self.now).await?;
        report.embedded += embeddings.len() as u64;
        Ok(embeddings)
    }
}

/// The index of the single text that a model refuses because of its content; `None` if the service itself fails.
fn refused_text(error: &EmbedError) -> Option<usize> {
    match error {
        EmbedError::Remote { texts, failure: RemoteFailure::Status { status: 400 | 413 | 422, .. }, .. }
            if texts.len() == 1 =>
        {
            Some(texts.start)
        }
        _ => None,
    }
}

struct EmbedTexts {
    found: u64,
    ready: Vec<(Item, String)>,
}
