//! Provides a store, an emulated GitHub with one repository, and outboxes that start and end like processes.

use std::ops::{ControlFlow, Deref};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use canonry_domain::{GithubId, ItemNumber, WriteKey};
use canonry_github::Auth;
use canonry_github::outbox::Unconditional;
use canonry_github::outbox::{
    Close, CloseAs, InlineComment, OutboxError, Receipt, Recheck, ReviewWrite, Write, WrittenReview,
};
use canonry_store::{OutboxEntry, OutboxState};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{Emulator, EventKind, NewIssue, Pull, Review, ReviewState, State, World};
pub(crate) use canonry_testworld::{APP, OWN, TOKEN, number, plain};
use canonry_testworld::{TestWorld, app_auth, token_auth, world_with_app};

pub(crate) const REPO: &str = "acme/widgets";
/// The head of the pull requests here.
pub(crate) const HEAD: &str = "1111111111111111111111111111111111111111";
/// How many lines their one file has, all new.
pub(crate) const LINES: u32 = 40;
pub(crate) const CLOSING: &str = "Closing as duplicate of #1.";
pub(crate) const NOT_CLOSING: &str = "Not closed after all.";

pub(crate) struct Setting {
    world: TestWorld,
    pub(crate) own: &'static str,
    keys: AtomicUsize,
}

impl Deref for Setting {
    type Target = TestWorld;

    fn deref(&self) -> &TestWorld {
        &self.world
    }
}

/// A world with a repository, a user who opens issues, and issue 1, which others duplicate.
pub(crate) fn world() -> World {
    let mut world = world_with_app(REPO, &["issues", "pull_requests", "checks", "contents"]);
    world.user("ann");
    world.open(REPO, "ann", NewIssue::new("Sync stops", "It stops."));
    world
}

impl Setting {
    pub(crate) async fn new(database: TestDatabase) -> Self {
        Self::with(database, OWN, token_auth()).await
    }

    /// A setting with an App, which may do everything unless its permissions are changed.
    pub(crate) async fn of_app(database: TestDatabase) -> Self {
        Self::with(database, APP, app_auth()).await
    }

    async fn with(database: TestDatabase, own: &'static str, auth: Auth) -> Self {
        let world = TestWorld::start(database, world(), REPO, auth).await;
        Self { world, own, keys: AtomicUsize::new(0) }
    }

    /// Starts another emulated GitHub in the initial state. Its numbers start again, so keys must not be made of them.
    pub(crate) async fn renew_world(&mut self) {
        let now = self.emulator.world().now;
        let mut world = world();
        world.now = now;
        self.world.emulator = Arc::new(Emulator::start(world).await);
    }

    /// A key that no other write has.
    pub(crate) fn fresh_key(&self) -> String {
        format!("key {}", self.keys.fetch_add(1, Ordering::SeqCst))
    }

    pub(crate) fn open_issue(&self) -> ItemNumber {
        number(self.emulator.world().open(REPO, "ann", NewIssue::new("Sync stops too", "It stops.")))
    }

    /// A pull request that adds a file of [`LINES`] lines.
    pub(crate) fn open_pull(&self) -> ItemNumber {
        let lines: String = (1..=LINES).map(|line| format!("+line {line}\n")).collect();
        let patch = format!("@@ -0,0 +1,{LINES} @@\n{}", lines.trim_end());
        let pull = Pull { head_sha: HEAD.to_owned(), ..Pull::default() }.file("src/sync.rs", &patch);
        number(self.emulator.world().open(REPO, "ann", NewIssue::new("Fix sync", "").pull(pull)))
    }

    /// A pull request with a review of ours that has comments with these keys, and the review.
    pub(crate) async fn reviewed(&self, keys: &[&str]) -> (ItemNumber, WrittenReview) {
        let pull = self.open_pull();
        let entry = self.publish(pull, &self.fresh_key(), review(keys), &Unconditional).await;
        (pull, receipt(&entry).review.unwrap_or_else(|| panic!("no review: {entry:?}")))
    }

    /// Our visible reviews of a pull request, and the number of our drafts.
    pub(crate) fn own_reviews(&self, pull: ItemNumber) -> (Vec<Review>, usize) {
        let world = self.emulator.world();
        let reviews: Vec<Review> = world.reviews_by(REPO, plain(pull), self.own).into_iter().cloned().collect();
        let (drafts, shown): (Vec<Review>, Vec<Review>) =
            reviews.into_iter().partition(|review| review.state == ReviewState::Pending);
        assert!(shown.iter().all(|review| review.state == ReviewState::Commented), "{shown:?}");
        (shown, drafts.len())
    }

    pub(crate) async fn publish(
        &self,
        item: ItemNumber,
        key: &str,
        write: Write,
        recheck: &dyn Recheck,
    ) -> OutboxEntry {
        self.publish_as(item, &WriteKey::other(key), write, recheck).await
    }

    pub(crate) async fn publish_as(
        &self,
        item: ItemNumber,
        key: &WriteKey,
        write: Write,
        recheck: &dyn Recheck,
    ) -> OutboxEntry {
        let outbox = self.outbox().await;
        let entry = outbox.enqueue(self.repo.id, item, key, write).await.expect("stored");
        outbox.publish(entry.id, recheck).await.expect("worked on")
    }

    /// Processes an entry until it has ended, however often that takes longer than one call waits.
    pub(crate) async fn see_through(&self, entry: &OutboxEntry, recheck: &dyn Recheck) -> OutboxEntry {
        let outbox = self.outbox().await;
        let mut entry = entry.clone();
        for _ in 0..10 {
            entry = outbox.publish(entry.id, recheck).await.expect("worked on");
            if entry.state != OutboxState::Pending {
                break;
            }
        }
        entry
    }

    /// Processes an entry until the process "dies" at its `steps`-th point; `None` if it died.
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

pub(crate) fn text_of(body: &str) -> String {
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

/// A review of the pull requests here, with one comment per key, each on its own line.
pub(crate) fn review(keys: &[&str]) -> Write {
    let comments = keys.iter().zip(1..).map(|(key, line)| inline(key, line)).collect();
    Write::Review(ReviewWrite { commit: HEAD.to_owned(), body: "Two remarks.".to_owned(), comments, said: vec![] })
}

pub(crate) fn inline(key: &str, line: u32) -> InlineComment {
    let body = format!("About {key}.");
    InlineComment { key: key.to_owned(), path: "src/sync.rs".to_owned(), line, start_line: None, body }
}

pub(crate) fn id(id: u64) -> GithubId {
    GithubId(i64::try_from(id).expect("small"))
}

pub(crate) fn plain_id(id: GithubId) -> u64 {
    u64::try_from(id.0).expect("positive")
}
