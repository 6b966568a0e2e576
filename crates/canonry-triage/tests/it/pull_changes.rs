//! The second step of a sync: changes and base branches of pull requests.

use canonry_domain::{Item, ItemState, ItemType};
use canonry_github::GitHub;
use canonry_store::{Repo, Store};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{CloseReason, Emulator, Fault, NewIssue, Pull, World};
use canonry_testkit::on_both_engines;
use canonry_triage::{ChangesReport, SyncOptions, sweep, sync_changes};

use crate::sync::{REPO, client, number, repo, run, store, world};

const DAY: i64 = 86_400;

fn open_pull(world: &mut World, base: &str) -> u64 {
    world.advance(60);
    let pull = Pull { base_ref: base.to_owned(), ..Pull::default() };
    let pull = pull.file("src/start.rs", "@@ -1 +1 @@\n-stop();\n+start();");
    world.open(REPO, "alice", NewIssue::new("Start later", "It starts too early.").pull(pull))
}

/// Synced items of an emulated repository.
struct Synced {
    emulator: Emulator,
    store: Store,
    repo: Repo,
}

impl Synced {
    async fn new(database: &TestDatabase, world: World) -> Self {
        Self::with(database, world, SyncOptions::default()).await
    }

    async fn with(database: &TestDatabase, world: World, options: SyncOptions) -> Self {
        let emulator = Emulator::start(world).await;
        let store = store(database).await;
        run(&store, &client(&emulator), options).await.expect("synced");
        let repo = store.repos().find(&repo()).await.expect("reads").expect("known");
        emulator.forget_requests();
        Self { emulator, store, repo }
    }

    async fn fetch(&self, github: &GitHub, requests: u64) -> ChangesReport {
        sync_changes(&self.store, github, &self.repo, requests, &mut |_| {}).await.expect("stores")
    }

    async fn pull(&self, of: u64) -> Item {
        let number = number(i64::try_from(of).expect("small"));
        self.store.corpus().item(self.repo.id, ItemType::Pr, number).await.expect("reads").expect("known")
    }

    /// The paths that were asked for since the last call, below the repository.
    fn asked(&self) -> Vec<String> {
        let asked = self.emulator.requests();
        self.emulator.forget_requests();
        asked.iter().map(|request| request.named_path.replace("/repos/acme/widgets", "")).collect()
    }
}

/// A sync that stores only what is open.
fn only_open() -> SyncOptions {
    SyncOptions { state: Some(ItemState::Open), ..SyncOptions::default() }
}

fn report(stored: u64, left: u64, base_branches: u64) -> ChangesReport {
    ChangesReport { stored, left, base_branches, stopped: None }
}

on_both_engines! {
    async fn open_and_lately_closed_pull_requests_get_their_changes_newest_first(database: TestDatabase) {
        let mut world = world();
        let old = open_pull(&mut world, "main");
        world.merge(REPO, old, "maint");
        world.advance(DAY * 91);
        let merged = open_pull(&mut world, "1.x");
        world.merge(REPO, merged, "maint");
        let rejected = open_pull(&mut world, "main");
        world.close(REPO, rejected, "maint", CloseReason::NotPlanned);
        let open = open_pull(&mut world, "main");
        let setting = Synced::new(&database, world).await;
        let github = client(&setting.emulator);
        assert_eq!(setting.fetch(&github, 0).await, report(0, 3, 0));
        assert_eq!(setting.asked(), [""; 0]);
        assert_eq!(setting.fetch(&github, 3).await, report(2, 1, 4));
        assert_eq!(setting.asked(), ["/pulls".to_owned(), format!("/pulls/{open}/files"), format!("/pulls/{rejected}/files")]);
        assert_eq!(setting.fetch(&github, 3).await, report(1, 0, 0));
        assert_eq!(setting.asked(), [format!("/pulls/{merged}/files")]);
        assert_eq!(setting.fetch(&github, 3).await, report(0, 0, 0));
        assert_eq!(setting.asked(), [""; 0], "nothing is missing");
        let item = setting.pull(merged).await;
        let changes = item.changes.expect("stored");
        assert_eq!((changes.files, changes.diff.as_str()), (vec!["src/start.rs".to_owned()], "-stop();\n+start();\n"));
        assert_eq!((item.base_branch.as_deref(), item.title.as_str()), (Some("1.x"), "Start later"));
        let item = setting.pull(old).await;
        assert_eq!((item.changes, item.base_branch.as_deref()), (None, Some("main")), "too old to be sent again");
    }

    async fn a_limit_or_a_failure_in_the_middle_loses_nothing(database: TestDatabase) {
        let mut world = world();
        for _ in 0..5 {
            open_pull(&mut world, "main");
        }
        let setting = Synced::new(&database, world).await;
        // A fifth of the hour's 5,000 requests is left to others: the list and two more are sent.
        let github = client(&setting.emulator);
        setting.emulator.world().leave_requests("maint", 1_002);
        let first = setting.fetch(&github, 200).await;
        assert_eq!((first.stored, first.left), (2, 3), "{first:?}");
        assert!(first.stopped.is_some_and(|why| why.contains("rate limit")));
        setting.emulator.world().advance(3_700);
        setting.emulator.fault(Fault::on("GET", "/**/files").nth(2).always().drop_connection());
        let second = setting.fetch(&client(&setting.emulator), 200).await;
        assert_eq!((second.stored, second.left), (1, 2), "{second:?}");
        assert!(second.stopped.is_some_and(|why| why.contains("cannot be reached")));
        setting.emulator.clear_faults();
        setting.asked();
        // GitHub does not show one of them: the others are stored.
        setting.emulator.fault(Fault::on("GET", "/**/files").answer(404));
        assert_eq!(setting.fetch(&client(&setting.emulator), 200).await, report(1, 1, 0));
        assert_eq!(setting.fetch(&client(&setting.emulator), 200).await, report(1, 0, 0));
        assert_eq!(setting.asked().len(), 3);
    }

    async fn a_deleted_pull_request_is_not_asked_about(database: TestDatabase) {
        let mut world = world();
        let deleted = open_pull(&mut world, "main");
        let setting = Synced::new(&database, world).await;
        let github = client(&setting.emulator);
        setting.emulator.world().delete(REPO, deleted, "maint");
        sweep(&setting.store, &github, &repo(), &mut |_| {}).await.expect("swept");
        setting.asked();
        assert_eq!(setting.fetch(&github, 200).await, report(0, 0, 0));
        assert_eq!(setting.asked(), [""; 0]);
    }

    async fn one_request_in_ten_lists_base_branches_and_the_next_sync_goes_on(database: TestDatabase) {
        let mut world = world();
        for _ in 0..250 {
            let old = open_pull(&mut world, "main");
            world.merge(REPO, old, "maint");
        }
        world.advance(DAY * 100);
        let setting = Synced::new(&database, world).await;
        let github = client(&setting.emulator);
        assert_eq!(setting.fetch(&github, 10).await, report(0, 0, 100));
        // Opened after the sync: it moves the list.
        open_pull(&mut setting.emulator.world(), "main");
        setting.emulator.forget_requests();
        assert_eq!(setting.fetch(&github, 10).await, report(0, 0, 99));
        assert_eq!(setting.fetch(&github, 20).await, report(0, 0, 51));
        let pages: Vec<String> =
            setting.emulator.requests().iter().filter_map(|request| request.query("page").map(str::to_owned)).collect();
        assert_eq!(pages, ["2", "2", "3"], "the list does not begin again");
    }

    async fn a_push_to_an_open_pull_request_is_seen_by_the_next_sync(database: TestDatabase) {
        let mut world = world();
        let (open, merged) = (open_pull(&mut world, "main"), open_pull(&mut world, "main"));
        world.merge(REPO, merged, "maint");
        let setting = Synced::new(&database, world).await;
        let github = client(&setting.emulator);
        assert_eq!(setting.fetch(&github, 200).await, report(2, 0, 2));
        {
            let mut world = setting.emulator.world();
            world.advance(60);
            for of in [open, merged] {
                let pushed = Pull::default().file("src/start.rs", "@@ -1 +1 @@\n-stop();\n+wait();");
                let pull = world.get_mut(REPO).issues.get_mut(&of).and_then(|issue| issue.pull.as_mut());
                pull.expect("a pull request").files = pushed.files;
                world.comment(REPO, of, "alice", "I pushed something else.");
            }
        }
        run(&setting.store, &client(&setting.emulator), SyncOptions::default()).await.expect("synced");
        setting.asked();
        assert_eq!(setting.fetch(&github, 200).await, report(1, 0, 0));
        assert_eq!(setting.asked(), [format!("/pulls/{open}/files")]);
        let diff = async |of: u64| setting.pull(of).await.changes.expect("stored").diff;
        assert_eq!((diff(open).await.as_str(), diff(merged).await.as_str()), ("-stop();\n+wait();\n", "-stop();\n+start();\n"));
        assert_eq!(setting.fetch(&github, 200).await, report(0, 0, 0), "once is enough");
    }

    async fn a_few_pull_requests_among_many_are_fetched_one_by_one(database: TestDatabase) {
        let mut world = world();
        for of in 1..=303 {
            let pull = open_pull(&mut world, "main");
            if ![1, 150].contains(&of) {
                world.merge(REPO, pull, "maint");
            }
        }
        let setting = Synced::with(&database, world, only_open()).await;
        // Three requests for base branches.
        assert_eq!(setting.fetch(&client(&setting.emulator), 30).await, report(2, 0, 2));
        assert_eq!(setting.asked(), ["/pulls", "/pulls/150", "/pulls/1", "/pulls/150/files", "/pulls/1/files"]);
        assert_eq!(setting.fetch(&client(&setting.emulator), 30).await, report(0, 0, 0));
    }

    async fn the_list_of_pull_requests_is_searched_where_only_some_are_stored(database: TestDatabase) {
        let mut world = world();
        for of in 1..=350 {
            let pull = open_pull(&mut world, "main");
            if of > 50 {
                world.merge(REPO, pull, "maint");
            }
        }
        let setting = Synced::with(&database, world, only_open()).await;
        let report = setting.fetch(&client(&setting.emulator), 30).await;
        assert_eq!((report.stored, report.left, report.base_branches), (27, 23, 50));
        let pages: Vec<String> =
            setting.emulator.requests().iter().filter_map(|request| request.query("page").map(str::to_owned)).collect();
        assert_eq!(pages, ["1", "3", "4"]);
    }
}
