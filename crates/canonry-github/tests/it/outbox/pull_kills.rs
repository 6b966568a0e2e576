//! Tests every kind of write to a pull request, under every fault, killed at every point and started again.

use canonry_domain::{GithubId, ItemNumber, WriteKey};
use canonry_github::outbox::{CheckRunWrite, CheckState, ReactTo, ReactionContent, Unconditional, Write};
use canonry_store::{OutboxEntry, OutboxState};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{Fault, Recorded};
use canonry_testkit::on_both_engines;

use crate::outbox::kills::{MOST_POINTS, TROUBLES, Trouble};
use crate::outbox::setting::{HEAD, REPO, Setting, id, plain, plain_id, receipt, review, text_of};

const KEYS: [&str; 3] = ["one", "two", "three"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Review,
    NewCheckRun,
    ConcludedCheckRun,
    React,
    Reply,
    Edit,
    Resolve,
}

impl Kind {
    fn writes(self) -> Fault {
        match self {
            Self::Resolve => Fault::on("POST", "/graphql").when(says("mutation")),
            _ => Fault::on("*", "/repos/**").when(Recorded::is_write),
        }
    }

    /// The reads that show the result.
    fn reads(self) -> Fault {
        match self {
            Self::Review => Fault::on("GET", "/repos/*/*/pulls/*/reviews/**"),
            Self::NewCheckRun | Self::ConcludedCheckRun => Fault::on("GET", "/**/check-runs"),
            Self::React => Fault::on("GET", "/**/reactions"),
            Self::Reply => Fault::on("GET", "/repos/*/*/pulls/*/comments"),
            Self::Edit => Fault::on("GET", "/repos/*/*/pulls/comments/*"),
            Self::Resolve => Fault::on("POST", "/graphql").when(says("query")),
        }
    }
}

fn says(word: &'static str) -> impl Fn(&Recorded) -> bool + Send + Sync + 'static {
    move |request| {
        let query = request.body.as_ref().and_then(|body| body["query"].as_str());
        query.is_some_and(|query| query.trim_start().starts_with(word))
    }
}

struct Case<'a> {
    setting: &'a Setting,
    kind: Kind,
    pull: ItemNumber,
    key: String,
    comment: GithubId,
}

impl<'a> Case<'a> {
    /// A new pull request in the state that the kind requires.
    async fn new(setting: &'a Setting, kind: Kind) -> Self {
        setting.emulator.clear_faults();
        let (pull, comment) = match kind {
            Kind::Edit | Kind::Resolve => {
                let (pull, review) = setting.reviewed(&["fixed"]).await;
                (pull, review.comments[0].comment)
            }
            Kind::React => {
                let pull = setting.open_pull();
                let said = setting.emulator.world().comment(REPO, plain(pull), "ann", "@canonry review");
                (pull, id(said))
            }
            _ => {
                let pull = setting.open_pull();
                let said = setting.emulator.world().comment_on_line(REPO, plain(pull), "ann", "src/sync.rs", 7, "Why?");
                (pull, id(said))
            }
        };
        let case = Self { setting, kind, pull, key: setting.fresh_key(), comment };
        if kind == Kind::ConcludedCheckRun {
            let begun = Write::CheckRun(case.check_run(CheckState::InProgress));
            let entry = setting.publish(pull, &setting.fresh_key(), begun, &Unconditional).await;
            assert_eq!(entry.state, OutboxState::Sent, "{entry:?}");
        }
        case
    }

    fn check_run(&self, state: CheckState) -> CheckRunWrite {
        CheckRunWrite {
            head: HEAD.to_owned(),
            external_id: self.key.clone(),
            state,
            title: "Reviewed".to_owned(),
            summary: "Nothing stands.".to_owned(),
            details_url: None,
        }
    }

    fn write(&self) -> Write {
        match self.kind {
            Kind::Review => review(&KEYS),
            Kind::NewCheckRun | Kind::ConcludedCheckRun => Write::CheckRun(self.check_run(CheckState::Success)),
            Kind::React => Write::React { on: ReactTo::IssueComment(self.comment), content: ReactionContent::Eyes },
            Kind::Reply => Write::Reply { to: self.comment, body: "Because.".to_owned() },
            Kind::Edit => Write::EditReviewComment { comment: self.comment, body: "Fixed.".to_owned() },
            Kind::Resolve => Write::ResolveThread { comment: self.comment },
        }
    }

    /// Checks that the entry agrees with what GitHub shows.
    fn check(&self, entry: &OutboxEntry, context: &str) {
        let sent = match entry.state {
            OutboxState::Sent => true,
            OutboxState::Refused => false,
            other => panic!("{context}: {other:?} {entry:?}"),
        };
        let count = usize::from(sent);
        match self.kind {
            Kind::Review => self.check_review(entry, sent, context),
            Kind::NewCheckRun | Kind::ConcludedCheckRun => {
                let world = self.setting.emulator.world();
                let repo = world.repos.iter().find(|repo| repo.full_name() == REPO).expect("the repository");
                let runs = repo.check_runs.iter().filter(|run| run.external_id == self.key);
                let concluded: Vec<Option<&str>> = runs.map(|run| run.conclusion.as_deref()).collect();
                match (self.kind, sent) {
                    (_, true) => assert_eq!(concluded, [Some("success")], "{context}"),
                    (Kind::NewCheckRun, false) => assert!(concluded.is_empty(), "{context}: {concluded:?}"),
                    (_, false) => assert_eq!(concluded, [None], "{context}"),
                }
            }
            Kind::React => {
                let world = self.setting.emulator.world();
                let comments = world.comments(REPO, plain(self.pull));
                assert_eq!(comments[0].reactions.len(), count, "{context}");
            }
            Kind::Reply => {
                let world = self.setting.emulator.world();
                let replies = world.review_comments_by(REPO, plain(self.pull), self.setting.own);
                let texts: Vec<String> = replies.iter().map(|reply| text_of(&reply.body)).collect();
                assert_eq!(texts, vec!["Because.".to_owned(); count], "{context}");
                if sent {
                    assert_eq!(replies[0].in_reply_to, Some(plain_id(self.comment)), "{context}");
                    assert_eq!(receipt(entry).comment.expect("a comment").id, id(replies[0].id), "{context}");
                }
            }
            Kind::Edit => {
                let world = self.setting.emulator.world();
                let comments = world.review_comments_by(REPO, plain(self.pull), self.setting.own);
                assert_eq!(text_of(&comments[0].body), if sent { "Fixed." } else { "About fixed." }, "{context}");
            }
            Kind::Resolve => {
                let world = self.setting.emulator.world();
                let resolved = world.pull(REPO, plain(self.pull)).threads[0].resolved_by.is_some();
                assert_eq!(resolved, sent, "{context}");
            }
        }
    }

    fn check_review(&self, entry: &OutboxEntry, sent: bool, context: &str) {
        let (shown, drafts) = self.setting.own_reviews(self.pull);
        assert_eq!(shown.len(), usize::from(sent), "{context}");
        assert!(drafts <= 1, "{context}: {drafts} drafts");
        if !sent {
            return;
        }
        assert_eq!(text_of(&shown[0].body), "Two remarks.", "{context}");
        let written = receipt(entry).review.expect("a review");
        assert_eq!(written.id.map(plain_id), Some(shown[0].id), "{context}");
        let world = self.setting.emulator.world();
        let comments = world.review_comments_by(REPO, plain(self.pull), self.setting.own);
        let comments: Vec<_> = comments.into_iter().filter(|comment| comment.review == shown[0].id).collect();
        assert_eq!(comments.len(), written.comments.len(), "{context}");
        for inline in &written.comments {
            let comment = comments.iter().find(|comment| id(comment.id) == inline.comment).expect("the comment");
            assert_eq!(text_of(&comment.body), format!("About {}.", inline.key), "{context}");
        }
        let told: Vec<&str> = written.comments.iter().map(|inline| inline.key.as_str()).collect();
        let left_out = written.left_out.iter().map(String::as_str);
        let mut all: Vec<&str> = told.into_iter().chain(left_out).collect();
        all.sort_by_key(|key| KEYS.iter().position(|known| known == key));
        assert_eq!(all, KEYS, "{context}: lost a comment");
    }
}

/// Kills a write at each of its points in turn, under each fault on its `nth` write, and starts again.
async fn survives(mut setting: Setting, kind: Kind, nth: usize) {
    for trouble in TROUBLES {
        // A lagging emulator keeps copies of the whole world, which must stay small.
        setting.renew_world().await;
        for points in 0..MOST_POINTS {
            let context = format!("{kind:?}, {trouble:?} on write {nth}, killed after {points} points");
            let case = Case::new(&setting, kind).await;
            let outbox = setting.outbox().await;
            let entry = outbox
                .enqueue(setting.repo.id, case.pull, &WriteKey::other(&case.key), case.write())
                .await
                .expect("stored");
            for fault in trouble.faults(&kind.writes(), &kind.reads(), nth) {
                setting.emulator.fault(fault);
            }
            let whole = setting.publish_until(&entry, points, &Unconditional).await;
            let survived = whole.is_none();
            let entry = setting.see_through(&entry, &Unconditional).await;
            case.check(&entry, &context);
            if !matches!(trouble, Trouble::Refuse(_)) {
                assert_eq!(entry.state, OutboxState::Sent, "{context}: lost {entry:?}");
                let left_out = receipt(&entry).review.map(|review| review.left_out).unwrap_or_default();
                assert!(left_out.is_empty(), "{context}: {left_out:?}");
            }
            setting.emulator.forget_requests();
            if !survived {
                break;
            }
            assert!(points + 1 < MOST_POINTS, "{context}: it does not end");
        }
    }
}

// On PostgreSQL, reviews represent the other kinds, as comments and closes do.
on_both_engines! {
    async fn reviews_survive(database: TestDatabase) {
        survives(Setting::new(database).await, Kind::Review, 2).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drafts_of_reviews_survive() {
    survives(Setting::new(TestDatabase::sqlite()).await, Kind::Review, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_check_runs_survive() {
    survives(Setting::of_app(TestDatabase::sqlite()).await, Kind::NewCheckRun, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concluded_check_runs_survive() {
    survives(Setting::of_app(TestDatabase::sqlite()).await, Kind::ConcludedCheckRun, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reactions_survive() {
    survives(Setting::new(TestDatabase::sqlite()).await, Kind::React, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replies_survive() {
    survives(Setting::new(TestDatabase::sqlite()).await, Kind::Reply, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn edits_on_the_diff_survive() {
    survives(Setting::new(TestDatabase::sqlite()).await, Kind::Edit, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resolved_conversations_survive() {
    survives(Setting::new(TestDatabase::sqlite()).await, Kind::Resolve, 1).await;
}
