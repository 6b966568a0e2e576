//! Loads everything that is stored about one item. `canonry show` prints it, and the item's page in the console
//! renders it.

use canonry_boxed::boxed;
use canonry_domain::{FixMatch, IssueOutcome, IssueResolution, Item, ItemType, OutcomeEvent, Override, ordered_scores};
use canonry_store::{
    AppliedClose, Brake, CandidateSet, CardOutcome, CloseRunId, DecidedCandidate, Grace, OutboxEntry, Repo, RepoId,
    Representation, Store, StoreError, StoredCard, StoredDecision, StoredOutcome, StoredTriageAction,
    StoredTriageRecord,
};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::judge::canonicalize::{CanonicalizedCluster, ClusterMember, cluster_of};

/// What can be read by the item's number alone, whatever the size of its repository.
#[derive(Debug)]
pub struct ItemHistory {
    pub item: Item,
    pub candidate_sets: Vec<CandidateSet>,
    pub decisions: Vec<StoredDecision>,
    pub triage_records: Vec<StoredTriageRecord>,
    pub triage_actions: Vec<StoredTriageAction>,
    pub writes: Vec<OutboxEntry>,
    pub graces: Vec<Grace>,
    /// Rulings that name the item, each with the time of its removal, if any.
    pub rulings: Vec<(Override, Option<Timestamp>)>,
    /// What people did with the issue. Nothing is stored for pull requests.
    pub outcome_events: Vec<OutcomeEvent>,
    pub outcome: Option<StoredOutcome>,
}

#[boxed]
impl ItemHistory {
    pub async fn load(store: &Store, repo: RepoId, item: Item) -> Result<Self, StoreError> {
        let (item_type, number) = (item.item_type, item.number);
        let (outcome_events, outcome) = match item_type {
            ItemType::Issue => (
                store.learning().outcome_events(repo, number).await?,
                store.learning().issue_outcome(repo, number).await?,
            ),
            ItemType::Pr => (Vec::new(), None),
        };
        Ok(Self {
            candidate_sets: store.duplicates().candidate_sets(repo, item_type, number).await?,
            decisions: store.judge().decisions_of(repo, item_type, number).await?,
            triage_records: store.duplicates().triage_records_of(repo, item_type, number).await?,
            triage_actions: store.duplicates().triage_actions_of(repo, item_type, number).await?,
            writes: store.outbox().of_item(repo, number).await?,
            graces: store.close().graces_of_item(repo, item_type, number).await?,
            rulings: store.duplicates().overrides_ever(repo, item_type, number).await?,
            outcome_events,
            outcome,
            item,
        })
    }
}

/// A history, and what requires reading other items of the repository.
#[derive(Debug)]
pub struct ItemReport {
    pub history: ItemHistory,
    pub intent_cards: Vec<StoredCard>,
    pub closes: Vec<AppliedClose>,
    pub brakes: Vec<Brake>,
    /// The cluster by raw text, or by intent cards if there is none.
    pub cluster: Option<CanonicalizedCluster>,
}

#[boxed]
impl ItemReport {
    pub async fn load(store: &Store, repo: &Repo, item: Item) -> Result<Self, StoreError> {
        let (item_type, number) = (item.item_type, item.number);
        let mut cluster = None;
        for representation in [Representation::Raw, Representation::Intent] {
            if cluster.is_none() {
                cluster = cluster_of(store, repo, item_type, number, representation).await?;
            }
        }
        let mut closes = store.plans().applied_closes(repo.id, item_type).await?;
        closes.retain(|close| close.number == number);
        let brakes = brakes_in_force(store, repo.id).await?;
        let intent_cards = store.corpus().intent_cards(repo.id, item_type, number).await?;
        Ok(Self { history: ItemHistory::load(store, repo.id, item).await?, intent_cards, closes, brakes, cluster })
    }

    /// The content of `canonry show --json`, key by key.
    pub fn documents(&self) -> Vec<(&'static str, Value)> {
        let history = &self.history;
        let record = |stored| triage_document(stored, &history.triage_actions);
        let records: Vec<Value> = history.triage_records.iter().map(record).collect();
        let outcome = history.outcome.as_ref().map(|outcome| outcome_document(outcome, &history.outcome_events));
        vec![
            ("item", item_document(&history.item)),
            ("candidate_sets", history.candidate_sets.iter().map(set_document).collect()),
            ("intent_cards", self.intent_cards.iter().map(card_document).collect()),
            ("decisions", history.decisions.iter().map(decision_document).collect()),
            ("triage", records.first().cloned().unwrap_or_default()),
            ("triage_records", records.into()),
            ("writes", history.writes.iter().map(write_document).collect()),
            ("graces", history.graces.iter().map(grace_document).collect()),
            ("closes", self.closes.iter().map(close_document).collect()),
            ("brakes", self.brakes.iter().map(brake_document).collect()),
            ("outcome", outcome.unwrap_or_default()),
            ("outcome_events", history.outcome_events.iter().map(event_document).collect()),
            ("cluster", self.cluster.as_ref().map(cluster_document).unwrap_or_default()),
        ]
    }
}

#[boxed]
pub async fn brakes_in_force(store: &Store, repo: RepoId) -> Result<Vec<Brake>, StoreError> {
    let mut brakes = store.close().brakes(repo).await?;
    brakes.retain(|brake| brake.lifted_at.is_none());
    Ok(brakes)
}

fn item_document(item: &Item) -> Value {
    json!({
        "type": item.item_type,
        "number": item.number,
        "github_id": item.github_id,
        "title": item.title,
        "body": item.body,
        "state": item.state,
        "state_reason": item.state_reason,
        "merged": item.merged,
        "draft": item.draft,
        "author": item.author,
        "assignees": item.assignees,
        "labels": item.labels,
        "comments": item.comments,
        "review_comments": item.review_comments,
        "created_at": item.created_at,
        "updated_at": item.updated_at,
        "closed_at": item.closed_at,
        "url": item.url,
        "base_branch": item.base_branch,
        "duplicate_of": item.duplicate_of,
        "files": item.changes.as_ref().map(|changes| &changes.files),
        "diff": item.changes.as_ref().map(|changes| &changes.diff),
        "content_hash": item.content_hash.as_str(),
        "content_version": item.content_version,
        "last_synced_at": item.last_synced_at,
        "gone": item.gone,
    })
}

fn set_document(set: &CandidateSet) -> Value {
    let members: Vec<Value> = (1..)
        .zip(&set.members)
        .zip(ordered_scores(&set.members.iter().map(|member| member.score).collect::<Vec<_>>()))
        .map(|((rank, member), score)| {
            json!({
                "number": member.number, "rank": rank, "score": score, "similarity": member.score, "parts": member.parts,
            })
        })
        .collect();
    json!({
        "representation": set.representation.as_str(),
        "status": set.status.as_str(),
        "content_version": set.content_version,
        "model": set.model,
        "created_at": set.created_at,
        "members": members,
    })
}

fn card_document(card: &StoredCard) -> Value {
    let (ready, failure) = match &card.outcome {
        CardOutcome::Ready(ready) => (json!(ready), Value::Null),
        CardOutcome::Failed(reason) => (Value::Null, json!(reason)),
    };
    json!({
        "extractor": card.maker.extractor,
        "model": card.maker.model,
        "status": card.outcome.status(),
        "fresh": card.fresh,
        "content_version": card.source_version,
        "card": ready,
        "failure": failure,
        "created_at": card.created_at,
    })
}

fn decision_document(decision: &StoredDecision) -> Value {
    json!({
        "id": decision.id.get(),
        "representation": decision.representation.as_str(),
        "origin": decision.origin.as_str(),
        "target": decision.target,
        "final_status": decision.status.as_str(),
        "veto_reason": decision.reason,
        "model_is_duplicate": decision.model_is_duplicate,
        "confidence": decision.confidence,
        "reasoning": decision.reasoning,
        "structure": decision.structure,
        "superseded_at": decision.superseded_at,
        "provider": decision.provider,
        "model": decision.model,
        "prompt_version": decision.prompt_version,
        "config_hash": decision.config_hash,
        "input_hash": decision.input_hash,
        "content_version": decision.source_version,
        "target_content_version": decision.target_version,
        "candidates": decided_candidates(decision),
        "created_at": decision.created_at,
        "run_id": decision.run_id,
    })
}

/// The candidates as they were judged, by rank.
fn decided_candidates(decision: &StoredDecision) -> Vec<Value> {
    let scores = ordered_scores(&decision.candidates.iter().map(|one| one.score.get()).collect::<Vec<_>>());
    let candidate = |(one, score): (&DecidedCandidate, f64)| {
        json!({
            "number": one.number, "score": score, "similarity": one.score, "content_version": one.content_version,
        })
    };
    decision.candidates.iter().zip(scores).map(candidate).collect()
}

fn triage_document(stored: &StoredTriageRecord, actions: &[StoredTriageAction]) -> Value {
    let record = &stored.record;
    let action = actions.iter().find(|one| one.action.triage_id == stored.id);
    let scores = ordered_scores(&record.candidates.iter().map(|one| one.score.get()).collect::<Vec<_>>());
    let candidates = record.candidates.iter().zip(scores).map(|(one, score)| {
        json!({
            "number": one.number, "score": score, "similarity": one.score, "parts": one.parts, "state": one.state,
            "judged": one.judged,
        })
    });
    json!({
        "id": stored.id,
        "verdict": record.verdict,
        "duplicate_of": record.target,
        "target_score": record.target_score,
        "is_duplicate": record.is_duplicate,
        "confidence": record.confidence,
        "reason": record.reason,
        "reasoning": record.reasoning,
        "effective_source": record.effective_source.as_str(),
        "source_fallback_reason": record.source_fallback_reason,
        "provider": record.provider,
        "model": record.model,
        "prompt_version": record.prompt_version,
        "config_hash": record.config_hash,
        "content_version": record.content_version,
        "embed_model": record.embed_model,
        "created_at": stored.created_at,
        "run_id": record.run_id,
        "candidates": candidates.collect::<Vec<_>>(),
        "fix": record.fix.as_ref().map(fix_document),
        "action": action.map_or(Value::Null, action_document),
    })
}

/// The closed report with the same problem, and the pull request that fixed it.
fn fix_document(fix: &FixMatch) -> Value {
    json!({
        "kind": fix.kind,
        "report": fix.report,
        "score": fix.score,
        "confidence": fix.confidence,
        "fix": fix.fix,
        "merged_at": fix.merged_at,
        "release": fix.release,
    })
}

fn close_document(close: &AppliedClose) -> Value {
    json!({
        "target": close.target,
        "plan": close.plan_id.get(),
        "approved": close.approved,
        "closed_at": close.applied_at,
        "objected": close.objected,
        "undone_at": close.undone_at,
    })
}

fn action_document(stored: &StoredTriageAction) -> Value {
    let action = &stored.action;
    json!({
        "mode": action.mode.as_str(),
        "component": action.component,
        "threshold": action.threshold,
        "source": action.source,
        "action": action.action.as_str(),
        "reason": action.reason,
        "comment_key": action.comment_key,
        "created_at": stored.created_at,
    })
}

fn write_document(entry: &OutboxEntry) -> Value {
    json!({
        "kind": entry.kind,
        "key": entry.key,
        "state": entry.state.as_str(),
        "reason": entry.reason,
        "created_at": entry.created_at,
        "updated_at": entry.updated_at,
    })
}

fn outcome_document(stored: &StoredOutcome, events: &[OutcomeEvent]) -> Value {
    let IssueOutcome { outcome, evidence, decided_by, at, component, cluster } = &stored.outcome;
    let duplicate_of = match outcome {
        IssueResolution::Duplicate { of } => *of,
        _ => None,
    };
    let decisive = events.iter().find(|event| Some(&event.delivery_id) == decided_by.as_ref());
    json!({
        "kind": outcome.as_str(),
        "duplicate_of": duplicate_of,
        "state_reason": decisive.and_then(|event| event.state_reason),
        "actor": decisive.and_then(|event| event.actor.as_ref()),
        "evidence": evidence.as_str(),
        "decided_by": decided_by,
        "at": at,
        "component": component,
        "cluster": cluster,
        "lesson": stored.lesson,
        "triage_id": stored.triage_id,
        "updated_at": stored.updated_at,
    })
}

fn event_document(event: &OutcomeEvent) -> Value {
    json!({
        "kind": event.kind,
        "state_reason": event.state_reason,
        "duplicate_of": event.duplicate_of,
        "in_body": event.in_body,
        "comment": event.comment,
        "labels": event.labels,
        "actor": event.actor,
        "by": event.by.as_str(),
        "occurred_at": event.occurred_at,
        "delivery_id": event.delivery_id,
    })
}

fn grace_document(grace: &Grace) -> Value {
    json!({
        "state": grace.state.as_str(),
        "target": grace.target,
        "approved_by": grace.approved_by,
        "began_at": grace.began_at,
        "due_at": grace.due_at,
        "reason": grace.reason,
        "ended_at": grace.ended_at,
        "plan": grace.plan.map(CloseRunId::get),
    })
}

pub fn brake_document(brake: &Brake) -> Value {
    json!({
        "kind": brake.kind.as_str(),
        "set_by": brake.set_by,
        "why": brake.why,
        "set_at": brake.set_at,
    })
}

pub fn cluster_document(cluster: &CanonicalizedCluster) -> Value {
    let details =
        |member: &ClusterMember| json!({ "number": member.number, "state": member.state, "title": member.title });
    json!({
        "type": cluster.item_type,
        "canonical": cluster.canonical,
        "because": cluster.because,
        "members": cluster.members.iter().map(|member| member.number).collect::<Vec<_>>(),
        "items": cluster.members.iter().map(details).collect::<Vec<_>>(),
    })
}
