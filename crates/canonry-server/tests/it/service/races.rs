//! Concurrent syncs and webhooks: nothing is learned that did not happen, and no repository is taken for another.

use std::sync::Arc;

use canonry_domain::{
    GithubId, IssueResolution, ItemNumber, ItemState, ItemType, LessonKind, OutcomeKind, Probability, RepoName,
    TargetPolicy,
};
use canonry_server::{AttemptEnd, JobHandler, Worker};
use canonry_store::{
    CloseOutcome, CloseResult, ItemFilter, JobFilter, JobKind, JobScope, JobState, NewJob, NewPlan, NewPlanRow,
    Representation, SyncProgress,
};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{CloseReason, Fault, NewIssue};
use canonry_testkit::on_both_engines;
use serde_json::json;

use crate::service::handling::{BODY, TITLE};
use crate::world::job_world::{JobWorld, OWN, REPO};
use crate::world::{As, CAPS};

impl JobWorld {
    async fn queue_sync_of(&self, id: GithubId, name: &RepoName) {
        let (payload, now) = (json!({ "github_id": id.0 }), self.clock.now());
        let key = format!("sync/{}", id.0);
        let job = NewJob { key: &key, repo: Some(name), kind: JobKind::Sync, payload: &payload };
        self.store.jobs().enqueue(&job, now, now).await.expect("queued");
    }

    async fn queue_own_sync(&self) {
        self.queue_sync_of(self.repo.github_id.expect("known"), &self.repo.name).await;
    }

    /// Runs the next job beside other workers.
    async fn work_as(&self, owner: &str) -> Option<AttemptEnd> {
        let handler: Arc<dyn JobHandler> = self.service.clone();
        let (store, clock) = (self.store.clone(), Arc::clone(&self.clock));
        let worker = Worker { store, handler, clock, caps: CAPS, tries: 3, scope: JobScope::All };
        worker.work_once(owner, 0.0).await.expect("works")
    }

    async fn numbers_of(&self, name: &str) -> Vec<i64> {
        let repo = self.store.repos().find(&name.parse().expect("a name")).await.expect("reads").expect("known");
        let items = self.store.corpus().items_after(repo.id, ItemFilter::default(), None, 100).await.expect("reads");
        items.iter().map(|item| item.number.get()).collect()
    }
}

on_both_engines! {
    async fn a_list_that_was_read_before_a_closing_is_no_reopening(database: TestDatabase) {
        let setting = JobWorld::new(&database, As::Token).await;
        setting.queue_own_sync().await;
        assert_eq!(setting.work().await, Some(AttemptEnd::Done));
        // GitHub's times are whole seconds: the close is in the second of the label, or in the next.
        for (seconds, id) in [(0, 1), (1, 2)] {
            let number = {
                let mut world = setting.emulator.world();
                world.advance(3_600);
                world.open(REPO, "ann", NewIssue::new(&format!("{TITLE} {id}"), BODY))
            };
            setting.deliver_pending().await;
            setting.work_off().await;
            setting.emulator.world().advance(3_600);
            setting.emulator.world().label(REPO, number, "ann", "bug");
            setting.deliver_pending().await;
            setting.work_off().await;
            let (fault, mut list) = Fault::on("GET", "/repos/*/*/issues").hold_answer();
            setting.emulator.fault(fault);
            setting.queue_own_sync().await;
            let closing = async {
                list.arrived().await;
                setting.emulator.world().advance(seconds);
                setting.emulator.world().close(REPO, number, "ann", CloseReason::Duplicate(None));
                setting.deliver_pending().await;
                assert_eq!(setting.work_as("closing").await, Some(AttemptEnd::Done));
                list.release();
            };
            let (synced, ()) = tokio::join!(setting.work_as("syncing"), closing);
            assert_eq!(synced, Some(AttemptEnd::Done));
            setting.emulator.clear_faults();
            let of = ItemNumber::new(i64::try_from(number).expect("small")).expect("valid");
            let item = setting.store.corpus().item(setting.repo.id, ItemType::Issue, of).await.expect("reads").expect("known");
            assert_eq!(item.state, ItemState::Closed, "{seconds}");
            let events = setting.store.learning().outcome_events(setting.repo.id, of).await.expect("reads");
            assert!(events.iter().all(|event| event.kind == OutcomeKind::Closed), "{seconds}: {events:?}");
            let outcome = setting.store.learning().issue_outcome(setting.repo.id, of).await.expect("reads").expect("an outcome");
            assert_eq!(outcome.lesson.kind(), LessonKind::Missed, "{seconds}: {outcome:?}");
        }
    }

    async fn the_webhook_of_our_own_comment_that_comes_after_our_close_is_no_reopening(database: TestDatabase) {
        let setting = JobWorld::new(&database, As::Token).await;
        for _ in 0..2 {
            setting.emulator.world().open(REPO, "ann", NewIssue::new(TITLE, BODY));
        }
        setting.queue_own_sync().await;
        assert_eq!(setting.work().await, Some(AttemptEnd::Done));
        setting.deliver_pending().await;
        setting.work_off().await;
        let (target, id) = {
            let mut world = setting.emulator.world();
            world.advance(3_600);
            world.comment(REPO, 2, OWN, "Closing as duplicate of #1.");
            let id = world.issue(REPO, 1).id;
            world.close(REPO, 2, OWN, CloseReason::Duplicate(Some(id)));
            (ItemNumber::new(1).expect("valid"), ItemNumber::new(2).expect("valid"))
        };
        let row = NewPlanRow {
            item_type: ItemType::Issue,
            number: id,
            target: Some(target),
            skip: None,
            confidence: Some(Probability::new(0.95).expect("a probability")),
            evidence: json!([]),
            snapshot: json!({}),
        };
        let plan = NewPlan {
            representation: Representation::Raw,
            target_policy: TargetPolicy::CanonicalOnly,
            min_close: Probability::new(0.9).expect("a probability"),
            config_hash: "hash",
            run_id: "planned",
        };
        let (store, repo, now) = (&setting.store, setting.repo.id, setting.clock.now());
        let plan = store.plans().create(repo, &plan, &[row], now).await.expect("planned");
        assert_eq!(store.plans().set_approved(plan, ItemType::Issue, &[id], Some(true), None, now).await.expect("noted"), 1);
        let run = store.plans().begin_apply(plan, "applied", now).await.expect("begun").expect("a plan");
        let applied = CloseOutcome::Applied { objected: false };
        let result = CloseResult { outcome: applied, reason: None, outbox_key: Some("close:1") };
        assert!(store.plans().record_close_result(run.id, ItemType::Issue, id, result, now).await.expect("recorded"));
        // Only now GitHub delivers the comment from when the issue was still open.
        assert_eq!(setting.deliver_pending().await.len(), 2);
        setting.work_off().await;
        let item = store.corpus().item(repo, ItemType::Issue, id).await.expect("reads").expect("known");
        assert_eq!((item.state, item.updated_at.is_some()), (ItemState::Closed, true));
        let events = store.learning().outcome_events(repo, id).await.expect("reads");
        assert!(events.iter().all(|event| event.kind != OutcomeKind::Reopened), "{events:?}");
        let outcome = store.learning().issue_outcome(repo, id).await.expect("reads").expect("an outcome");
        assert_eq!(outcome.outcome.outcome, IssueResolution::Duplicate { of: Some(target) }, "{outcome:?}");
    }

    async fn a_sync_of_what_is_not_stored_is_no_sync_of_its_namesake(database: TestDatabase) {
        let setting = JobWorld::new(&database, As::Token).await;
        setting.emulator.world().open(REPO, "ann", NewIssue::new(TITLE, BODY));
        setting.queue_sync_of(GithubId(999_999), &setting.repo.name).await;
        setting.emulator.forget_requests();
        assert_eq!(setting.work().await, Some(AttemptEnd::Done));
        assert_eq!(setting.emulator.requests().len(), 0);
        assert_eq!(setting.store.corpus().sync_progress(setting.repo.id).await.expect("reads"), SyncProgress::default());
        let jobs = setting.store.jobs().list(&JobFilter::default(), 10).await.expect("reads");
        let told: Vec<_> = jobs.iter().map(|job| (job.state, job.error.as_deref())).collect();
        assert_eq!(told, [(JobState::Done, Some("the repository is no longer in the database"))]);
    }

    async fn a_repository_whose_name_another_has_is_found_by_its_id(database: TestDatabase) {
        let setting = JobWorld::new(&database, As::Token).await;
        setting.emulator.world().open(REPO, "ann", NewIssue::new(TITLE, BODY));
        setting.queue_own_sync().await;
        assert_eq!(setting.work().await, Some(AttemptEnd::Done));
        {
            // No webhook reports the new name.
            let mut world = setting.emulator.world();
            world.advance(3_600);
            world.rename_repo(REPO, "tide/shore", "ann");
            world.open("tide/shore", "ann", NewIssue::new("Its second", BODY));
            world.repo(REPO);
            for _ in 0..3 {
                world.open(REPO, "ann", NewIssue::new("Of the other one", BODY));
            }
        }
        setting.queue_own_sync().await;
        assert_eq!(setting.work().await, Some(AttemptEnd::Done));
        let repos = setting.store.repos().list().await.expect("reads");
        let named: Vec<_> = repos.iter().map(|repo| (repo.id, repo.github_id, repo.name.to_string())).collect();
        assert_eq!(named, [(setting.repo.id, setting.repo.github_id, "tide/shore".to_owned())]);
        assert_eq!(setting.numbers_of("tide/shore").await, [1, 2]);
    }
}
