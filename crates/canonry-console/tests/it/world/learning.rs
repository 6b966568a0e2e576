//! A store with learned data: verdicts, outcomes, an audit.

use canonry_domain::{
    AuditCandidate, AuditClass, AuditItem, EventBy, ItemRecord, LaneResult, LaneStatus, OutcomeEvent, OutcomeKind,
    Probability, StateReason, Verdict,
};
use canonry_store::{AuditedItem, NewAudit, NewTriageRecord, Representation};
use jiff::SignedDuration;

use crate::world::items::{alike, neighbour, plain_record};
use crate::world::{ConsoleWorld, HOSTILE, ISSUE, number};

impl ConsoleWorld {
    pub(crate) async fn issues(&self, issues: i64) {
        let issue = |of: i64| ItemRecord {
            body: Some(format!("What happens in {of}: {HOSTILE}")),
            ..ItemRecord::new(ISSUE, number(of), format!("Issue {of} {HOSTILE}"))
        };
        self.store
            .corpus()
            .upsert_items(&self.repo, (1..=issues).map(issue).collect(), self.now)
            .await
            .expect("taken in");
    }

    /// A verdict on an issue whose nearest neighbour is issue 1.
    pub(crate) async fn said(&self, of: i64, verdict: Verdict, value: f64) {
        let named = verdict != Verdict::NotDuplicate;
        let record = NewTriageRecord {
            confidence: Some(Probability::ONE),
            run_id: format!("run-{of}"),
            candidates: vec![neighbour(1, value, true)],
            ..plain_record(of, verdict, named.then_some(1), value)
        };
        self.store.duplicates().write_triage_record(self.repo.id, &record, self.now).await.expect("written");
    }

    /// Closed by mona as a duplicate of issue 1, or as completed.
    pub(crate) async fn closed(&self, of: i64, duplicate: bool, component: &str, hours: i64) {
        let at = self.now + SignedDuration::from_hours(hours);
        let event = OutcomeEvent {
            delivery_id: format!("closed {of}"),
            number: number(of),
            kind: OutcomeKind::Closed,
            state_reason: Some(if duplicate { StateReason::Duplicate } else { StateReason::Completed }),
            actor: Some("mona".parse().expect("a login")),
            by: EventBy::Maintainer,
            duplicate_of: duplicate.then(|| number(1)),
            in_body: None,
            comment: None,
            labels: Some(vec![format!("area/{component}")]),
            cluster: Vec::new(),
            occurred_at: at,
        };
        self.store.learning().record_outcome_events(self.repo.id, &[event], at).await.expect("recorded");
    }

    /// An audit: .95 right, .90 wrong, .85 right, and one that only the strong judge finds.
    pub(crate) async fn audited(&self) -> i64 {
        let lane = |target: Option<i64>| LaneResult {
            status: if target.is_some() { LaneStatus::Accepted } else { LaneStatus::Rejected },
            target: target.map(number),
            confidence: None,
            reason: None,
        };
        let item = |of, value, cheap, strong, class| AuditedItem {
            item_type: ISSUE,
            number: number(of),
            candidate_set: None,
            item: AuditItem {
                candidates: vec![AuditCandidate {
                    number: number(1),
                    rank: 1,
                    score: alike(value),
                    same_as: Vec::new(),
                }],
                cheap: lane(cheap),
                strong: lane(strong),
            },
            class,
        };
        let items = [
            item(2, 0.95, Some(1), Some(1), AuditClass::Tp),
            item(3, 0.90, Some(1), None, AuditClass::Fp),
            item(4, 0.85, Some(1), Some(1), AuditClass::Tp),
            item(5, 0.85, None, Some(1), AuditClass::Fn),
        ];
        let audit = NewAudit {
            representation: Representation::Raw,
            seed: 7,
            sample_size: 10,
            cheap_provider: "local".to_owned(),
            cheap_model: HOSTILE.to_owned(),
            strong_provider: "command".to_owned(),
            strong_model: "strong".to_owned(),
            min_edge: Probability::new(0.85).expect("in range"),
            run_id: "run".to_owned(),
            prompt_version: Some(1),
            proof: None,
        };
        self.store.judge().write_audit(self.repo.id, &audit, &items, self.now).await.expect("written")
    }
}
