//! Issues that Canonry triaged and people closed, stored in a place's database.

use canonry_domain::{
    Component, ContentVersion, CurrentThreshold, EventBy, ItemNumber, ItemRecord, ItemType, OutcomeEvent, OutcomeKind,
    Probability, Similarity, StateReason, Threshold, ThresholdSource, TriageMode, Verdict,
};
use canonry_store::{DatabaseUrl, NewTriageRecord, Repo, Representation, Store, TriageAction, TriageActionKind};
use jiff::Timestamp;

use crate::place::Place;

/// The store of a place, with a repository that has an issue #1.
pub(crate) struct Lessons {
    pub(crate) store: Store,
    pub(crate) repo: Repo,
}

pub(crate) fn number(number: i64) -> ItemNumber {
    ItemNumber::new(number).expect("a number")
}

pub(crate) fn moment(text: &str) -> Timestamp {
    text.parse().expect("a moment")
}

impl Lessons {
    pub(crate) async fn in_place(place: &Place) -> Self {
        place.canonry(&["init"]).succeeded();
        let store = Store::open_existing(&DatabaseUrl::Sqlite(place.database())).await.expect("it is there");
        let now = moment("2026-02-01T00:00:00Z");
        let repo = store.repos().ensure(&"octo/cat".parse().expect("valid"), now).await.expect("created");
        let lessons = Self { store, repo };
        lessons.open(1, &[]).await;
        lessons
    }

    pub(crate) async fn open(&self, of: i64, labels: &[&str]) {
        let labels = labels.iter().map(|&label| label.to_owned()).collect();
        let mut record = ItemRecord::new(ItemType::Issue, number(of), format!("Issue {of}"));
        record.labels = Some(labels);
        self.store
            .corpus()
            .upsert_items(&self.repo, vec![record], moment("2026-02-01T00:00:00Z"))
            .await
            .expect("taken in");
    }

    /// Records the verdict that an issue is a duplicate of #1, with this score.
    pub(crate) async fn predict(&self, of: i64, score: f64, now: Timestamp) -> i64 {
        let record = NewTriageRecord {
            item_type: ItemType::Issue,
            number: number(of),
            verdict: Verdict::Duplicate,
            target: Some(number(1)),
            target_score: Some(Similarity::new(score).expect("a score")),
            is_duplicate: true,
            confidence: Some(Probability::new(0.97).expect("in range")),
            reason: "duplicate".to_owned(),
            reasoning: "Both stop at the first step.".to_owned(),
            effective_source: Representation::Raw,
            source_fallback_reason: None,
            provider: "local".to_owned(),
            model: "evidence".to_owned(),
            prompt_version: 1,
            config_hash: "c".to_owned(),
            content_version: ContentVersion::FIRST,
            embed_model: "small".to_owned(),
            run_id: format!("run-{of}-{now}"),
            candidates: Vec::new(),
            fix: None,
        };
        self.store.duplicates().write_triage_record(self.repo.id, &record, now).await.expect("written")
    }

    /// Records what the service did with a triage record.
    pub(crate) async fn act(&self, triage_id: i64, action: TriageActionKind, reason: &str, now: Timestamp) {
        let mode = if action == TriageActionKind::Recorded && reason == "mode" {
            TriageMode::Shadow
        } else {
            TriageMode::Suggest
        };
        let action = TriageAction {
            triage_id,
            mode,
            component: Component::of_labels(["area/auth"]),
            threshold: CurrentThreshold::From(Threshold::default()),
            source: ThresholdSource::Configured,
            action,
            reason: reason.parse().expect("any text"),
            comment_key: (action != TriageActionKind::Recorded).then(|| "triage:1:issue:2:0".to_owned()),
        };
        self.store.duplicates().record_triage_action(&action, now).await.expect("noted");
    }

    pub(crate) async fn happen(&self, event: OutcomeEvent) {
        let now = event.occurred_at;
        self.store.learning().record_outcome_events(self.repo.id, &[event], now).await.expect("recorded");
    }
}

/// An event by a person called mona.
pub(crate) fn event(of: i64, kind: OutcomeKind, reason: Option<StateReason>, at: &str) -> OutcomeEvent {
    OutcomeEvent {
        delivery_id: format!("delivery-{kind}-{of}-{at}"),
        number: number(of),
        kind,
        state_reason: reason,
        actor: Some("mona".parse().expect("a login")),
        by: EventBy::Person,
        duplicate_of: None,
        in_body: None,
        comment: None,
        labels: None,
        cluster: Vec::new(),
        occurred_at: moment(at),
    }
}
