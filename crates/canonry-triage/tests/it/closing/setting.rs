//! A store, an emulated GitHub with one repository, and processes that start and end.

use std::ops::{ControlFlow, Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use canonry_config::{ParsedSettings, parse};
use canonry_domain::{ItemNumber, ItemType, Probability, RowSnapshot, TargetPolicy, UndoReason};
use canonry_github::GitHub;
use canonry_github::outbox::Outbox;
use canonry_store::{CloseRunId, MaintainerSource, NewPlan, NewPlanRow, Representation, Store};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{Event, EventKind, NewIssue, Permission, Pull, State, World};
pub(crate) use canonry_testworld::{OWN, TOKEN, number, plain};
use canonry_testworld::{TestWorld, token_auth, world_with_token};
use canonry_triage::{
    ApplyError, ApplyOptions, CloseReport, SyncOptions, UndoError, UndoOptions, apply_close, sync, undo_close,
};
use jiff::SignedDuration;
use serde_json::json;

pub(crate) const REPO: &str = "acme/widgets";
pub(crate) const FACT: &str = "both mention `E0599`";

pub(crate) struct Setting {
    world: TestWorld,
    pub(crate) config: ParsedSettings,
    run: AtomicUsize,
}

impl Deref for Setting {
    type Target = TestWorld;

    fn deref(&self) -> &TestWorld {
        &self.world
    }
}

impl DerefMut for Setting {
    fn deref_mut(&mut self) -> &mut TestWorld {
        &mut self.world
    }
}

/// A world with a repository, a maintainer, and an account that opens issues.
pub(crate) fn world() -> World {
    let mut world = world_with_token(REPO);
    world.repo("acme/attic");
    world.user("ann");
    world.user("zoe");
    world.bot("stale[bot]");
    world.collaborator(REPO, "maint", Permission::Maintain);
    world
}

/// What GitHub shows of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) open: bool,
    pub(crate) closes: usize,
    /// Our comments, without their markers.
    pub(crate) comments: Vec<String>,
    pub(crate) labels: Vec<String>,
}

impl Setting {
    pub(crate) async fn new(database: TestDatabase) -> Self {
        let world = TestWorld::start(database, world(), REPO, token_auth()).await;
        let maintainers = ["maint".parse().expect("a login")];
        let (store, repo, now) = (&world.store, world.repo.id, world.now());
        store.repos().set_maintainers(repo, MaintainerSource::Set, &maintainers, now).await.expect("stored");
        Self { world, config: parse(""), run: AtomicUsize::new(0) }
    }

    /// The same setting with this text in the repository's settings file.
    pub(crate) fn with_config(mut self, text: &str) -> Self {
        self.config = parse(text);
        self
    }

    pub(crate) fn run_id(&self) -> String {
        format!("run-{}", self.run.fetch_add(1, Ordering::SeqCst))
    }

    /// Ann opens an issue, a second later than the last one, so that their times differ.
    pub(crate) fn open(&self, title: &str) -> ItemNumber {
        let mut world = self.emulator.world();
        world.advance(1);
        number(world.open(REPO, "ann", NewIssue::new(title, "It stops with the error E0599 at once.")))
    }

    pub(crate) fn open_pull(&self, title: &str) -> ItemNumber {
        let mut world = self.emulator.world();
        world.advance(1);
        number(world.open(REPO, "ann", NewIssue::new(title, "It mends the error E0599.").pull(Pull::default())))
    }

    /// An original and this many duplicates of it.
    pub(crate) fn cluster(&self, duplicates: usize) -> (ItemNumber, Vec<ItemNumber>) {
        let original = self.open("Sync stops");
        (original, (0..duplicates).map(|_| self.open("Sync stops too")).collect())
    }

    pub(crate) fn later(&self, seconds: i64) {
        self.emulator.world().advance(seconds);
    }

    pub(crate) async fn sync(&self) {
        sync(&self.store, &self.github(), &self.repo.name, SyncOptions::default(), &mut |_| {}).await.expect("synced");
    }

    /// Syncs with GitHub, and plans to close each first item as a duplicate of the second.
    pub(crate) async fn plan(&self, pairs: &[(ItemNumber, ItemNumber)]) -> CloseRunId {
        self.sync().await;
        // Snapshots and what follows them happen at different times.
        self.later(5);
        let mut rows = Vec::new();
        for (source, target) in pairs {
            rows.push(self.row(*source, *target).await);
        }
        self.store_plan(&rows).await
    }

    pub(crate) async fn store_plan(&self, rows: &[NewPlanRow]) -> CloseRunId {
        let new = NewPlan {
            representation: Representation::Raw,
            target_policy: TargetPolicy::CanonicalOnly,
            min_close: Probability::new(0.9).expect("a probability"),
            config_hash: "hash",
            run_id: "planned",
        };
        let now = self.emulator.world().now;
        self.store.plans().create(self.repo.id, &new, rows, now).await.expect("stored")
    }

    /// A close row, by what the store contains now.
    pub(crate) async fn row(&self, source: ItemNumber, target: ItemNumber) -> NewPlanRow {
        let (one, other) = (self.item(source).await, self.item(target).await);
        NewPlanRow {
            item_type: one.item_type,
            number: source,
            target: Some(target),
            skip: None,
            confidence: Some(Probability::new(0.95).expect("a probability")),
            evidence: json!({ "facts": [FACT] }),
            snapshot: serde_json::to_value(RowSnapshot::of(&one, &other)).expect("plain data"),
        }
    }

    pub(crate) async fn item(&self, number: ItemNumber) -> canonry_domain::Item {
        for item_type in [ItemType::Issue, ItemType::Pr] {
            if let Some(item) = self.store.corpus().item(self.repo.id, item_type, number).await.expect("reads") {
                return item;
            }
        }
        panic!("#{number} is not in the store");
    }

    /// Another process in the same world, with its own connections that end with it.
    pub(crate) async fn another_process(&self) -> Process<'_> {
        let now = self.emulator.world().now;
        let store = Store::open(&self.database.url().parse().expect("a URL"), now).await.expect("opens");
        let github = self.github();
        let outbox = Outbox::open(store.clone(), github.clone(), [7; 32]).await.expect("an outbox");
        Process { setting: self, store, github, outbox }
    }

    pub(crate) async fn outbox(&self, github: &GitHub) -> Outbox {
        Outbox::open(self.store.clone(), github.clone(), [7; 32]).await.expect("an outbox")
    }

    pub(crate) async fn try_apply(&self, plan: CloseRunId, approved_only: bool) -> Result<CloseReport, ApplyError> {
        let github = self.github();
        let outbox = self.outbox(&github).await;
        self.apply_with(&github, &outbox, plan, approved_only).await
    }

    pub(crate) async fn apply_with(
        &self,
        github: &GitHub,
        outbox: &Outbox,
        plan: CloseRunId,
        approved_only: bool,
    ) -> Result<CloseReport, ApplyError> {
        let run_id = self.run_id();
        let options = ApplyOptions {
            plan,
            approved_only,
            config: &self.config,
            run_id: &run_id,
            most_rows: None,
            ordered_at: jiff::Timestamp::MAX,
        };
        apply_close(&self.store, github, outbox, &self.repo, options, &mut |_| {}).await
    }

    /// Closes at most this many more rows.
    pub(crate) async fn apply_part(
        &self,
        github: &GitHub,
        outbox: &Outbox,
        plan: CloseRunId,
        most: usize,
    ) -> Result<CloseReport, ApplyError> {
        let run_id = self.run_id();
        let most_rows = Some(most);
        let ordered_at = self.store.plans().run(plan).await.expect("reads").expect("a plan").created_at;
        let options =
            ApplyOptions { plan, approved_only: false, config: &self.config, run_id: &run_id, most_rows, ordered_at };
        apply_close(&self.store, github, outbox, &self.repo, options, &mut |_| {}).await
    }

    /// Reopens at most this many more items.
    pub(crate) async fn undo_part(
        &self,
        github: &GitHub,
        outbox: &Outbox,
        run: CloseRunId,
        most: usize,
    ) -> Result<CloseReport, UndoError> {
        let (run_id, config, reason) = (self.run_id(), &self.config.config, UndoReason::NotDuplicate);
        let most_rows = Some(most);
        let options = UndoOptions { run, item: None, reason, note: None, by: None, config, run_id: &run_id, most_rows };
        undo_close(&self.store, github, outbox, &self.repo, options, &mut |_| {}).await
    }

    pub(crate) async fn apply(&self, plan: CloseRunId) -> CloseReport {
        self.try_apply(plan, false).await.expect("applied")
    }

    pub(crate) async fn try_undo(
        &self,
        run: CloseRunId,
        item: Option<ItemNumber>,
        reason: UndoReason,
    ) -> Result<CloseReport, UndoError> {
        let github = self.github();
        let outbox = self.outbox(&github).await;
        self.undo_with(&github, &outbox, run, item, reason).await
    }

    pub(crate) async fn undo_with(
        &self,
        github: &GitHub,
        outbox: &Outbox,
        run: CloseRunId,
        item: Option<ItemNumber>,
        reason: UndoReason,
    ) -> Result<CloseReport, UndoError> {
        let run_id = self.run_id();
        let config = &self.config.config;
        let options = UndoOptions { run, item, reason, note: None, by: None, config, run_id: &run_id, most_rows: None };
        undo_close(&self.store, github, outbox, &self.repo, options, &mut |_| {}).await
    }

    pub(crate) async fn undo(&self, run: CloseRunId) -> CloseReport {
        self.try_undo(run, None, UndoReason::NotDuplicate).await.expect("undone")
    }

    /// An outbox that stops at its `points`-th point, as if it were killed there.
    pub(crate) async fn outbox_until(&self, github: &GitHub, points: usize) -> Outbox {
        let passed = AtomicUsize::new(0);
        let checkpoint = move |_| match passed.fetch_add(1, Ordering::SeqCst) {
            passed if passed < points => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        };
        self.outbox(github).await.with_checkpoint(Arc::new(checkpoint))
    }

    pub(crate) fn shown(&self, item: ItemNumber) -> Shown {
        let world = self.emulator.world();
        let issue = world.issue(REPO, plain(item));
        let ours = |event: &&Event| event.actor == OWN && matches!(event.kind, EventKind::Closed { .. });
        Shown {
            open: issue.state == State::Open,
            closes: issue.events.iter().filter(ours).count(),
            comments: world.comments_by(REPO, plain(item), OWN).iter().filter_map(|c| text_of(&c.body)).collect(),
            labels: issue.labels.clone(),
        }
    }

    /// Asserts that the item has no comment, close or label of ours.
    pub(crate) fn assert_untouched(&self, item: ItemNumber, context: &str) {
        let shown = self.shown(item);
        assert_eq!((shown.closes, shown.comments.as_slice()), (0, &[][..]), "{context}: #{item}");
        assert!(!shown.labels.contains(&"possible-duplicate".to_owned()), "{context}: #{item}");
    }

    /// Asserts that the item is closed once as a duplicate of the target, with one comment and one label.
    pub(crate) fn assert_closed(&self, item: ItemNumber, target: ItemNumber, context: &str) {
        let shown = self.shown(item);
        assert_eq!((shown.open, shown.closes, shown.comments.len()), (false, 1, 1), "{context}: #{item} {shown:?}");
        let go_on = if self.emulator.world().issue(REPO, plain(item)).pull.is_some() {
            "please continue in"
        } else {
            "please follow"
        };
        let expected = format!("Closed as a duplicate; {go_on} #{target}");
        assert!(shown.comments[0].starts_with(&expected), "{context}: {shown:?}");
        assert_eq!(shown.labels, ["possible-duplicate"], "{context}: #{item}");
        let world = self.emulator.world();
        let issue = world.issue(REPO, plain(item));
        if issue.pull.is_none() {
            assert_eq!(issue.state_reason.as_deref(), Some("duplicate"), "{context}");
            assert_eq!(issue.duplicate_of, Some(world.issue(REPO, plain(target)).id), "{context}");
        }
    }

    /// Asserts that the canonical item has one comment of ours, which lists exactly these duplicates.
    pub(crate) fn assert_back_link(&self, canonical: ItemNumber, duplicates: &[ItemNumber], context: &str) {
        let lines: Vec<String> = duplicates.iter().map(|number| format!("- #{number}")).collect();
        let expected = format!("Closed as duplicates of this issue:\n\n{}", lines.join("\n"));
        assert_eq!(self.shown(canonical).comments, [expected], "{context}");
    }

    /// Advances the clock past the hour of the write limits.
    pub(crate) fn next_hour(&self) {
        self.emulator.forget_requests();
        self.emulator.world().now += SignedDuration::from_hours(2);
    }
}

/// A process in addition to the test's own.
pub(crate) struct Process<'a> {
    setting: &'a Setting,
    store: Store,
    github: GitHub,
    outbox: Outbox,
}

impl Process<'_> {
    pub(crate) async fn apply(self, plan: CloseRunId) -> Result<CloseReport, ApplyError> {
        let run_id = self.setting.run_id();
        let options = ApplyOptions {
            plan,
            approved_only: false,
            config: &self.setting.config,
            run_id: &run_id,
            most_rows: None,
            ordered_at: jiff::Timestamp::MAX,
        };
        apply_close(&self.store, &self.github, &self.outbox, &self.setting.repo, options, &mut |_| {}).await
    }

    pub(crate) async fn undo(self, run: CloseRunId, reason: UndoReason) -> Result<CloseReport, UndoError> {
        let run_id = self.setting.run_id();
        let config = &self.setting.config.config;
        let options =
            UndoOptions { run, item: None, reason, note: None, by: None, config, run_id: &run_id, most_rows: None };
        undo_close(&self.store, &self.github, &self.outbox, &self.setting.repo, options, &mut |_| {}).await
    }
}

/// The report in short: number and result, with the reason if there is one.
pub(crate) fn told(report: &CloseReport) -> Vec<String> {
    let row = |row: &canonry_triage::ReportedRow| match &row.reason {
        Some(reason) => format!("#{} {} {reason}", row.number, row.result.as_str()),
        None => format!("#{} {}", row.number, row.result.as_str()),
    };
    report.rows.iter().map(row).collect()
}

pub(crate) fn counts(report: &CloseReport) -> (u64, u64, u64, u64) {
    (report.attempted, report.applied, report.skipped, report.failed)
}

/// The text of a comment; `None` if a person wrote it with our account.
fn text_of(body: &str) -> Option<String> {
    let (text, marker) = body.split_once("\n\n<!-- canonry:v1:")?;
    assert!(!marker.contains("<!--"), "two markers: {body}");
    Some(text.to_owned())
}
