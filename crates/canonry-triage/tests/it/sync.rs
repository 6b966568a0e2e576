//! Sync against the emulated GitHub: everything is imported with few requests, and nothing starts over.

use std::sync::Arc;

use canonry_domain::{GoneReason, ItemNumber, ItemState, ItemType, OutcomeKind, RepoName};
use canonry_github::{Auth, ClientOptions, GitHub, GitHubError, ManualClock, Secret};
use canonry_store::{MaintainerSource, Store};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{CloseReason, Emulator, Fault, NewIssue, Permission, Pull, World};
use canonry_testkit::on_both_engines;
use canonry_triage::{
    IdentifyError, SyncError, SyncFailure, SyncOptions, SyncReport, refresh_maintainers, sweep, sync, sync_outcomes,
};
use jiff::Timestamp;

pub(crate) const REPO: &str = "acme/widgets";

pub(crate) fn repo() -> RepoName {
    REPO.parse().expect("valid")
}

pub(crate) fn number(number: i64) -> ItemNumber {
    ItemNumber::new(number).expect("valid")
}

pub(crate) fn world() -> World {
    let mut world = World::new();
    world.repo(REPO);
    world.user("alice");
    world.collaborator(REPO, "maint", Permission::Write);
    world.token("t0ken", "maint");
    world
}

/// Opens an issue a minute after the last one.
fn open(world: &mut World, title: &str) -> i64 {
    world.advance(60);
    world.open(REPO, "alice", NewIssue::new(title, "It stops.")) as i64
}

fn client_with(emulator: &Emulator, token: &str) -> GitHub {
    let now: Timestamp = emulator.world().now;
    let options = ClientOptions {
        api: emulator.url().parse().expect("a valid address"),
        clock: Arc::new(ManualClock::new(now)),
        ..ClientOptions::new(Auth::Token(Secret::new(token)))
    };
    GitHub::new(options).expect("a client")
}

pub(crate) fn client(emulator: &Emulator) -> GitHub {
    client_with(emulator, "t0ken")
}

pub(crate) async fn store(database: &TestDatabase) -> Store {
    Store::open(&database.url().parse().expect("valid"), Timestamp::UNIX_EPOCH).await.expect("opens")
}

pub(crate) async fn run(store: &Store, github: &GitHub, options: SyncOptions) -> Result<SyncReport, Box<SyncFailure>> {
    sync(store, github, &repo(), options, &mut |_| {}).await
}

async fn titles(store: &Store) -> Vec<(i64, String)> {
    let repo = store.repos().find(&repo()).await.expect("reads").expect("known");
    let items = store.corpus().items_after(repo.id, Default::default(), None, 1_000).await.expect("reads");
    items.into_iter().map(|item| (item.number.get(), item.title)).collect()
}

on_both_engines! {
    async fn a_second_run_costs_almost_nothing(database: TestDatabase) {
        let mut world = world();
        for title in ["One", "Two", "Three"] {
            open(&mut world, title);
        }
        world.open(REPO, "alice", NewIssue::new("Four", "").pull(Pull::default()));
        let emulator = Emulator::start(world).await;
        let (store, github) = (store(&database).await, client(&emulator));
        let first = run(&store, &github, SyncOptions::default()).await.expect("synced");
        assert_eq!((first.fetched, first.inserted, first.pages), (4, 4, 1));
        emulator.forget_requests();
        let second = run(&store, &github, SyncOptions::default()).await.expect("synced");
        assert_eq!((second.inserted, second.updated, second.content_changed), (0, 0, 0));
        let third = run(&store, &github, SyncOptions::default()).await.expect("synced");
        assert!(third.not_modified, "{third:?}");
        assert!(emulator.requests().len() <= 4, "{:?}", emulator.requests());

        // An edit, a label and a close are imported; only the edit changes the content version.
        {
            let mut world = emulator.world();
            world.advance(120);
            world.edit_body(REPO, 1, "alice", "It stops at once.");
            world.label(REPO, 2, "maint", "bug");
            world.close(REPO, 3, "maint", CloseReason::NotPlanned);
        }
        let changed = run(&store, &github, SyncOptions::default()).await.expect("synced");
        assert_eq!((changed.updated, changed.content_changed), (3, 1));
        let repo = store.repos().find(&repo()).await.expect("reads").expect("known");
        let edited = store.corpus().item(repo.id, ItemType::Issue, number(1)).await.expect("reads").expect("known");
        assert_eq!((edited.body.as_str(), edited.content_version.get()), ("It stops at once.", 2));
        let events = store.learning().outcome_events(repo.id, number(3)).await.expect("reads");
        assert_eq!(events.iter().map(|event| event.kind).collect::<Vec<_>>(), [OutcomeKind::Closed]);
    }

    async fn a_narrow_run_leaves_no_gap_behind(database: TestDatabase) {
        let mut world = world();
        for title in ["One", "Two", "Three"] {
            open(&mut world, title);
        }
        world.advance(86_400 * 40);
        open(&mut world, "Late");
        world.close(REPO, 4, "maint", CloseReason::Completed);
        let emulator = Emulator::start(world).await;
        let (store, github) = (store(&database).await, client(&emulator));
        let recent = SyncOptions { since: Some(github.now() - jiff::SignedDuration::from_hours(24)), ..SyncOptions::default() };
        assert_eq!(run(&store, &github, recent).await.expect("synced").inserted, 1);
        let closed = SyncOptions { state: Some(ItemState::Closed), ..SyncOptions::default() };
        assert_eq!(run(&store, &github, closed).await.expect("synced").fetched, 1);
        let pulls = SyncOptions { item_type: Some(ItemType::Pr), ..SyncOptions::default() };
        assert_eq!(run(&store, &github, pulls).await.expect("synced").fetched, 0);
        assert_eq!(run(&store, &github, SyncOptions::default()).await.expect("synced").inserted, 3);
        assert_eq!(titles(&store).await.len(), 4);
    }

    async fn a_dry_run_writes_nothing(database: TestDatabase) {
        let mut world = world();
        open(&mut world, "One");
        let emulator = Emulator::start(world).await;
        let (store, github) = (store(&database).await, client(&emulator));
        let dry = SyncOptions { dry_run: true, ..SyncOptions::default() };
        assert_eq!(run(&store, &github, dry).await.expect("synced").inserted, 1);
        assert_eq!(store.repos().list().await.expect("reads"), []);
        run(&store, &github, SyncOptions::default()).await.expect("synced");
        {
            let mut world = emulator.world();
            world.advance(120);
            world.edit_title(REPO, 1, "alice", "Uno");
        }
        let seen = run(&store, &github, dry).await.expect("synced");
        assert_eq!((seen.updated, seen.content_changed), (1, 1));
        assert_eq!(titles(&store).await, [(1, "One".to_owned())]);
    }

    async fn refresh_brings_new_items_and_leaves_known_ones_to_the_next_sync(database: TestDatabase) {
        let mut world = world();
        open(&mut world, "One");
        let emulator = Emulator::start(world).await;
        let (store, github) = (store(&database).await, client(&emulator));
        run(&store, &github, SyncOptions::default()).await.expect("synced");
        {
            let mut world = emulator.world();
            world.advance(120);
            world.edit_title(REPO, 1, "alice", "Uno");
            open(&mut world, "Two");
        }
        let new = SyncOptions { only_new: true, ..SyncOptions::default() };
        let report = run(&store, &github, new).await.expect("synced");
        assert_eq!((report.inserted, report.updated), (1, 0));
        assert_eq!(titles(&store).await, [(1, "One".to_owned()), (2, "Two".to_owned())]);
        let report = run(&store, &github, SyncOptions::default()).await.expect("synced");
        assert_eq!((report.updated, report.content_changed), (1, 1));
        assert_eq!(titles(&store).await[0].1, "Uno");
    }

    async fn what_leaves_the_repository_is_found_by_the_sweep(database: TestDatabase) {
        let mut world = world();
        world.repo("acme/other");
        for title in ["Stays", "Deleted", "Transferred", "Converted"] {
            open(&mut world, title);
        }
        let emulator = Emulator::start(world).await;
        let (store, github) = (store(&database).await, client(&emulator));
        run(&store, &github, SyncOptions::default()).await.expect("synced");
        {
            let mut world = emulator.world();
            world.delete(REPO, 2, "maint");
            world.transfer(REPO, 3, "maint", "acme/other");
            world.convert_to_discussion(REPO, 4, "maint");
        }
        let report = sweep(&store, &github, &repo(), &mut |_| {}).await.expect("swept");
        assert_eq!(report.gone, [(number(2), GoneReason::Deleted), (number(3), GoneReason::Transferred), (number(4), GoneReason::Converted)]);
        assert_eq!(titles(&store).await, [(1, "Stays".to_owned())]);
        let again = sweep(&store, &github, &repo(), &mut |_| {}).await.expect("swept");
        assert_eq!((again.checked, again.gone), (1, Vec::new()));
    }

    async fn a_renamed_repository_keeps_its_items(database: TestDatabase) {
        let mut world = world();
        open(&mut world, "One");
        let emulator = Emulator::start(world).await;
        let (store, github) = (store(&database).await, client(&emulator));
        run(&store, &github, SyncOptions::default()).await.expect("synced");
        emulator.world().rename_repo(REPO, "acme/gadgets", "maint");
        let report = run(&store, &github, SyncOptions::default()).await.expect("synced by its old name");
        assert_eq!(report.renamed_from, Some(repo()));
        let renamed = store.repos().find(&"acme/gadgets".parse().expect("valid")).await.expect("reads").expect("known");
        assert_eq!(store.corpus().item_counts(renamed.id).await.expect("counts").total(), 1);
        assert_eq!(store.repos().list().await.expect("reads").len(), 1);

        // A new repository under the old name is another repository.
        emulator.world().repo(REPO);
        let fresh = sync(&store, &github, &repo(), SyncOptions::default(), &mut |_| {}).await.expect("synced");
        assert_eq!((fresh.renamed_from, fresh.inserted), (None, 0));
        assert_eq!(store.repos().list().await.expect("reads").len(), 2);
    }

    async fn a_name_that_means_another_repository_now_is_refused(database: TestDatabase) {
        let mut world = world();
        open(&mut world, "One");
        let emulator = Emulator::start(world).await;
        let (store, github) = (store(&database).await, client(&emulator));
        let known = store.repos().ensure(&repo(), Timestamp::UNIX_EPOCH).await.expect("created");
        store.repos().identify(known.id, canonry_domain::GithubId(1), &repo()).await.expect("noted").expect("free");
        let failure = run(&store, &github, SyncOptions::default()).await.expect_err("another repository");
        assert!(matches!(failure.cause, SyncError::Identify(IdentifyError::AnotherRepository { .. })), "{failure}");
        assert_eq!(store.corpus().item_counts(known.id).await.expect("counts").total(), 0);
    }

    async fn targets_of_duplicates_are_learned_from_people(database: TestDatabase) {
        let mut world = world();
        world.user("reporter");
        world.bot("stale[bot]");
        for title in ["Original", "By the closer", "By a bystander", "By a bot", "Negated", "Long ago"] {
            open(&mut world, title);
        }
        let comments: [(u64, &str, &str); 4] = [
            (2, "maint", "Duplicate of #1"),
            (3, "reporter", "Duplicate of #1"),
            (4, "stale[bot]", "Duplicate of #1"),
            (5, "maint", "This is not a duplicate of #1"),
        ];
        world.comment(REPO, 6, "maint", "Duplicate of #1");
        world.advance(86_400 * 2);
        for (of, by, text) in comments {
            world.comment(REPO, of, by, text);
        }
        for of in 2..=6 {
            world.close(REPO, of, "maint", CloseReason::Duplicate(None));
        }
        let emulator = Emulator::start(world).await;
        let (store, github) = (store(&database).await, client(&emulator));
        run(&store, &github, SyncOptions::default()).await.expect("synced");
        let report = sync_outcomes(&store, &github, &repo(), &mut |_| {}).await.expect("asked");
        assert_eq!((report.asked, report.learned), (5, vec![(number(2), number(1))]));
        let again = sync_outcomes(&store, &github, &repo(), &mut |_| {}).await.expect("asked");
        assert_eq!(again.asked, 4);
    }

    async fn maintainers_are_who_may_push(database: TestDatabase) {
        let mut world = world();
        world.collaborator(REPO, "boss", Permission::Admin);
        world.collaborator(REPO, "sorter", Permission::Triage);
        world.token("weak", "alice");
        let emulator = Emulator::start(world).await;
        let store = store(&database).await;
        let list = refresh_maintainers(&store, &client(&emulator), &repo()).await.expect("refreshed");
        assert_eq!(list.logins.iter().map(ToString::to_string).collect::<Vec<_>>(), ["boss", "maint"]);
        assert_eq!(list.source, MaintainerSource::Github);
        let refused = refresh_maintainers(&store, &client_with(&emulator, "weak"), &repo()).await.expect_err("hidden");
        assert!(matches!(refused, SyncError::GitHub(GitHubError::CollaboratorsHidden { .. })), "{refused}");
        let known = store.repos().find(&repo()).await.expect("reads").expect("known");
        assert_eq!(store.repos().maintainers(known.id).await.expect("reads"), Some(list));
    }

    async fn a_failure_in_the_middle_keeps_what_was_done(database: TestDatabase) {
        let mut world = world();
        for index in 0..350 {
            open(&mut world, &format!("Issue {index}"));
        }
        let emulator = Emulator::start(world).await;
        let store = store(&database).await;
        emulator.fault(Fault::on("GET", "/**/issues").nth(3).always().drop_connection());
        let failure = run(&store, &client(&emulator), SyncOptions::default()).await.expect_err("the network is gone");
        assert_eq!(failure.so_far.inserted, 200);
        assert!(matches!(failure.cause, SyncError::GitHub(GitHubError::Network { .. })), "{failure}");
        emulator.clear_faults();
        emulator.forget_requests();
        let rest = run(&store, &client(&emulator), SyncOptions::default()).await.expect("synced");
        assert_eq!((rest.inserted, rest.pages), (150, 2));
        assert_eq!(titles(&store).await.len(), 350);

        // The hour's rate limit is used up: an error with the time, and the store keeps what it has.
        {
            let mut world = emulator.world();
            for index in 0..250 {
                open(&mut world, &format!("More {index}"));
            }
            world.leave_requests("maint", 3);
        }
        let failure = run(&store, &client(&emulator), SyncOptions::default()).await.expect_err("no budget");
        assert!(matches!(failure.cause, SyncError::GitHub(GitHubError::RateLimited { .. })), "{failure}");
        assert!(failure.so_far.inserted >= 100, "{:?}", failure.so_far);
        let failure = run(&store, &client_with(&emulator, "wrong"), SyncOptions::default()).await.expect_err("no token");
        assert!(failure.to_string().contains("GITHUB_TOKEN"), "{failure}");
    }
}
