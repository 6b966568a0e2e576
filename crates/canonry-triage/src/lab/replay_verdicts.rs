//! Replays the whole judge on past items as of the time when they were filed: the verdicts that `detect-new` would
//! have given.

use canonry_boxed::boxed;
use std::collections::{BTreeMap, BTreeSet};

use canonry_domain::{
    AdjudicationCase, Interval, Item, ItemNumber, ItemType, OnlineGuardrail, OnlineReason, OnlineThresholds,
    OnlineVerdict, Probability, SETTLED_NO, STRONG_RETRIEVAL, Similarity, Verdict, VerdictEstimate, VerdictStratum,
    triage_failed,
};
use canonry_models::chat::TokenBudget;
use canonry_retrieval::{RetrievalMode, wilson};
use canonry_store::{Repo, Store, StoredJudge};
use jiff::Timestamp;
use serde::Serialize;

use crate::judge::judge_case::{CaseCandidate, Judge, JudgeCase};
use crate::lab::backtest::{BacktestError, BacktestOptions};
use crate::lab::backtest_plan::{BacktestCounts, PlannedItem, ReplayPlan};
use crate::lab::backtest_truth::TruthFile;
use crate::online::detect_new::{AnswerUse, AsOf, DetectError, DetectOptions, DetectReport, Detectors, detect_item};
use crate::retrieval::boilerplate::stored_boilerplate;
use crate::retrieval::neighbourhood::Neighbourhood;

#[derive(Debug, Clone)]
pub struct ReplayOptions {
    pub mode: RetrievalMode,
    /// Replay at most this many duplicates, and as many other items.
    pub sample: usize,
    /// The same seed chooses the same items.
    pub seed: u64,
    pub budget: TokenBudget,
    pub run_id: String,
}

/// The replayed verdicts.
#[derive(Debug, Clone, PartialEq)]
pub struct VerdictReplay {
    pub judge: StoredJudge,
    pub is_cascade: bool,
    pub counts: BacktestCounts,
    pub verdicts: Vec<ReplayedVerdict>,
    /// Items that could not be replayed because nobody knows when they were filed.
    pub without_date: usize,
    pub calls: u64,
    /// `None` if the prices are not known.
    pub cost_usd: Option<f64>,
    /// Why some items were not judged, if any.
    pub stopped: Option<String>,
    /// Planned items that were left when the budget was used up.
    pub not_reached: usize,
}

/// The verdict about one past item.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplayedVerdict {
    pub item_type: ItemType,
    pub number: ItemNumber,
    /// Whether people linked it with an earlier item.
    pub is_duplicate: bool,
    /// As given with the lowest threshold for "maybe" that is reported ([`LEVELS`]).
    pub verdict: OnlineVerdict,
    /// The similarity of the target.
    pub score: Option<Similarity>,
    /// Whether people linked the target with the item.
    pub is_linked: bool,
    /// What a person said about the pair: the same or different; `None` if nobody read it, or could not tell.
    pub read: Option<bool>,
    /// Whether a model answered.
    pub by_model: bool,
    /// Whether the judge saw an item that people linked with this one.
    pub saw_linked: bool,
    /// The candidates that the judge saw, and their similarities.
    pub(crate) shown: Vec<(ItemNumber, Similarity)>,
}

/// Verdicts of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct JudgedShare {
    #[serde(flatten)]
    pub estimate: VerdictEstimate,
    /// Verdicts among a thousand new items, at the natural frequency of duplicates.
    pub per_thousand: f64,
    /// Of the replayed duplicates, those for which such a verdict named a linked item.
    pub recall: Interval,
}

/// The confidences at which verdicts are reported.
pub const LEVELS: [f64; 5] = [0.50, 0.65, 0.75, 0.85, 0.92];

/// What asking a model about the sample will take.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct QuestionForecast {
    /// With a second reading of every item that is near enough to another one to be called a duplicate.
    pub questions: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// `None` without prices.
    pub cost_usd: Option<f64>,
}

/// Characters of a token of English text and code, and tokens of an answer: rough, and on the safe side.
const CHARACTERS_PER_TOKEN: u64 = 3;
const ANSWER_TOKENS: u64 = 350;

/// Replays a sample of past duplicates and as many other items, with the same code as `detect-new`. Nothing is stored
/// except the calls of a model, which cost money.
#[boxed]
#[expect(clippy::too_many_arguments, reason = "each is another part of what is replayed")]
pub async fn replay_verdicts(
    store: &Store,
    repo: &Repo,
    neighbourhoods: &[Neighbourhood],
    truth: Option<&TruthFile>,
    with: Detectors<'_>,
    options: &ReplayOptions,
    now: Timestamp,
    progress: &mut (dyn FnMut(u64, u64) + Send),
) -> Result<VerdictReplay, BacktestError> {
    let plan = plan(repo, neighbourhoods, truth, options)?;
    let readings = store.judge().adjudicated_pairs(repo.id).await?;
    let before = options.budget.spending();
    let mut replay = VerdictReplay {
        judge: with.judge.stored(),
        is_cascade: with.judge.is_cascade(),
        counts: plan.counts,
        verdicts: Vec::new(),
        without_date: 0,
        calls: 0,
        cost_usd: None,
        stopped: None,
        not_reached: 0,
    };
    let nothing = BTreeSet::new();
    let planned = plan.in_random_order(options.seed);
    let total = planned.len();
    for (done, PlannedItem { place, number, relevant }) in (1..).zip(planned) {
        let item_type = neighbourhoods[place].item_type();
        let linked = relevant.map_or(&nothing, |relevant| relevant);
        let Some(item) = store.corpus().item(repo.id, item_type, number).await? else { continue };
        match detect_item(store, repo, &item, with, &options.detection(), now).await {
            Ok(found) if found.detected.judge_unreachable => {
                replay.stopped = replay.stopped.or(found.detected.judge_failure);
                if options.budget.refusal().is_some() {
                    replay.not_reached = total + 1 - done;
                    break;
                }
            }
            Ok(found) => {
                let read =
                    |target| readings.get(&(item_type, number, target)).or(readings.get(&(item_type, target, number)));
                let shown = found.detected.top_matches.iter().filter(|one| one.judged);
                let shown: Vec<_> = shown.map(|one| (one.number, one.similarity)).collect();
                replay.verdicts.push(ReplayedVerdict {
                    item_type,
                    number,
                    is_duplicate: relevant.is_some(),
                    score: found.detected.target_score(),
                    is_linked: found.detected.verdict.target.is_some_and(|target| linked.contains(&target)),
                    read: found.detected.verdict.target.and_then(read).copied(),
                    by_model: found.detected.judge.as_ref().is_some_and(|judge| *judge != Judge::Local.stored()),
                    saw_linked: shown.iter().any(|(number, _)| linked.contains(number)),
                    shown,
                    verdict: found.detected.verdict,
                });
            }
            Err(DetectError::UnknownFiling { .. }) => replay.without_date += 1,
            Err(error) => return Err(error.into()),
        }
        progress(done as u64, total as u64);
    }
    replay.verdicts.sort_by_key(|one| (!one.is_duplicate, one.item_type, one.number));
    replay.count_judged();
    let spent = options.budget.spending();
    replay.calls = spent.calls - before.calls;
    replay.cost_usd = options.budget.cost(Some(0), Some(0)).map(|_| spent.cost - before.cost);
    Ok(replay)
}

/// What it will take to ask a model about the items of a replay by the local judge.
#[boxed]
pub async fn forecast_questions(
    store: &Store,
    repo: &Repo,
    local: &VerdictReplay,
    judge: Judge<'_>,
    budget: &TokenBudget,
) -> Result<QuestionForecast, BacktestError> {
    let (mut questions, mut characters) = (0, 0);
    for verdict in &local.verdicts {
        let is_settled = verdict.verdict.confidence.is_some_and(|confidence| confidence.get() < SETTLED_NO);
        if verdict.shown.is_empty()
            || judge.is_cascade() && (is_settled || verdict.verdict.verdict == Verdict::Duplicate)
        {
            continue;
        }
        let mut wanted: Vec<ItemNumber> = verdict.shown.iter().map(|(number, _)| *number).collect();
        wanted.push(verdict.number);
        let items = store.corpus().items_by_number(repo.id, verdict.item_type, &wanted).await?;
        let (source, others): (Vec<Item>, Vec<Item>) =
            items.into_iter().partition(|item| item.number == verdict.number);
        let Some(source) = source.first() else { continue };
        let boilerplate = stored_boilerplate(store, repo, verdict.item_type).await?;
        let shown = |item| CaseCandidate { item, score: Similarity::ZERO, parts: BTreeMap::new() };
        let case = JudgeCase::new(source, others.into_iter().map(shown).collect(), Default::default(), &boilerplate);
        let nearest = verdict.shown.iter().filter(|(_, score)| score.get() >= STRONG_RETRIEVAL);
        let nearest = nearest.max_by_key(|(_, score)| *score);
        let again = nearest.and_then(|(number, _)| case.exchanged(*number));
        for case in std::iter::once(&case).chain(&again) {
            questions += 1;
            characters += judge.question(case).characters() as u64;
        }
    }
    let (input_tokens, output_tokens) = (characters / CHARACTERS_PER_TOKEN, questions * ANSWER_TOKENS);
    let cost_usd = budget.cost(Some(input_tokens), Some(output_tokens));
    Ok(QuestionForecast { questions, input_tokens, output_tokens, cost_usd })
}

fn plan(
    repo: &Repo,
    neighbourhoods: &[Neighbourhood],
    truth: Option<&TruthFile>,
    options: &ReplayOptions,
) -> Result<ReplayPlan, BacktestError> {
    let options = BacktestOptions {
        mode: options.mode,
        wanted_precision: 0.0,
        limit_queries: Some(options.sample),
        seed: options.seed,
    };
    ReplayPlan::new(repo, neighbourhoods, truth, options)
}

impl ReplayOptions {
    fn detection(&self) -> DetectOptions {
        let lowest = Probability::new(LEVELS[0]).expect("invariant: the constant is in range");
        DetectOptions {
            k: 8,
            thresholds: OnlineThresholds { maybe: lowest, ..OnlineThresholds::default() },
            mode: self.mode,
            budget: self.budget.clone(),
            run_id: self.run_id.clone(),
            as_of: Some(AsOf::Filing),
            used_for: AnswerUse::Close,
            is_backtest: true,
        }
    }
}

impl DetectReport {
    fn target_score(&self) -> Option<Similarity> {
        let target = self.verdict.target?;
        self.top_matches.iter().find(|one| one.number == target).map(|one| one.similarity)
    }
}

impl ReplayedVerdict {
    /// The verdict with the default thresholds.
    pub fn given(&self) -> Verdict {
        let is_maybe = self.verdict.confidence >= Some(OnlineThresholds::default().maybe);
        match self.verdict.verdict {
            Verdict::MaybeDuplicate if is_maybe => Verdict::MaybeDuplicate,
            Verdict::MaybeDuplicate | Verdict::NotDuplicate => Verdict::NotDuplicate,
            Verdict::Duplicate => Verdict::Duplicate,
        }
    }

    /// How many of the [`LEVELS`] its confidence reaches.
    fn confidence_band(&self) -> usize {
        let confidence = self.verdict.confidence.map_or(0.0, Probability::get);
        LEVELS.iter().filter(|level| confidence >= **level).count()
    }

    /// The verdict for people to read.
    pub fn case(&self) -> Option<AdjudicationCase> {
        let target = self.verdict.target?;
        let (item_type, number, verdict, score) = (self.item_type, self.number, self.given(), self.score);
        Some(AdjudicationCase { item_type, number, verdict, target, score })
    }

    /// Whether the judge gave no usable answer.
    pub fn is_failure(&self) -> bool {
        triage_failed(&self.verdict.reason)
    }
}

impl VerdictReplay {
    /// Verdicts stand only for items that were judged, however many were planned.
    fn count_judged(&mut self) {
        let judged = |is_duplicate| self.verdicts.iter().filter(|one| one.is_duplicate == is_duplicate).count();
        (self.counts.duplicates_replayed, self.counts.others_replayed) = (judged(true), judged(false));
    }

    /// This replay, of only those items that another one judged.
    pub(crate) fn of_items_in(&self, other: &Self) -> Self {
        let judged: BTreeSet<_> = other.verdicts.iter().map(|one| (one.item_type, one.number)).collect();
        let mut same = self.clone();
        same.verdicts.retain(|one| judged.contains(&(one.item_type, one.number)));
        same.count_judged();
        same
    }

    /// How often the verdicts that pass a filter are right. People read the most telling verdicts first, so what was read
    /// stands only for verdicts of the same kind and about the same confidence.
    pub fn share(&self, is_wanted: impl Fn(&ReplayedVerdict) -> bool) -> JudgedShare {
        let counts = &self.counts;
        let weight = |is_duplicate: bool| match is_duplicate {
            true => counts.duplicates as f64 / counts.duplicates_replayed.max(1) as f64,
            false => counts.others as f64 / counts.others_replayed.max(1) as f64,
        };
        let mut strata: BTreeMap<(bool, &str, usize), VerdictStratum> = BTreeMap::new();
        let mut found = 0;
        let given = self.verdicts.iter().filter(|one| one.verdict.target.is_some() && !one.is_failure());
        for one in given.filter(|one| is_wanted(one)) {
            let stratum = (one.is_duplicate, one.given().as_str(), one.confidence_band());
            let empty = || VerdictStratum { weight: weight(one.is_duplicate), ..VerdictStratum::default() };
            strata.entry(stratum).or_insert_with(empty).count(one.is_linked, one.read);
            found += usize::from(one.is_linked);
        }
        let strata: Vec<VerdictStratum> = strata.into_values().collect();
        let items = (counts.duplicates + counts.others).max(1) as f64;
        let given: f64 = strata.iter().map(|stratum| stratum.weight * stratum.given() as f64).sum();
        JudgedShare {
            estimate: VerdictEstimate::of(&strata),
            per_thousand: 1_000.0 * given / items,
            recall: wilson(found, self.verdicts.iter().filter(|one| one.is_duplicate).count()),
        }
    }

    /// The verdicts that Canonry would have given with the default thresholds.
    pub fn of_kind(&self, kind: Verdict) -> JudgedShare {
        self.share(|one| one.given() == kind)
    }

    /// Everything that it would have said.
    pub fn said(&self) -> JudgedShare {
        self.share(|one| one.given() != Verdict::NotDuplicate)
    }

    /// What it would have commented at this threshold of the score.
    pub fn commented(&self, threshold: f64) -> JudgedShare {
        self.share(|one| {
            one.given() != Verdict::NotDuplicate && one.score.is_some_and(|score| score.get() >= threshold)
        })
    }

    /// Answers that call an item a duplicate with at least this confidence, whatever the thresholds.
    pub fn at_confidence(&self, least: f64) -> JudgedShare {
        self.share(|one| one.verdict.confidence.is_some_and(|confidence| confidence.get() >= least))
    }

    /// Verdicts that nobody linked or read, most telling first: what was said, then what was nearly said.
    pub fn worth_reading(&self) -> Vec<&ReplayedVerdict> {
        let is_open = |one: &&ReplayedVerdict| one.verdict.target.is_some() && !one.is_linked && one.read.is_none();
        let mut open: Vec<&ReplayedVerdict> =
            self.verdicts.iter().filter(is_open).filter(|one| !one.is_failure()).collect();
        open.sort_by_key(|one| match one.given() {
            Verdict::Duplicate => 0,
            Verdict::MaybeDuplicate => 1,
            Verdict::NotDuplicate => 2,
        });
        open
    }

    /// Items that a model called a duplicate with enough confidence, and not again when the two were exchanged.
    pub fn unconfirmed(&self) -> u64 {
        self.lowered_by(OnlineGuardrail::SecondReading)
    }

    /// Items that a model called a duplicate with enough confidence, and nothing else showed that they are the same.
    pub fn without_evidence(&self) -> u64 {
        self.lowered_by(OnlineGuardrail::NoSharedEvidence)
    }

    fn lowered_by(&self, guardrail: OnlineGuardrail) -> u64 {
        let reason = OnlineReason::Guardrail(guardrail);
        self.verdicts.iter().filter(|one| reason.is_stored_as(&one.verdict.reason)).count() as u64
    }

    /// Known duplicates that a cascade's local judge saw beside their original and settled as different: the most that
    /// asking the model about everything could find in addition.
    pub fn settled_duplicates(&self) -> u64 {
        let is_settled = |one: &&ReplayedVerdict| {
            one.is_duplicate && one.saw_linked && !one.by_model && one.given() == Verdict::NotDuplicate
        };
        self.verdicts.iter().filter(|one| self.is_cascade && is_settled(one)).count() as u64
    }

    /// The number of items that a model answered about.
    pub fn asked_model(&self) -> u64 {
        self.verdicts.iter().filter(|one| one.by_model).count() as u64
    }

    /// The cost of each duplicate that was named rightly, in US dollars.
    pub fn cost_per_duplicate(&self) -> Option<Interval> {
        let right = self.verdicts.iter().filter(|one| one.given() != Verdict::NotDuplicate);
        let right = right.filter(|one| one.is_linked || one.read == Some(true)).count();
        let share = wilson(right, self.verdicts.len());
        self.cost_usd.filter(|_| right > 0).map(|cost| {
            let each = |share: f64| cost / (share * self.verdicts.len() as f64);
            Interval { value: each(share.value), low: each(share.high), high: each(share.low) }
        })
    }
}
