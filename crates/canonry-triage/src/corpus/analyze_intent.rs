//! `analyze-intent`: makes an intent card for each item, by rules or with a model.

use canonry_boxed::boxed;
use canonry_domain::{
    Extractor, IntentCard, Item, ItemNumber, ItemState, ItemType, extract_locally, parse_intent_card,
};
use canonry_models::chat::{ChatError, ChatModel, intent_request};
use canonry_store::{CardMaker, CardOutcome, ItemFilter, Repo, Store, StoreError};
use futures_util::{StreamExt, stream};
use jiff::Timestamp;

use crate::corpus::import::ERRORS_KEPT;
use crate::judge::redact_secrets::WithoutSecrets;

/// What extracts the cards. The operator decides; a repository's own settings file never does.
#[derive(Clone, Copy)]
pub enum IntentExtractor<'a> {
    Local,
    Model { extractor: Extractor, model: &'a dyn ChatModel },
}

impl IntentExtractor<'_> {
    pub fn maker(&self) -> CardMaker {
        match self {
            Self::Local => CardMaker { extractor: Extractor::Local, model: "rules".to_owned() },
            Self::Model { extractor, model } => CardMaker { extractor: *extractor, model: model.model_id().to_owned() },
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnalyzeOptions {
    pub item_type: Option<ItemType>,
    pub state: Option<ItemState>,
    /// Skip items that already have a card for their current text by this extractor, model and prompt.
    pub only_changed: bool,
    /// The number of concurrent requests; at least one.
    pub workers: usize,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AnalyzeReport {
    pub discovered: u64,
    pub analyzed: u64,
    /// Items that already have a fresh card.
    pub skipped_fresh: u64,
    /// Items that have no card now. Each has a failed card with the reason.
    pub failed: u64,
    pub errors: Vec<FailedItem>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedItem {
    pub item_type: ItemType,
    pub number: ItemNumber,
    pub message: String,
}

/// A run that ended early. The cards that were made before are stored.
#[derive(Debug, thiserror::Error)]
#[error("{cause}")]
pub struct AnalyzeFailure {
    pub so_far: AnalyzeReport,
    #[source]
    pub cause: AnalyzeError,
}

#[derive(Debug, thiserror::Error)]
pub enum AnalyzeError {
    #[error("failed to {0}; check the key, the model's name and the address, then run it again with --only-changed")]
    Model(ChatError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Items are read page by page, so that memory does not grow with the repository. Extraction by rules also stores one
/// page at a time.
const PAGE: u32 = 256;

/// Makes and stores cards.
///
/// If a model fails on an item, a failed card with the reason is stored and the run continues. An error that would
/// occur on every item ends the run.
#[boxed]
pub async fn analyze_intent(
    store: &Store,
    repo: &Repo,
    extractor: IntentExtractor<'_>,
    options: AnalyzeOptions,
    now: Timestamp,
    progress: &mut (dyn FnMut(&AnalyzeReport) + Send),
) -> Result<AnalyzeReport, Box<AnalyzeFailure>> {
    let mut run = AnalyzeRun { store, repo, maker: extractor.maker(), now, report: AnalyzeReport::default() };
    let ended = run.go(extractor, options, progress).await;
    // Answers arrive in any order; the report is sorted.
    run.report.errors.sort_by_key(|failed| (failed.number, failed.item_type));
    match ended {
        Ok(()) => Ok(run.report),
        Err(cause) => Err(Box::new(AnalyzeFailure { so_far: run.report, cause })),
    }
}

/// Makes the card of one item, unless it has a fresh one. `false` means that the item has no card now; a failed card
/// contains the reason.
pub(crate) async fn analyze_item(
    store: &Store,
    repo: &Repo,
    extractor: IntentExtractor<'_>,
    item: &Item,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let maker = extractor.maker();
    let mut run = AnalyzeRun { store, repo, maker, now, report: AnalyzeReport::default() };
    let stale = run.without_fresh(vec![item.clone()]).await?;
    if stale.is_empty() {
        let card = store.corpus().fresh_intent_card(repo.id, item.item_type, item.number, run.maker.extractor).await?;
        return Ok(card.is_some());
    }
    let outcome = match extractor {
        IntentExtractor::Local => CardOutcome::Ready(Box::new(extract_locally(WithoutSecrets::of(item).source()))),
        IntentExtractor::Model { model, .. } => match ask(model, item).await {
            Ok(card) => CardOutcome::Ready(Box::new(card)),
            Err(failure) => CardOutcome::Failed(failure.to_string()),
        },
    };
    run.keep(&[(item.clone(), outcome)]).await?;
    Ok(run.report.analyzed == 1)
}

struct AnalyzeRun<'a> {
    store: &'a Store,
    repo: &'a Repo,
    maker: CardMaker,
    now: Timestamp,
    report: AnalyzeReport,
}

impl AnalyzeRun<'_> {
    async fn go(
        &mut self,
        extractor: IntentExtractor<'_>,
        options: AnalyzeOptions,
        progress: &mut (dyn FnMut(&AnalyzeReport) + Send),
    ) -> Result<(), AnalyzeError> {
        let filter = ItemFilter { item_type: options.item_type, state: options.state, with_gone: false };
        let mut after = None;
        loop {
            let items = self.store.corpus().items_after(self.repo.id, filter, after, PAGE).await?;
            let Some(last) = items.last() else { return Ok(()) };
            after = Some((last.number, last.item_type));
            self.report.discovered += items.len() as u64;
            let items = if options.only_changed { self.without_fresh(items).await? } else { items };
            match extractor {
                IntentExtractor::Local => self.page_by_rules(items).await?,
                IntentExtractor::Model { model, .. } => {
                    self.page_by_model(items, model, options.workers.max(1), progress).await?;
                }
            }
            progress(&self.report);
        }
    }

    async fn without_fresh(&mut self, mut items: Vec<Item>) -> Result<Vec<Item>, StoreError> {
        let sources = self.store.corpus().intent_card_sources(self.repo.id, &self.maker, &items).await?;
        let before = items.len();
        items.retain(|item| sources.get(&(item.item_type, item.number)) != Some(&item.content_hash));
        self.report.skipped_fresh += (before - items.len()) as u64;
        Ok(items)
    }

    async fn page_by_rules(&mut self, items: Vec<Item>) -> Result<(), AnalyzeError> {
        let extract = move || -> Vec<(Item, CardOutcome)> {
            let by_rules = |item: Item| {
                let card = extract_locally(WithoutSecrets::of(&item).source());
                (item, CardOutcome::Ready(Box::new(card)))
            };
            items.into_iter().map(by_rules).collect()
        };
        let cards = tokio::task::spawn_blocking(extract).await.expect("invariant: the rules do not panic");
        self.keep(&cards).await?;
        Ok(())
    }

    async fn page_by_model(
        &mut self,
        items: Vec<Item>,
        model: &dyn ChatModel,
        workers: usize,
        progress: &mut (dyn FnMut(&AnalyzeReport) + Send),
    ) -> Result<(), AnalyzeError> {
        let questions = items.into_iter().map(|item| async move {
            let answer = ask(model, &item).await;
            (item, answer)
        });
        let questions: Vec<_> = questions.collect();
        // Each answer is stored at once: it was paid for.
        let mut answers = stream::iter(questions).buffer_unordered(workers).ready_chunks(workers);
        while let Some(answered) = answers.next().await {
            let mut cards = Vec::with_capacity(answered.len());
            let mut hopeless = None;
            for (item, answer) in answered {
                let outcome = match answer {
                    Ok(card) => CardOutcome::Ready(Box::new(card)),
                    Err(failure) => {
                        let message = failure.to_string();
                        if let AskFailure::Chat(error) = failure {
                            hopeless = hopeless.or(error.is_hopeless().then_some(error));
                        }
                        CardOutcome::Failed(message)
                    }
                };
                cards.push((item, outcome));
            }
            self.keep(&cards).await?;
            progress(&self.report);
            if let Some(error) = hopeless {
                return Err(AnalyzeError::Model(error));
            }
        }
        Ok(())
    }

    async fn keep(&mut self, cards: &[(Item, CardOutcome)]) -> Result<(), StoreError> {
        let written = self.store.corpus().write_intent_cards(self.repo.id, &self.maker, cards, self.now).await?;
        for ((item, outcome), written) in cards.iter().zip(written) {
            match outcome {
                CardOutcome::Ready(_) if written => self.report.analyzed += 1,
                CardOutcome::Ready(_) => self.fail(item, "its text changed meanwhile; run it again"),
                CardOutcome::Failed(reason) => self.fail(item, reason),
            }
        }
        Ok(())
    }

    fn fail(&mut self, item: &Item, message: &str) {
        self.report.failed += 1;
        if self.report.errors.len() < ERRORS_KEPT {
            let (item_type, number) = (item.item_type, item.number);
            tracing::debug!(repo = %self.repo.name, %number, "no intent card");
            self.report.errors.push(FailedItem { item_type, number, message: message.to_owned() });
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum AskFailure {
    #[error("failed to {0}")]
    Chat(ChatError),
    #[error(transparent)]
    Answer(#[from] canonry_domain::CardError),
}

async fn ask(model: &dyn ChatModel, item: &Item) -> Result<IntentCard, AskFailure> {
    let safe = WithoutSecrets::of(item);
    // The hash depends on the whole text: nobody can write a text that contains its own hash.
    let boundary = &item.content_hash.as_str()[..item.content_hash.as_str().len().min(BOUNDARY_DIGITS)];
    let request = intent_request(safe.source(), boundary);
    let answer = model.complete(&request).await.map_err(AskFailure::Chat)?;
    tracing::debug!(number = %item.number, input = answer.input_tokens, output = answer.output_tokens, latency = ?answer.latency, "answered");
    Ok(parse_intent_card(&answer.text, item.item_type)?)
}

const BOUNDARY_DIGITS: usize = 16;
