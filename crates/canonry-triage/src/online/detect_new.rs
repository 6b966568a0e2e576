//! `detect-new`: decides whether one item, usually a new one, is a duplicate of an open one.

use canonry_boxed::boxed;
use std::collections::BTreeMap;
use std::path::Path;

use canonry_domain::{
    Item, ItemNumber, ItemState, ItemType, OnlineThresholds, OnlineVerdict, RecordChange, RepoName, Similarity,
    ordered_scores, triage_failed,
};
use canonry_github::{GitHub, GitHubError, item_from_issue};
use canonry_models::Embedder;
use canonry_models::chat::TokenBudget;
use canonry_retrieval::{CommonFacts, Hit, RetrievalMode, TextFacts};
use canonry_store::{Repo, Representation, Store, StoreError, StoredJudge, StoredTriageRecord};
use jiff::Timestamp;
use sha2::{Digest, Sha256};

use crate::close::row_evidence::evidence_text;
use crate::corpus::analyze_intent::{IntentExtractor, analyze_item};
use crate::corpus::identify::{identify, remember};
use crate::corpus::pull_changes::fetch_changes;
use crate::corpus::refetch_item::{FETCHES, not_an_item};
use crate::corpus::sync::SyncError;
use crate::judge::judge_case::Judge;
use crate::judge::known_duplicates::KnownDuplicates;
use crate::online::compare_item::{Comparison, state_as_of};
use crate::online::fix_search::{find_fix, repeated_report};
use crate::retrieval::boilerplate::refresh_boilerplate;
use crate::retrieval::embed::{EmbedRunError, EmbedSource, embed_item};
use crate::retrieval::index_cache::IndexCache;
use crate::retrieval::loaded_index::OpenItems;
use crate::retrieval::neighbourhood::{Neighbourhood, RetrievalError};

#[derive(Debug, Clone)]
pub struct ItemQuery {
    pub repo: RepoName,
    /// Issue or pull request; `None` for either.
    pub item_type: Option<ItemType>,
    pub number: ItemNumber,
}

#[derive(Debug, Clone)]
pub struct DetectOptions {
    /// The maximum number of neighbours.
    pub k: usize,
    pub thresholds: OnlineThresholds,
    pub mode: RetrievalMode,
    pub budget: TokenBudget,
    pub run_id: String,
    /// Compare with what existed at an earlier time, and store no record; `None` for now.
    pub as_of: Option<AsOf>,
    pub used_for: AnswerUse,
    /// A backtest measures the judge itself: a model judges as if an audit had proven it, and nothing stands in for a
    /// reading that failed or was over the budget.
    pub is_backtest: bool,
}

/// What may follow from a verdict: the more, the more a model's yes is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AnswerUse {
    /// It is printed.
    Print,
    /// A comment: the model must say no about unrelated texts.
    Suggestion,
    /// A close: the texts must share evidence, and the model must say yes again with the two exchanged.
    Close,
}

/// The time as of which an item is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AsOf {
    At(Timestamp),
    /// When the item itself was filed.
    Filing,
}

impl AsOf {
    /// The moment for this item; `None` if nobody knows when the item was filed.
    fn moment(self, item: &Item) -> Option<Timestamp> {
        match self {
            Self::At(at) => Some(at),
            Self::Filing => item.created_at,
        }
    }
}

impl DetectOptions {
    /// A hash of all rules that determine a verdict.
    pub(crate) fn rules_hash(&self) -> String {
        let OnlineThresholds { min_score, maybe, duplicate } = self.thresholds;
        let rules = format!("{} {} {min_score} {maybe} {duplicate}", self.mode, self.k);
        canonry_domain::hex_digits(Sha256::digest(rules))
    }
}

#[derive(Clone, Copy)]
pub struct Detectors<'a> {
    /// Fetches the item; without it the item must be in the store.
    pub github: Option<&'a GitHub>,
    pub embedder: &'a dyn Embedder,
    /// Makes the intent card, if cards are compared.
    pub extractor: Option<IntentExtractor<'a>>,
    pub judge: Judge<'a>,
    pub snapshots: Option<&'a Path>,
    /// The cache of indexes between items; without it an index is loaded for each item.
    pub indexes: Option<&'a IndexCache>,
}

impl Detectors<'_> {
    /// The number of texts, if known without reading them.
    async fn count_texts(
        &self,
        store: &Store,
        repo: &Repo,
        item_type: ItemType,
    ) -> Result<Option<u64>, RetrievalError> {
        match self.indexes {
            Some(cache) => cache.count_texts(store, repo, item_type, self.snapshots).await,
            None => Ok(None),
        }
    }

    /// The items that an item is compared with.
    pub(crate) async fn neighbourhood(
        &self,
        store: &Store,
        repo: &Repo,
        item_type: ItemType,
        source: EmbedSource,
    ) -> Result<Neighbourhood, RetrievalError> {
        let (key, calibration) = (source.key(self.embedder.model_id()), self.embedder.calibration().clone());
        match self.indexes {
            Some(cache) => cache.neighbourhood(store, repo, item_type, key, calibration, self.snapshots).await,
            None => Neighbourhood::load(store, repo, item_type, key, calibration, self.snapshots).await,
        }
    }
}

/// A neighbour, as shown to people.
#[derive(Debug, Clone, PartialEq)]
pub struct TopMatch {
    pub number: ItemNumber,
    /// The shown score, which orders the matches ([`ordered_scores`]).
    pub score: Similarity,
    /// How similar the two texts are; gates and thresholds compare this value.
    pub similarity: Similarity,
    pub state: ItemState,
    pub title: String,
    pub url: Option<String>,
    pub judged: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct DetectReport {
    pub item: Item,
    pub verdict: OnlineVerdict,
    /// The judge's own answer.
    pub is_duplicate: bool,
    pub reasoning: Option<String>,
    /// The nearest open items, and closed ones that may show how the problem was fixed; the highest score first, open
    /// before closed.
    pub top_matches: Vec<TopMatch>,
    pub effective_source: Representation,
    pub source_fallback_reason: Option<&'static str>,
    /// Why the judge gave no usable answer, if it gave none.
    pub judge_failure: Option<String>,
    pub judge_unreachable: bool,
    /// The judge that answered; `None` if no judge was asked. In a cascade, the local one or the model.
    pub judge: Option<StoredJudge>,
    /// `None` if the comparison was as of an earlier time: no record was stored.
    pub triage_id: Option<i64>,
}

/// Why there is no verdict about an item.
#[derive(Debug, thiserror::Error)]
pub enum DetectError {
    #[error("{repo} has no {what} #{number}; check the number, or run `canonry sync` or `canonry import` first")]
    Unknown { repo: RepoName, what: &'static str, number: ItemNumber },
    #[error("{repo} #{number} is a {found}; use `--type` with that type, or leave it out")]
    OtherType { repo: RepoName, number: ItemNumber, found: &'static str },
    #[error("the date of {repo} #{number} is unknown; give one: `--as-of 2024-05-01`")]
    UnknownFiling { repo: RepoName, number: ItemNumber },
    /// The other items have no vectors to compare with. This must not look like "nothing is similar".
    #[error(
        "only {embedded} of {open} other open items of {repo} are embedded by {model} ({source_word}); run `canonry embed \
         --repo {repo} --only-changed` with the same embedder, --source and --extractor first"
    )]
    TooFewEmbedded { repo: RepoName, model: String, source_word: &'static str, embedded: usize, open: usize },
    #[error("{0}")]
    GitHub(#[from] SyncError),
    #[error(transparent)]
    Embed(#[from] EmbedRunError),
    #[error(transparent)]
    Retrieval(#[from] RetrievalError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<GitHubError> for DetectError {
    fn from(error: GitHubError) -> Self {
        Self::GitHub(error.into())
    }
}

/// The lowest score of a neighbour in the record: a threshold that is learned later may be lower than the current
/// one.
pub(crate) const KEPT: f64 = 0.50;

/// The verdict about an item, and the data that was read for it, so that the caller need not read it again.
pub(crate) struct Detection {
    pub(crate) detected: DetectReport,
    pub(crate) record: StoredTriageRecord,
    pub(crate) known: KnownDuplicates,
    /// The neighbours that the record and the matches name.
    pub(crate) neighbours: BTreeMap<ItemNumber, Item>,
    /// The facts of the item that many items contain.
    pub(crate) common: CommonFacts,
    /// Other items that the judge considers possible duplicates, best first.
    pub(crate) others: Vec<ItemNumber>,
}

/// Checks one item: fetches it from GitHub, or without GitHub finds it in the store, and continues with
/// `detect_item`.
#[boxed]
pub async fn detect_new(
    store: &Store,
    query: &ItemQuery,
    with: Detectors<'_>,
    options: &DetectOptions,
    now: Timestamp,
) -> Result<(Repo, DetectReport), DetectError> {
    let (repo, item) = match with.github {
        Some(github) => fetch_item(store, github, query).await?,
        None => stored_item(store, query).await?,
    };
    let found = detect_item(store, &repo, &item, with, options, now).await?;
    Ok((repo, found.detected))
}

/// Embeds an item, finds its neighbours, lets the judge and the guardrails decide, and stores the verdict with
/// everything it was based on.
pub(crate) async fn detect_item(
    store: &Store,
    repo: &Repo,
    item: &Item,
    with: Detectors<'_>,
    options: &DetectOptions,
    now: Timestamp,
) -> Result<Detection, DetectError> {
    let as_of = match options.as_of {
        None => None,
        Some(as_of) => {
            let unknown = || DetectError::UnknownFiling { repo: repo.name.clone(), number: item.number };
            Some(as_of.moment(item).ok_or_else(unknown)?)
        }
    };
    let texts = with.count_texts(store, repo, item.item_type).await?;
    refresh_boilerplate(store, repo, item.item_type, texts, now).await?;
    let ComparedSource { source, vector, fallback } = match (as_of, options.mode) {
        // A replay by words alone needs no vector and leaves none behind.
        (Some(_), RetrievalMode::Lexical) => ComparedSource { source: EmbedSource::Raw, vector: None, fallback: None },
        _ => prepare(store, repo, item, with, now).await?,
    };
    let near = with.neighbourhood(store, repo, item.item_type, source).await?;
    if options.mode != RetrievalMode::Lexical {
        require_vectors(repo, item, &near, with.embedder.model_id())?;
    }
    let representation = near.representation();
    let known = KnownDuplicates::load(store, repo, item.item_type, representation).await?;
    let comparison = Comparison { store, repo, item, representation, known: &known, options, as_of };
    let (open, closed) = comparison.neighbours(&near, vector).await?;
    let mut neighbours = items_of(store, repo, item.item_type, open.iter().chain(&closed)).await?;
    if let Some(at) = as_of {
        neighbours.values_mut().for_each(|neighbour| neighbour.state = state_as_of(neighbour, at));
    }
    let common = common_facts(&near, item);
    let repeated = repeated_report(&near, &known, item, &closed, &neighbours, options).await?;
    let judged = comparison.judge(near, &open, &neighbours, with, source, now).await?;
    // An open item with the same problem comes first, and a judge that failed may still find one. What fixed it may have
    // been merged later than the time that is asked about.
    let repeated = repeated
        .filter(|_| as_of.is_none() && judged.verdict.target.is_none() && !triage_failed(&judged.verdict.reason));
    let repeated = repeated.and_then(|repeated| Some((repeated, neighbours.get(&repeated.number())?)));
    let fix = match repeated {
        Some(repeated) => find_fix(store, with.github, repo, &known, item, repeated, now).await?,
        None => None,
    };
    let mut matches = top_matches(&neighbours, &open, &judged.shown);
    matches.extend(top_matches(&neighbours, &closed, &[]));
    matches.sort_by_key(|one| std::cmp::Reverse(one.score));
    let fix = fix.map(|(fix, report)| {
        neighbours.insert(report.number, report);
        fix
    });
    let record = comparison.record(&open, &judged, fix, with, fallback, now).await?;
    let detected = DetectReport {
        verdict: judged.verdict,
        is_duplicate: judged.is_duplicate,
        reasoning: judged.reasoning,
        top_matches: matches,
        effective_source: representation,
        source_fallback_reason: fallback,
        judge_failure: judged.failure,
        judge_unreachable: judged.unreachable,
        judge: judged.judge,
        triage_id: as_of.is_none().then_some(record.id),
        item: item.clone(),
    };
    Ok(Detection { detected, record, known, neighbours, common, others: judged.others })
}

/// The facts of an item that many items contain, for a caller that has only its record.
pub(crate) async fn common_facts_of(
    store: &Store,
    repo: &Repo,
    item: &Item,
    with: Detectors<'_>,
) -> Result<CommonFacts, DetectError> {
    let source = with.extractor.map_or(EmbedSource::Raw, |extractor| EmbedSource::Intent(extractor.maker().extractor));
    Ok(common_facts(&with.neighbourhood(store, repo, item.item_type, source).await?, item))
}

pub(crate) fn common_facts(near: &Neighbourhood, item: &Item) -> CommonFacts {
    near.index().common_facts(&TextFacts::of(&evidence_text(&near.boilerplate().own(item))))
}

/// The first `k` neighbours that may be judged, by rank; if there are fewer, filled up with neighbours that are only
/// recorded.
pub(crate) fn judged_before_others(open: Vec<Hit>, judged_from: Similarity, k: usize) -> Vec<Hit> {
    let (judged, others): (Vec<Hit>, Vec<Hit>) = open.into_iter().partition(|hit| hit.score >= judged_from);
    let mut kept: Vec<Hit> = judged.into_iter().chain(others).take(k).collect();
    kept.sort_by_key(|hit| hit.rank);
    for (at, hit) in kept.iter_mut().enumerate() {
        hit.rank = at + 1;
    }
    kept
}

pub(crate) async fn items_of<'a>(
    store: &Store,
    repo: &Repo,
    item_type: ItemType,
    hits: impl IntoIterator<Item = &'a Hit>,
) -> Result<BTreeMap<ItemNumber, Item>, StoreError> {
    let numbers: Vec<ItemNumber> = hits.into_iter().map(|hit| hit.number).collect();
    let items = store.corpus().items_by_number(repo.id, item_type, &numbers).await?;
    Ok(items.into_iter().map(|item| (item.number, item)).collect())
}

/// Neighbours as shown to people; `shown` are those that the judge saw.
pub(crate) fn top_matches(items: &BTreeMap<ItemNumber, Item>, hits: &[Hit], shown: &[ItemNumber]) -> Vec<TopMatch> {
    let scores = ordered_scores(&hits.iter().map(|hit| hit.score.get()).collect::<Vec<_>>());
    let matched = hits.iter().zip(scores).filter_map(|(hit, score)| {
        let item = items.get(&hit.number)?;
        Some(TopMatch {
            number: hit.number,
            score: Similarity::clamped(score).unwrap_or(hit.score),
            similarity: hit.score,
            state: item.state,
            title: item.title.clone(),
            url: item.url.clone(),
            judged: shown.contains(&hit.number),
        })
    });
    matched.collect()
}

fn unknown(query: &ItemQuery) -> DetectError {
    let what = query.item_type.map_or("item", ItemType::in_words);
    DetectError::Unknown { repo: query.repo.clone(), what, number: query.number }
}

async fn stored_item(store: &Store, query: &ItemQuery) -> Result<(Repo, Item), DetectError> {
    let repo = store.repos().find(&query.repo).await?.ok_or_else(|| unknown(query))?;
    for item_type in ItemType::one_or_all(query.item_type) {
        if let Some(item) = store.corpus().item(repo.id, item_type, query.number).await? {
            return Ok((repo, item));
        }
    }
    // With the name as spelled in the store.
    Err(unknown(&ItemQuery { repo: repo.name, ..query.clone() }))
}

/// Fetches the item from GitHub and upserts it.
async fn fetch_item(store: &Store, github: &GitHub, query: &ItemQuery) -> Result<(Repo, Item), DetectError> {
    let identified = identify(store, github, &query.repo).await.map_err(SyncError::from)?;
    let repo = remember(store, &query.repo, &identified, github.now()).await.map_err(SyncError::from)?;
    let query = ItemQuery { repo: repo.name.clone(), ..query.clone() };
    let (mut item, mut change) = take_answer(store, github, &repo, &query).await?;
    for _ in 1..FETCHES {
        // Otherwise another process has stored something else meanwhile.
        if change != RecordChange::Unordered {
            break;
        }
        (item, change) = take_answer(store, github, &repo, &query).await?;
    }
    Ok((repo, item))
}

/// Fetches the item from GitHub once, and upserts it.
async fn take_answer(
    store: &Store,
    github: &GitHub,
    repo: &Repo,
    query: &ItemQuery,
) -> Result<(Item, RecordChange), DetectError> {
    let number = query.number;
    let mut seen = Vec::new();
    for item_type in ItemType::ALL {
        seen.extend(store.corpus().item(repo.id, *item_type, number).await?);
    }
    let issue = match github.issue(&repo.name, number).await {
        Err(GitHubError::NotFound { .. } | GitHubError::Gone { .. }) => return Err(unknown(query)),
        answer => answer?,
    };
    let mut record = item_from_issue(&issue, github.now()).map_err(|error| not_an_item(&error))?;
    let item_type = record.item_type;
    if query.item_type.is_some_and(|wanted| wanted != item_type) {
        let found = item_type.in_words();
        return Err(DetectError::OtherType { repo: repo.name.clone(), number, found });
    }
    if item_type == ItemType::Pr {
        record.changes = Some(fetch_changes(github, &repo.name, number).await?);
    }
    let seen = seen.iter().find(|item| item.item_type == item_type);
    Ok(store.corpus().upsert_fetched_item(repo, seen, record, github.now()).await?)
}

/// Nine in ten of the other open items must have a vector: a verdict based on fewer would say nothing about the
/// repository.
fn require_vectors(repo: &Repo, item: &Item, near: &Neighbourhood, model: &str) -> Result<(), DetectError> {
    let OpenItems { all, embedded } = near.open_items();
    let own = near.rows().get(&item.number).filter(|row| row.state == ItemState::Open);
    let (open, embedded) =
        (all - usize::from(own.is_some()), embedded - usize::from(own.is_some_and(|row| row.embedded)));
    if embedded * 10 >= open * 9 {
        return Ok(());
    }
    Err(DetectError::TooFewEmbedded {
        repo: repo.name.clone(),
        model: model.to_owned(),
        source_word: near.representation().as_str(),
        embedded,
        open,
    })
}

/// The representation of an item that is compared.
struct ComparedSource {
    source: EmbedSource,
    vector: Option<Vec<f32>>,
    /// Why it is another source than the wanted one.
    fallback: Option<&'static str>,
}

/// Makes sure that the item has the vectors for the comparison.
async fn prepare(
    store: &Store,
    repo: &Repo,
    item: &Item,
    with: Detectors<'_>,
    now: Timestamp,
) -> Result<ComparedSource, DetectError> {
    // Needed as the fallback.
    let raw = embed_item(store, with.embedder, repo, item, EmbedSource::Raw, now).await?;
    let raw = |fallback| ComparedSource { source: EmbedSource::Raw, vector: raw, fallback };
    let Some(extractor) = with.extractor else { return Ok(raw(None)) };
    if !analyze_item(store, repo, extractor, item, now).await? {
        return Ok(raw(Some("intent_extraction_failed")));
    }
    let source = EmbedSource::Intent(extractor.maker().extractor);
    let vector = embed_item(store, with.embedder, repo, item, source, now).await?;
    Ok(ComparedSource { source, vector, fallback: None })
}

#[cfg(test)]
mod tests {
    use canonry_domain::{ItemNumber, Similarity};
    use canonry_retrieval::{Hit, ScoreParts};

    use super::judged_before_others;

    #[test]
    fn what_is_only_recorded_takes_no_place_from_what_is_judged() {
        let score = |score: f64| Similarity::new(score).expect("a score");
        let hits = |scores: &[f64]| -> Vec<Hit> {
            let hit = |(at, own): (usize, &f64)| Hit {
                number: ItemNumber::new(at as i64 + 1).expect("a number"),
                rank: at + 1,
                score: score(*own),
                parts: ScoreParts::new(),
            };
            scores.iter().enumerate().map(hit).collect()
        };
        let kept = |scores: &[f64], k: usize| -> Vec<(i64, usize)> {
            let kept = judged_before_others(hits(scores), score(0.75), k);
            kept.iter().map(|hit| (hit.number.get(), hit.rank)).collect()
        };
        assert_eq!(kept(&[0.52, 0.6, 0.8, 0.55, 0.9], 2), [(3, 1), (5, 2)]);
        assert_eq!(kept(&[0.52, 0.8, 0.6], 2), [(1, 1), (2, 2)]);
        assert_eq!(kept(&[0.8], 8), [(1, 1)]);
    }
}
