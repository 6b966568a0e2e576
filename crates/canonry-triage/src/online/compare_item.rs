//! One comparison of `detect-new`: finds the neighbours of an item, judges them, and records the verdict.

use std::collections::BTreeMap;

use canonry_domain::{
    FixMatch, Item, ItemNumber, ItemState, JUDGE_PROMPT_VERSION, OnlineThresholds, OnlineVerdict, Probability,
    Similarity, Verdict, online_verdict,
};
use canonry_retrieval::{Hit, SHORTLIST};
use canonry_store::{
    IndexEntry, IndexRow, NewLlmCall, NewTriageRecord, Repo, Representation, Store, StoredJudge, StoredTriageRecord,
    TriageCandidate,
};
use jiff::Timestamp;

use crate::judge::judge_case::{AnswerRules, Judge, JudgeCase, JudgeFailure};
use crate::judge::judge_items::cards_of;
use crate::judge::known_duplicates::KnownDuplicates;
use crate::judge::proven_judge::is_judge_proven;
use crate::online::detect_new::{
    AnswerUse, DetectError, DetectOptions, Detectors, KEPT, items_of, judged_before_others,
};
use crate::retrieval::embed::EmbedSource;
use crate::retrieval::neighbourhood::{NeighbourQuery, Neighbourhood, RetrievalError};

const CLOSED_NAMED: usize = 3;

/// An item and the known duplicates of its repository.
pub(crate) struct Comparison<'a> {
    pub(crate) store: &'a Store,
    pub(crate) repo: &'a Repo,
    pub(crate) item: &'a Item,
    pub(crate) representation: Representation,
    pub(crate) known: &'a KnownDuplicates,
    pub(crate) options: &'a DetectOptions,
    pub(crate) as_of: Option<Timestamp>,
}

pub(crate) struct OnlineJudgement {
    pub(crate) verdict: OnlineVerdict,
    pub(crate) is_duplicate: bool,
    pub(crate) reasoning: Option<String>,
    pub(crate) failure: Option<String>,
    pub(crate) unreachable: bool,
    pub(crate) shown: Vec<ItemNumber>,
    /// Other items that the judge considers possible duplicates, best first.
    pub(crate) others: Vec<ItemNumber>,
    /// The judge that answered or failed to.
    pub(crate) judge: Option<StoredJudge>,
}

impl OnlineJudgement {
    /// A judgement without a question to the judge.
    fn unasked(verdict: OnlineVerdict, is_duplicate: bool) -> Self {
        let (shown, others) = (Vec::new(), Vec::new());
        Self { verdict, is_duplicate, reasoning: None, failure: None, unreachable: false, shown, others, judge: None }
    }
}

impl Comparison<'_> {
    /// Open neighbours down to the lowest recorded score, and near closed ones.
    pub(crate) async fn neighbours(
        &self,
        near: &Neighbourhood,
        vector: Option<Vec<f32>>,
    ) -> Result<(Vec<Hit>, Vec<Hit>), DetectError> {
        if let Some(at) = self.as_of {
            return self.neighbours_as_of(near, vector, at).await;
        }
        let (known, number) = (self.known, self.item.number);
        let stand_ins = known.stand_ins(|member| {
            let row = near.rows().get(&member);
            row.is_some_and(|row| row.embedded && row.state == ItemState::Open) && near.has_content(member)
        });
        let may_be_named = |row: &IndexRow| {
            stand_ins.get(&row.number).is_none_or(|stand_in| *stand_in == row.number)
                && !known.ruled_not_duplicates(number, row.number)
        };
        if !near.rows().contains_key(&number) {
            return Ok((Vec::new(), Vec::new()));
        }
        let own = near.boilerplate().own(self.item);
        let entry = IndexEntry { number, title: own.title, body: own.body, changes: own.changes, vector };
        let query = Neighbourhood::query_of(&entry);
        let kept = Similarity::new(KEPT).expect("invariant: the constant is in range");
        let (mode, judged_from) = (self.options.mode, self.options.thresholds.min_score);
        let wanted =
            NeighbourQuery { mode, k: SHORTLIST, min_score: kept.min(judged_from), state: Some(ItemState::Open) };
        let open = near.neighbours(&query, entry.vector.as_deref(), wanted, &may_be_named).await?;
        let open = judged_before_others(open, judged_from, self.options.k);
        let closed = closed_neighbours(near, &entry, self.options).await?;
        Ok((open, closed))
    }

    /// The same as of an earlier time: only items that were filed before, open or closed as they were then. What people
    /// or a judge found out about duplicates since does not count.
    async fn neighbours_as_of(
        &self,
        near: &Neighbourhood,
        vector: Option<Vec<f32>>,
        at: Timestamp,
    ) -> Result<(Vec<Hit>, Vec<Hit>), DetectError> {
        let number = self.item.number;
        if !near.rows().contains_key(&number) {
            return Ok((Vec::new(), Vec::new()));
        }
        let own = near.boilerplate().own(self.item);
        let entry = IndexEntry { number, title: own.title, body: own.body, changes: own.changes, vector };
        let kept = Similarity::new(KEPT).expect("invariant: the constant is in range");
        let (mode, judged_from) = (self.options.mode, self.options.thresholds.min_score);
        let wanted = NeighbourQuery { mode, k: SHORTLIST, min_score: kept.min(judged_from), state: None };
        let is_earlier = |row: &IndexRow| row.created_at.is_some_and(|created_at| created_at < at);
        let query = Neighbourhood::query_of(&entry);
        let found = near.neighbours(&query, entry.vector.as_deref(), wanted, &is_earlier).await?;
        let items = items_of(self.store, self.repo, self.item.item_type, &found).await?;
        let was_open = |hit: &Hit| {
            items.get(&hit.number).is_some_and(|item| state_as_of(item, at) == ItemState::Open && item.gone.is_none())
        };
        let (open, closed): (Vec<Hit>, Vec<Hit>) = found.into_iter().partition(was_open);
        let closed = closed.into_iter().filter(|hit| hit.score >= judged_from).take(CLOSED_NAMED).collect();
        Ok((judged_before_others(open, judged_from, self.options.k), closed))
    }

    /// What a person ruled the item to be a duplicate of, or the canonical of that; a closed item is never named. A
    /// ruling says nothing about an earlier time.
    fn ruled_target(&self) -> Option<ItemNumber> {
        if self.as_of.is_some() {
            return None;
        }
        let ruled = self.known.ruled_duplicate_of(self.item.number)?;
        let is_open = |number: &ItemNumber| {
            let item = self.known.item(*number);
            item.is_some_and(|item| item.state == ItemState::Open && item.gone.is_none())
        };
        let canonical = self.known.canonical_of(ruled).filter(|canonical| *canonical != self.item.number);
        [canonical, Some(ruled)].into_iter().flatten().find(is_open)
    }

    pub(crate) async fn judge(
        &self,
        near: Neighbourhood,
        open: &[Hit],
        items: &BTreeMap<ItemNumber, Item>,
        with: Detectors<'_>,
        source: EmbedSource,
        now: Timestamp,
    ) -> Result<OnlineJudgement, DetectError> {
        let thresholds = &self.options.thresholds;
        if let Some(target) = self.ruled_target() {
            let (confidence, reason) = (Some(Probability::ONE), "override".to_owned());
            let verdict = OnlineVerdict { verdict: Verdict::Duplicate, target: Some(target), confidence, reason };
            return Ok(OnlineJudgement::unasked(verdict, true));
        }
        let mut case = JudgeCase::of_neighbours(self.item, open, items, &near, thresholds, self.options.mode).await?;
        let shown = case.numbers();
        if shown.is_empty() {
            let verdict = online_verdict(&case.gate_source(), &[], &case.pairs, None, thresholds);
            return Ok(OnlineJudgement::unasked(verdict, false));
        }
        // A judge may take long; meanwhile other tasks would wait to update the index.
        drop(near);
        case.cards = cards_of(self.store, self.repo, source, &case).await?;
        let (purpose, budget) = ("detect", &self.options.budget);
        let mut judge = with.judge.for_case(&case, AnswerRules::NewItem(thresholds));
        let mut asked = judge.ask(&judge.question(&case), &case, purpose, budget).await;
        if with.judge.is_cascade() && !self.options.is_backtest && matches!(asked, Err(JudgeFailure::OverBudget(_))) {
            // Until there is money again, the local judge's answer stands.
            judge = Judge::Local;
            asked = judge.ask(&judge.question(&case), &case, purpose, budget).await;
        }
        let (answer, mut failure, mut unreachable, call) = match asked {
            Ok(heard) => {
                let failure = heard.answer.as_ref().err().map(|kind| format!("its answer cannot be used ({kind})"));
                (heard.answer.ok(), failure, false, heard.call)
            }
            Err(JudgeFailure::NoAnswer { error, call }) => {
                (None, Some(format!("failed to {error}")), true, Some(*call))
            }
            Err(JudgeFailure::OverBudget(why)) => (None, Some(why), true, None),
        };
        let mut calls: Vec<NewLlmCall> = call.into_iter().collect();
        let candidates = case.gate_candidates();
        let mut verdict = online_verdict(&case.gate_source(), &candidates, &case.pairs, answer.as_ref(), thresholds);
        // A backtest tries lower thresholds, at which nothing is posted.
        let least = thresholds.maybe.max(OnlineThresholds::default().maybe);
        let has_evidence = match verdict.target {
            Some(target) => judge.is_compiled_in() || case.shares_evidence(&self.repo.name, target),
            None => true,
        };
        if let (Some(target), false) = (verdict.target, has_evidence)
            && self.options.used_for >= AnswerUse::Suggestion
            && verdict.confidence >= Some(least)
        {
            let control = judge.ask_controls(&case, target, purpose, budget).await;
            calls.extend(control.calls);
            if control.failure.is_some() {
                // Nobody knows what the yes is worth, so it counts as no answer.
                verdict = online_verdict(&case.gate_source(), &candidates, &case.pairs, None, thresholds);
                (failure, unreachable) = (control.failure, true);
            } else if !control.is_passed {
                verdict = verdict.failed_control();
            }
        }
        let needs_proof = verdict.verdict == Verdict::Duplicate && !self.options.is_backtest;
        if needs_proof && !is_judge_proven(self.store, self.repo, &judge.stored()).await? {
            verdict = verdict.of_unproven_judge();
        }
        let may_close = self.options.used_for == AnswerUse::Close;
        if may_close && !has_evidence {
            verdict = verdict.without_evidence();
        }
        if let (true, Verdict::Duplicate, Some(target)) = (may_close, verdict.verdict, verdict.target) {
            let (call, is_confirmed, why) = match judge.read_again(&case, target, least, purpose, budget).await {
                Ok(again) => (again.call, again.is_confirmed, None),
                Err(JudgeFailure::NoAnswer { error, call }) => (Some(*call), false, Some(format!("failed to {error}"))),
                Err(JudgeFailure::OverBudget(why)) => (None, false, Some(why)),
            };
            calls.extend(call);
            if !is_confirmed {
                verdict = verdict.unconfirmed();
            }
            if self.options.is_backtest && why.is_some() {
                (failure, unreachable) = (why, true);
            }
        }
        if !calls.is_empty() {
            self.store.models().record_calls(Some(self.repo.id), &self.options.run_id, &calls, now).await?;
        }
        let mut others = judge.possible_duplicates(&case);
        others.retain(|number| Some(*number) != verdict.target);
        let is_duplicate = answer.as_ref().is_some_and(|answer| answer.is_duplicate);
        let reasoning = answer.map(|answer| answer.reasoning);
        let judge = Some(judge.stored());
        Ok(OnlineJudgement { verdict, is_duplicate, reasoning, failure, unreachable, shown, others, judge })
    }

    pub(crate) async fn record(
        &self,
        open: &[Hit],
        judged: &OnlineJudgement,
        fix: Option<FixMatch>,
        with: Detectors<'_>,
        fallback: Option<&'static str>,
        now: Timestamp,
    ) -> Result<StoredTriageRecord, DetectError> {
        let target = judged.verdict.target;
        let judge = judged.judge.clone().unwrap_or_else(|| with.judge.stored());
        let record = NewTriageRecord {
            item_type: self.item.item_type,
            number: self.item.number,
            verdict: judged.verdict.verdict,
            target,
            target_score: open.iter().find(|hit| Some(hit.number) == target).map(|hit| hit.score),
            is_duplicate: judged.is_duplicate,
            confidence: judged.verdict.confidence,
            reason: judged.verdict.reason.clone(),
            reasoning: judged.reasoning.clone().unwrap_or_default(),
            effective_source: self.representation,
            source_fallback_reason: fallback.map(str::to_owned),
            provider: judge.provider,
            model: judge.model,
            prompt_version: JUDGE_PROMPT_VERSION,
            config_hash: self.options.rules_hash(),
            content_version: self.item.content_version,
            embed_model: with.embedder.model_id().to_owned(),
            run_id: self.options.run_id.clone(),
            candidates: open
                .iter()
                .map(|hit| TriageCandidate {
                    number: hit.number,
                    score: hit.score,
                    parts: hit.parts.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
                    state: ItemState::Open,
                    judged: judged.shown.contains(&hit.number),
                })
                .collect(),
            fix,
        };
        let id = match self.as_of {
            None => self.store.duplicates().write_triage_record(self.repo.id, &record, now).await?,
            Some(_) => 0,
        };
        Ok(StoredTriageRecord { id, record, created_at: now })
    }
}

/// The state of an item at an earlier time. When it was closed is known of most items; if not, it counts as it is now.
pub(crate) fn state_as_of(item: &Item, at: Timestamp) -> ItemState {
    match item.closed_at {
        Some(closed_at) if closed_at >= at => ItemState::Open,
        _ => item.state,
    }
}

async fn closed_neighbours(
    near: &Neighbourhood,
    entry: &IndexEntry,
    options: &DetectOptions,
) -> Result<Vec<Hit>, RetrievalError> {
    let (mode, min_score) = (options.mode, options.thresholds.min_score);
    let wanted = NeighbourQuery { mode, k: CLOSED_NAMED, min_score, state: Some(ItemState::Closed) };
    near.neighbours(&Neighbourhood::query_of(entry), entry.vector.as_deref(), wanted, &|_| true).await
}
