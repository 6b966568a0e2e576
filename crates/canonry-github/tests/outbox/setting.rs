//! A store, an emulated GitHub with one repository, and outboxes that come and go like processes.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use canonry_domain::ItemNumber;
use canonry_github::outbox::{Close, CloseAs, Outbox, OutboxError, Receipt, Recheck, Write};
use canonry_github::{Auth, ClientOptions, Clock, GitHub, Secret};
use canonry_store::{OutboxEntry, Repo, Store};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{Emulator, EventKind, NewIssue, Permission, State, World};
use futures_util::future::BoxFuture;
use jiff::Timestamp;

pub(crate) const TOKEN: &str = "ghp_emulatedTokenOfCanonry0123456789abcd";
pub(crate) const REPO: &str = "acme/widgets";
pub(crate) const OWN: &str = "canonry-bot";
pub(crate) const CLOSING: &str = "Closing as duplicate of #1.";
pub(crate) const NOT_CLOSING: &str = "Not closed after all.";

/// The emulated world's clock: waiting moves it.
pub(crate) struct WorldClock(pub(crate) Arc<Emulator>);

impl Clock for WorldClock {
    fn now(&self) -> Timestamp {
        self.0.world().now
    }

    fn sleep_until(&self, until: Timestamp) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let mut world = self.0.world();
            world.now = world.now.max(until);
        })
    }
}

pub(crate) struct Setting {
    pub(crate) emulator: Arc<Emulator>,
    pub(crate) store: Store,
    pub(crate) repo: Repo,
    /// Removed when the test is over.
    _database: TestDatabase,
}

/// A world with a repository, somebody who opens issues, and issue 1, which others duplicate.
pub(crate) fn world() -> World {
    let mut world = World::new();
    world.token(TOKEN, OWN);
    world.repo(REPO);
    world.user("ann");
    world.collaborator(REPO, OWN, Permission::Write);
    world.rate.limit = 10_000_000;
    world.open(REPO, "ann", NewIssue::new("Sync stops", "It stops."));
    world
}

impl Setting {
    pub(crate) async fn new(database: TestDatabase) -> Self {
        let world = world();
        let now = world.now;
        let emulator = Arc::new(Emulator::start(world).await);
        let store = Store::open(&database.url().parse().expect("a URL"), now).await.expect("opens");
        let repo = store.ensure_repo(&REPO.parse().expect("a name"), now).await.expect("stored");
        Self { emulator, store, repo, _database: database }
    }

    /// A client and an outbox as a freshly started process has them.
    pub(crate) async fn outbox(&self) -> Outbox {
        let options = ClientOptions {
            api: self.emulator.url().parse().expect("a URL"),
            clock: Arc::new(WorldClock(Arc::clone(&self.emulator))),
            jitter: Arc::new(|| 0.0),
            request_timeout: Duration::from_secs(10),
            ..ClientOptions::new(Auth::Token(Secret::new(TOKEN)))
        };
        let github = GitHub::new(options).expect("a client");
        Outbox::open(self.store.clone(), github, [7; 32]).await.expect("an outbox")
    }

    pub(crate) fn open_issue(&self) -> ItemNumber {
        number(self.emulator.world().open(REPO, "ann", NewIssue::new("Sync stops too", "It stops.")))
    }

    /// Stores a write and sees it through.
    pub(crate) async fn publish(
        &self,
        item: ItemNumber,
        key: &str,
        write: Write,
        recheck: &dyn Recheck,
    ) -> OutboxEntry {
        let outbox = self.outbox().await;
        let entry = outbox.enqueue(self.repo.id, item, key, write).await.expect("stored");
        outbox.publish(entry.id, recheck).await.expect("worked on")
    }

    /// Works on an entry until the process "dies" at its `steps`-th point; `None` when it died.
    pub(crate) async fn publish_until(
        &self,
        entry: &OutboxEntry,
        steps: usize,
        recheck: &dyn Recheck,
    ) -> Option<OutboxEntry> {
        let passed = AtomicUsize::new(0);
        let checkpoint = move |_| match passed.fetch_add(1, Ordering::SeqCst) {
            passed if passed < steps => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        };
        let outbox = self.outbox().await.with_checkpoint(Arc::new(checkpoint));
        match outbox.publish(entry.id, recheck).await {
            Ok(entry) => Some(entry),
            Err(OutboxError::Stopped(_)) => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// The texts of our own comments on an item, without their markers.
    pub(crate) fn own_comments(&self, item: ItemNumber) -> Vec<String> {
        let world = self.emulator.world();
        let comments = world.comments_by(REPO, plain(item), OWN);
        comments.iter().map(|comment| text_of(&comment.body)).collect()
    }

    /// How often we closed an item, and whether it is closed.
    pub(crate) fn closes(&self, item: ItemNumber) -> (usize, bool) {
        let world = self.emulator.world();
        let issue = world.issue(REPO, plain(item));
        let ours = |event: &&canonry_testkit::github::Event| {
            event.actor == OWN && matches!(event.kind, EventKind::Closed { .. })
        };
        (issue.events.iter().filter(ours).count(), issue.state == State::Closed)
    }
}

pub(crate) fn number(number: u64) -> ItemNumber {
    ItemNumber::new(i64::try_from(number).expect("small")).expect("a number")
}

pub(crate) fn plain(item: ItemNumber) -> u64 {
    u64::try_from(item.get()).expect("positive")
}

fn text_of(body: &str) -> String {
    let (text, marker) = body.split_once("\n\n<!-- canonry:v1:").expect("a marker");
    assert!(!marker.contains("<!--"), "two markers: {body}");
    text.to_owned()
}

pub(crate) fn receipt(entry: &OutboxEntry) -> Receipt {
    serde_json::from_value(entry.answer.clone().expect("an answer")).expect("a receipt")
}

pub(crate) fn comment(body: &str) -> Write {
    Write::Comment { body: body.to_owned() }
}

/// A close as a duplicate of issue 1.
pub(crate) fn close(setting: &Setting) -> Write {
    let target = setting.emulator.world().issue(REPO, 1).id;
    Write::Close(Close {
        close_as: CloseAs::DuplicateOf(canonry_domain::GithubId(i64::try_from(target).expect("small"))),
        comment: CLOSING.to_owned(),
        comment_if_refused: NOT_CLOSING.to_owned(),
    })
}
