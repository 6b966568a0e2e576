//! Which threshold decides: the configured one, a learned one, a component's, or silence.

use canonry_domain::{
    ContentVersion, CurrentThreshold, EventBy, ItemNumber, ItemRecord, ItemState, ItemType, OutcomeEvent, OutcomeKind,
    Similarity, StateReason, Threshold, ThresholdSettings, Verdict,
};
use canonry_store::{NewTriageRecord, Representation, TriageActionKind};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::NewIssue;
use canonry_testkit::on_both_engines;

use crate::triage::setting::{ALPHA, Setting, told, yes};

/// This many issues that were predicted to be duplicates of #1 and then closed with this reason.
async fn history(setting: &Setting, first: i64, count: i64, reason: StateReason, labels: &[&str]) {
    let now = setting.now();
    let mut events = Vec::new();
    let numbers: Vec<ItemNumber> = (first..first + count).map(|at| ItemNumber::new(at).expect("valid")).collect();
    let labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
    let items = numbers.iter().map(|number| ItemRecord {
        state: Some(ItemState::Closed),
        labels: Some(labels.clone()),
        ..ItemRecord::new(ItemType::Issue, *number, "Past")
    });
    setting.store.corpus().upsert_items(&setting.repo, items.collect(), now).await.expect("taken in");
    for number in numbers {
        setting.store.duplicates().write_triage_record(setting.repo.id, &record(number), now).await.expect("stored");
        events.push(OutcomeEvent {
            delivery_id: format!("delivery-{number}"),
            number,
            kind: OutcomeKind::Closed,
            state_reason: Some(reason),
            actor: Some("maint".parse().expect("a login")),
            by: EventBy::Maintainer,
            duplicate_of: None,
            in_body: None,
            comment: None,
            labels: Some(labels.clone()),
            cluster: Vec::new(),
            occurred_at: now,
        });
    }
    let learned = setting.store.learning().record_outcome_events(setting.repo.id, &events, now).await.expect("stored");
    assert_eq!(learned.new_events, u64::try_from(count).expect("positive"));
}

fn record(number: ItemNumber) -> NewTriageRecord {
    NewTriageRecord {
        item_type: ItemType::Issue,
        number,
        verdict: Verdict::Duplicate,
        target: Some(ItemNumber::new(1).expect("valid")),
        target_score: Some(Similarity::new(0.99).expect("in range")),
        is_duplicate: true,
        confidence: None,
        reason: "duplicate".to_owned(),
        reasoning: String::new(),
        effective_source: Representation::Raw,
        source_fallback_reason: None,
        provider: "local".to_owned(),
        model: "rules".to_owned(),
        prompt_version: 1,
        config_hash: "hash".to_owned(),
        content_version: ContentVersion::FIRST,
        embed_model: "scripted".to_owned(),
        run_id: "past".to_owned(),
        candidates: Vec::new(),
        fix: None,
    }
}

on_both_engines! {
    async fn below_the_threshold_nothing_is_said_and_all_is_recorded(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let configured = Threshold::new(93).expect("in bounds");
        let settings = ThresholdSettings { configured, ..ThresholdSettings::default() };
        setting.store.learning().set_threshold_settings(setting.repo.id, &settings, setting.now()).await.expect("stored");
        let item = setting.report(ALPHA, 0.92);
        let triaged = setting.triage(item).await;
        assert_eq!(told(&triaged), (Some("recorded"), "below_threshold"));
        assert!(setting.emulator.writes().is_empty());
        let action = setting.actions(item).await.remove(0).action;
        assert_eq!(action.threshold, CurrentThreshold::From(configured));
        let near = setting.report(ALPHA, 0.94);
        assert_eq!(told(&setting.triage(near).await).0, Some("commented"));
    }

    async fn a_repository_that_is_always_wrong_falls_silent(database: TestDatabase) {
        let setting = Setting::new(database).await;
        history(&setting, 1_000, 12, StateReason::Completed, &[]).await;
        let item = setting.report(ALPHA, 0.99);
        assert_eq!(told(&setting.triage(item).await), (Some("recorded"), "fallen_silent"));
        let action = setting.actions(item).await.remove(0).action;
        assert_eq!((action.threshold, action.action), (CurrentThreshold::Silent, TriageActionKind::Recorded));
        assert!(setting.emulator.writes().is_empty());
        assert_eq!(setting.records(item).await.len(), 1, "it goes on recording");
    }

    async fn a_component_has_its_own_threshold_once_enough_is_known(database: TestDatabase) {
        let setting = Setting::new(database).await;
        history(&setting, 1_000, 100, StateReason::Duplicate, &[]).await;
        history(&setting, 2_000, 20, StateReason::Completed, &["area/auth"]).await;
        let labelled = NewIssue::new(&setting.title(ALPHA, 0.95), "It stops.").label("bug").label("Area/auth");
        let labelled = setting.report_as(ALPHA, 0.95, labelled);
        assert_eq!(told(&setting.triage(labelled).await), (Some("recorded"), "fallen_silent"));
        let action = setting.actions(labelled).await.remove(0).action;
        assert_eq!(action.component.as_ref().map(|component| component.as_str()), Some("auth"));
        let plain = setting.report(ALPHA, 0.96);
        setting.judge_says(yes(1, 0.96));
        assert_eq!(told(&setting.triage(plain).await).0, Some("commented"));
    }
}
