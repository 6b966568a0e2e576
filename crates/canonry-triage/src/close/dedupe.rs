//! `dedupe`: makes a plan from the corpus in one command.

use canonry_boxed::boxed;
use std::collections::BTreeSet;
use std::path::Path;

use canonry_domain::{GateReason, ItemNumber, ItemState, ItemType};
use canonry_models::Embedder;
use canonry_store::{Repo, Store, StoreError};
use jiff::Timestamp;

use crate::close::plan_close::{PlanError, PlanOptions, PlanReport, plan_close};
use crate::corpus::analyze_intent::{AnalyzeFailure, AnalyzeOptions, IntentExtractor, analyze_intent};
use crate::judge::judge_case::Judge;
use crate::judge::judge_items::{JudgeError, JudgeOptions, JudgeReport, judge, representation_of};
use crate::judge::known_duplicates::KnownDuplicates;
use crate::retrieval::candidates::{CandidateOptions, candidates};
use crate::retrieval::embed::{EmbedFailure, EmbedOptions, EmbedSource, embed};
use crate::retrieval::neighbourhood::{NeighbourQuery, Neighbourhood, RetrievalError};

#[derive(Clone, Copy)]
pub struct Dedupers<'a> {
    pub embedder: &'a dyn Embedder,
    /// Makes the intent cards, if cards are compared.
    pub extractor: Option<IntentExtractor<'a>>,
    pub judge: Judge<'a>,
    pub snapshots: Option<&'a Path>,
}

#[derive(Debug, Clone)]
pub struct DedupeOptions {
    pub wanted: NeighbourQuery,
    pub judge: JudgeOptions,
    pub plan: PlanOptions,
    /// Whether to ask the judge about the pairs that the plan lacks.
    pub judge_missing: bool,
}

/// One round of finding and judging neighbours.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DedupeRound {
    pub sets: u64,
    /// Sets of items that were compared by their text because they have no card.
    pub fell_back: u64,
    /// Items without a vector, which were not compared.
    pub without_vector: u64,
    pub judged: JudgeReport,
}

#[derive(Debug, Clone, PartialEq)]
pub struct DedupeReport {
    pub cards_failed: u64,
    pub embedded: u64,
    /// The first round covers every open item; the others join clusters.
    pub rounds: Vec<DedupeRound>,
    pub plan: PlanReport,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DedupeStep {
    Analyzing,
    Embedding,
    Comparing(usize),
    Judging(usize),
    Planning,
}

/// Why there is no plan. What was done before is stored, and running it again continues from there.
#[derive(Debug, thiserror::Error)]
pub enum DedupeError {
    #[error(transparent)]
    Analyze(#[from] Box<AnalyzeFailure>),
    #[error(transparent)]
    Embed(#[from] Box<EmbedFailure>),
    #[error(transparent)]
    Retrieval(#[from] RetrievalError),
    #[error(transparent)]
    Judge(#[from] JudgeError),
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A round joins each cluster with at least one other, or leaves it alone for good. Five rounds, with the first,
/// bring fifty near-identical items together.
const MOST_ROUNDS: usize = 5;

/// Embeds what changed, then compares and judges until no new edge appears, then plans.
#[boxed]
pub async fn dedupe(
    store: &Store,
    repo: &Repo,
    with: Dedupers<'_>,
    options: &DedupeOptions,
    now: Timestamp,
    progress: &mut (dyn FnMut(DedupeStep, u64) + Send),
) -> Result<DedupeReport, DedupeError> {
    let source = options.judge.source;
    let mut cards_failed = 0;
    if let Some(extractor) = with.extractor {
        let analyze = AnalyzeOptions {
            item_type: options.judge.item_type,
            state: None,
            only_changed: true,
            workers: options.judge.workers,
        };
        let mut told =
            |done: &crate::corpus::analyze_intent::AnalyzeReport| progress(DedupeStep::Analyzing, done.analyzed);
        cards_failed = analyze_intent(store, repo, extractor, analyze, now, &mut told).await?.failed;
    }
    let embedding = EmbedOptions { source, item_type: options.judge.item_type, state: None, only_changed: true };
    let mut told = |done: &crate::retrieval::embed::EmbedReport| progress(DedupeStep::Embedding, done.embedded);
    let embedded = embed(store, with.embedder, repo, embedding, now, &mut told).await?.embedded;
    let mut rounds = Vec::new();
    let mut joining: Option<BTreeSet<(ItemType, ItemNumber)>> = None;
    for number in 1..=MOST_ROUNDS {
        let round = round(store, repo, with, options, joining.as_ref(), number, now, progress).await?;
        let (accepted, stopped) = (round.judged.accepted, round.judged.stopped.is_some());
        rounds.push(round);
        if accepted == 0 || stopped {
            break;
        }
        let mut next = free_members(store, repo, options).await?;
        // Two candidates that were too close to each other to choose from may be one cluster by now.
        let undecided = rounds.iter().flat_map(|round| &round.judged.decisions);
        let undecided = undecided.filter(|line| GateReason::CandidateGapTooSmall.is_stored_as(line.reason.as_deref()));
        next.extend(undecided.map(|line| (line.item_type, line.number)));
        joining = Some(next);
    }
    progress(DedupeStep::Planning, 0);
    let out_of_budget = rounds.last().is_some_and(|round| round.judged.stopped.is_some());
    let asked = (options.judge_missing && !out_of_budget).then_some((with.judge, &options.judge));
    let plan = plan_close(store, repo, asked, &options.plan, now).await?;
    Ok(DedupeReport { cards_failed, embedded, rounds, plan })
}

fn types(options: &DedupeOptions) -> Vec<ItemType> {
    ItemType::one_or_all(options.judge.item_type)
}

async fn free_members(
    store: &Store,
    repo: &Repo,
    options: &DedupeOptions,
) -> Result<BTreeSet<(ItemType, ItemNumber)>, StoreError> {
    let mut free = BTreeSet::new();
    for item_type in types(options) {
        let known = KnownDuplicates::load(store, repo, item_type, representation_of(options.judge.source)).await?;
        free.extend(known.free_members().into_iter().map(|number| (item_type, number)));
    }
    Ok(free)
}

#[expect(clippy::too_many_arguments, reason = "one round is given all that the run is given, and its number")]
async fn round(
    store: &Store,
    repo: &Repo,
    with: Dedupers<'_>,
    options: &DedupeOptions,
    joining: Option<&BTreeSet<(ItemType, ItemNumber)>>,
    number: usize,
    now: Timestamp,
    progress: &mut (dyn FnMut(DedupeStep, u64) + Send),
) -> Result<DedupeRound, DedupeError> {
    let mut round = DedupeRound::default();
    for item_type in types(options) {
        let load = async |source: EmbedSource| {
            let key = source.key(with.embedder.model_id());
            let calibration = with.embedder.calibration().clone();
            Neighbourhood::load(store, repo, item_type, key, calibration, with.snapshots).await
        };
        let near = load(options.judge.source).await?;
        let by_text = match options.judge.source {
            EmbedSource::Raw => None,
            EmbedSource::Intent(_) => Some(load(EmbedSource::Raw).await?),
        };
        let of_type = |joining: &BTreeSet<(ItemType, ItemNumber)>| {
            joining.iter().filter(|(kind, _)| *kind == item_type).map(|(_, number)| *number).collect()
        };
        let compare = CandidateOptions {
            wanted: options.wanted,
            source_state: Some(ItemState::Open),
            joining: joining.map(of_type),
        };
        let mut told = |done: u64, _: u64| progress(DedupeStep::Comparing(number), done);
        let made = candidates(store, repo, &near, by_text.as_ref(), &compare, now, &mut told).await?;
        round.sets += made.sets.len() as u64;
        round.fell_back += made.fell_back;
        round.without_vector += made.skipped_missing_embedding;
    }
    let judging = JudgeOptions { joining: joining.cloned(), ..options.judge.clone() };
    let mut told = |done: &JudgeReport| progress(DedupeStep::Judging(number), done.decisions.len() as u64);
    round.judged = judge(store, repo, with.judge, &judging, now, &mut told).await?;
    Ok(round)
}
