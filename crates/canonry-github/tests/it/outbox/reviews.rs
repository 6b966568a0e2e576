//! Tests reviews: one batch, without the comments that GitHub refuses, and never twice.

use canonry_domain::{GithubId, WriteKey, WriteOrigin};
use canonry_github::outbox::{Act, Outbox, Receipt, Recheck, RecheckError, ReviewWrite, Ruling, Unconditional, Write};
use canonry_github::{Auth, ClientOptions, Clock, GitHub, Secret};
use canonry_store::{OutboxEntry, OutboxState, Store};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{Age, Emulator, Fault, Late, ReviewComment, ReviewState};
use canonry_testkit::on_both_engines;
use futures_util::future::{BoxFuture, ready};
use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::outbox::setting::{HEAD, LINES, OWN, REPO, Setting, TOKEN, id, inline, plain, receipt, review, text_of};
use canonry_testworld::WorldClock;

/// A review with `count` comments; those with the numbers in `off` are off the diff.
fn many(count: u32, off: &[u32]) -> Write {
    let comments = (1..=count)
        .map(|index| {
            let line = if off.contains(&index) { LINES + 100 } else { (index - 1) % LINES + 1 };
            inline(&format!("k{index}"), line)
        })
        .collect();
    Write::Review(ReviewWrite { commit: HEAD.to_owned(), body: "Thirty remarks.".to_owned(), comments, said: vec![] })
}

fn written(entry: &OutboxEntry) -> canonry_github::outbox::WrittenReview {
    assert_eq!(entry.state, OutboxState::Sent, "{entry:?}");
    receipt(entry).review.expect("a review")
}

/// Runs a function right before a review becomes visible.
struct BeforeShowing<F>(F);

impl<F: Fn() -> Ruling + Send + Sync> Recheck for BeforeShowing<F> {
    fn recheck<'a>(&'a self, _: &'a OutboxEntry, act: Act) -> BoxFuture<'a, Result<Ruling, RecheckError>> {
        Box::pin(ready(Ok(if act == Act::Set { (self.0)() } else { Ruling::Proceed })))
    }
}

/// A clock that every read of the time advances, as slow answers do.
struct SlowClock {
    clock: WorldClock,
    asked: AtomicI64,
}

impl Clock for SlowClock {
    fn now(&self) -> Timestamp {
        self.clock.now() + SignedDuration::from_secs(self.asked.fetch_add(3, Ordering::SeqCst))
    }

    fn sleep_until(&self, until: Timestamp) -> BoxFuture<'_, ()> {
        self.clock.sleep_until(until)
    }
}

/// What the token's owner writes on the pull request while a draft of ours exists.
const WORDS: &str = "Not finished yet: is this";

fn change_drafts(emulator: &Emulator, pull: u64, change: impl FnOnce(&mut Vec<ReviewComment>)) {
    let mut world = emulator.world();
    let repo = world.repos.iter_mut().find(|repo| repo.full_name() == REPO).expect("the repository");
    let pull = repo.issues.get_mut(&pull).and_then(|issue| issue.pull.as_mut()).expect("a pull request");
    change(&mut pull.review_comments);
}

fn write_in_draft(emulator: &Emulator, pull: u64) {
    change_drafts(emulator, pull, |comments| {
        if comments.iter().all(|comment| comment.body != WORDS) {
            let ours = comments.last().expect("a comment of ours").clone();
            comments.push(ReviewComment { id: ours.id + 1_000_000, body: WORDS.to_owned(), ..ours });
        }
    });
}

fn words_in_draft(setting: &Setting, pull: u64) -> usize {
    let world = setting.emulator.world();
    world.review_comments_by(REPO, pull, OWN).iter().filter(|comment| comment.body == WORDS).count()
}

fn forbid_reviews(emulator: &Emulator) {
    let mut world = emulator.world();
    world.tokens.clear();
    for installation in &mut world.installations {
        installation.permissions.insert("pull_requests".to_owned(), "read".to_owned());
    }
}

on_both_engines! {
    async fn a_review_is_one_batch_that_neither_approves_nor_blocks(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let pull = setting.open_pull();
        let mut write = review(&["one", "two"]);
        if let Write::Review(review) = &mut write {
            (review.comments[1].start_line, review.comments[1].line) = (Some(4), 6);
        }
        let entry = setting.publish(pull, "post", write.clone(), &Unconditional).await;
        let told = written(&entry);
        let (shown, drafts) = setting.own_reviews(pull);
        assert_eq!((shown.len(), drafts, text_of(&shown[0].body).as_str()), (1, 0, "Two remarks."));
        assert_eq!((id(shown[0].id), shown[0].commit_id.as_str()), (told.id.expect("posted"), HEAD));
        {
            let world = setting.emulator.world();
            let comments = world.review_comments_by(REPO, plain(pull), OWN);
            let places: Vec<_> = comments.iter().map(|comment| (text_of(&comment.body), comment.start_line, comment.line)).collect();
            assert_eq!(places, [("About one.".to_owned(), None, Some(1)), ("About two.".to_owned(), Some(4), Some(6))]);
            let ids: Vec<_> = told.comments.iter().map(|inline| (inline.key.as_str(), inline.comment)).collect();
            assert_eq!(ids, [("one", id(comments[0].id)), ("two", id(comments[1].id))]);
        }
        let writes = setting.emulator.writes();
        let events: Vec<_> = writes.iter().map(|write| write.body.as_ref().and_then(|body| body["event"].as_str())).collect();
        assert_eq!(events, [None, Some("COMMENT")]);
        let again = setting.publish(pull, "post", write, &Unconditional).await;
        assert_eq!((again.answer, setting.emulator.writes().len()), (entry.answer, 2));
    }

    async fn one_comment_of_thirty_that_github_does_not_take_is_left_out(database: TestDatabase) {
        let setting = Setting::new(database).await;
        for off in [1, 17, 30] {
            let pull = setting.open_pull();
            setting.emulator.forget_requests();
            let entry = setting.publish(pull, &format!("off {off}"), many(30, &[off]), &Unconditional).await;
            let told = written(&entry);
            assert_eq!((told.comments.len(), told.left_out), (29, vec![format!("k{off}")]));
            let (shown, drafts) = setting.own_reviews(pull);
            assert_eq!((shown.len(), drafts), (1, 0));
            assert_eq!(setting.emulator.world().review_comments_by(REPO, plain(pull), OWN).len(), 29);
            let writes = setting.emulator.writes().len();
            assert!(writes <= 25, "{writes} writes");
        }
        let pull = setting.open_pull();
        let entry = setting.publish(pull, "two", many(30, &[3, 22]), &Unconditional).await;
        assert_eq!(written(&entry).left_out, ["k3", "k22"]);
    }

    async fn a_review_none_of_whose_comments_github_takes_is_posted_without_them(database: TestDatabase) {
        let setting = Setting::new(database).await;
        for (key, count) in [("all", 30), ("single", 1)] {
            let pull = setting.open_pull();
            let all: Vec<u32> = (1..=count).collect();
            setting.emulator.forget_requests();
            let told = written(&setting.publish(pull, key, many(count, &all), &Unconditional).await);
            assert_eq!((told.id.is_some(), told.comments.len(), told.left_out.len()), (true, 0, all.len()), "{key}");
            let (shown, drafts) = setting.own_reviews(pull);
            assert_eq!((shown.len(), drafts), (1, 0), "{key}");
            assert!(setting.emulator.writes().len() <= 50, "{}", setting.emulator.writes().len());
        }
    }

    async fn what_is_known_to_be_taken_is_posted_where_the_search_ends(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let pull = setting.open_pull();
        let off = [10, 90, 150, 230, 290];
        let told = written(&setting.publish(pull, "many", many(300, &off), &Unconditional).await);
        assert!(told.comments.len() >= 100, "{} of 300", told.comments.len());
        assert_eq!(told.comments.len() + told.left_out.len(), 300);
        assert!(off.iter().all(|index| told.left_out.contains(&format!("k{index}"))), "{:?}", told.left_out);
        assert_eq!(setting.own_reviews(pull).1, 0);
        // An answer takes ten seconds: the search ends in time, with fewer comments.
        let slow = SlowClock { clock: WorldClock(Arc::clone(&setting.emulator)), asked: AtomicI64::new(0) };
        let options = ClientOptions {
            api: setting.emulator.url().parse().expect("a URL"),
            clock: Arc::new(slow),
            ..ClientOptions::new(Auth::Token(Secret::new(TOKEN)))
        };
        let github = GitHub::new(options).expect("a client");
        let outbox = Outbox::open(setting.store.clone(), github, [7; 32]).await.expect("an outbox");
        let pull = setting.open_pull();
        setting.emulator.forget_requests();
        let entry = outbox.enqueue(setting.repo.id, pull, &WriteKey::other("slow"), many(30, &[17])).await.expect("stored");
        let told = written(&outbox.publish(entry.id, &Unconditional).await.expect("worked on"));
        assert!((15..29).contains(&told.comments.len()), "{} of 30", told.comments.len());
        assert!(setting.emulator.writes().len() < 15, "{}", setting.emulator.writes().len());
    }

    async fn drafts_that_are_only_tried_count_in_the_pace(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let begin = setting.emulator.world().now;
        let mut made = 0;
        for round in 0..8 {
            let pull = setting.open_pull();
            setting.emulator.forget_requests();
            written(&setting.publish(pull, &format!("round {round}"), many(30, &[3, 22]), &Unconditional).await);
            made += setting.emulator.writes().iter().filter(|write| write.method == "POST").count();
        }
        let lasted = setting.emulator.world().now.duration_since(begin);
        assert!(made > 90 && lasted >= SignedDuration::from_secs(59), "{made} in {lasted:?}");
    }

    async fn a_review_that_github_does_not_take_at_all_is_refused_in_its_words(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let pull = setting.open_pull();
        let Write::Review(mut unknown) = many(3, &[]) else { panic!("a review") };
        unknown.commit = "2".repeat(40);
        let entry = setting.publish(pull, "unknown", Write::Review(unknown), &Unconditional).await;
        assert_eq!(entry.state, OutboxState::Refused);
        assert!(entry.reason.as_deref().is_some_and(|reason| reason.contains("Commit is not part")), "{entry:?}");
        assert_eq!((setting.own_reviews(pull).1, setting.emulator.writes().len()), (0, 2));
    }

    async fn permission_that_is_lost_in_the_middle_leaves_nothing_to_see(database: TestDatabase) {
        let setting = Setting::of_app(database).await;
        let pull = setting.open_pull();
        let emulator = Arc::clone(&setting.emulator);
        let lost = BeforeShowing(move || {
            forbid_reviews(&emulator);
            Ruling::Proceed
        });
        let entry = setting.publish(pull, "post", review(&["one"]), &lost).await;
        assert_eq!(entry.state, OutboxState::Refused);
        let reason = entry.reason.expect("a reason");
        assert!(reason.contains("403") && reason.contains("Resource not accessible by integration"), "{reason}");
        let (shown, drafts) = setting.own_reviews(pull);
        assert_eq!((shown.len(), drafts), (0, 1), "nobody sees the draft, and it cannot be deleted");
    }

    async fn what_is_superseded_before_it_is_shown_is_taken_away(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let pull = setting.open_pull();
        let refuse = BeforeShowing(|| Ruling::Refuse { reason: "superseded".to_owned() });
        let entry = setting.publish(pull, "post", review(&["one"]), &refuse).await;
        assert_eq!((entry.state, entry.reason.as_deref()), (OutboxState::Refused, Some("superseded")));
        let (shown, drafts) = setting.own_reviews(pull);
        assert_eq!((shown.len(), drafts), (0, 0));
    }

    async fn drafts_left_behind_are_taken_away_but_not_a_persons(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let pull = setting.open_pull();
        let outbox = setting.outbox().await;
        let first = outbox.enqueue(setting.repo.id, pull, &WriteKey::other("first"), review(&["one"])).await.expect("stored");
        // Killed when the draft was created and nothing of it was stored.
        assert!(setting.publish_until(&first, 4, &Unconditional).await.is_none());
        assert_eq!(setting.own_reviews(pull).1, 1);
        let entry = outbox.publish(first.id, &Unconditional).await.expect("worked on");
        assert_eq!(written(&entry).comments.len(), 1);
        assert_eq!((setting.own_reviews(pull).0.len(), setting.own_reviews(pull).1), (1, 0));

        // The token's owner writes a review of their own.
        setting.emulator.world().review(REPO, plain(pull), OWN, ReviewState::Pending, "My notes");
        let entry = setting.publish(pull, "second", review(&["two"]), &Unconditional).await;
        assert_ne!(entry.state, OutboxState::Sent);
        assert!(entry.reason.as_deref().is_some_and(|reason| reason.contains("a draft of another review")), "{entry:?}");
        let kept = setting.emulator.world().reviews_by(REPO, plain(pull), OWN).iter().any(|review| review.body == "My notes");
        assert!(kept && setting.own_reviews(pull).0.len() == 1);
    }

    async fn a_persons_words_in_our_draft_are_neither_shown_nor_deleted(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let pull = setting.open_pull();
        let emulator = Arc::clone(&setting.emulator);
        let writes = BeforeShowing(move || {
            write_in_draft(&emulator, plain(pull));
            Ruling::Proceed
        });
        let entry = setting.publish(pull, "post", review(&["one"]), &writes).await;
        assert_eq!(entry.state, OutboxState::Pending, "{entry:?}");
        assert!(entry.reason.as_deref().is_some_and(|reason| reason.contains("somebody has written in the draft")), "{entry:?}");
        assert_eq!((setting.own_reviews(pull).0.len(), words_in_draft(&setting, plain(pull))), (0, 1));
        // Superseded meanwhile: the person's comment still stays.
        let refuse = BeforeShowing(|| Ruling::Refuse { reason: "superseded".to_owned() });
        setting.emulator.world().advance(3600);
        let entry = setting.publish(pull, "post", review(&["one"]), &refuse).await;
        assert_eq!((entry.state, entry.reason.as_deref()), (OutboxState::Refused, Some("superseded")));
        assert_eq!((setting.own_reviews(pull).0.len(), words_in_draft(&setting, plain(pull))), (0, 1));
        // The next review does not delete it either; it continues when the person is done.
        let entry = setting.publish(pull, "next", review(&["two"]), &Unconditional).await;
        assert_eq!((entry.state, words_in_draft(&setting, plain(pull))), (OutboxState::Pending, 1));
        change_drafts(&setting.emulator, plain(pull), |comments| comments.retain(|comment| comment.body != WORDS));
        setting.emulator.world().advance(3600);
        assert_eq!(setting.publish(pull, "next", review(&["two"]), &Unconditional).await.state, OutboxState::Sent);
        assert_eq!((setting.own_reviews(pull).0.len(), setting.own_reviews(pull).1), (1, 0));
    }

    async fn no_draft_waits_for_anything(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let pull = setting.open_pull();
        let until = setting.emulator.world().now + SignedDuration::from_hours(1);
        let wait = BeforeShowing(move || Ruling::Wait { until, reason: "paused".to_owned() });
        let entry = setting.publish(pull, "post", review(&["one"]), &wait).await;
        assert_eq!((entry.state, entry.not_before), (OutboxState::Pending, until));
        assert_eq!((setting.own_reviews(pull).0.len(), setting.own_reviews(pull).1), (0, 0));
        setting.emulator.world().now = until;
        assert_eq!(setting.publish(pull, "post", review(&["one"]), &Unconditional).await.state, OutboxState::Sent);
        assert_eq!((setting.own_reviews(pull).0.len(), setting.own_reviews(pull).1), (1, 0));
        // The token is not accepted for a while after the draft was created.
        let pull = setting.open_pull();
        setting.emulator.forget_requests();
        setting.emulator.fault(Fault::on("POST", "/repos/*/*/pulls/*/reviews/*/events").answer(401));
        assert_eq!(setting.publish(pull, "token", review(&["one"]), &Unconditional).await.state, OutboxState::Sent);
        let writes: Vec<String> = setting.emulator.writes().into_iter().map(|write| write.method).collect();
        assert_eq!(writes, ["POST", "POST", "DELETE", "POST", "POST"]);
    }

    async fn an_entry_that_ends_leaves_no_draft(database: TestDatabase) {
        struct ThenClosed(AtomicI64);
        impl Recheck for ThenClosed {
            fn recheck<'a>(&'a self, _: &'a OutboxEntry, _: Act) -> BoxFuture<'a, Result<Ruling, RecheckError>> {
                let closed = self.0.fetch_add(1, Ordering::SeqCst) > 0;
                Box::pin(ready(Ok(if closed { Ruling::Refuse { reason: "closed".to_owned() } } else { Ruling::Proceed })))
            }
        }
        let setting = Setting::new(database).await;
        let create = || Fault::on("POST", "/repos/*/*/pulls/*/reviews");
        for (key, fault) in [("lost", create().apply_and_drop()), ("failed", create().apply_and_answer(502))] {
            let pull = setting.open_pull();
            setting.emulator.fault(fault);
            let entry = setting.publish(pull, key, review(&["one"]), &ThenClosed(AtomicI64::new(0))).await;
            assert_eq!((entry.state, entry.reason.as_deref()), (OutboxState::Refused, Some("closed")));
            assert_eq!((setting.own_reviews(pull).0.len(), setting.own_reviews(pull).1), (0, 0), "{key}");
        }
    }

    async fn whoever_waits_for_an_entry_waits_no_longer_than_allowed(database: TestDatabase) {
        struct Never(Arc<Emulator>);
        impl Recheck for Never {
            fn recheck<'a>(&'a self, _: &'a OutboxEntry, _: Act) -> BoxFuture<'a, Result<Ruling, RecheckError>> {
                let until = self.0.world().now + SignedDuration::from_mins(1);
                Box::pin(ready(Ok(Ruling::Wait { until, reason: "not yet".to_owned() })))
            }
        }
        let setting = Setting::new(database).await;
        let pull = setting.open_pull();
        let begin = setting.emulator.world().now;
        let never = Never(Arc::clone(&setting.emulator));
        let outbox = setting.outbox().await;
        let post = WriteKey::on_github(WriteOrigin::ReviewPost, GithubId(1), pull, 3);
        outbox.enqueue(setting.repo.id, pull, &post, review(&["one"])).await.expect("stored");
        let later = outbox.enqueue(setting.repo.id, pull, &WriteKey::other("close"), Write::Reopen).await.expect("stored");
        let published = tokio::time::timeout(std::time::Duration::from_secs(60), outbox.publish(later.id, &never)).await;
        assert_eq!(published.expect("it ends").expect("worked on").state, OutboxState::Pending);
        let lasted = setting.emulator.world().now.duration_since(begin);
        assert!(lasted <= SignedDuration::from_mins(10), "{lasted:?}");
    }

    async fn whatever_lags_or_comes_late_it_is_one_review(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let create = || Fault::on("POST", "/repos/*/*/pulls/*/reviews");
        let submit = || Fault::on("POST", "/repos/*/*/pulls/*/reviews/*/events");
        let reads = || Fault::on("GET", "/repos/*/*/pulls/*/reviews/**");
        let stale = |times: usize| reads().times(times).stale(Age::Changes(2));
        let cases = vec![
            vec![submit().apply_and_drop(), stale(1)],
            vec![submit().apply_and_drop(), stale(2)],
            vec![submit().apply_and_drop(), stale(6)],
            vec![submit().times(3).apply_and_answer(502), stale(4)],
            vec![create().apply_and_drop(), submit().drop_and_apply_late(Late::AfterRequests(4)), stale(3)],
            vec![create().drop_and_apply_late(Late::AfterRequests(2)), submit().apply_and_drop()],
            vec![create().drop_and_apply_late(Late::AfterRequests(1)), stale(1)],
            vec![create().times(2).apply_and_answer(500), submit().truncate()],
            vec![create().truncate(), submit().answer(404)],
            vec![Fault::on("DELETE", "/repos/*/*/pulls/*/reviews/*").times(2).apply_and_drop(), create().apply_and_drop()],
        ];
        for (index, faults) in cases.into_iter().enumerate() {
            let pull = setting.open_pull();
            // A replica that lags by two changes still knows the pull request.
            for _ in 0..2 {
                setting.emulator.world().comment(REPO, plain(pull), "ann", "Please have a look.");
            }
            for fault in faults {
                setting.emulator.fault(fault);
            }
            let entry = setting.publish(pull, &format!("case {index}"), review(&["one", "two"]), &Unconditional).await;
            setting.emulator.clear_faults();
            let told = written(&entry);
            let (shown, _) = setting.own_reviews(pull);
            assert_eq!((shown.len(), told.comments.len(), told.left_out.len()), (1, 2, 0), "case {index}");
            assert_eq!(told.id, Some(id(shown[0].id)), "case {index}");
        }
    }

    async fn a_list_that_lags_does_not_lose_comments(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let pull = setting.open_pull();
        setting.emulator.fault(Fault::on("GET", "/repos/*/*/pulls/*/reviews/*/comments").times(3).answer_with(
            canonry_testkit::github::Answer::ok(serde_json::json!([])),
        ));
        let entry = setting.publish(pull, "post", review(&["one", "two"]), &Unconditional).await;
        let told = written(&entry);
        assert_eq!((told.comments.len(), told.left_out.len()), (2, 0));
        // A person deletes a comment before it was read: the entry does not wait for ever.
        let pull = setting.open_pull();
        setting.emulator.fault(Fault::on("GET", "/repos/*/*/pulls/*/reviews/*/comments").always().answer_with(
            canonry_testkit::github::Answer::ok(serde_json::json!([])),
        ));
        let told = written(&setting.publish(pull, "deleted", review(&["one"]), &Unconditional).await);
        assert_eq!((told.comments.len(), told.left_out), (0, vec!["one".to_owned()]));
    }

    async fn a_store_that_was_set_back_finds_its_review_on_the_third_page(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let pull = setting.open_pull();
        for index in 0..230 {
            setting.emulator.world().review(REPO, plain(pull), "ann", ReviewState::Commented, &format!("Looking {index}"));
        }
        let first = written(&setting.publish(pull, "post", review(&["one", "two"]), &Unconditional).await);
        // A copy from before the review, with the secret that signs.
        let copy = TestDatabase::sqlite();
        let now = setting.emulator.world().now;
        let store = Store::open(&copy.url().parse().expect("a URL"), now).await.expect("opens");
        let repo = store.repos().ensure(&REPO.parse().expect("a name"), now).await.expect("stored");
        let options = ClientOptions {
            api: setting.emulator.url().parse().expect("a URL"),
            clock: Arc::new(WorldClock(Arc::clone(&setting.emulator))),
            ..ClientOptions::new(Auth::Token(Secret::new(TOKEN)))
        };
        let outbox = Outbox::open(store, GitHub::new(options).expect("a client"), [7; 32]).await.expect("an outbox");
        setting.emulator.forget_requests();
        let entry = outbox.enqueue(repo.id, pull, &WriteKey::other("post"), review(&["one", "two"])).await.expect("stored");
        let entry = outbox.publish(entry.id, &Unconditional).await.expect("worked on");
        assert_eq!(receipt(&entry), Receipt { already: true, review: Some(first), ..Receipt::default() });
        assert!(setting.emulator.writes().is_empty());
    }

    async fn a_wait_costs_no_try_and_holds_back_no_answer_to_a_person(database: TestDatabase) {
        struct Paused(Timestamp);
        impl Recheck for Paused {
            fn recheck<'a>(&'a self, entry: &'a OutboxEntry, _: Act) -> BoxFuture<'a, Result<Ruling, RecheckError>> {
                let exempt = entry.source.origin == WriteOrigin::MentionAnswer;
                let wait = Ruling::Wait { until: self.0, reason: "paused by @ann".to_owned() };
                Box::pin(ready(Ok(if exempt { Ruling::Proceed } else { wait })))
            }
        }
        let setting = Setting::new(database).await;
        let pull = setting.open_pull();
        let post = WriteKey::on_github(WriteOrigin::ReviewPost, GithubId(1), pull, 3);
        for _ in 0..20 {
            let until = setting.emulator.world().now + SignedDuration::from_hours(1);
            let entry = setting.publish_as(pull, &post, review(&["one"]), &Paused(until)).await;
            assert_eq!((entry.state, entry.reason.as_deref(), entry.not_before), (OutboxState::Pending, Some("paused by @ann"), until));
            setting.emulator.world().now = until;
        }
        assert!(setting.emulator.writes().is_empty());
        let until = setting.emulator.world().now + SignedDuration::from_hours(1);
        setting.publish_as(pull, &post, review(&["one"]), &Paused(until)).await;
        let answer = Write::Comment { body: "Resumed.".to_owned() };
        let key = WriteKey::on_github(WriteOrigin::MentionAnswer, GithubId(1), pull, "issue/9");
        let entry = setting.publish_as(pull, &key, answer, &Paused(until)).await;
        assert_eq!((entry.state, setting.own_comments(pull)), (OutboxState::Sent, vec!["Resumed.".to_owned()]));
        setting.emulator.world().now = until;
        let outbox = setting.outbox().await;
        assert!(outbox.publish_unattended(&Unconditional).await.expect("worked on"));
        assert_eq!(setting.own_reviews(pull).0.len(), 1);
    }
}
