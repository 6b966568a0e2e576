//! Actions of people on issues, and the thresholds that follow: derived again in every transaction, on both engines.

use canonry_domain::{
    CommentReactions, Component, CurrentThreshold, EventBy, GithubId, IssueOutcome, IssueResolution, ItemNumber,
    ItemRecord, ItemState, ItemType, LearningEntry, Lesson, LessonKind, OutcomeEvent, OutcomeKind, Probability,
    StateReason, TargetPolicy, Threshold, ThresholdRule, ThresholdSettings, ThresholdSource, TriageMode, TriageReason,
    Verdict, WriteKey, WriteKind, WriteOrigin, learn_thresholds,
};
use canonry_store::{
    CloseOutcome, CloseResult, LearningUpdate, NewOutboxEntry, NewPlan, NewPlanRow, NewTriageRecord, OutboxEnd,
    OutboxScope, Repo, Representation, Store, TriageAction, TriageActionKind,
};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use serde_json::json;

use crate::fixtures::{ISSUE, at, issues, number, open_with, score, triage_record};

/// A store with the issues 1 to `count`; those whose number ends in 7 belong to a component.
async fn open(database: &TestDatabase, count: i64) -> (Store, Repo) {
    let labels = |of: ItemNumber| (of.get() % 10 == 7).then(|| vec!["area/sync".to_owned()]);
    open_with(database, issues(1..=count).map(|issue| ItemRecord { labels: labels(issue.number), ..issue })).await
}

fn said(of: i64, target: Option<i64>, value: f64) -> NewTriageRecord {
    let verdict = if target.is_some() { Verdict::Duplicate } else { Verdict::NotDuplicate };
    let target_score = target.map(|_| score(value));
    NewTriageRecord { target_score, run_id: format!("run-{of}"), ..triage_record(of, verdict, target) }
}

fn event(of: i64, kind: OutcomeKind, by: EventBy, second: i64) -> OutcomeEvent {
    OutcomeEvent {
        delivery_id: format!("{of} {kind} {second}"),
        number: number(of),
        kind,
        state_reason: None,
        actor: (by != EventBy::Unknown).then(|| "mona".parse().expect("valid")),
        by,
        duplicate_of: None,
        in_body: None,
        comment: None,
        labels: None,
        cluster: Vec::new(),
        occurred_at: at(second),
    }
}

/// A close by a person: as a duplicate of that issue, or as completed.
fn closed(of: i64, target: Option<i64>, second: i64) -> OutcomeEvent {
    let reason = if target.is_some() { StateReason::Duplicate } else { StateReason::Completed };
    OutcomeEvent {
        state_reason: Some(reason),
        duplicate_of: target.map(number),
        labels: Some(if of % 10 == 7 { vec!["area/sync".to_owned()] } else { Vec::new() }),
        ..event(of, OutcomeKind::Closed, EventBy::Person, second)
    }
}

async fn act(store: &Store, triage_id: i64, action: TriageActionKind, second: i64) {
    let action = TriageAction {
        triage_id,
        mode: TriageMode::Suggest,
        component: None,
        threshold: CurrentThreshold::From(Threshold::default()),
        source: ThresholdSource::Configured,
        action,
        reason: "speak".parse().expect("any text"),
        comment_key: None,
    };
    store.duplicates().record_triage_action(&action, at(second)).await.expect("written");
}

async fn lesson(store: &Store, repo: &Repo, of: i64) -> Option<(IssueResolution, LessonKind)> {
    let stored = store.learning().issue_outcome(repo.id, number(of)).await.expect("reads")?;
    Some((stored.outcome.outcome, stored.lesson.kind()))
}

async fn record(store: &Store, repo: &Repo, events: &[OutcomeEvent], second: i64) {
    store.learning().record_outcome_events(repo.id, events, at(second)).await.expect("recorded");
    assert_eq!(
        store.learning().thresholds(repo.id).await.expect("reads"),
        store.learning().recomputed_thresholds(repo.id).await.expect("reads")
    );
}

on_both_engines! {
    async fn an_outcome_follows_every_event(database: TestDatabase) {
        let (store, repo) = open(&database, 9).await;
        assert_eq!(lesson(&store, &repo, 2).await, None);
        let triage = store.duplicates().write_triage_record(repo.id, &said(2, Some(1), 0.93), at(1)).await.expect("written");
        let first = closed(2, Some(1), 10);
        record(&store, &repo, std::slice::from_ref(&first), 10).await;
        let duplicate = IssueResolution::Duplicate { of: Some(number(1)) };
        assert_eq!(lesson(&store, &repo, 2).await, Some((duplicate, LessonKind::Confirmed)));
        let stored = store.learning().issue_outcome(repo.id, number(2)).await.expect("reads").expect("known");
        assert_eq!((stored.triage_id, stored.updated_at), (Some(triage), at(10)));
        // A repeated event changes nothing.
        let again = store.learning().record_outcome_events(repo.id, &[first], at(11)).await.expect("recorded");
        assert_eq!(again.new_events, 0);
        assert_eq!(store.learning().issue_outcome(repo.id, number(2)).await.expect("reads").expect("known").updated_at, at(10));
        record(&store, &repo, &[event(2, OutcomeKind::Reopened, EventBy::Person, 20)], 20).await;
        assert_eq!(lesson(&store, &repo, 2).await, Some((IssueResolution::ReopenedDuplicate, LessonKind::FalsePositive)));
        record(&store, &repo, &[closed(2, None, 30)], 30).await;
        assert_eq!(lesson(&store, &repo, 2).await, Some((IssueResolution::Completed, LessonKind::FalsePositive)));
        // An issue that was never triaged has an outcome, but no lesson.
        record(&store, &repo, &[closed(3, Some(1), 40)], 40).await;
        assert_eq!(lesson(&store, &repo, 3).await, Some((duplicate, LessonKind::Unknown)));
        // An unknown issue teaches nothing.
        record(&store, &repo, &[closed(99, Some(1), 50)], 50).await;
        let counts = store.learning().outcome_counts().await.expect("reads");
        assert_eq!(counts, [("tide/pool".parse().expect("valid"), LessonKind::FalsePositive, 1)]);
    }

    async fn a_target_of_the_predicted_ones_cluster_is_right(database: TestDatabase) {
        let (store, repo) = open(&database, 9).await;
        // 5 was closed as a duplicate of 4, and 6 was predicted to be a duplicate of 5.
        let dup = |of: i64, target: i64| ItemRecord {
            state: Some(ItemState::Closed), duplicate_of: Some(Some(number(target))), ..ItemRecord::new(ISSUE, number(of), format!("Issue {of}"))
        };
        store.corpus().upsert_items(&repo, vec![dup(5, 4)], at(1)).await.expect("taken in");
        store.duplicates().write_triage_record(repo.id, &said(6, Some(5), 0.9), at(2)).await.expect("written");
        store.duplicates().write_triage_record(repo.id, &said(8, Some(5), 0.9), at(2)).await.expect("written");
        record(&store, &repo, &[closed(6, Some(4), 10)], 10).await;
        let events = store.learning().outcome_events(repo.id, number(6)).await.expect("reads");
        assert_eq!(events[0].cluster, [number(4), number(5)]);
        assert_eq!(lesson(&store, &repo, 6).await.map(|told| told.1), Some(LessonKind::Confirmed));
        // The target that the issue itself was closed for is not in the cluster because of it.
        store.corpus().upsert_items(&repo, vec![dup(8, 9), dup(5, 8)], at(11)).await.expect("taken in");
        record(&store, &repo, &[closed(8, Some(9), 12)], 12).await;
        assert_eq!(lesson(&store, &repo, 8).await.map(|told| told.1), Some(LessonKind::Missed));
    }

    async fn what_a_sync_discovers_is_learned_from(database: TestDatabase) {
        let (store, repo) = open(&database, 9).await;
        store.duplicates().write_triage_record(repo.id, &said(7, Some(1), 0.9), at(1)).await.expect("written");
        let seen = ItemRecord {
            state: Some(ItemState::Closed), state_reason: Some(Some(StateReason::Duplicate)), duplicate_of: Some(Some(number(1))),
            closed_at: Some(Some(at(10))), updated_at: Some(at(10)), synced_at: Some(at(11)), ..ItemRecord::new(ISSUE, number(7), "Issue 7")
        };
        store.corpus().upsert_items(&repo, vec![seen], at(11)).await.expect("taken in");
        let stored = store.learning().issue_outcome(repo.id, number(7)).await.expect("reads").expect("known");
        assert_eq!((stored.outcome.outcome, stored.lesson.kind()), (IssueResolution::Duplicate { of: Some(number(1)) }, LessonKind::Confirmed));
        assert_eq!(stored.outcome.component.as_ref().map(Component::as_str), Some("sync"));
        record(&store, &repo, &[], 12).await;
    }

    async fn an_own_close_counts_when_a_person_approved_it(database: TestDatabase) {
        let (store, repo) = open(&database, 9).await;
        for of in [2, 3, 4] {
            store.duplicates().write_triage_record(repo.id, &said(of, Some(1), 0.9), at(1)).await.expect("written");
        }
        let row = |of: i64| NewPlanRow {
            item_type: ISSUE, number: number(of), target: Some(number(1)), skip: None, confidence: Some(Probability::ONE), evidence: json!([]), snapshot: json!({}),
        };
        let new = NewPlan { representation: Representation::Raw, target_policy: TargetPolicy::CanonicalOnly, min_close: Probability::ONE, config_hash: "c", run_id: "r" };
        let plan = store.plans().create(repo.id, &new, &[row(2), row(3), row(4)], at(2)).await.expect("planned");
        store.plans().set_approved(plan, ISSUE, &[number(2), number(4)], Some(true), None, at(3)).await.expect("approved");
        let run = store.plans().begin_apply(plan, "r", at(4)).await.expect("begun").expect("a plan").id;
        // GitHub reported the first close before its result was stored, and the third after it.
        let own = |of, second| OutcomeEvent { state_reason: Some(StateReason::Duplicate), ..event(of, OutcomeKind::Closed, EventBy::Canonry, second) };
        record(&store, &repo, &[own(2, 9)], 9).await;
        assert_eq!(lesson(&store, &repo, 2).await.map(|told| told.1), Some(LessonKind::Unknown));
        for of in [2, 3, 4] {
            let outcome = CloseOutcome::Applied { objected: false };
            let result = CloseResult { outcome, reason: None, outbox_key: None };
            assert!(store.plans().record_close_result(run, ISSUE, number(of), result, at(10)).await.expect("recorded"));
        }
        record(&store, &repo, &[own(4, 9)], 11).await;
        let told = async |of| lesson(&store, &repo, of).await.expect("known");
        let duplicate = IssueResolution::Duplicate { of: Some(number(1)) };
        assert_eq!(told(2).await, (duplicate, LessonKind::Confirmed));
        assert_eq!(told(3).await, (IssueResolution::Unknown, LessonKind::Unknown));
        assert_eq!(told(4).await, (duplicate, LessonKind::Confirmed));
        // A person who reopens what Canonry closed says that it is not a duplicate.
        record(&store, &repo, &[event(3, OutcomeKind::Reopened, EventBy::Person, 20)], 20).await;
        assert_eq!(told(3).await, (IssueResolution::ReopenedDuplicate, LessonKind::FalsePositive));
    }

    async fn reactions_count_while_there_is_no_outcome(database: TestDatabase) {
        let (store, repo) = open(&database, 9).await;
        let triage = store.duplicates().write_triage_record(repo.id, &said(7, Some(1), 0.9), at(1)).await.expect("written");
        act(&store, triage, TriageActionKind::Commented, 1).await;
        let react = async |up, down, mixed, second| {
            let counts = CommentReactions { up, down, mixed };
            store.learning().record_comment_reactions(repo.id, number(7), GithubId(8_000_000_001), counts, at(second)).await.expect("recorded");
            record(&store, &repo, &[], second).await;
            lesson(&store, &repo, 7).await.map(|told| told.1)
        };
        assert_eq!(react(0, 1, 0, 2).await, Some(LessonKind::Unknown));
        assert_eq!(react(0, 2, 0, 3).await, Some(LessonKind::FalsePositive));
        assert_eq!(react(0, 2, 1, 4).await, Some(LessonKind::Unknown));
        assert_eq!(react(2, 0, 0, 5).await, Some(LessonKind::Confirmed));
        record(&store, &repo, &[closed(7, None, 6)], 6).await;
        assert_eq!(lesson(&store, &repo, 7).await.map(|told| told.1), Some(LessonKind::FalsePositive));
        assert_eq!(react(3, 0, 0, 7).await, Some(LessonKind::FalsePositive));
        let unknown = store.learning().record_comment_reactions(repo.id, number(99), GithubId(1), CommentReactions { up: 1, down: 0, mixed: 0 }, at(8)).await;
        assert_eq!(unknown.expect("there is nothing to learn"), LearningUpdate::default());
    }

    async fn reactions_are_about_what_the_comment_says(database: TestDatabase) {
        let (store, repo) = open(&database, 9).await;
        let react = async |up, down, second| {
            let counts = CommentReactions { up, down, mixed: 0 };
            store.learning().record_comment_reactions(repo.id, number(7), GithubId(8_000_000_001), counts, at(second)).await.expect("recorded");
        };
        let heard = async || {
            let stored = store.learning().issue_outcome(repo.id, number(7)).await.expect("reads").expect("known");
            record(&store, &repo, &[], 99).await;
            (stored.lesson.kind(), stored.triage_id)
        };
        let write = async |target, second| {
            store.duplicates().write_triage_record(repo.id, &said(7, Some(target), 0.9), at(second)).await.expect("written")
        };
        let first = write(1, 1).await;
        // Nothing was posted yet that people could react to.
        react(0, 2, 2).await;
        assert_eq!(heard().await, (LessonKind::Unknown, Some(first)));
        act(&store, first, TriageActionKind::Commented, 3).await;
        react(0, 2, 4).await;
        assert_eq!(heard().await, (LessonKind::FalsePositive, Some(first)));
        // A verdict that was only recorded changes nothing.
        let silent = write(2, 5).await;
        act(&store, silent, TriageActionKind::Recorded, 5).await;
        assert_eq!(heard().await, (LessonKind::FalsePositive, Some(first)));
        // The comment has a new text, and nobody has reacted to it.
        let edited = write(3, 6).await;
        act(&store, edited, TriageActionKind::Edited, 6).await;
        assert_eq!(heard().await, (LessonKind::Unknown, Some(edited)));
        react(2, 0, 7).await;
        assert_eq!(heard().await, (LessonKind::Confirmed, Some(edited)));
        let withdrawn = store.duplicates().write_triage_record(repo.id, &said(7, None, 0.0), at(8)).await.expect("written");
        act(&store, withdrawn, TriageActionKind::Withdrawn, 8).await;
        react(0, 3, 9).await;
        assert_eq!(heard().await.0, LessonKind::Unknown);
    }

    async fn reactions_count_for_the_component_of_the_first_of_them(database: TestDatabase) {
        let (store, repo) = open(&database, 103).await;
        for of in 2..=102 {
            let triage = store.duplicates().write_triage_record(repo.id, &said(of, Some(1), 0.9), at(1)).await.expect("written");
            act(&store, triage, TriageActionKind::Commented, 1).await;
        }
        // With one more the component has enough.
        let labels = |of: i64| Some(if of <= 21 { vec!["area/then".to_owned()] } else { Vec::new() });
        let events: Vec<_> = (3..=102).map(|of| OutcomeEvent { labels: labels(of), ..closed(of, Some(1), 10) }).collect();
        record(&store, &repo, &events, 10).await;
        let with_reactions = async |down, label: &str, second| {
            let labelled = ItemRecord { labels: Some(vec![label.to_owned()]), ..ItemRecord::new(ISSUE, number(2), "Issue 2") };
            store.corpus().upsert_items(&repo, vec![labelled], at(second)).await.expect("taken in");
            let counts = CommentReactions { up: 0, down, mixed: 0 };
            store.learning().record_comment_reactions(repo.id, number(2), GithubId(8_000_000_001), counts, at(second)).await.expect("recorded");
            record(&store, &repo, &[], second).await;
            store.learning().thresholds(repo.id).await.expect("reads").components.into_values().map(|state| state.counts.total).collect::<Vec<_>>()
        };
        assert_eq!(with_reactions(0, "area/before", 20).await, Vec::<u64>::new());
        assert_eq!(with_reactions(2, "area/then", 21).await, [20]);
        assert_eq!(with_reactions(3, "area/later", 22).await, [20]);
    }

    async fn what_was_spoken_is_what_people_answered(database: TestDatabase) {
        let (store, repo) = open(&database, 9).await;
        let spoken = store.duplicates().write_triage_record(repo.id, &said(2, Some(1), 0.93), at(1)).await.expect("written");
        act(&store, spoken, TriageActionKind::Commented, 2).await;
        let silent = store.duplicates().write_triage_record(repo.id, &said(2, None, 0.0), at(5)).await.expect("written");
        act(&store, silent, TriageActionKind::Recorded, 5).await;
        record(&store, &repo, &[closed(2, None, 10)], 10).await;
        let stored = store.learning().issue_outcome(repo.id, number(2)).await.expect("reads").expect("known");
        assert_eq!((stored.lesson.kind(), stored.triage_id), (LessonKind::FalsePositive, Some(spoken)));
        // The posted comment is recorded after the answer of people.
        let late = store.duplicates().write_triage_record(repo.id, &said(3, Some(1), 0.93), at(1)).await.expect("written");
        store.duplicates().write_triage_record(repo.id, &said(3, Some(4), 0.9), at(2)).await.expect("written");
        record(&store, &repo, &[closed(3, Some(1), 10)], 10).await;
        assert_eq!(lesson(&store, &repo, 3).await.map(|told| told.1), Some(LessonKind::Missed));
        act(&store, late, TriageActionKind::Commented, 11).await;
        assert_eq!(lesson(&store, &repo, 3).await.map(|told| told.1), Some(LessonKind::Confirmed));
        assert_eq!(store.learning().outcome_events(repo.id, number(3)).await.expect("reads")[0].cluster, [number(1)]);
        record(&store, &repo, &[], 12).await;
    }

    async fn what_follows_an_override_or_has_no_score_teaches_nothing(database: TestDatabase) {
        let (store, repo) = open(&database, 9).await;
        let ruled = NewTriageRecord { reason: "override".to_owned(), ..said(2, Some(1), 1.0) };
        let unmeasured = NewTriageRecord { target_score: None, ..said(3, Some(1), 1.0) };
        for record in [&ruled, &unmeasured] {
            store.duplicates().write_triage_record(repo.id, record, at(1)).await.expect("written");
        }
        record(&store, &repo, &[closed(2, Some(1), 10), closed(3, Some(1), 10)], 10).await;
        for of in [2, 3] {
            assert_eq!(lesson(&store, &repo, of).await.map(|told| told.1), Some(LessonKind::Unknown), "#{of}");
        }
        assert_eq!(store.learning().thresholds(repo.id).await.expect("reads").repository.counts.total, 0);
    }

    async fn a_triage_that_ends_after_the_closing_has_its_cluster(database: TestDatabase) {
        let (store, repo) = open(&database, 9).await;
        let dup = ItemRecord {
            state: Some(ItemState::Closed), duplicate_of: Some(Some(number(4))), ..ItemRecord::new(ISSUE, number(5), "Issue 5")
        };
        store.corpus().upsert_items(&repo, vec![dup], at(1)).await.expect("taken in");
        // Triage began before the close, and its judge was slow.
        record(&store, &repo, &[closed(6, Some(4), 10)], 10).await;
        store.duplicates().write_triage_record(repo.id, &said(6, Some(5), 0.9), at(9)).await.expect("written");
        assert_eq!(store.learning().outcome_events(repo.id, number(6)).await.expect("reads")[0].cluster, [number(4), number(5)]);
        assert_eq!(lesson(&store, &repo, 6).await.map(|told| told.1), Some(LessonKind::Confirmed));
        // GitHub's times are whole seconds: a record of the same second counts as earlier, also for the cluster.
        store.duplicates().write_triage_record(repo.id, &said(8, Some(2), 0.9), at(20)).await.expect("written");
        let half_a_second_later = at(30) + jiff::SignedDuration::from_millis(500);
        store.duplicates().write_triage_record(repo.id, &said(8, Some(5), 0.9), half_a_second_later).await.expect("written");
        record(&store, &repo, &[closed(8, Some(4), 30)], 31).await;
        assert_eq!(lesson(&store, &repo, 8).await.map(|told| told.1), Some(LessonKind::Confirmed));
    }

    async fn a_large_cluster_keeps_the_target(database: TestDatabase) {
        let (store, repo) = open(&database, 520).await;
        let dup = |of: i64| ItemRecord {
            state: Some(ItemState::Closed), duplicate_of: Some(Some(number(520))), ..ItemRecord::new(ISSUE, number(of), format!("Issue {of}"))
        };
        store.corpus().upsert_items(&repo, (2..=515).map(dup).collect(), at(1)).await.expect("taken in");
        store.duplicates().write_triage_record(repo.id, &said(1, Some(520), 0.9), at(2)).await.expect("written");
        record(&store, &repo, &[closed(1, Some(3), 10)], 10).await;
        let cluster = &store.learning().outcome_events(repo.id, number(1)).await.expect("reads")[0].cluster;
        assert_eq!((cluster.len(), cluster.last()), (500, Some(&number(520))));
        assert_eq!(lesson(&store, &repo, 1).await.map(|told| told.1), Some(LessonKind::Confirmed));
    }

    async fn one_second_has_room_for_a_closing_and_a_reopening(database: TestDatabase) {
        let (store, repo) = open(&database, 3).await;
        let found = |kind| OutcomeEvent { delivery_id: "sync:tide/pool#2:10".to_owned(), ..event(2, kind, EventBy::Unknown, 10) };
        let events = [found(OutcomeKind::Closed), found(OutcomeKind::Reopened), found(OutcomeKind::Reopened)];
        assert_eq!(store.learning().record_outcome_events(repo.id, &events, at(11)).await.expect("recorded").new_events, 2);
        let stored = store.learning().outcome_events(repo.id, number(2)).await.expect("reads");
        let ids: Vec<&str> = stored.iter().map(|event| event.delivery_id.as_str()).collect();
        assert_eq!(ids, ["sync:tide/pool#2:10", "sync:tide/pool#2:10:reopened"]);
        assert_eq!(store.learning().record_outcome_events(repo.id, &events, at(12)).await.expect("recorded").new_events, 0);
    }

    async fn a_check_sees_one_moment(database: TestDatabase) {
        let (store, repo) = open(&database, 120).await;
        for of in 2..=120 {
            store.duplicates().write_triage_record(repo.id, &said(of, Some(1), 0.9), at(of)).await.expect("written");
        }
        let writing = {
            let (store, repo) = (store.clone(), repo.clone());
            tokio::spawn(async move {
                for of in 2..=120 {
                    let told = closed(of, (of % 2 == 0).then_some(1), 1_000 + of);
                    store.learning().record_outcome_events(repo.id, &[told], at(2_000)).await.expect("recorded");
                }
            })
        };
        while !writing.is_finished() {
            let checked = store.learning().checked_thresholds(repo.id).await.expect("reads");
            assert_eq!((checked.stored, checked.older_rules), (checked.recomputed, false));
        }
        writing.await.expect("writes");
        assert_eq!(store.learning().checked_thresholds(repo.id).await.expect("reads").stored.repository.counts.total, 119);
    }

    async fn thresholds_move_as_the_rules_say_and_each_move_is_kept(database: TestDatabase) {
        let (store, repo) = open(&database, 60).await;
        assert_eq!(store.learning().thresholds(repo.id).await.expect("reads").repository.current, CurrentThreshold::From(Threshold::default()));
        for of in 2..=20 {
            store.duplicates().write_triage_record(repo.id, &said(of, Some(1), 0.97), at(of)).await.expect("written");
        }
        let mut adjusted = Vec::new();
        for of in 2..=20 {
            adjusted.extend(store.learning().record_outcome_events(repo.id, &[closed(of, None, 100 + of)], at(100 + of)).await.expect("recorded").adjusted);
        }
        // Only wrong predictions: Canonry stops commenting, once.
        assert_eq!(adjusted.len(), 1, "{adjusted:?}");
        assert_eq!((&adjusted[0].component, adjusted[0].new_threshold), (&None, CurrentThreshold::Silent));
        assert_eq!(store.learning().thresholds(repo.id).await.expect("reads").repository.current, CurrentThreshold::Silent);
        let kept = store.learning().threshold_adjustments(repo.id, 9).await.expect("reads");
        assert_eq!(kept.iter().map(|kept| &kept.adjusted).collect::<Vec<_>>(), [&adjusted[0]]);

        let settings = ThresholdSettings { rule: ThresholdRule::BetaMean, configured: Threshold::new(60).expect("in bounds"), ..ThresholdSettings::default() };
        let learned = store.learning().set_threshold_settings(repo.id, &settings, at(200)).await.expect("set");
        assert_eq!((learned.new_events, learned.adjusted.len()), (0, 1));
        assert_eq!(store.learning().threshold_settings(repo.id).await.expect("reads"), settings);
        assert_eq!(store.learning().set_threshold_settings(repo.id, &settings, at(201)).await.expect("set").adjusted, []);
        let stored = store.learning().thresholds(repo.id).await.expect("reads");
        assert_eq!((stored.repository.rule, stored.repository.counts.false_positives), (ThresholdRule::BetaMean, 19));
        assert_eq!(stored, store.learning().recomputed_thresholds(repo.id).await.expect("reads"));
        let newest = store.learning().threshold_adjustments(repo.id, 1).await.expect("reads").remove(0);
        assert_eq!(newest.at, at(200));
        assert_eq!(store.learning().threshold_adjustment_pages(repo.id, None, Some(newest.id), 9).await.expect("reads"), kept);
        let component = Component::of_labels(["area/sync"]).expect("a component");
        assert_eq!(store.learning().threshold_adjustment_pages(repo.id, Some(&component), None, 9).await.expect("reads"), []);
    }

    async fn components_have_thresholds_of_their_own_once_there_is_enough(database: TestDatabase) {
        let (store, repo) = open(&database, 240).await;
        for of in 2..=240 {
            let target = (of % 3 != 0).then_some(1);
            store.duplicates().write_triage_record(repo.id, &said(of, target, 0.5 + of as f64 / 600.0), at(of)).await.expect("written");
        }
        let events: Vec<_> = (2..=240).map(|of| closed(of, (of % 4 != 0).then_some(1), 1_000 + of)).collect();
        record(&store, &repo, &events, 1_300).await;
        let stored = store.learning().thresholds(repo.id).await.expect("reads");
        assert_eq!(stored.components.keys().map(Component::as_str).collect::<Vec<_>>(), ["sync"]);
        assert_eq!((stored.repository.counts.total, stored.components.values().next().expect("one").counts.total), (239, 24));
    }

    async fn writers_at_once_leave_what_the_log_says(database: TestDatabase) {
        const ISSUES: i64 = 40;
        let (store, repo) = open(&database, ISSUES).await;
        let writers = (0..8_i64).map(|writer| {
            let (store, repo) = (store.clone(), repo.clone());
            tokio::spawn(async move {
                for of in 2..=ISSUES {
                    // Each issue is triaged by one writer while others record its outcome.
                    if of % 8 == writer {
                        store.duplicates().write_triage_record(repo.id, &said(of, Some(1), 0.8 + of as f64 / 400.0), at(of)).await.expect("written");
                    }
                    let second = 1_000 + of * 10 + writer;
                    let told = match (of + writer) % 4 {
                        0 => closed(of, Some(1), second),
                        1 => closed(of, None, second),
                        2 => event(of, OutcomeKind::Reopened, EventBy::Person, second),
                        _ => event(of, OutcomeKind::Closed, EventBy::Bot, second),
                    };
                    store.learning().record_outcome_events(repo.id, &[told], at(second)).await.expect("recorded");
                }
            })
        });
        for writer in writers.collect::<Vec<_>>() {
            writer.await.expect("runs");
        }
        let stored = store.learning().thresholds(repo.id).await.expect("reads");
        assert_eq!(stored, store.learning().recomputed_thresholds(repo.id).await.expect("reads"));
        let mut log = Vec::new();
        for of in 2..=ISSUES {
            let kept = store.learning().issue_outcome(repo.id, number(of)).await.expect("reads").expect("known");
            let derived: IssueOutcome = canonry_domain::issue_outcome(&store.learning().outcome_events(repo.id, number(of)).await.expect("reads"));
            assert_eq!(kept.outcome, derived, "#{of}");
            log.push(LearningEntry { lesson: kept.lesson, component: kept.outcome.component });
        }
        assert!(log.iter().any(|entry| entry.lesson != Lesson::Unknown));
        assert_eq!(stored, learn_thresholds(&ThresholdSettings::default(), &log));
    }

    async fn whatever_comes_in_whatever_order_the_stored_state_is_what_the_log_says(database: TestDatabase) {
        let (store, repo) = open(&database, 12).await;
        // Any fixed sequence of numbers with a long period.
        let mut random = 11_u64;
        let mut next = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % below
        };
        for turn in 0..160_i64 {
            let (of, second) = (2 + next(11) as i64, next(500) as i64);
            let by = EventBy::ALL[next(6) as usize];
            match next(8) {
                0 | 1 => {
                    let target = (next(4) > 0).then(|| 1 + next(12) as i64).filter(|target| *target != of);
                    let record = NewTriageRecord {
                        reason: if next(5) == 0 { "invalid_judge_response" } else { "duplicate" }.to_owned(),
                        ..said(of, target, 0.5 + next(50) as f64 / 100.0)
                    };
                    store.duplicates().write_triage_record(repo.id, &record, at(second)).await.expect("written");
                }
                2 if next(3) == 0 => {
                    let kinds = [TriageActionKind::Recorded, TriageActionKind::Commented, TriageActionKind::Edited, TriageActionKind::Withdrawn];
                    let records = store.duplicates().triage_records_of(repo.id, ISSUE, number(of)).await.expect("reads");
                    if let Some(record) = records.first() {
                        act(&store, record.id, kinds[next(4) as usize], second).await;
                    }
                }
                2 => {
                    let counts = CommentReactions { up: next(3) as u32, down: next(3) as u32, mixed: next(2) as u32 };
                    store.learning().record_comment_reactions(repo.id, number(of), GithubId(next(3) as i64), counts, at(second)).await.expect("recorded");
                }
                3 => {
                    let configured = Threshold::new(50 + next(46) as u8).expect("in bounds");
                    let settings = ThresholdSettings { rule: ThresholdRule::ALL[next(3) as usize], configured, ..ThresholdSettings::default() };
                    store.learning().set_threshold_settings(repo.id, &settings, at(second)).await.expect("set");
                }
                4 => {
                    let state = if next(2) == 0 { ItemState::Open } else { ItemState::Closed };
                    let seen = ItemRecord {
                        state: Some(state), state_reason: Some((state == ItemState::Closed).then_some(StateReason::Duplicate)), closed_at: Some((state == ItemState::Closed).then(|| at(second))),
                        updated_at: Some(at(1_000 + turn)), synced_at: Some(at(1_000 + turn)), ..ItemRecord::new(ISSUE, number(of), format!("Issue {of}"))
                    };
                    store.corpus().upsert_items(&repo, vec![seen], at(1_000 + turn)).await.expect("taken in");
                }
                kind => {
                    let target = (next(3) > 0).then(|| 1 + next(12) as i64);
                    let told = match kind {
                        5 => OutcomeEvent { by, ..closed(of, target, second) },
                        6 => event(of, OutcomeKind::Reopened, by, second),
                        _ => event(of, OutcomeKind::Labeled, by, second),
                    };
                    store.learning().record_outcome_events(repo.id, &[told], at(second)).await.expect("recorded");
                }
            }
            let stored = store.learning().thresholds(repo.id).await.expect("reads");
            assert_eq!(stored, store.learning().recomputed_thresholds(repo.id).await.expect("reads"), "after {turn}");
        }
        assert!(store.learning().thresholds(repo.id).await.expect("reads").repository.counts.total > 0);
    }

    async fn actions_and_comments_are_found_again(database: TestDatabase) {
        let (store, repo) = open(&database, 3).await;
        let id = store.duplicates().write_triage_record(repo.id, &said(2, Some(1), 0.9), at(1)).await.expect("written");
        assert_eq!(store.duplicates().triage_record_of_run(repo.id, ISSUE, number(2), "run-2").await.expect("reads"), Some(id));
        assert_eq!(store.duplicates().triage_record_of_run(repo.id, ISSUE, number(2), "another").await.expect("reads"), None);
        let action = TriageAction {
            triage_id: id, mode: TriageMode::Suggest, component: Component::of_labels(["area/sync"]), threshold: CurrentThreshold::Silent,
            source: ThresholdSource::Learned, action: TriageActionKind::Recorded, reason: TriageReason::FallenSilent.into(), comment_key: None,
        };
        store.duplicates().record_triage_action(&action, at(2)).await.expect("written");
        let other = TriageAction { action: TriageActionKind::Commented, ..action.clone() };
        store.duplicates().record_triage_action(&other, at(3)).await.expect("the first stays");
        let told = store.duplicates().triage_actions_of(repo.id, ISSUE, number(2)).await.expect("reads");
        assert_eq!((told.len(), &told[0].action, told[0].created_at), (1, &action, at(2)));

        let key_of = |origin, item_type, of, record: i64| {
            WriteKey::of_item(origin, repo.id.get(), item_type, number(of)).and(record).with_record(record)
        };
        let key = key_of(WriteOrigin::TriageComment, ISSUE, 2, 1);
        let label = key_of(WriteOrigin::TriageLabel, ISSUE, 2, id);
        for key in [&key, &label] {
            let new = NewOutboxEntry { repo: repo.id, number: number(2), kind: WriteKind::Comment, key, payload: &json!({}), refused: None };
            store.outbox().enqueue(&new, at(4)).await.expect("stored");
            let entry = store.outbox().claim(OutboxScope::Unattended, "w", at(4), at(60)).await.expect("claims").expect("due");
            let answer = json!({ "comment": { "id": 7_000_000_001_i64, "created_at": "2027-01-15T08:00:05Z" } });
            let lease = canonry_store::OutboxLease { id: entry.id, owner: "w", until: at(60) };
            assert!(store.outbox().finish(lease, OutboxEnd::Sent(&answer), at(6)).await.expect("ends"));
        }
        let comments = store.learning().triage_comments_since(at(5)).await.expect("reads");
        assert_eq!((comments.len(), comments[0].synced_at), (1, None));
        assert_eq!((&comments[0].repo, comments[0].number, comments[0].comment, comments[0].said_at), (&repo, number(2), GithubId(7_000_000_001), at(5)));
        assert_eq!(store.learning().triage_comments_since(at(7)).await.expect("reads"), []);
        // Reactions from before an edit are about another text.
        assert_eq!(comments[0].worded_at, at(5));
        let edit = key_of(WriteOrigin::TriageEdit, ISSUE, 2, id);
        let new = NewOutboxEntry { repo: repo.id, number: number(2), kind: WriteKind::EditComment, key: &edit, payload: &json!({}), refused: None };
        store.outbox().enqueue(&new, at(8)).await.expect("stored");
        assert_eq!(store.learning().triage_comments_since(at(5)).await.expect("reads")[0].worded_at, at(8));

        // The oldest fetch comes first, and before it those that were never fetched.
        for (of, item_type, comment) in [(1, ItemType::Pr, 7_000_000_002_i64), (3, ISSUE, 7_000_000_003)] {
            let key = key_of(WriteOrigin::TriageComment, item_type, of, 1);
            let new = NewOutboxEntry { repo: repo.id, number: number(of), kind: WriteKind::Comment, key: &key, payload: &json!({}), refused: None };
            store.outbox().enqueue(&new, at(6)).await.expect("stored");
            let entry = store.outbox().claim(OutboxScope::Unattended, "w", at(6), at(60)).await.expect("claims").expect("due");
            let lease = canonry_store::OutboxLease { id: entry.id, owner: "w", until: at(60) };
            let answer = json!({ "comment": { "id": comment, "created_at": "2027-01-15T08:00:06Z" } });
            assert!(store.outbox().finish(lease, OutboxEnd::Sent(&answer), at(6)).await.expect("ends"));
        }
        for (of, comment, second) in [(2, 7_000_000_001, 20), (3, 7_000_000_003, 10)] {
            store.learning().record_comment_reactions(repo.id, number(of), GithubId(comment), CommentReactions::default(), at(second)).await.expect("recorded");
        }
        let order: Vec<_> = store.learning().triage_comments_since(at(5)).await.expect("reads").into_iter()
            .map(|comment| (comment.item_type, comment.number, comment.synced_at)).collect();
        assert_eq!(order, [(ItemType::Pr, number(1), None), (ISSUE, number(3), Some(at(10))), (ISSUE, number(2), Some(at(20)))]);
    }
}
