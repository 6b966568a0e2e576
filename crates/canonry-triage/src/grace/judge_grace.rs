//! Puts the pair of a grace period that is over through the gates. The decision is stored like any other, with origin
//! `online`.

use canonry_domain::{
    Boilerplate, DecisionOrigin, DecisionStatus, Extractor, GateDecision, GateReason, GateRules, Item, PairScores,
    Probability, Similarity, TriageReason, gate_answer, gate_before_judge,
};
use canonry_models::chat::{BudgetRefusal, TokenBudget};
use canonry_store::{Grace, NewLlmCall, Repo, Representation, Store, StoreError, StoredTriageRecord};
use jiff::Timestamp;

use crate::close::common_evidence::common_evidence;
use crate::judge::judge_case::{AnswerRules, CaseCandidate, Judge, JudgeCase, JudgeFailure, JudgeReply};
use crate::judge::judge_items::{cards_of, replayed, representation_of};
use crate::judge::known_duplicates::KnownDuplicates;
use crate::judge::pair_decision::DecisionContext;
use crate::online::detect_new::Detectors;
use crate::retrieval::embed::EmbedSource;

/// Why a close waits if the judge did not answer.
const NO_ANSWER: &str = "no_answer_of_the_judge";

#[derive(Clone, Copy)]
pub(crate) struct PairJudge<'a> {
    pub(crate) store: &'a Store,
    pub(crate) repo: &'a Repo,
    pub(crate) judge: Judge<'a>,
    /// Has the index in memory. Without it all texts of the repository are read for each pair.
    pub(crate) detectors: Option<Detectors<'a>>,
    pub(crate) budget: &'a TokenBudget,
    pub(crate) source: EmbedSource,
    pub(crate) min_edge: Probability,
    pub(crate) config_hash: &'a str,
    pub(crate) run_id: &'a str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GraceVerdict {
    Edge,
    /// The gates refused the pair, for this reason.
    NoEdge(String),
    Later(String),
}

impl PairJudge<'_> {
    /// Puts the pair through the gates, unless a person or an earlier decision has settled it. The gap to other
    /// candidates was checked with the verdict, and the item's text has not changed since.
    pub(crate) async fn decide(
        &self,
        grace: &Grace,
        record: &StoredTriageRecord,
        now: Timestamp,
    ) -> Result<GraceVerdict, StoreError> {
        let representation = representation_of(self.source);
        let known = KnownDuplicates::load(self.store, self.repo, grace.item_type, representation).await?;
        if known.ruled_duplicate_of(grace.number) == Some(grace.target) {
            return Ok(GraceVerdict::Edge);
        }
        let edge = known.fresh_edge_of(grace.number);
        match edge {
            Some(edge) if edge.target != grace.target => {
                return Ok(GraceVerdict::NoEdge(GateReason::ExistingEdge.to_string()));
            }
            Some(_) if self.is_compiled_in_edge(grace, representation).await? => return Ok(GraceVerdict::Edge),
            _ => {}
        }
        let items = [grace.number, grace.target];
        let items = self.store.corpus().items_by_number(self.repo.id, grace.item_type, &items).await?;
        let item = |number| items.iter().find(|item| item.number == number).filter(|item| item.gone.is_none());
        let (Some(source), Some(target)) = (item(grace.number), item(grace.target)) else {
            return Ok(GraceVerdict::NoEdge(GateReason::NoCandidates.to_string()));
        };
        let case = self.case(source, target, record, known.boilerplate()).await?;
        match edge {
            Some(_) if case.shares_evidence(&self.repo.name, grace.target) => Ok(GraceVerdict::Edge),
            Some(_) => Ok(GraceVerdict::NoEdge(GateReason::NoSharedEvidence.to_string())),
            None => self.judge(&case, now).await,
        }
    }

    /// Whether the compiled-in judge made the edge of an item.
    async fn is_compiled_in_edge(&self, grace: &Grace, representation: Representation) -> Result<bool, StoreError> {
        let judges = self.store.judge().accepted_judges(self.repo.id, grace.item_type, representation).await?;
        Ok(judges.get(&grace.number).is_some_and(|judge| judge.provider == Extractor::Local.as_str()))
    }

    async fn case(
        &self,
        source: &Item,
        target: &Item,
        record: &StoredTriageRecord,
        boilerplate: &Boilerplate,
    ) -> Result<JudgeCase, StoreError> {
        let seen = record.record.candidates.iter().find(|one| one.number == target.number);
        let (score, parts) =
            seen.map_or((Similarity::ZERO, Default::default()), |seen| (seen.score, seen.parts.clone()));
        let candidates = vec![CaseCandidate { item: target.clone(), score, parts }];
        let mut case = JudgeCase::new(source, candidates, PairScores::default(), boilerplate);
        case.common = common_evidence(self.store, self.repo, boilerplate, source, self.detectors).await?;
        case.cards = cards_of(self.store, self.repo, self.source, &case).await?;
        Ok(case)
    }

    async fn judge(&self, case: &JudgeCase, now: Timestamp) -> Result<GraceVerdict, StoreError> {
        let rules = GateRules { min_edge: self.min_edge, check_target_state: true };
        let judge = self.judge.for_case(case, AnswerRules::Edge(&rules));
        let question = judge.question(case);
        let (source, candidates) = (case.gate_source(), case.gate_candidates());
        if let Some(skipped) = gate_before_judge(&source, &candidates) {
            return self.store_decision(judge, case, String::new(), None, &skipped, now).await;
        }
        let (item, hash) = (&case.source, &question.input_hash);
        let representation = representation_of(self.source);
        let told = self
            .store
            .judge()
            .answered_decision(self.repo.id, item.item_type, item.number, representation, hash)
            .await?;
        let told = told.as_ref().and_then(|told| Some((told, told.answer.clone()?)));
        let heard = match told {
            Some((told, said)) => JudgeReply { answer: replayed(case, &said, told), said, call: None },
            None => match judge.ask(&question, case, "judge", self.budget).await {
                Ok(heard) => heard,
                Err(failure) => return self.not_asked(failure, now).await,
            },
        };
        self.record(heard.call.as_ref(), now).await?;
        let mut ruled = gate_answer(&source, &candidates, &case.pairs, &heard.answer, &rules);
        if ruled.is_invalid_response() {
            return Ok(GraceVerdict::Later(NO_ANSWER.to_owned()));
        }
        if let (DecisionStatus::Accepted, Some(target)) = (ruled.status, ruled.target)
            && !judge.is_compiled_in()
            && !case.shares_evidence(&self.repo.name, target)
        {
            ruled = GateDecision::vetoed(target, GateReason::NoSharedEvidence);
        }
        if let (DecisionStatus::Accepted, Some(target)) = (ruled.status, ruled.target) {
            let again = match judge.read_again(case, target, self.min_edge, "judge", self.budget).await {
                Ok(again) => again,
                Err(failure) => return self.not_asked(failure, now).await,
            };
            self.record(again.call.as_ref(), now).await?;
            if !again.is_confirmed {
                ruled = GateDecision::vetoed(target, GateReason::SecondReading);
            }
        }
        self.store_decision(judge, case, question.input_hash, Some(&heard), &ruled, now).await
    }

    /// A question without an answer is asked again later.
    async fn not_asked(&self, failure: JudgeFailure, now: Timestamp) -> Result<GraceVerdict, StoreError> {
        Ok(GraceVerdict::Later(match failure {
            JudgeFailure::OverBudget(_) => {
                self.budget.refusal().map_or(TriageReason::OverBudget, BudgetRefusal::reason).to_string()
            }
            JudgeFailure::NoAnswer { call, .. } => {
                self.record(Some(&*call), now).await?;
                NO_ANSWER.to_owned()
            }
        }))
    }

    async fn record(&self, call: Option<&NewLlmCall>, now: Timestamp) -> Result<(), StoreError> {
        match call {
            Some(call) => {
                let calls = std::slice::from_ref(call);
                self.store.models().record_calls(Some(self.repo.id), self.run_id, calls, now).await
            }
            None => Ok(()),
        }
    }

    async fn store_decision(
        &self,
        judge: Judge<'_>,
        case: &JudgeCase,
        input_hash: String,
        heard: Option<&JudgeReply>,
        ruled: &GateDecision,
        now: Timestamp,
    ) -> Result<GraceVerdict, StoreError> {
        let asked = DecisionContext {
            judge,
            representation: representation_of(self.source),
            origin: DecisionOrigin::Online,
            config_hash: self.config_hash,
            run_id: self.run_id,
        };
        let decision = asked.decision(case, input_hash, heard, ruled);
        self.store.judge().write_decisions(self.repo.id, &[decision], now).await?;
        Ok(match ruled.status {
            DecisionStatus::Accepted => GraceVerdict::Edge,
            DecisionStatus::Rejected | DecisionStatus::Skipped => {
                GraceVerdict::NoEdge(ruled.stored_reason().unwrap_or_else(|| "model_not_duplicate".to_owned()))
            }
        })
    }
}
