//! `judge`: asks about each item's candidates, lets the gates decide, and stores the decisions.

use canonry_boxed::boxed;
use std::collections::{BTreeMap, BTreeSet};

use canonry_domain::{
    Boilerplate, ContentVersion, DecisionOrigin, DecisionStatus, Edge, GateDecision, GateReason, GateRules,
    InvalidAnswer, Item, ItemNumber, ItemState, ItemType, JudgeAnswer, Probability, RepoName, gate_answer,
    gate_before_judge,
};
use canonry_models::chat::{ChatError, TokenBudget, TokenSpending};
use canonry_retrieval::CommonFacts;
use canonry_store::{
    CandidateSet, NewDecision, NewLlmCall, Repo, Representation, SetFilter, SetStatus, Store, StoreError,
    StoredDecision,
};
use futures_util::{StreamExt, stream};
use jiff::Timestamp;
use tokio::sync::OnceCell;

use crate::close::common_evidence::every_common_fact;
use crate::corpus::analyze_intent::FailedItem;
use crate::corpus::import::ERRORS_KEPT;
use crate::judge::judge_case::{AnswerRules, Judge, JudgeCase, JudgeFailure, JudgeQuestion, JudgeReply};
use crate::judge::known_duplicates::KnownDuplicates;
use crate::judge::pair_decision::{DecisionContext, keep_refuted};
use crate::retrieval::boilerplate::refresh_boilerplate;
use crate::retrieval::embed::EmbedSource;

#[derive(Debug, Clone)]
pub struct JudgeOptions {
    pub item_type: Option<ItemType>,
    pub source: EmbedSource,
    pub min_edge: Probability,
    pub allow_stale: bool,
    pub rejudge: bool,
    /// Only these sources, to join their clusters with others: an accepted answer replaces the source's edge.
    pub joining: Option<BTreeSet<(ItemType, ItemNumber)>>,
    /// The number of concurrent questions; at least one.
    pub workers: usize,
    pub budget: TokenBudget,
    /// The hash of the settings in force, stored with each decision.
    pub config_hash: String,
    pub run_id: String,
}

/// The decision about one candidate set.
#[derive(Debug, Clone, PartialEq)]
pub struct DecisionLine {
    pub item_type: ItemType,
    pub number: ItemNumber,
    pub target: Option<ItemNumber>,
    /// The judge's own answer; `None` if it was not asked or its answer was invalid.
    pub model_is_duplicate: Option<bool>,
    pub status: DecisionStatus,
    /// The gate that decided; `None` if the pair was accepted or the judge itself said no.
    pub reason: Option<String>,
    pub confidence: Option<Probability>,
    pub reasoning: Option<String>,
    /// Whether an earlier answer to the same question was used.
    pub reused: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct JudgeReport {
    pub discovered: u64,
    pub judged: u64,
    /// Judged sets whose answer was given in an earlier run.
    pub reused: u64,
    pub accepted: u64,
    pub rejected: u64,
    pub skipped_existing_edge: u64,
    pub skipped_no_candidates: u64,
    pub skipped_vague: u64,
    /// Sources without text of their own.
    pub skipped_no_content: u64,
    pub stale_sets_used: u64,
    /// Judged sets that the local judge settled, so that the model of a cascade was not asked.
    pub settled_locally: u64,
    pub invalid: u64,
    /// Questions without an answer; the next run asks them again.
    pub failed: u64,
    pub calls: u64,
    pub cost_usd: f64,
    /// Why the run stopped early, if it did.
    pub stopped: Option<String>,
    pub decisions: Vec<DecisionLine>,
    /// The reasons, for the first of the failed ones.
    pub errors: Vec<FailedItem>,
}

/// Why a run ended early. What was decided before that is stored.
#[derive(Debug, thiserror::Error)]
pub enum JudgeError {
    #[error(
        "failed to {0}; check the key, the model's name and the address, then run it again; finished verdicts are kept"
    )]
    Model(ChatError),
    /// There is no candidate set to compare two judges on.
    #[error(
        "no open item of {repo} has a fresh candidate set, so there is nothing to audit; run `canonry candidates --repo {repo}` first"
    )]
    NothingToAudit { repo: RepoName },
    #[error(transparent)]
    Store(#[from] StoreError),
}

const PAGE: u32 = 256;

#[boxed]
pub async fn judge(
    store: &Store,
    repo: &Repo,
    judge: Judge<'_>,
    options: &JudgeOptions,
    now: Timestamp,
    progress: &mut (dyn FnMut(&JudgeReport) + Send),
) -> Result<JudgeReport, JudgeError> {
    let types = ItemType::one_or_all(options.item_type);
    let mut report = JudgeReport::default();
    // The budget may be shared with earlier questions.
    let before = options.budget.spending();
    for item_type in types {
        let boilerplate = refresh_boilerplate(store, repo, item_type, None, now).await?;
        let known = KnownDuplicates::load(store, repo, item_type, representation_of(options.source)).await?;
        let mut run = JudgeRun {
            store,
            repo,
            judge,
            options,
            now,
            item_type,
            boilerplate,
            known,
            common: OnceCell::new(),
            before: &before,
            report: &mut report,
        };
        run.go(progress).await?;
    }
    Ok(report)
}

pub(crate) fn representation_of(source: EmbedSource) -> Representation {
    match source {
        EmbedSource::Raw => Representation::Raw,
        EmbedSource::Intent(_) => Representation::Intent,
    }
}

struct JudgeRun<'a> {
    store: &'a Store,
    repo: &'a Repo,
    judge: Judge<'a>,
    options: &'a JudgeOptions,
    now: Timestamp,
    item_type: ItemType,
    boilerplate: Boilerplate,
    known: KnownDuplicates,
    /// What many items contain; counted before the first question.
    common: OnceCell<CommonFacts>,
    before: &'a TokenSpending,
    report: &'a mut JudgeReport,
}

/// A candidate set on its way through the gates.
struct JudgeWork<'a> {
    set: CandidateSet,
    source: Item,
    /// Whether the source has an accepted edge that a new decision may replace.
    replaces: bool,
    latest: Option<StoredDecision>,
    step: JudgeStep<'a>,
}

enum JudgeStep<'a> {
    Done(CaseEnd<'a>),
    Ask { judge: Judge<'a>, case: Box<JudgeCase>, question: JudgeQuestion },
}

enum CaseEnd<'a> {
    /// A gate decided before the judge was asked.
    Ruled(GateDecision, DecisionOrigin),
    Answered(Box<AnsweredCase<'a>>),
    Unheard(JudgeFailure),
}

struct AnsweredCase<'a> {
    /// Who answered.
    judge: Judge<'a>,
    case: JudgeCase,
    question: JudgeQuestion,
    heard: JudgeReply,
    /// Whether the same question was answered before.
    reused: bool,
}

impl JudgeStep<'_> {
    fn ruled(ruled: GateDecision, origin: DecisionOrigin) -> Self {
        Self::Done(CaseEnd::Ruled(ruled, origin))
    }
}

impl<'a> JudgeRun<'a> {
    fn filter(&self) -> SetFilter {
        SetFilter {
            item_type: Some(self.item_type),
            representation: representation_of(self.options.source),
            source_state: Some(ItemState::Open),
            allow_stale: self.options.allow_stale,
        }
    }

    async fn go(&mut self, progress: &mut (dyn FnMut(&JudgeReport) + Send)) -> Result<(), JudgeError> {
        let mut after = None;
        loop {
            let sets = self.store.duplicates().latest_candidate_sets(self.repo.id, self.filter(), after, PAGE).await?;
            let Some(last) = sets.last() else { return Ok(()) };
            after = Some((last.number, last.item_type));
            let works = self.prepare(sets).await?;
            self.report.discovered += works.len() as u64;
            self.work(works, progress).await?;
            if self.report.stopped.is_some() {
                return Ok(());
            }
        }
    }

    /// Decides everything in a page that needs no question to the judge.
    async fn prepare(&self, sets: Vec<CandidateSet>) -> Result<Vec<JudgeWork<'a>>, StoreError> {
        let representation = representation_of(self.options.source);
        let sources: Vec<ItemNumber> = sets.iter().map(|set| set.number).collect();
        let mut wanted: Vec<ItemNumber> = sources.clone();
        wanted.extend(sets.iter().flat_map(|set| set.members.iter().map(|member| member.number)));
        wanted.sort_unstable();
        wanted.dedup();
        let items = self.store.corpus().items_by_number(self.repo.id, self.item_type, &wanted).await?;
        let items: BTreeMap<ItemNumber, Item> = items.into_iter().map(|item| (item.number, item)).collect();
        let latest =
            self.store.judge().latest_decisions(self.repo.id, self.item_type, representation, &sources).await?;
        let mut works = Vec::with_capacity(sets.len());
        for set in sets {
            if self.options.joining.as_ref().is_some_and(|joining| !joining.contains(&(set.item_type, set.number))) {
                continue;
            }
            let Some(source) = items.get(&set.number).cloned() else { continue };
            let latest = latest.get(&set.number).cloned();
            let replaces = self.known.edge_of(set.number).is_some();
            let step = self.step(&set, &source, &items).await?;
            works.push(JudgeWork { set, source, replaces, latest, step });
        }
        Ok(works)
    }

    async fn step(
        &self,
        set: &CandidateSet,
        source: &Item,
        items: &BTreeMap<ItemNumber, Item>,
    ) -> Result<JudgeStep<'a>, StoreError> {
        let number = source.number;
        let ruled = |status, target, reason| GateDecision { status, target, reason: Some(reason) };
        if let Some(target) = self.known.ruled_duplicate_of(number) {
            // A ruling is valid without an edge, so an edge that a judge found in addition may stay.
            if self.known.fresh_edge_of(number).is_some() {
                let skipped = ruled(DecisionStatus::Skipped, Some(target), GateReason::ExistingEdge);
                return Ok(JudgeStep::ruled(skipped, DecisionOrigin::Override));
            }
            return Ok(JudgeStep::ruled(GateDecision::accepted(target), DecisionOrigin::Override));
        }
        let mut case = JudgeCase::of_set(source, set, items, &self.boilerplate);
        let replaces = self.options.rejudge || self.options.joining.is_some();
        let edge = self.known.fresh_edge_of(number).filter(|_| !replaces);
        let before = case.candidates.len();
        case.candidates.retain(|one| !self.known.ruled_not_duplicates(number, one.item.number));
        if before > 0 && case.candidates.is_empty() && edge.is_none() {
            let rejected = ruled(DecisionStatus::Rejected, None, GateReason::RuledOut);
            return Ok(JudgeStep::ruled(rejected, DecisionOrigin::Override));
        }
        if let Some(skipped) = gate_before_judge(&case.gate_source(), &case.gate_candidates()) {
            return Ok(JudgeStep::ruled(skipped, DecisionOrigin::Batch));
        }
        if let Some(edge) = edge {
            let skipped = ruled(DecisionStatus::Skipped, Some(edge.target), GateReason::ExistingEdge);
            return Ok(JudgeStep::ruled(skipped, DecisionOrigin::Batch));
        }
        let common = self.common.get_or_try_init(|| every_common_fact(self.store, self.repo, self.item_type)).await?;
        case.set_common_facts(common);
        case.cards = cards_of(self.store, self.repo, self.options.source, &case).await?;
        let judge = self.judge.for_case(&case, AnswerRules::Edge(&self.rules()));
        let question = judge.question(&case);
        if self.options.rejudge {
            return Ok(JudgeStep::Ask { judge, case: Box::new(case), question });
        }
        let (repo, kind, representation) = (self.repo.id, self.item_type, set.representation);
        let told =
            self.store.judge().answered_decision(repo, kind, number, representation, &question.input_hash).await?;
        Ok(match told.as_ref().and_then(|told| Some((told, told.answer.clone()?))) {
            Some((told, said)) => {
                let heard = JudgeReply { answer: replayed(&case, &said, told), said, call: None };
                let answered = AnsweredCase { judge, case, question, heard, reused: true };
                JudgeStep::Done(CaseEnd::Answered(Box::new(answered)))
            }
            None => JudgeStep::Ask { judge, case: Box::new(case), question },
        })
    }

    /// Asks the judge, in the order of the sets: what the gates know about clusters must not depend on which answer
    /// comes first.
    async fn work(
        &mut self,
        works: Vec<JudgeWork<'a>>,
        progress: &mut (dyn FnMut(&JudgeReport) + Send),
    ) -> Result<(), JudgeError> {
        let (budget, workers) = (&self.options.budget, self.options.workers.max(1));
        let asked = works.into_iter().map(|work| async move {
            let JudgeWork { set, source, replaces, latest, step } = work;
            let done = match step {
                JudgeStep::Done(done) => done,
                JudgeStep::Ask { judge, case, question } => ask(judge, budget, *case, question).await,
            };
            (set, source, replaces, latest, done)
        });
        let asked: Vec<_> = asked.collect();
        let mut answers = stream::iter(asked).buffered(workers).ready_chunks(workers);
        while let Some(chunk) = answers.next().await {
            let mut writes = Vec::new();
            let mut calls = Vec::new();
            let mut hopeless = None;
            for (set, source, replaces, latest, done) in chunk {
                match done {
                    // Questions in progress are completed: they are paid for.
                    CaseEnd::Unheard(JudgeFailure::OverBudget(why)) => {
                        self.report.stopped.get_or_insert(why);
                    }
                    CaseEnd::Unheard(JudgeFailure::NoAnswer { error, call }) => {
                        self.fail(&source, &format!("failed to {error}"));
                        calls.push(*call);
                        hopeless = hopeless.or(error.is_hopeless().then_some(error));
                    }
                    CaseEnd::Ruled(ruled, origin) => {
                        self.count(&set, &ruled);
                        let decision = self.ruled(&set, &source, &ruled, origin, replaces);
                        self.keep(decision, latest.as_ref(), None, false, &mut writes);
                    }
                    CaseEnd::Answered(answered) => {
                        let AnsweredCase { judge, case, question, heard, reused } = *answered;
                        let earlier = latest.as_ref().filter(|_| !self.options.rejudge);
                        let ruled = keep_refuted(self.gate(&case, &heard.answer), earlier, judge, &case);
                        self.count(&set, &ruled);
                        self.report.judged += 1;
                        self.report.settled_locally += u64::from(self.judge.is_cascade() && judge.is_local());
                        self.report.reused += u64::from(reused);
                        calls.extend(heard.call.clone());
                        let decision = self.answered(&set, judge, &case, &question, &heard, &ruled, replaces);
                        let reasoning = heard.answer.ok().map(|answer| answer.reasoning);
                        self.keep(decision, latest.as_ref().filter(|_| reused), reasoning, reused, &mut writes);
                    }
                }
            }
            self.store.judge().write_decisions(self.repo.id, &writes, self.now).await?;
            self.record_calls(&calls).await?;
            let spent = self.options.budget.spending();
            self.report.calls = spent.calls - self.before.calls;
            self.report.cost_usd = spent.cost - self.before.cost;
            progress(self.report);
            if let Some(error) = hopeless {
                return Err(JudgeError::Model(error));
            }
        }
        Ok(())
    }

    async fn record_calls(&self, calls: &[NewLlmCall]) -> Result<(), StoreError> {
        if calls.is_empty() {
            return Ok(());
        }
        self.store.models().record_calls(Some(self.repo.id), &self.options.run_id, calls, self.now).await
    }

    fn rules(&self) -> GateRules {
        GateRules { min_edge: self.options.min_edge, check_target_state: true }
    }

    /// The gates after the answer. Clusters are read now: earlier sets of this run may have joined some.
    fn gate(&self, case: &JudgeCase, answer: &Result<JudgeAnswer, InvalidAnswer>) -> GateDecision {
        let rules = self.rules();
        let mut candidates = case.gate_candidates();
        for candidate in &mut candidates {
            candidate.cluster = self.known.cluster_of(candidate.item.number);
        }
        gate_answer(&case.gate_source(), &candidates, &case.pairs, answer, &rules)
    }

    fn count(&mut self, set: &CandidateSet, ruled: &GateDecision) {
        let report = &mut *self.report;
        report.stale_sets_used += u64::from(set.status == SetStatus::Stale);
        match (ruled.status, &ruled.reason) {
            (DecisionStatus::Accepted, _) => report.accepted += 1,
            (DecisionStatus::Rejected, _) => report.rejected += 1,
            (DecisionStatus::Skipped, Some(GateReason::NoCandidates)) => report.skipped_no_candidates += 1,
            (DecisionStatus::Skipped, Some(GateReason::SourceTooVague)) => report.skipped_vague += 1,
            (DecisionStatus::Skipped, Some(GateReason::NoContent)) => report.skipped_no_content += 1,
            (DecisionStatus::Skipped, Some(GateReason::ExistingEdge)) => report.skipped_existing_edge += 1,
            (DecisionStatus::Skipped, _) => report.invalid += 1,
        }
    }

    fn fail(&mut self, source: &Item, message: &str) {
        self.report.failed += 1;
        if self.report.errors.len() < ERRORS_KEPT {
            let (item_type, number) = (source.item_type, source.number);
            self.report.errors.push(FailedItem { item_type, number, message: message.to_owned() });
        }
    }

    fn ruled(
        &self,
        set: &CandidateSet,
        source: &Item,
        ruled: &GateDecision,
        origin: DecisionOrigin,
        replaces: bool,
    ) -> NewDecision {
        let accepted = ruled.status == DecisionStatus::Accepted;
        NewDecision {
            candidate_set: Some(set.id),
            // If a person ruled candidates out, an edge ends only if its own target is among them.
            replaces: replaces
                && match ruled.status {
                    DecisionStatus::Accepted => true,
                    DecisionStatus::Rejected => self.is_edge_ruled_out(source.number),
                    DecisionStatus::Skipped => false,
                },
            confidence: accepted.then_some(Probability::ONE),
            target_version: ruled.target.filter(|_| accepted).map(|target| self.version_of(target)),
            ..self.context(self.judge, origin).ruled(source, ruled)
        }
    }

    fn context(&self, judge: Judge<'a>, origin: DecisionOrigin) -> DecisionContext<'_> {
        DecisionContext {
            judge,
            representation: representation_of(self.options.source),
            origin,
            config_hash: &self.options.config_hash,
            run_id: &self.options.run_id,
        }
    }

    fn is_edge_ruled_out(&self, source: ItemNumber) -> bool {
        self.known.edge_of(source).is_some_and(|edge| self.known.ruled_not_duplicates(source, edge.target))
    }

    fn version_of(&self, target: ItemNumber) -> ContentVersion {
        self.known.version_of(target).unwrap_or(ContentVersion::FIRST)
    }

    #[expect(clippy::too_many_arguments, reason = "a decision is about all of them")]
    fn answered(
        &self,
        set: &CandidateSet,
        judge: Judge<'a>,
        case: &JudgeCase,
        question: &JudgeQuestion,
        heard: &JudgeReply,
        ruled: &GateDecision,
        replaces: bool,
    ) -> NewDecision {
        NewDecision {
            candidate_set: Some(set.id),
            // An invalid answer proves nothing about the earlier edge, and neither does a no about candidates other
            // than its target.
            replaces: replaces
                && match ruled.status {
                    DecisionStatus::Accepted => true,
                    DecisionStatus::Rejected => {
                        let edge = self.known.edge_of(case.source.number);
                        edge.is_some_and(|edge| case.numbers().contains(&edge.target))
                    }
                    DecisionStatus::Skipped => false,
                },
            ..self.context(judge, DecisionOrigin::Batch).decision(case, question.input_hash.clone(), Some(heard), ruled)
        }
    }

    /// Adds a decision to the report and to the known clusters, and to the decisions to store unless the stored one
    /// is the same.
    fn keep(
        &mut self,
        decision: NewDecision,
        latest: Option<&StoredDecision>,
        reasoning: Option<String>,
        reused: bool,
        writes: &mut Vec<NewDecision>,
    ) {
        match (decision.status, decision.target, decision.confidence) {
            (DecisionStatus::Accepted, Some(target), Some(confidence)) => self.known.accept(Edge {
                source: decision.number,
                target,
                confidence,
                source_version: decision.source_version,
                target_version: decision.target_version.unwrap_or(ContentVersion::FIRST),
                human: decision.origin == DecisionOrigin::Override,
            }),
            _ if decision.replaces => self.known.forget_edge_of(decision.number),
            _ => {}
        }
        self.report.decisions.push(DecisionLine {
            item_type: decision.item_type,
            number: decision.number,
            target: decision.target,
            model_is_duplicate: decision.model_is_duplicate,
            status: decision.status,
            reason: decision.reason.clone(),
            confidence: decision.confidence,
            reasoning,
            reused,
        });
        let same = latest.is_some_and(|stored| {
            stored.superseded_at.is_none()
                && (stored.status, &stored.reason, stored.target)
                    == (decision.status, &decision.reason, decision.target)
                && (&stored.input_hash, stored.source_version) == (&decision.input_hash, decision.source_version)
        });
        if !same {
            writes.push(decision);
        }
    }
}

async fn ask<'a>(judge: Judge<'a>, budget: &TokenBudget, case: JudgeCase, question: JudgeQuestion) -> CaseEnd<'a> {
    match judge.ask(&question, &case, "judge", budget).await {
        Ok(heard) => CaseEnd::Answered(Box::new(AnsweredCase { judge, case, question, heard, reused: false })),
        Err(unheard) => CaseEnd::Unheard(unheard),
    }
}

/// The cards of a case; empty unless all items have a card for their current text.
pub(crate) async fn cards_of(
    store: &Store,
    repo: &Repo,
    source: EmbedSource,
    case: &JudgeCase,
) -> Result<Vec<String>, StoreError> {
    let EmbedSource::Intent(extractor) = source else { return Ok(Vec::new()) };
    let items = std::iter::once(&case.source).chain(case.candidates.iter().map(|one| &one.item));
    let mut cards = Vec::with_capacity(case.candidates.len() + 1);
    for item in items {
        let card = store.corpus().fresh_intent_card(repo.id, item.item_type, item.number, extractor).await?;
        let Some(card) = card else { return Ok(Vec::new()) };
        cards.push(canonry_domain::render_intent_card(&card));
    }
    Ok(cards)
}

/// Parses a stored answer again. A refused or truncated answer left no text, but its kind is in the reason.
pub(crate) fn replayed(case: &JudgeCase, said: &str, told: &StoredDecision) -> Result<JudgeAnswer, InvalidAnswer> {
    if said.is_empty() {
        return Err(match told.reason.as_deref().map(str::parse) {
            Some(Ok(GateReason::InvalidResponse(kind))) => kind,
            _ => InvalidAnswer::Empty,
        });
    }
    case.read(said)
}
