//! Judges single pairs of an item and its canonical, for closes that lack only this judgement.

use std::collections::BTreeMap;

use canonry_domain::{
    DecisionOrigin, DecisionStatus, GateDecision, GateRules, ItemNumber, ItemType, PairScores, Similarity, gate_answer,
    gate_before_judge,
};
use canonry_models::{Calibration, Embedder as _, LocalEmbedder};
use canonry_retrieval::CommonFacts;
use canonry_store::{NewDecision, Repo, Store, StoreError, StoredDecision};
use futures_util::{StreamExt, stream};
use jiff::Timestamp;

use crate::close::common_evidence::common_facts_among;
use crate::corpus::analyze_intent::FailedItem;
use crate::corpus::import::ERRORS_KEPT;
use crate::judge::judge_case::{AnswerRules, CaseCandidate, Judge, JudgeCase, JudgeFailure, JudgeQuestion, JudgeReply};
use crate::judge::judge_items::{JudgeError, JudgeOptions, cards_of, replayed, representation_of};
use crate::judge::known_duplicates::KnownDuplicates;
use crate::judge::pair_decision::{DecisionContext, keep_refuted};
use crate::retrieval::embed::EmbedSource;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct PairsReport {
    /// Pairs that were judged, now or by a stored answer.
    pub judged: u64,
    pub accepted: u64,
    /// Pairs without an answer; the next run asks again.
    pub failed: u64,
    /// The reasons, for the first of them.
    pub errors: Vec<FailedItem>,
    /// Why the run stopped early, if it did.
    pub stopped: Option<String>,
}

impl PairsReport {
    pub(crate) fn add(&mut self, other: Self) {
        self.judged += other.judged;
        self.accepted += other.accepted;
        self.failed += other.failed;
        self.errors.extend(other.errors);
        self.errors.truncate(ERRORS_KEPT);
        self.stopped = self.stopped.take().or(other.stopped);
    }
}

/// Judges (item, canonical) pairs and stores the decisions. An accepted pair replaces the item's earlier edge;
/// otherwise that edge stays.
pub(crate) async fn judge_pairs(
    store: &Store,
    repo: &Repo,
    judge: Judge<'_>,
    options: &JudgeOptions,
    known: &KnownDuplicates,
    pairs: &[(ItemNumber, ItemNumber)],
    now: Timestamp,
) -> Result<PairsReport, JudgeError> {
    let sources = pairs.iter().filter_map(|(number, _)| known.item(*number));
    let common = common_facts_among(store, repo, known.item_type(), known.boilerplate(), sources).await?;
    let run = PairsRun { store, repo, judge, options, known, common };
    let mut questions = Vec::with_capacity(pairs.len());
    let mut scorer =
        PairScorer { store, repo, item_type: known.item_type(), source: options.source, calibrations: BTreeMap::new() };
    for &(number, target) in pairs {
        questions.extend(run.prepare(&mut scorer, number, target).await?);
    }
    let mut report = PairsReport::default();
    let asked: Vec<_> = questions.into_iter().map(|pair| run.ask(pair)).collect();
    let mut answers = stream::iter(asked).buffered(options.workers.max(1)).ready_chunks(options.workers.max(1));
    while let Some(chunk) = answers.next().await {
        let mut decisions = Vec::new();
        let mut calls = Vec::new();
        let mut hopeless = None;
        for (judge, case, input_hash, heard) in chunk {
            match heard {
                Ok(PairAnswer::Ruled(ruled)) => decisions.push(run.decision(judge, &case, input_hash, None, &ruled)),
                Ok(PairAnswer::Replied { heard, earlier }) => {
                    let candidates = case.gate_candidates();
                    let ruled = gate_answer(&case.gate_source(), &candidates, &case.pairs, &heard.answer, &run.rules());
                    let ruled = keep_refuted(ruled, earlier.as_deref(), judge, &case);
                    report.judged += 1;
                    report.accepted += u64::from(ruled.status == DecisionStatus::Accepted);
                    calls.extend(heard.call.clone());
                    decisions.push(run.decision(judge, &case, input_hash, Some(&heard), &ruled));
                }
                Err(JudgeFailure::OverBudget(why)) => {
                    report.stopped.get_or_insert(why);
                }
                Err(JudgeFailure::NoAnswer { error, call }) => {
                    report.failed += 1;
                    calls.push(*call);
                    if report.errors.len() < ERRORS_KEPT {
                        let (item_type, number) = (case.source.item_type, case.source.number);
                        report.errors.push(FailedItem { item_type, number, message: format!("failed to {error}") });
                    }
                    hopeless = hopeless.or(error.is_hopeless().then_some(error));
                }
            }
        }
        store.judge().write_decisions(repo.id, &decisions, now).await?;
        if !calls.is_empty() {
            store.models().record_calls(Some(repo.id), &options.run_id, &calls, now).await?;
        }
        if let Some(error) = hopeless {
            return Err(JudgeError::Model(error));
        }
    }
    Ok(report)
}

struct PairsRun<'a> {
    store: &'a Store,
    repo: &'a Repo,
    judge: Judge<'a>,
    options: &'a JudgeOptions,
    known: &'a KnownDuplicates,
    /// What many items contain.
    common: CommonFacts,
}

/// One pair, and its answer if it is known without asking.
struct Pair<'a> {
    judge: Judge<'a>,
    case: JudgeCase,
    question: JudgeQuestion,
    known: Option<PairAnswer>,
}

enum PairAnswer {
    /// A gate decided before the judge was asked.
    Ruled(GateDecision),
    Replied {
        heard: Box<JudgeReply>,
        /// The decision that the answer is from, if it was given before.
        earlier: Option<Box<StoredDecision>>,
    },
}

impl<'a> PairsRun<'a> {
    fn rules(&self) -> GateRules {
        GateRules { min_edge: self.options.min_edge, check_target_state: true }
    }

    async fn prepare(
        &self,
        scorer: &mut PairScorer<'_>,
        number: ItemNumber,
        target: ItemNumber,
    ) -> Result<Option<Pair<'a>>, StoreError> {
        let (Some(source), Some(candidate)) = (self.known.item(number), self.known.item(target)) else {
            return Ok(None);
        };
        let (score, parts) = scorer.score(number, target).await?;
        let candidate = CaseCandidate { item: candidate.clone(), score, parts };
        let pairs = PairScores::default();
        let mut case = JudgeCase::new(source, vec![candidate], pairs, self.known.boilerplate());
        case.set_common_facts(&self.common);
        case.cards = cards_of(self.store, self.repo, self.options.source, &case).await?;
        let judge = self.judge.for_case(&case, AnswerRules::Edge(&self.rules()));
        let question = judge.question(&case);
        if let Some(skipped) = gate_before_judge(&case.gate_source(), &case.gate_candidates()) {
            return Ok(Some(Pair { judge, case, question, known: Some(PairAnswer::Ruled(skipped)) }));
        }
        let representation = representation_of(self.options.source);
        let (repo, item_type, hash) = (self.repo.id, source.item_type, &question.input_hash);
        let told = self.store.judge().answered_decision(repo, item_type, number, representation, hash).await?;
        let told = told.filter(|_| !self.options.rejudge);
        let known = told.and_then(|told| Some((told.answer.clone()?, told))).map(|(said, told)| {
            let heard = JudgeReply { answer: replayed(&case, &said, &told), said, call: None };
            PairAnswer::Replied { heard: Box::new(heard), earlier: Some(Box::new(told)) }
        });
        Ok(Some(Pair { judge, case, question, known }))
    }

    async fn ask(&self, pair: Pair<'a>) -> (Judge<'a>, JudgeCase, String, Result<PairAnswer, JudgeFailure>) {
        let Pair { judge, case, question, known } = pair;
        let asked = match known {
            Some(known) => Ok(known),
            None => {
                let heard = judge.ask(&question, &case, "judge", &self.options.budget).await;
                heard.map(|heard| PairAnswer::Replied { heard: Box::new(heard), earlier: None })
            }
        };
        (judge, case, question.input_hash, asked)
    }

    fn decision(
        &self,
        judge: Judge<'a>,
        case: &JudgeCase,
        input_hash: String,
        heard: Option<&JudgeReply>,
        ruled: &GateDecision,
    ) -> NewDecision {
        let asked = DecisionContext {
            judge,
            representation: representation_of(self.options.source),
            origin: DecisionOrigin::Batch,
            config_hash: &self.options.config_hash,
            run_id: &self.options.run_id,
        };
        asked.decision(case, input_hash, heard, ruled)
    }
}

/// Scores how similar two items are: from the item's candidate set, or by their stored vectors.
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
        let sets = self.store.duplicates().candidate_sets(self.repo.id, self.item_type, number).await?;
        let Some(set) = sets.into_iter().find(|set| set.representation == representation) else { return Ok(unknown) };
        if let Some(member) = set.members.iter().find(|member| member.number == target) {
            return Ok((Similarity::clamped(member.score).unwrap_or(Similarity::ZERO), member.parts.clone()));
        }
        let key = self.source.key(&set.model);
        let entries =
            self.store.corpus().index_entries(self.repo.id, self.item_type, &[number, target], Some(&key)).await?;
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
            // The compiled-in calibration is valid only for the compiled-in model. Vectors of a former model stay
            // comparable with each other by their cosine.
            let fitted = if model.starts_with("local:") {
                let present = LocalEmbedder::load().ok();
                let present = present.filter(|embedder| model.split('+').next() == Some(embedder.model_id()));
                present.map(|embedder| embedder.calibration().clone())
            } else {
                self.store.corpus().calibration(model).await?.and_then(|stored| serde_json::from_value(stored).ok())
            };
            self.calibrations.insert(model.to_owned(), fitted.unwrap_or_else(Calibration::identity));
        }
        Ok(&self.calibrations[model])
    }
}
