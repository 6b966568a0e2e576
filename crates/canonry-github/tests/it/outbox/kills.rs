//! Tests every kind of write, under every fault, killed at every point and started again.

use canonry_domain::{ItemNumber, WriteKey};
use canonry_github::outbox::{Unconditional, Write};
use canonry_store::{OutboxEntry, OutboxState};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{Age, Answer, ArmedFault, CloseReason, Fault, Late, Recorded, State};
use canonry_testkit::on_both_engines;

use crate::outbox::setting::{CLOSING, NOT_CLOSING, OWN, REPO, Setting, close, comment, plain, receipt};

/// A run with more points than this never ends.
pub(crate) const MOST_POINTS: usize = 80;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Comment,
    Edit,
    Delete,
    Label,
    Unlabel,
    Close,
    /// A close that GitHub refuses, so that its comment has to be corrected.
    RefusedClose,
    Reopen,
}

impl Kind {
    fn writes(self) -> Fault {
        match self {
            Self::RefusedClose => Fault::on("PATCH", "/repos/*/*/issues/comments/*"),
            _ => Fault::on("*", "/repos/**").when(Recorded::is_write),
        }
    }

    /// The reads that lag or fail: only the list of comments lags, everything else is read directly.
    fn reads(self, trouble: Trouble) -> Fault {
        Fault::on("GET", if trouble == Trouble::ApplyAndLag { "/**/comments" } else { "/repos/**" })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    None,
    ApplyAndDrop,
    Drop,
    Fail,
    ApplyAndFail,
    ApplyLate(usize),
    ApplyAndLag,
    Refuse(u16),
    Limit,
    ReadsFail,
}

pub(crate) const TROUBLES: [Trouble; 14] = [
    Trouble::None,
    Trouble::ApplyAndDrop,
    Trouble::Drop,
    Trouble::Fail,
    Trouble::ApplyAndFail,
    Trouble::ApplyLate(1),
    Trouble::ApplyLate(3),
    Trouble::ApplyAndLag,
    Trouble::Refuse(403),
    Trouble::Refuse(404),
    Trouble::Refuse(410),
    Trouble::Refuse(422),
    Trouble::Limit,
    Trouble::ReadsFail,
];

impl Trouble {
    /// The faults that hit the `nth` of some writes, and the reads that show their result.
    pub(crate) fn faults(self, writes: &Fault, reads: &Fault, nth: usize) -> Vec<ArmedFault> {
        let write = || writes.clone().nth(nth);
        match self {
            Self::None => vec![],
            Self::ApplyAndDrop => vec![write().apply_and_drop()],
            Self::Drop => vec![write().drop_connection()],
            Self::Fail => vec![write().answer(500)],
            Self::ApplyAndFail => vec![write().apply_and_answer(502)],
            Self::ApplyLate(requests) => vec![write().drop_and_apply_late(Late::AfterRequests(requests))],
            Self::ApplyAndLag => {
                vec![write().apply_and_drop(), reads.clone().stale(Age::Changes(1))]
            }
            Self::Refuse(status) => vec![write().answer(status)],
            Self::Limit => {
                let limited = Answer::message(403, "You have exceeded a secondary rate limit");
                vec![write().answer_with(limited.header("retry-after", "60"))]
            }
            Self::ReadsFail => vec![write().apply_and_drop(), reads.clone().nth(2).times(7).answer(503)],
        }
    }
}

struct Case<'a> {
    setting: &'a Setting,
    kind: Kind,
    item: ItemNumber,
    key: String,
    /// The key of the earlier comment.
    before: String,
}

impl<'a> Case<'a> {
    /// A new item in the state that the kind requires.
    async fn new(setting: &'a Setting, kind: Kind) -> Self {
        setting.emulator.clear_faults();
        let item = setting.open_issue();
        let (key, before) = (setting.fresh_key(), setting.fresh_key());
        match kind {
            Kind::Edit | Kind::Delete => {
                let entry = setting.publish(item, &before, comment("Hello"), &Unconditional).await;
                assert_eq!(entry.state, OutboxState::Sent);
            }
            Kind::Unlabel => setting.emulator.world().label(REPO, plain(item), "ann", "possible-duplicate"),
            Kind::Reopen => setting.emulator.world().close(REPO, plain(item), OWN, CloseReason::Completed),
            Kind::Comment | Kind::Label | Kind::Close | Kind::RefusedClose => {}
        }
        Self { setting, kind, item, key, before }
    }

    fn write(&self) -> Write {
        let comment_key = self.before.clone();
        let name = "possible-duplicate".to_owned();
        match self.kind {
            Kind::Comment => comment("Hello"),
            Kind::Edit => Write::EditComment { comment_key, body: "Bye".to_owned() },
            Kind::Delete => Write::DeleteComment { comment_key },
            Kind::Label => Write::Label { name },
            Kind::Unlabel => Write::Unlabel { name },
            Kind::Close | Kind::RefusedClose => close(self.setting),
            Kind::Reopen => Write::Reopen,
        }
    }

    /// Checks that the entry agrees with what GitHub shows.
    fn check(&self, entry: &OutboxEntry, context: &str) {
        let sent = match entry.state {
            OutboxState::Sent => true,
            OutboxState::Refused => false,
            other => panic!("{context}: {other:?} {entry:?}"),
        };
        let comments = self.setting.own_comments(self.item);
        let (closes, closed) = self.setting.closes(self.item);
        let (labels, state) = {
            let world = self.setting.emulator.world();
            let issue = world.issue(REPO, plain(self.item));
            (issue.labels.len(), issue.state)
        };
        match self.kind {
            Kind::Comment => assert_eq!(comments.len(), usize::from(sent), "{context}"),
            Kind::Edit => assert_eq!(comments, [if sent { "Bye" } else { "Hello" }], "{context}"),
            Kind::Delete => assert_eq!(comments.len(), usize::from(!sent), "{context}"),
            Kind::Label => assert_eq!(labels, usize::from(sent), "{context}"),
            Kind::Unlabel => assert_eq!(labels, usize::from(!sent), "{context}"),
            Kind::Reopen => assert_eq!(state == State::Open, sent, "{context}"),
            Kind::Close if sent => {
                assert_eq!((comments, closes, closed), (vec![CLOSING.to_owned()], 1, true), "{context}");
            }
            Kind::RefusedClose => {
                let told = entry.reason.as_deref().is_some_and(|reason| reason.contains("could not be corrected"));
                let says = if told { CLOSING } else { NOT_CLOSING };
                assert_eq!((sent, comments, closes), (false, vec![says.to_owned()], 0), "{context}");
            }
            Kind::Close => {
                assert_eq!((closes, closed), (0, false), "{context}");
                assert!(comments.is_empty() || comments == [NOT_CLOSING], "{context}: {comments:?}");
            }
        }
        if sent && matches!(self.kind, Kind::Comment | Kind::Close) {
            let id = receipt(entry).comment.expect("a comment").id.0;
            let there = self.setting.emulator.world().comments_by(REPO, plain(self.item), OWN)[0].id;
            assert_eq!(u64::try_from(id).expect("positive"), there, "{context}");
        }
    }
}

/// Kills a write at each of its points in turn, under each fault on its `nth` write, and starts again.
async fn survives(database: TestDatabase, kind: Kind, nth: usize) {
    let mut setting = Setting::new(database).await;
    for trouble in TROUBLES {
        // A lagging emulator keeps copies of the whole world, which must stay small.
        setting.renew_world().await;
        for points in 0..MOST_POINTS {
            let context = format!("{kind:?}, {trouble:?} on write {nth}, killed after {points} points");
            let case = Case::new(&setting, kind).await;
            let outbox = setting.outbox().await;
            let entry = outbox
                .enqueue(setting.repo.id, case.item, &WriteKey::other(&case.key), case.write())
                .await
                .expect("stored");
            if kind == Kind::RefusedClose {
                setting.emulator.fault(Fault::on("PATCH", "/repos/*/*/issues/*").always().answer(422));
            }
            for fault in trouble.faults(&kind.writes(), &kind.reads(trouble), nth) {
                setting.emulator.fault(fault);
            }
            let whole = setting.publish_until(&entry, points, &Unconditional).await;
            let survived = whole.is_none();
            let entry = setting.see_through(&entry, &Unconditional).await;
            case.check(&entry, &context);
            if kind != Kind::RefusedClose && !matches!(trouble, Trouble::Refuse(_)) {
                assert_eq!(entry.state, OutboxState::Sent, "{context}: lost");
            }
            setting.emulator.forget_requests();
            if !survived {
                break;
            }
            assert!(points + 1 < MOST_POINTS, "{context}: it does not end");
        }
    }
}

// The steps are the same on both engines: one write of each shape runs completely on PostgreSQL too.
on_both_engines! {
    async fn comments_survive(database: TestDatabase) {
        survives(database, Kind::Comment, 1).await;
    }

    async fn closes_survive(database: TestDatabase) {
        survives(database, Kind::Close, 2).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn edits_survive() {
    survives(TestDatabase::sqlite(), Kind::Edit, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deletions_survive() {
    survives(TestDatabase::sqlite(), Kind::Delete, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn labels_survive() {
    survives(TestDatabase::sqlite(), Kind::Label, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn removed_labels_survive() {
    survives(TestDatabase::sqlite(), Kind::Unlabel, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn comments_of_closes_survive() {
    survives(TestDatabase::sqlite(), Kind::Close, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn corrections_survive() {
    survives(TestDatabase::sqlite(), Kind::RefusedClose, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reopenings_survive() {
    survives(TestDatabase::sqlite(), Kind::Reopen, 1).await;
}
