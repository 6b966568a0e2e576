//! `backtest`: replays past duplicates as if they were new, against only what existed then.

use canonry_boxed::boxed;
use std::time::{Duration, Instant};

use canonry_domain::{ItemNumber, ItemType, RepoName, Similarity};
use canonry_retrieval::{Hit, ReplayQuery, RetrievalMeasures, RetrievalMode, rank_of_best};
use canonry_store::{IndexRow, Repo, Store, StoreError};
use serde::Serialize;

use crate::lab::backtest_plan::{BacktestCounts, ReplayPlan};
use crate::lab::backtest_truth::{TruthFile, TruthMistake};
use crate::lab::backtest_verdicts::{FirstAnswers, Verdicts};
use crate::online::detect_new::DetectError;
use crate::retrieval::neighbourhood::{NeighbourQuery, Neighbourhood, RetrievalError};

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BacktestOptions {
    pub mode: RetrievalMode,
    pub wanted_precision: f64,
    /// Replay at most this many duplicates, and as many other items.
    pub limit_queries: Option<usize>,
    /// Chooses samples and intervals; the same seed gives the same figures.
    pub seed: u64,
}

/// The result of the replay.
#[derive(Debug, Clone, PartialEq)]
pub struct Backtest {
    pub repo: RepoName,
    /// The model of the vectors; `None` if none were used.
    pub model: Option<String>,
    /// Whether scores were fitted to data, instead of being the model's bare cosines.
    pub calibrated: bool,
    pub options: BacktestOptions,
    /// Whether a truth file was used instead of what people closed as duplicates.
    pub from_truth_file: bool,
    pub counts: BacktestCounts,
    pub retrieval: RetrievalMeasures,
    /// The same for issues and for pull requests, if both were replayed.
    pub by_type: Vec<(ItemType, RetrievalMeasures)>,
    /// The share of duplicates found among the first k neighbours, for each k.
    pub recall_curve: Vec<(usize, f64)>,
    pub verdicts: Verdicts,
    /// The duplicates whose right item was ranked worst, worst first.
    pub misses: Vec<Miss>,
    pub mistakes: Vec<TruthMistake>,
    pub timing: BacktestTiming,
}

/// A duplicate whose right item was not ranked first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Miss {
    #[serde(rename = "type")]
    pub item_type: ItemType,
    pub duplicate: NamedItem,
    /// The best ranked of the items that it duplicates, or the oldest if none was found.
    pub expected: NamedItem,
    /// The rank of that item; `None` if it was not among the first hundred.
    pub rank: Option<usize>,
    /// What was ranked first instead.
    pub first: Option<NamedItem>,
    pub first_score: Option<Similarity>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NamedItem {
    pub number: ItemNumber,
    pub title: String,
    pub url: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BacktestTiming {
    pub replay_seconds: f64,
    /// The median time of a search, in milliseconds.
    pub search_ms_p50: f64,
    /// The 95th percentile of the time of a search, in milliseconds.
    pub search_ms_p95: f64,
}

#[derive(Debug, thiserror::Error)]
pub enum BacktestError {
    #[error(
        "no duplicates are known in {repo}, so there is nothing to replay; learn them with `canonry sync --repo {repo} --outcomes`, or name them in a file with --truth"
    )]
    NoDuplicates { repo: RepoName },
    /// Duplicates are known, but no earlier items that they duplicate.
    #[error(
        "{known} duplicates are known in {repo}, but nothing that they duplicate was there before them; import the whole history with `canonry sync --repo {repo}`"
    )]
    NothingEarlier { repo: RepoName, known: usize },
    #[error("no line of the truth file can be used; line {}: {}", .first.line, .first.message)]
    UselessTruth {
        /// The first mistake.
        first: TruthMistake,
    },
    #[error(
        "nothing that could be replayed in {repo} is embedded by {model}; run `canonry embed --repo {repo}` with the same embedder first, or replay without vectors: --retrieval lexical"
    )]
    NotEmbedded { repo: RepoName, model: String },
    #[error(transparent)]
    Retrieval(#[from] RetrievalError),
    #[error(transparent)]
    Detect(#[from] DetectError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Neighbours fetched for each item: as many as each part of retrieval returns.
const NEIGHBOURS: usize = 100;
/// How many misses are kept: more than anybody reads.
const MISSES: usize = 20;
/// The values of k at which recall is measured.
const CURVE: [usize; 8] = [1, 2, 3, 5, 10, 20, 50, 100];

/// Replays every past duplicate of these neighbourhoods (issues, pull requests, or both), and a sample of other items
/// to measure false suggestions. Only data from when the item was filed is used: not its labels, its state or its
/// close.
#[boxed]
pub async fn backtest(
    store: &Store,
    repo: &Repo,
    neighbourhoods: &[Neighbourhood],
    truth: Option<&TruthFile>,
    options: BacktestOptions,
    progress: &mut (dyn FnMut(u64, u64) + Send),
) -> Result<Backtest, BacktestError> {
    let begun = Instant::now();
    let plan = ReplayPlan::new(repo, neighbourhoods, truth, options)?;
    let total = (plan.queries.len() + plan.others.len()) as u64;
    let mut done = 0;
    let mut step = || {
        done += 1;
        progress(done, total);
    };
    let mut times = Vec::new();
    let mut replayed = Vec::new();
    for (place, query) in &plan.queries {
        let hits = replay(&neighbourhoods[*place], query.number, options.mode, &mut times).await?;
        replayed.push(ReplayedDuplicate { place: *place, query, hits });
        step();
    }
    let mut others = Vec::new();
    for (place, number) in &plan.others {
        let hits = replay(&neighbourhoods[*place], *number, options.mode, &mut times).await?;
        others.push(hits.first().map(|hit| hit.score));
        step();
    }
    let answers = FirstAnswers {
        duplicates: replayed
            .iter()
            .map(|item| (item.hits.first().map(|hit| hit.score), item.rank() == Some(1)))
            .collect(),
        duplicates_in_all: plan.counts.duplicates,
        others,
        others_in_all: plan.counts.others,
    };
    let ranks: Vec<Option<usize>> = replayed.iter().map(ReplayedDuplicate::rank).collect();
    Ok(Backtest {
        repo: repo.name.clone(),
        model: plan.model,
        calibrated: neighbourhoods.iter().all(|neighbourhood| neighbourhood.calibration().is_fitted()),
        options,
        from_truth_file: truth.is_some(),
        counts: plan.counts,
        retrieval: RetrievalMeasures::of(&ranks, options.seed),
        by_type: by_type(neighbourhoods, &replayed, options.seed),
        recall_curve: CURVE.map(|k| (k, found_among(&ranks, k))).to_vec(),
        verdicts: Verdicts::of(&answers, options.wanted_precision),
        misses: worst_misses(store, repo, neighbourhoods, &replayed).await?,
        mistakes: plan.mistakes,
        timing: timing(begun.elapsed(), times),
    })
}

struct ReplayedDuplicate<'a> {
    place: usize,
    query: &'a ReplayQuery,
    hits: Vec<Hit>,
}

impl ReplayedDuplicate<'_> {
    fn rank(&self) -> Option<usize> {
        rank_of_best(self.hits.iter().map(|hit| hit.number), &self.query.relevant)
    }
}

/// What would have been found for an item when it was filed. Empty if the item lost its text or vector since the plan
/// was made.
async fn replay(
    neighbourhood: &Neighbourhood,
    number: ItemNumber,
    mode: RetrievalMode,
    times: &mut Vec<Duration>,
) -> Result<Vec<Hit>, RetrievalError> {
    let entry = neighbourhood.entry(number).await?;
    let entry = entry.filter(|entry| mode == RetrievalMode::Lexical || entry.vector.is_some());
    let (Some(entry), Some(own)) = (entry, neighbourhood.rows().get(&number)) else {
        return Ok(Vec::new());
    };
    // The order of `CreationOrder`, without its lookups: this is called for every item of the corpus.
    let earlier = |row: &IndexRow| (row.created_at, row.number) < (own.created_at, own.number);
    let wanted = NeighbourQuery { mode, k: NEIGHBOURS, min_score: Similarity::ZERO, state: None };
    let begun = Instant::now();
    let query = Neighbourhood::query_of(&entry);
    let hits = neighbourhood.neighbours(&query, entry.vector.as_deref(), wanted, &earlier).await?;
    times.push(begun.elapsed());
    Ok(hits)
}

fn found_among(ranks: &[Option<usize>], k: usize) -> f64 {
    let found = ranks.iter().filter(|rank| rank.is_some_and(|rank| rank <= k)).count();
    found as f64 / ranks.len().max(1) as f64
}

fn by_type(
    neighbourhoods: &[Neighbourhood],
    replayed: &[ReplayedDuplicate<'_>],
    seed: u64,
) -> Vec<(ItemType, RetrievalMeasures)> {
    let measured = neighbourhoods.iter().enumerate().filter_map(|(place, neighbourhood)| {
        let ranks: Vec<Option<usize>> =
            replayed.iter().filter(|item| item.place == place).map(ReplayedDuplicate::rank).collect();
        (!ranks.is_empty()).then(|| (neighbourhood.item_type(), RetrievalMeasures::of(&ranks, seed)))
    });
    measured.collect()
}

async fn worst_misses(
    store: &Store,
    repo: &Repo,
    neighbourhoods: &[Neighbourhood],
    replayed: &[ReplayedDuplicate<'_>],
) -> Result<Vec<Miss>, StoreError> {
    let mut missed: Vec<&ReplayedDuplicate<'_>> = replayed.iter().filter(|item| item.rank() != Some(1)).collect();
    missed.sort_by_key(|item| (std::cmp::Reverse(item.rank().unwrap_or(usize::MAX)), item.place, item.query.number));
    let mut misses = Vec::new();
    for item in missed.into_iter().take(MISSES) {
        let item_type = neighbourhoods[item.place].item_type();
        let rank = item.rank();
        let expected = match rank {
            Some(rank) => item.hits.get(rank - 1).map(|hit| hit.number),
            None => item.query.relevant.first().copied(),
        };
        let expected = expected.expect("invariant: a query has something relevant");
        let first = item.hits.first();
        misses.push(Miss {
            item_type,
            duplicate: named(store, repo, item_type, item.query.number).await?,
            expected: named(store, repo, item_type, expected).await?,
            rank,
            first: match first {
                Some(hit) => Some(named(store, repo, item_type, hit.number).await?),
                None => None,
            },
            first_score: first.map(|hit| hit.score),
        });
    }
    Ok(misses)
}

async fn named(store: &Store, repo: &Repo, item_type: ItemType, number: ItemNumber) -> Result<NamedItem, StoreError> {
    let item = store.corpus().item(repo.id, item_type, number).await?;
    let (title, url) = item.map(|item| (item.title, item.url)).unwrap_or_default();
    Ok(NamedItem { number, title, url })
}

fn timing(all: Duration, mut times: Vec<Duration>) -> BacktestTiming {
    times.sort_unstable();
    let milliseconds = |share: f64| {
        let at = ((times.len() as f64 * share) as usize).min(times.len().saturating_sub(1));
        times.get(at).map_or(0.0, |time| time.as_secs_f64() * 1_000.0)
    };
    BacktestTiming {
        replay_seconds: all.as_secs_f64(),
        search_ms_p50: milliseconds(0.5),
        search_ms_p95: milliseconds(0.95),
    }
}
