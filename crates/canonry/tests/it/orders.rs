//! Orders from the command line: not revived on another day, not extended while a plan is applied, and shown with
//! their author.

use canonry_domain::{GithubId, ItemNumber, ItemRecord, ItemType, Probability, TargetPolicy, UndoReason};
use canonry_server::{ApplyOrder, UndoOrder, queue_apply, queue_undo};
use canonry_store::{
    CloseOutcome, CloseResult, CloseRunId, JobCaps, JobEnd, JobId, JobKind, JobLease, JobScope, JobState, NewJob,
    NewPlan, NewPlanRow, Repo, Representation, Store,
};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::place::{Place, Ran};

const REPO: &str = "tide/pool";

fn number(number: i64) -> ItemNumber {
    ItemNumber::new(number).expect("valid")
}

fn now() -> Timestamp {
    "2026-02-01T10:00:00Z".parse().expect("valid")
}

/// A repository with three issues, and a plan that closes two of them as duplicates of the first.
struct Ordered {
    place: Place,
    database: TestDatabase,
    store: Store,
    repo: Repo,
    plan: CloseRunId,
}

impl Ordered {
    async fn new(database: TestDatabase) -> Self {
        let store = Store::open(&database.url().parse().expect("a URL"), now()).await.expect("opens");
        let repo = store.repos().ensure(&REPO.parse().expect("a name"), now()).await.expect("created");
        let repo = store.repos().identify(repo.id, GithubId(7), &repo.name).await.expect("noted").expect("free");
        let issues = (1..=3).map(|of| ItemRecord::new(ItemType::Issue, number(of), format!("It stops {of}")));
        store.corpus().upsert_items(&repo, issues.collect(), now()).await.expect("taken in");
        let row = |of| NewPlanRow {
            item_type: ItemType::Issue,
            number: number(of),
            target: Some(number(1)),
            skip: None,
            confidence: Some(Probability::new(0.95).expect("a probability")),
            evidence: json!({ "facts": ["the error `E0599`"] }),
            snapshot: json!({}),
        };
        let plan = NewPlan {
            representation: Representation::Raw,
            target_policy: TargetPolicy::CanonicalOnly,
            min_close: Probability::new(0.9).expect("a probability"),
            config_hash: "hash",
            run_id: "planned",
        };
        let plan = store.plans().create(repo.id, &plan, &[row(2), row(3)], now()).await.expect("planned");
        Self { place: Place::new(), database, store, repo, plan }
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        self.place.canonry(&[arguments, &["--db", self.database.url()]].concat())
    }

    /// Approves or excludes rows of the plan.
    fn plan_says(&self, arguments: &[&str]) -> Ran {
        let run = self.plan.to_string();
        self.run(&[&["plan", arguments[0], &run], &arguments[1..], &["--repo", REPO]].concat())
    }

    /// Makes the next job fail permanently.
    async fn give_up(&self) -> JobId {
        let (caps, until) = (JobCaps { per_repo: 9, in_all: 9 }, now() + SignedDuration::from_mins(5));
        let job =
            self.store.jobs().lease("unlucky", caps, JobScope::All, now(), until).await.expect("reads").expect("due");
        let lease = JobLease { id: job.id, owner: "unlucky" };
        assert!(self.store.jobs().end(lease, JobEnd::Dead("GitHub was away"), now()).await.expect("ended"));
        job.id
    }

    async fn state(&self, job: JobId) -> JobState {
        self.store.jobs().get(job).await.expect("reads").expect("stored").state
    }
}

/// The message after an exclusion: it also applies to later plans.
fn lasts(plan: CloseRunId) -> String {
    format!("Later plans leave them open too. To lift that: canonry plan approve {plan} --item NUMBER\n")
}

on_both_engines! {
    async fn an_order_that_was_given_up_is_given_anew_and_never_revived(database: TestDatabase) {
        let at = Ordered::new(database).await;
        let (store, repo, plan) = (&at.store, &at.repo, at.plan);
        let apply = ApplyOrder { plan, approved_only: true, only_takes_back: false, by: None };
        queue_apply(store, repo, &apply, now()).await.expect("reads").expect("queued");
        let apply = at.give_up().await;
        let item = Some((ItemType::Issue, number(2)));
        let undo = UndoOrder { plan, item, reason: UndoReason::WrongTarget, note: None, by: None };
        queue_undo(store, repo, &undo, now()).await.expect("reads").expect("queued");
        let undo = at.give_up().await;
        let sync = NewJob { key: "sync/7", repo: Some(&repo.name), kind: JobKind::Sync, payload: &json!({ "github_id": 7 }) };
        store.jobs().enqueue(&sync, now(), now()).await.expect("queued");
        let sync = at.give_up().await;

        for (job, command) in [
            (apply, format!("canonry apply {plan} --approved-only --yes")),
            (undo, format!("canonry undo {plan} --item 2 --reason wrong-target")),
        ] {
            let ran = at.run(&["jobs", "retry", &job.to_string()]);
            let told = ran.ended_with(4);
            assert!(told.starts_with(&format!("job {job} is an order of 1 Feb 2026 to close or reopen items")), "{told}");
            assert!(told.contains(&format!("`canonry plan show {plan}`")) && told.ends_with(&command), "{told}");
            assert_eq!(at.state(job).await, JobState::Dead);
        }
        let all = at.run(&["jobs", "retry", "--state", "dead", "--repo", REPO]).succeeded();
        assert!(all.stdout.starts_with("Queued 1 job again.\nNot queued: 2 orders to close"), "{all:?}");
        assert_eq!([at.state(apply).await, at.state(undo).await, at.state(sync).await], [JobState::Dead, JobState::Dead, JobState::Queued]);
        let none = at.run(&["jobs", "retry", "--state", "dead", "--json"]).succeeded().json();
        assert_eq!((&none["stats"]["queued"], &none["stats"]["orders_left"]), (&json!(0), &json!(2)));
    }

    async fn while_a_plan_is_applied_rows_can_only_be_excluded(database: TestDatabase) {
        let at = Ordered::new(database).await;
        let (store, repo, plan) = (&at.store, &at.repo, at.plan);
        at.plan_says(&["approve", "--item", "2"]).succeeded();
        let order = ApplyOrder { plan, approved_only: true, only_takes_back: false, by: None };
        let job = queue_apply(store, repo, &order, now()).await.expect("reads").expect("queued");
        let refused = at.plan_says(&["approve", "--item", "3"]);
        assert!(refused.ended_with(4).contains("While the plan is being applied, rows can only be excluded"), "{refused:?}");
        at.plan_says(&["exclude", "--item", "2"]).succeeded();
        let said = async || {
            let rows = store.plans().rows(plan).await.expect("reads");
            rows.iter().map(|row| row.approved).collect::<Vec<_>>()
        };
        assert_eq!(said().await, [Some(false), None]);
        assert_eq!(at.give_up().await, job);
        at.plan_says(&["approve", "--item", "3"]).succeeded();
        assert_eq!(said().await, [Some(false), Some(true)]);

        // A command that applies the plan has the lease but no job.
        let far = Timestamp::now() + SignedDuration::from_hours(1);
        store.plans().begin_apply(plan, "by hand", now()).await.expect("begun").expect("a plan");
        assert!(store.close().take_lease(repo.id, "by hand", now(), far).await.expect("taken"));
        assert!(at.plan_says(&["approve", "--item", "2"]).ended_with(4).contains("rows can only be excluded"));
        store.close().release_lease(repo.id, "by hand").await.expect("released");
        at.plan_says(&["approve", "--item", "2"]).succeeded();
    }

    async fn a_plan_tells_who_said_what_of_its_rows(database: TestDatabase) {
        let at = Ordered::new(database).await;
        let mia = "mia".parse().expect("a login");
        let said = async |of, word| {
            at.store.plans().set_approved(at.plan, ItemType::Issue, &[number(of)], word, Some(&mia), now()).await.expect("noted")
        };
        assert_eq!((said(2, Some(true)).await, said(3, Some(false)).await), (1, 1));
        let shown = at.plan_says(&["show"]).succeeded().stdout;
        assert!(shown.contains("close ✓ approved by mia") && shown.contains("excluded by mia"), "{shown}");
        let document = at.plan_says(&["show", "--json"]).succeeded().json();
        let by: Vec<_> = document["items"].as_array().expect("rows").iter().map(|row| &row["approved_by"]).collect();
        assert_eq!(by, [&json!("mia"), &json!("mia")]);
        let exported = at.plan_says(&["export", "--format", "csv"]).succeeded().stdout;
        assert!(exported.contains(",approved,approved_by,") && exported.contains(",true,mia,"), "{exported}");
        let markdown = at.plan_says(&["export"]).succeeded().stdout;
        assert!(markdown.contains("| yes, by mia |") && markdown.contains("| excluded, by mia |"), "{markdown}");
        // For an approval from the command line no name is known.
        at.plan_says(&["approve", "--item", "2", "3"]).succeeded();
        let shown = at.plan_says(&["show"]).succeeded().stdout;
        assert!(shown.contains("close ✓") && !shown.contains("mia"), "{shown}");
    }

    async fn approving_all_rows_leaves_what_somebody_excluded(database: TestDatabase) {
        let at = Ordered::new(database).await;
        let mia = "mia".parse().expect("a login");
        let noted = at.store.plans().set_approved(at.plan, ItemType::Issue, &[number(3)], Some(false), Some(&mia), now()).await;
        assert_eq!(noted.expect("noted"), 1);
        let words = async || {
            let rows = at.store.plans().rows(at.plan).await.expect("reads");
            rows.into_iter().map(|row| (row.approved, row.approved_by.map(|by| by.to_string()))).collect::<Vec<_>>()
        };
        let excluded = (Some(false), Some("mia".to_owned()));
        let pulls = at.plan_says(&["approve", "--all", "--type", "pr"]).succeeded().stdout;
        assert_eq!(pulls, format!("Approved 0 rows of plan {}.\n", at.plan));
        assert_eq!(words().await, [(None, None), excluded.clone()]);
        let told = at.plan_says(&["approve", "--all"]).succeeded().stdout;
        assert_eq!(told, format!("Approved 1 row of plan {}.\nStill excluded: #3.\n", at.plan));
        assert_eq!(words().await, [(Some(true), None), excluded]);
        // Excluding everything is always safe.
        let told = at.plan_says(&["exclude", "--all"]).succeeded().stdout;
        assert_eq!(told, format!("Excluded 2 rows of plan {}.\n{}", at.plan, lasts(at.plan)));
        assert_eq!(words().await, [(Some(false), None), (Some(false), None)]);
    }

    async fn a_word_on_a_row_that_was_carried_out_is_not_said_to_be_noted(database: TestDatabase) {
        let at = Ordered::new(database).await;
        at.plan_says(&["approve", "--item", "2"]).succeeded();
        let run = at.store.plans().begin_apply(at.plan, "applying", now()).await.expect("begun").expect("a plan").id;
        let result = CloseResult { outcome: CloseOutcome::Applied { objected: false }, reason: None, outbox_key: None };
        assert!(at.store.plans().record_close_result(run, ItemType::Issue, number(2), result, now()).await.expect("recorded"));
        let plan = at.plan;
        let undo = format!(
            "Already done, and not changed: #2 (applied). To reopen: canonry undo {plan} --item NUMBER\n"
        );
        let told = at.plan_says(&["exclude", "--item", "2"]).succeeded().stdout;
        assert_eq!(told, format!("Excluded 0 rows of plan {plan}.\n{undo}"));
        let both = at.plan_says(&["exclude", "--all"]).succeeded().stdout;
        assert_eq!(both, format!("Excluded 1 row of plan {plan}.\n{}{undo}", lasts(plan)));
        let rows = at.store.plans().rows(plan).await.expect("reads");
        assert_eq!(rows.iter().map(|row| row.approved).collect::<Vec<_>>(), [Some(true), Some(false)]);
    }
}
