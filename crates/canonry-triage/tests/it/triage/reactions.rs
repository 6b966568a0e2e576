//! Reactions to triage comments: polled, from people only, and gone when they are removed.

use canonry_domain::{ItemNumber, LessonKind, OutcomeCounts};
use canonry_store::RepoAccess;
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{Answer, Fault, NewIssue, Pull};
use canonry_testkit::on_both_engines;
use canonry_triage::{ReactionsReport, poll_reactions};

use crate::triage::setting::{ALPHA, OWN, REPO, Setting, yes};

const REACTIONS: &str = "/repos/*/*/issues/comments/*/reactions";

async fn poll(setting: &Setting) -> ReactionsReport {
    let own = OWN.parse().expect("a login");
    poll_reactions(&setting.store, &setting.github(), &own, setting.now()).await.expect("polled")
}

/// An issue with our comment, and these reactions to it.
async fn reacted(setting: &Setting, cosine: f64, reactions: &[(&str, &str)]) -> ItemNumber {
    let item = setting.report(ALPHA, cosine);
    setting.triage(item).await;
    react(setting, item, reactions);
    item
}

fn react(setting: &Setting, item: ItemNumber, reactions: &[(&str, &str)]) {
    let comment = setting.comment_id(item);
    let mut world = setting.emulator.world();
    for (by, content) in reactions {
        world.react_to_comment(REPO, comment, by, content);
    }
}

async fn counts(setting: &Setting) -> OutcomeCounts {
    setting.store.learning().thresholds(setting.repo.id).await.expect("reads").repository.counts
}

async fn lesson(setting: &Setting, item: ItemNumber) -> LessonKind {
    let outcome = setting.store.learning().issue_outcome(setting.repo.id, item).await.expect("reads");
    outcome.map_or(LessonKind::Unknown, |stored| stored.lesson.kind())
}

on_both_engines! {
    async fn two_people_who_disagree_are_a_false_positive_until_they_take_it_back(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let item = reacted(&setting, 0.95, &[("ann", "-1")]).await;
        assert_eq!(poll(&setting).await, ReactionsReport { asked: 1, ..ReactionsReport::default() });
        assert_eq!(lesson(&setting, item).await, LessonKind::Unknown, "one is not enough");
        react(&setting, item, &[("zoe", "-1"), ("stale[bot]", "+1"), (OWN, "+1"), ("eve", "heart")]);
        assert_eq!(poll(&setting).await, ReactionsReport::default(), "that was asked just now");
        setting.later(3);
        poll(&setting).await;
        assert_eq!(lesson(&setting, item).await, LessonKind::FalsePositive);
        assert_eq!(counts(&setting).await.total, 1);
        let comment = setting.comment_id(item);
        {
            let mut world = setting.emulator.world();
            let comment = world.get_mut(REPO).comments.get_mut(&comment).expect("there");
            comment.reactions.retain(|reaction| reaction.author != "zoe");
        }
        setting.later(3);
        poll(&setting).await;
        assert_eq!((lesson(&setting, item).await, counts(&setting).await.total), (LessonKind::Unknown, 0));
    }

    async fn agreement_confirms_and_a_mix_says_nothing(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let agreed = reacted(&setting, 0.95, &[("ann", "+1"), ("zoe", "+1")]).await;
        let mixed = reacted(&setting, 0.96, &[("ann", "+1"), ("zoe", "-1"), ("bob", "-1")]).await;
        let of_two_minds = reacted(&setting, 0.97, &[("ann", "-1"), ("zoe", "-1"), ("zoe", "+1")]).await;
        assert_eq!(poll(&setting).await.asked, 3);
        let mut lessons = Vec::new();
        for item in [agreed, mixed, of_two_minds] {
            lessons.push(lesson(&setting, item).await);
        }
        assert_eq!(lessons, [LessonKind::Confirmed, LessonKind::Unknown, LessonKind::Unknown]);
        // Polling again changes nothing.
        let before = counts(&setting).await;
        setting.later(3);
        assert_eq!(poll(&setting).await.asked, 3);
        assert_eq!(counts(&setting).await, before);
    }

    async fn reactions_of_a_comment_that_is_gone_are_gone(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let item = reacted(&setting, 0.95, &[("ann", "-1"), ("zoe", "-1")]).await;
        poll(&setting).await;
        assert_eq!(lesson(&setting, item).await, LessonKind::FalsePositive);
        let comment = setting.comment_id(item);
        setting.emulator.world().delete_comment(REPO, comment, "maint");
        setting.later(3);
        assert_eq!(poll(&setting).await, ReactionsReport { asked: 1, gone: 1, ..ReactionsReport::default() });
        assert_eq!(lesson(&setting, item).await, LessonKind::Unknown);
    }

    async fn comments_are_asked_about_for_a_month_and_only_where_we_may(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let item = reacted(&setting, 0.95, &[("ann", "-1"), ("zoe", "-1")]).await;
        let hidden = setting.emulator.fault(Fault::on("GET", REACTIONS).answer(403));
        let report = poll(&setting).await;
        assert_eq!((hidden.hits(), report.asked, report.failed.len()), (1, 0, 1));
        assert!(report.failed[0].1.contains("forbids"), "{:?}", report.failed);
        assert_eq!(lesson(&setting, item).await, LessonKind::Unknown);
        setting.store.repos().set_access(setting.repo.id, RepoAccess::Removed, setting.now()).await.expect("stored");
        assert_eq!(poll(&setting).await, ReactionsReport::default());
        setting.store.repos().set_access(setting.repo.id, RepoAccess::Active, setting.now()).await.expect("stored");
        setting.later(31 * 24);
        assert_eq!(poll(&setting).await, ReactionsReport::default());
    }

    async fn a_comment_on_a_pull_request_keeps_nobody_from_being_heard(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let pull = |cosine| NewIssue::new(&setting.title(ALPHA, cosine), "It writes it once.").pull(Pull::default());
        let original = setting.report_as(ALPHA, 1.0, pull(1.0));
        setting.sync().await;
        setting.judge_says(yes(original.get(), 0.96));
        let pull = setting.report_as(ALPHA, 0.95, pull(0.95));
        setting.triage(pull).await;
        assert_eq!(setting.comments(pull).len(), 1);
        setting.judge_says(yes(1, 0.96));
        let item = reacted(&setting, 0.96, &[("ann", "-1"), ("zoe", "-1")]).await;
        assert_eq!(poll(&setting).await, ReactionsReport { asked: 1, ..ReactionsReport::default() });
        assert_eq!(lesson(&setting, item).await, LessonKind::FalsePositive);
    }

    async fn an_answer_that_makes_no_sense_speaks_of_one_comment_alone(database: TestDatabase) {
        let setting = Setting::new(database).await;
        reacted(&setting, 0.95, &[]).await;
        let item = reacted(&setting, 0.96, &[("ann", "-1"), ("zoe", "-1")]).await;
        let odd = setting.emulator.fault(Fault::on("GET", REACTIONS).answer(422));
        let report = poll(&setting).await;
        assert_eq!((odd.hits(), report.asked, report.failed.len()), (1, 1, 1), "{report:?}");
        assert_eq!(lesson(&setting, item).await, LessonKind::FalsePositive);
        // The comment that failed comes next, alone.
        assert_eq!(poll(&setting).await, ReactionsReport { asked: 1, ..ReactionsReport::default() });
    }

    async fn a_limit_ends_the_round_of_its_repository_and_the_next_one_goes_on(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let (first, second) = (reacted(&setting, 0.95, &[]).await, reacted(&setting, 0.96, &[]).await);
        let asked = |setting: &Setting| -> Vec<String> {
            let requests = setting.emulator.requests().into_iter().map(|request| request.path);
            requests.filter(|path| path.ends_with("/reactions")).collect()
        };
        let path = |item| format!("/repos/{REPO}/issues/comments/{}/reactions", setting.comment_id(item));
        setting.emulator.forget_requests();
        let limited = Answer::message(403, "You have exceeded a secondary rate limit").header("retry-after", "7200");
        setting.emulator.fault(Fault::on("GET", REACTIONS).nth(2).answer_with(limited));
        let report = poll(&setting).await;
        assert_eq!((report.asked, report.failed.len()), (1, 0), "{report:?}");
        let until = report.retry_at.expect("a limit");
        assert_eq!(until.duration_since(setting.now()).as_hours(), 2);
        assert_eq!(asked(&setting), [path(first), path(second)]);
        setting.emulator.forget_requests();
        setting.later(2);
        assert_eq!(poll(&setting).await, ReactionsReport { asked: 1, ..ReactionsReport::default() });
        assert_eq!(asked(&setting), [path(second)], "the first one was heard two hours ago");
        setting.emulator.forget_requests();
        setting.later(3);
        assert_eq!(poll(&setting).await.asked, 2);
        assert_eq!(asked(&setting), [path(first), path(second)], "who was heard longest ago comes first");
    }
}
