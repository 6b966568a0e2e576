//! `embed`: a vector for each item's text, exactly for what changed.

use canonry_domain::{Item, ItemNumber, ItemState, ItemType, raw_text};
use canonry_models::{EmbedError, Embedder, InputType};
use canonry_store::{EmbedFilter, EmbeddingKey, NewEmbedding, Repo, Representation, Store, StoreError};
use jiff::Timestamp;

/// Which items to embed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EmbedOptions {
    /// Of this type.
    pub item_type: Option<ItemType>,
    /// In this state.
    pub state: Option<ItemState>,
    /// Leave alone what is embedded by this model and has not changed since.
    pub only_changed: bool,
}

/// What was embedded so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EmbedReport {
    /// Items that were to be embedded.
    pub discovered: u64,
    /// Vectors that were stored.
    pub embedded: u64,
}

/// A run that ended early. Every batch before that is stored.
#[derive(Debug, thiserror::Error)]
#[error("{cause}{}", items(.numbers))]
pub struct EmbedFailure {
    /// What was done until then.
    pub so_far: EmbedReport,
    /// The items whose texts were in the batch that failed.
    pub numbers: Vec<ItemNumber>,
    /// What went wrong.
    #[source]
    pub cause: EmbedRunError,
}

/// What can go wrong in a run.
#[derive(Debug, thiserror::Error)]
pub enum EmbedRunError {
    /// The model failed.
    #[error("failed to {0}")]
    Model(#[from] EmbedError),
    /// The model's vectors have another length than those that stay.
    #[error(
        "failed to embed {item_type} #{number} with {model}: its vector has {found} numbers, the stored ones have \
         {stored}; to replace them all, embed everything, without --only-changed, --type and --state"
    )]
    OtherDimension {
        /// Issue or pull request.
        item_type: ItemType,
        /// The first item that was to get such a vector.
        number: ItemNumber,
        /// The model.
        model: String,
        /// How long the stored vectors are.
        stored: usize,
        /// How long the new one is.
        found: usize,
    },
    /// The store failed.
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

/// Texts that are embedded and committed together: enough to keep every core and worker busy, few
/// enough that a kill costs seconds.
const BATCH: u32 = 256;

/// Embeds the raw representation of items, batch by batch.
pub async fn embed(
    store: &Store,
    embedder: &dyn Embedder,
    repo: &Repo,
    options: EmbedOptions,
    now: Timestamp,
    progress: &mut (dyn FnMut(&EmbedReport) + Send),
) -> Result<EmbedReport, Box<EmbedFailure>> {
    let mut report = EmbedReport::default();
    let key = EmbeddingKey { representation: Representation::Raw, model: embedder.model_id().to_owned() };
    let filter = EmbedFilter { item_type: options.item_type, state: options.state, only_changed: options.only_changed };
    let failed =
        |numbers, cause, so_far: &EmbedReport| Box::new(EmbedFailure { so_far: so_far.clone(), numbers, cause });
    let replaces_all = options == EmbedOptions::default();
    let kept = if replaces_all { Ok(None) } else { stored_dimension(store, repo, &key).await };
    let kept = kept.map_err(|error| failed(Vec::new(), error.into(), &report))?;
    let mut after = None;
    loop {
        let items = match store.items_to_embed(repo.id, &key, filter, after, BATCH).await {
            Ok(items) => items,
            Err(error) => return Err(failed(Vec::new(), error.into(), &report)),
        };
        let Some(last) = items.last() else { break };
        after = Some((last.number, last.item_type));
        report.discovered += items.len() as u64;
        if let Err((numbers, cause)) = embed_batch(store, embedder, repo, &key, kept, &items, now).await {
            return Err(failed(numbers, cause, &report));
        }
        report.embedded += items.len() as u64;
        progress(&report);
    }
    if let (Some(dim), true) = (embedder.dimension(), report.embedded > 0)
        && let Err(error) = store.ensure_vector_index(dim).await
    {
        return Err(Box::new(EmbedFailure { so_far: report, numbers: Vec::new(), cause: error.into() }));
    }
    Ok(report)
}

/// How long the vectors are that the model gave to other items of the repository.
async fn stored_dimension(store: &Store, repo: &Repo, key: &EmbeddingKey) -> Result<Option<usize>, StoreError> {
    for item_type in ItemType::ALL {
        if let Some(first) = store.embeddings_after(repo.id, key, *item_type, None, 1).await?.first() {
            return Ok(Some(first.vector.len()));
        }
    }
    Ok(None)
}

async fn embed_batch(
    store: &Store,
    embedder: &dyn Embedder,
    repo: &Repo,
    key: &EmbeddingKey,
    kept: Option<usize>,
    items: &[Item],
    now: Timestamp,
) -> Result<(), (Vec<ItemNumber>, EmbedRunError)> {
    let texts: Vec<String> = items.iter().map(|item| raw_text(&item.title, &item.body)).collect();
    let vectors = embedder.embed(&texts, InputType::Document).await.map_err(|error| {
        let range = error.texts().unwrap_or(0..items.len());
        let numbers = items.get(range).unwrap_or(items).iter().map(|item| item.number).collect();
        (numbers, error.into())
    })?;
    if let Some(stored) = kept
        && let Some((item, vector)) = items.iter().zip(&vectors).find(|(_, vector)| vector.len() != stored)
    {
        let (item_type, number, model, found) = (item.item_type, item.number, key.model.clone(), vector.len());
        return Err((Vec::new(), EmbedRunError::OtherDimension { item_type, number, model, stored, found }));
    }
    let embeddings: Vec<NewEmbedding> = items
        .iter()
        .zip(vectors)
        .map(|(item, vector)| NewEmbedding {
            item_type: item.item_type,
            number: item.number,
            embedded_hash: item.content_hash.clone(),
            vector,
        })
        .collect();
    store.write_embeddings(repo.id, key, &embeddings, now).await.map_err(|error| (Vec::new(), error.into()))
}
