//! Who closed an issue if only a sync saw it: the timeline shows it, and only people count.

use canonry_domain::{EventBy, GithubId, ItemNumber, LessonKind, OutcomeEvent, OutcomeKind, TriageMode};
use canonry_store::MaintainerSource;
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{CloseReason, Fault};
use canonry_testkit::on_both_engines;
use canonry_triage::{ActorsReport, SyncError, resolve_actors, sync_outcomes};

use crate::triage::setting::{ALPHA, BETA, OWN, REPO, Setting, plain, yes};

async fn resolve(setting: &Setting) -> ActorsReport {
    let own = OWN.parse().expect("a login");
    resolve_actors(&setting.store, &setting.github(), &setting.repo, Some(&own), setting.now()).await.expect("resolved")
}

/// A triaged issue that an account then closes; a sync will find it.
async fn closed(setting: &Setting, cosine: f64, by: &str, reason: CloseReason) -> ItemNumber {
    let item = setting.report(ALPHA, cosine);
    setting.triage(item).await;
    {
        let mut world = setting.emulator.world();
        world.advance(60);
        world.close(REPO, plain(item), by, reason);
    }
    item
}

async fn lesson(setting: &Setting, item: ItemNumber) -> LessonKind {
    let outcome = setting.store.learning().issue_outcome(setting.repo.id, item).await.expect("reads");
    outcome.map_or(LessonKind::Unknown, |stored| stored.lesson.kind())
}

async fn shadow(database: TestDatabase) -> Setting {
    let mut setting = Setting::new(database).await;
    setting.rules.mode = TriageMode::Shadow;
    let maintainers = ["maint".parse().expect("a login")];
    let now = setting.now();
    setting
        .store
        .repos()
        .set_maintainers(setting.repo.id, MaintainerSource::Set, &maintainers, now)
        .await
        .expect("stored");
    setting
}

on_both_engines! {
    async fn a_persons_closing_counts_and_a_bots_never_does(database: TestDatabase) {
        let setting = shadow(database).await;
        let by_person = closed(&setting, 0.95, "ann", CloseReason::Completed).await;
        let by_bot = closed(&setting, 0.96, "stale[bot]", CloseReason::NotPlanned).await;
        let by_us = closed(&setting, 0.97, OWN, CloseReason::Completed).await;
        setting.sync().await;
        for item in [by_person, by_bot, by_us] {
            assert_eq!(lesson(&setting, item).await, LessonKind::Unknown, "#{item}: nobody knows who did it");
        }
        assert_eq!(resolve(&setting).await, ActorsReport { asked: 3, resolved: 3, gone: 0 });
        assert_eq!(lesson(&setting, by_person).await, LessonKind::FalsePositive);
        assert_eq!(lesson(&setting, by_bot).await, LessonKind::Unknown);
        assert_eq!(lesson(&setting, by_us).await, LessonKind::Unknown);
        let events = setting.store.learning().outcome_events(setting.repo.id, by_person).await.expect("reads");
        let told: Vec<(EventBy, Option<String>)> =
            events.iter().map(|event| (event.by, event.actor.as_ref().map(ToString::to_string))).collect();
        assert_eq!(told, [(EventBy::Unknown, None), (EventBy::Person, Some("ann".to_owned()))]);
        assert!(events[1].delivery_id.starts_with(&format!("timeline:{REPO}#{by_person}:closed:")), "{events:?}");
        // Once the actor is known, no request is made.
        setting.emulator.forget_requests();
        assert_eq!(resolve(&setting).await, ActorsReport::default());
        assert!(setting.emulator.requests().is_empty());
    }

    async fn untriaged_issues_are_not_asked_about(database: TestDatabase) {
        let setting = shadow(database).await;
        let item = setting.report(ALPHA, 0.95);
        setting.sync().await;
        setting.emulator.world().close(REPO, plain(item), "ann", CloseReason::Completed);
        setting.sync().await;
        assert_eq!(resolve(&setting).await, ActorsReport::default());
    }

    async fn what_a_maintainer_wrote_around_the_closing_is_told_too(database: TestDatabase) {
        let setting = shadow(database).await;
        let item = setting.report(ALPHA, 0.95);
        setting.triage(item).await;
        {
            let mut world = setting.emulator.world();
            world.advance(60);
            world.comment(REPO, plain(item), "zoe", "Duplicate of #1, I think.");
            world.comment(REPO, plain(item), "maint", "Duplicate of #2.");
            world.close(REPO, plain(item), "ann", CloseReason::Completed);
        }
        setting.sync().await;
        resolve(&setting).await;
        let events = setting.store.learning().outcome_events(setting.repo.id, item).await.expect("reads");
        let comments: Vec<(EventBy, Option<i64>)> = events
            .iter()
            .filter(|event| event.kind == OutcomeKind::Commented)
            .map(|event| (event.by, event.duplicate_of.map(ItemNumber::get)))
            .collect();
        assert_eq!(comments, [(EventBy::Person, Some(1)), (EventBy::Maintainer, Some(2))]);
        assert_eq!(lesson(&setting, item).await, LessonKind::Missed, "a duplicate, but of another issue");
    }

    async fn a_comment_that_was_edited_away_is_taken_back(database: TestDatabase) {
        let setting = shadow(database).await;
        let item = setting.report(ALPHA, 0.95);
        setting.triage(item).await;
        let id = {
            let mut world = setting.emulator.world();
            world.advance(60);
            world.comment(REPO, plain(item), "maint", "Duplicate of #1.")
        };
        let told = OutcomeEvent {
            delivery_id: "webhook".to_owned(),
            number: item,
            kind: OutcomeKind::Commented,
            state_reason: None,
            actor: Some("maint".parse().expect("a login")),
            by: EventBy::Maintainer,
            duplicate_of: ItemNumber::new(1).ok(),
            in_body: None,
            comment: Some(GithubId(i64::try_from(id).expect("small"))),
            labels: None,
            cluster: Vec::new(),
            occurred_at: setting.now(),
        };
        setting.store.learning().record_outcome_events(setting.repo.id, &[told], setting.now()).await.expect("stored");
        {
            let mut world = setting.emulator.world();
            world.advance(60);
            world.edit_comment(REPO, id, "maint", "Related to #1, but not the same.");
            world.close(REPO, plain(item), "maint", CloseReason::Completed);
        }
        setting.sync().await;
        assert_eq!(lesson(&setting, item).await, LessonKind::Confirmed, "as far as anybody knows");
        resolve(&setting).await;
        assert_eq!(lesson(&setting, item).await, LessonKind::FalsePositive);
    }

    async fn a_reopening_is_a_persons_too(database: TestDatabase) {
        let setting = shadow(database).await;
        let item = closed(&setting, 0.95, "maint", CloseReason::Completed).await;
        setting.sync().await;
        {
            let mut world = setting.emulator.world();
            world.advance(60);
            world.reopen(REPO, plain(item), "ann");
            world.advance(60);
            // The last change of the issue is not its reopening.
            world.label(REPO, plain(item), "maint", "bug");
        }
        setting.sync().await;
        assert_eq!(resolve(&setting).await.resolved, 1);
        let events = setting.store.learning().outcome_events(setting.repo.id, item).await.expect("reads");
        let known: Vec<(OutcomeKind, EventBy)> =
            events.iter().filter(|event| event.by != EventBy::Unknown).map(|event| (event.kind, event.by)).collect();
        assert_eq!(known, [(OutcomeKind::Closed, EventBy::Maintainer), (OutcomeKind::Reopened, EventBy::Person)]);
        assert_eq!(lesson(&setting, item).await, LessonKind::Unknown, "open again");
        assert_eq!(resolve(&setting).await, ActorsReport::default());
    }

    async fn one_timeline_that_fails_keeps_nobody_from_reading_the_others(database: TestDatabase) {
        let setting = shadow(database).await;
        let failing = closed(&setting, 0.95, "ann", CloseReason::Completed).await;
        let other = closed(&setting, 0.96, "ann", CloseReason::Completed).await;
        setting.sync().await;
        let timeline = format!("/repos/{REPO}/issues/{failing}/timeline");
        setting.emulator.fault(Fault::on("GET", &timeline).always().answer(500));
        let own = OWN.parse().expect("a login");
        let failed = resolve_actors(&setting.store, &setting.github(), &setting.repo, Some(&own), setting.now()).await;
        assert!(matches!(failed, Err(SyncError::GitHub(_))), "{failed:?}");
        assert_eq!(lesson(&setting, failing).await, LessonKind::Unknown);
        assert_eq!(lesson(&setting, other).await, LessonKind::FalsePositive);
    }

    async fn what_nobody_can_tell_is_asked_once(database: TestDatabase) {
        let setting = shadow(database).await;
        let item = setting.report(ALPHA, 0.95);
        setting.triage(item).await;
        let found = OutcomeEvent {
            delivery_id: format!("sync:{REPO}#{item}:then"),
            number: item,
            kind: OutcomeKind::Closed,
            state_reason: None,
            actor: None,
            by: EventBy::Unknown,
            duplicate_of: None,
            in_body: None,
            comment: None,
            labels: None,
            cluster: Vec::new(),
            occurred_at: setting.now(),
        };
        setting.store.learning().record_outcome_events(setting.repo.id, &[found], setting.now()).await.expect("stored");
        // The timeline may still lack the event.
        let asked = ActorsReport { asked: 1, resolved: 0, gone: 0 };
        assert_eq!(resolve(&setting).await, asked);
        setting.later(2);
        assert_eq!(resolve(&setting).await, asked);
        assert_eq!(resolve(&setting).await, ActorsReport::default());
        assert_eq!(lesson(&setting, item).await, LessonKind::Unknown);
    }

    async fn what_is_learned_of_a_target_is_in_the_log(database: TestDatabase) {
        let setting = shadow(database).await;
        let item = setting.report(ALPHA, 0.95);
        setting.triage(item).await;
        let id = {
            let mut world = setting.emulator.world();
            world.advance(60);
            let id = world.comment(REPO, plain(item), "maint", "This is a duplicate of #2.");
            world.close(REPO, plain(item), "maint", CloseReason::Duplicate(None));
            id
        };
        setting.sync().await;
        assert_eq!(lesson(&setting, item).await, LessonKind::Confirmed, "a duplicate of something");
        let learned = sync_outcomes(&setting.store, &setting.github(), &setting.repo.name, &mut |_| {}).await;
        assert_eq!(learned.expect("asked").learned, [(item, ItemNumber::new(2).expect("positive"))]);
        let events = setting.store.learning().outcome_events(setting.repo.id, item).await.expect("reads");
        let comment = events.iter().find(|event| event.kind == OutcomeKind::Commented).expect("told");
        assert!(comment.delivery_id.starts_with(&format!("timeline:{REPO}#{item}:commented:{id}:")), "{comment:?}");
        let said = (comment.comment.map(|id| id.0.cast_unsigned()), comment.by, comment.duplicate_of.map(ItemNumber::get));
        assert_eq!(said, (Some(id), EventBy::Maintainer, Some(2)));
        assert_eq!(lesson(&setting, item).await, LessonKind::Missed, "of another than was predicted");
        // The timeline reports the comment a second time; it is recorded only once.
        resolve(&setting).await;
        let again = setting.store.learning().outcome_events(setting.repo.id, item).await.expect("reads");
        assert_eq!(again.iter().filter(|event| event.kind == OutcomeKind::Commented).count(), 1);
    }

    async fn a_bots_label_is_no_evidence(database: TestDatabase) {
        let setting = shadow(database).await;
        let item = setting.report(BETA, 0.95);
        setting.judge_says(yes(2, 0.96));
        setting.triage(item).await;
        {
            let mut world = setting.emulator.world();
            world.advance(60);
            world.label(REPO, plain(item), "stale[bot]", "duplicate");
            world.close(REPO, plain(item), "ann", CloseReason::Completed);
        }
        setting.sync().await;
        resolve(&setting).await;
        assert_eq!(lesson(&setting, item).await, LessonKind::FalsePositive, "completed, by a person");
    }
}
