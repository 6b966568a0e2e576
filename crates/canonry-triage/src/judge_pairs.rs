//! Judging one pair by itself: the item and its canonical, for closes that lack nothing else.

use std::collections::BTreeMap;

use canonry_domain::{
    DecisionOrigin, DecisionStatus, GateRules, ItemNumber, ItemType, JUDGE_PROMPT_VERSION, PairScores, Similarity,
    gate_answer, gate_before_judge,
};
use canonry_models::{Calibration, Embedder as _, LocalEmbedder};
use canonry_store::{DecidedCandidate, NewDecision, Repo, Store, StoreError};
use jiff::Timestamp;

use crate::embed::EmbedSource;
use crate::judge::{JudgeError, JudgeOptions, cards_of, representation_of};
use crate::judge_case::{CaseCandidate, Heard, Judge, JudgeCase};
use crate::known_duplicates::KnownDuplicates;
use crate::llm_budget::LlmBudget;

/// What judging pairs did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PairsReport {
    /// Pairs that were judged, whether a judge was asked or had answered before.
    pub judged: u64,
    /// Those that were accepted.
    pub accepted: u64,
    /// Pairs without an answer; the next run asks again.
    pub failed: u64,
    /// Why it ended early, if it did.
    pub stopped: Option<String>,
}

impl PairsReport {
    pub(crate) fn add(&mut self, other: &Self) {
        self.judged += other.judged;
        self.accepted += other.accepted;
        self.failed += other.failed;
        self.stopped = self.stopped.take().or_else(|| other.stopped.clone());
    }
}

/// Judges (item, canonical) pairs and stores the decisions. A pair that is accepted takes the place of the item's
/// edge of before; one that is not leaves that edge alone.
pub(crate) async fn judge_pairs(
    store: &Store,
    repo: &Repo,
    judge: Judge<'_>,
    options: &JudgeOptions,
    known: &KnownDuplicates,
    pairs: &[(ItemNumber, ItemNumber)],
    now: Timestamp,
) -> Result<PairsReport, JudgeError> {
    let budget = LlmBudget::new(options.limits);
    let mut report = PairsReport::default();
    let mut scorer =
        PairScorer { store, repo, item_type: known.item_type(), source: options.source, calibrations: BTreeMap::new() };
    let representation = representation_of(options.source);
    for &(number, target) in pairs {
        let (Some(source), Some(candidate)) = (known.item(number), known.item(target)) else { continue };
        let (score, parts) = scorer.score(number, target).await?;
        let candidate = CaseCandidate { item: candidate.clone(), score, parts, cluster: None };
        let mut case = JudgeCase {
            source: source.clone(),
            candidates: vec![candidate],
            pairs: PairScores::default(),
            cards: Vec::new(),
        };
        if gate_before_judge(&case.gate_source(), &case.gate_candidates()).is_some() {
            continue;
        }
        case.cards = cards_of(store, repo, options.source, &case).await?;
        let question = judge.question(&case);
        let told = store
            .answered_decision(repo.id, known.item_type(), number, representation, &question.input_hash)
            .await?
            .filter(|_| !options.rejudge);
        let heard = match told.as_ref().and_then(|told| Some((told, told.answer.clone()?))) {
            Some((told, said)) => Heard { answer: crate::judge::replayed(&case, &said, told), said, call: None },
            None => {
                let reserved = match judge {
                    Judge::Local => 0.0,
                    Judge::Model { .. } => match budget.take() {
                        Ok(reserved) => reserved,
                        Err(why) => {
                            report.stopped = Some(why);
                            return Ok(report);
                        }
                    },
                };
                let heard = judge.ask(&question, &case, "judge", &budget).await;
                let call = match &heard {
                    Ok(heard) => heard.call.clone(),
                    Err(unheard) => Some(unheard.call.clone()),
                };
                if let Some(call) = call {
                    budget.settle(reserved, call.cost_usd.or_else(|| call.error.is_some().then_some(0.0)));
                    store.record_llm_calls(Some(repo.id), &options.run_id, &[call], now).await?;
                }
                match heard {
                    Ok(heard) => heard,
                    Err(unheard) if unheard.error.is_hopeless() => return Err(JudgeError::Model(unheard.error)),
                    Err(_) => {
                        report.failed += 1;
                        continue;
                    }
                }
            }
        };
        let rules = GateRules { min_edge: options.min_edge, check_target_state: true };
        let ruled = gate_answer(&case.gate_source(), &case.gate_candidates(), &case.pairs, &heard.answer, &rules);
        report.judged += 1;
        report.accepted += u64::from(ruled.status == DecisionStatus::Accepted);
        let answer = heard.answer.as_ref().ok();
        let judged = &case.candidates[0];
        let decision = NewDecision {
            item_type: known.item_type(),
            number,
            target: ruled.target,
            representation,
            candidate_set: None,
            origin: DecisionOrigin::Batch,
            status: ruled.status,
            replaces: false,
            model_is_duplicate: answer.map(|answer| answer.is_duplicate),
            confidence: answer.map(|answer| answer.confidence),
            reasoning: answer.map(|answer| answer.reasoning.clone()),
            structure: answer.map(|answer| answer.structure),
            reason: ruled.reason,
            answer: Some(heard.said),
            provider: judge.provider().to_owned(),
            model: judge.model_id().to_owned(),
            prompt_version: JUDGE_PROMPT_VERSION,
            config_hash: options.config_hash.clone(),
            input_hash: question.input_hash,
            source_version: case.source.content_version,
            target_version: ruled.target.map(|_| judged.item.content_version),
            candidates: vec![DecidedCandidate { number: target, score, content_version: judged.item.content_version }],
            run_id: options.run_id.clone(),
        };
        store.write_decisions(repo.id, &[decision], now).await?;
    }
    Ok(report)
}

/// How alike two items are: as the item's own candidate set says, or by their stored vectors.
struct PairScorer<'a> {
    store: &'a Store,
    repo: &'a Repo,
    item_type: ItemType,
    source: EmbedSource,
    calibrations: BTreeMap<String, Calibration>,
}

impl PairScorer<'_> {
    async fn score(
        &mut self,
        number: ItemNumber,
        target: ItemNumber,
    ) -> Result<(Similarity, BTreeMap<String, f64>), StoreError> {
        let unknown = (Similarity::ZERO, BTreeMap::new());
        let representation = representation_of(self.source);
        let sets = self.store.candidate_sets(self.repo.id, self.item_type, number).await?;
        let Some(set) = sets.into_iter().find(|set| set.representation == representation) else { return Ok(unknown) };
        if let Some(member) = set.members.iter().find(|member| member.number == target) {
            return Ok((Similarity::clamped(member.score).unwrap_or(Similarity::ZERO), member.parts.clone()));
        }
        let key = self.source.key(&set.model);
        let entries = self.store.index_entries(self.repo.id, self.item_type, &[number, target], Some(&key)).await?;
        let [Some(one), Some(other)] = [number, target]
            .map(|wanted| entries.iter().find(|entry| entry.number == wanted).and_then(|entry| entry.vector.as_ref()))
        else {
            return Ok(unknown);
        };
        let cosine: f32 = one.iter().zip(other).map(|(one, other)| one * other).sum();
        let score = self.calibration(&set.model).await?.similarity(cosine);
        Ok((score, BTreeMap::from([("dense".to_owned(), f64::from(cosine))])))
    }

    async fn calibration(&mut self, model: &str) -> Result<&Calibration, StoreError> {
        if !self.calibrations.contains_key(model) {
            let fitted = if model.starts_with("local:") {
                LocalEmbedder::load().ok().map(|embedder| embedder.calibration().clone())
            } else {
                self.store.calibration(model).await?.and_then(|stored| serde_json::from_value(stored).ok())
            };
            self.calibrations.insert(model.to_owned(), fitted.unwrap_or_else(Calibration::identity));
        }
        Ok(&self.calibrations[model])
    }
}
