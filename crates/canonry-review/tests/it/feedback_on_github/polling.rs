//! Tests thumbs on findings: polled, from people only, dropped when they are removed, and without needless requests.

use canonry_domain::review::PatternFeedback;
use canonry_review::FindingReactionsReport;
use canonry_store::RepoAccess;
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{Answer, Fault};
use canonry_testkit::on_both_engines;

use crate::feedback_on_github::setting::{GRAVE, MILD, OWN, REPO, Setting};

const REACTIONS: &str = "/repos/*/*/pulls/comments/*/reactions";
const PERMISSION: &str = "/repos/*/*/collaborators/*/permission";

fn down(people: u32, pulls: u32) -> PatternFeedback {
    PatternFeedback { thumbs_up: 0, thumbs_down: people, reactors: people, pull_requests: pulls }
}

on_both_engines! {
    async fn thumbs_of_people_are_kept_once_and_removed_ones_count_no_more(database: TestDatabase) {
        let mut setting = Setting::new(&database).await;
        let first = setting.pull_by("ann").await;
        let comment = first.comment(MILD);
        setting.react(comment, &[("ada", "-1"), ("bea", "-1"), ("bea", "heart"), ("stale[bot]", "-1"), (OWN, "-1")]);
        let heard = FindingReactionsReport { asked: 2, kept: 2, ..FindingReactionsReport::default() };
        assert_eq!(setting.poll().await, heard);
        assert_eq!(setting.feedback(MILD).await, down(2, 1));
        assert_eq!(setting.poll().await, FindingReactionsReport::default(), "that was asked just now");

        // Before a review of the pull request they are polled anyway.
        setting.emulator.world().unreact_to_review_comment(REPO, comment, "bea", "-1");
        let again = FindingReactionsReport { asked: 2, removed: 1, ..FindingReactionsReport::default() };
        assert_eq!(setting.poll_pull(first.number).await, again);
        assert_eq!(setting.feedback(MILD).await, down(1, 1));

        // A person gives both thumbs: the last one counts, and it is one person's.
        setting.react(comment, &[("ada", "+1")]);
        setting.later(3);
        assert_eq!(setting.poll().await.kept, 1);
        assert_eq!(setting.feedback(MILD).await, PatternFeedback { thumbs_up: 1, reactors: 1, ..down(0, 0) });
        let second = setting.pull_by("ann").await;
        setting.react(second.comment(MILD), &[("Ada", "-1"), ("bea", "-1")]);
        setting.later(3);
        setting.poll().await;
        assert_eq!(setting.feedback(MILD).await, down(2, 2));
    }

    async fn an_author_teaches_on_their_own_pull_request_only_as_a_maintainer(database: TestDatabase) {
        let mut setting = Setting::new(&database).await;
        let (of_ann, of_maint) = (setting.pull_by("ann").await, setting.pull_by("maint").await);
        setting.react(of_ann.comment(MILD), &[("ann", "-1")]);
        setting.react(of_maint.comment(MILD), &[("maint", "-1")]);
        // GitHub does not say who maintains it: nobody counts as a maintainer, and the next round asks again.
        let forbidden = setting.emulator.fault(Fault::on("GET", PERMISSION).always().answer(403));
        assert_eq!(setting.poll().await.kept, 2);
        assert!(forbidden.hits() > 0);
        assert_eq!(setting.feedback(MILD).await, down(0, 0));
        setting.emulator.clear_faults();
        setting.later(3);
        assert_eq!(setting.poll().await.kept, 0);
        assert_eq!(setting.feedback(MILD).await, down(1, 1), "GitHub says that maint maintains it");
        // A list that was set by hand replaces GitHub's answer.
        setting.set_maintainers(&["Ann"]).await;
        setting.later(3);
        setting.poll().await;
        assert_eq!(setting.feedback(MILD).await, down(1, 1));
        setting.set_maintainers(&["ann", "maint"]).await;
        setting.later(3);
        setting.poll().await;
        assert_eq!(setting.feedback(MILD).await, down(2, 2));
        setting.set_maintainers(&["cleo"]).await;
        setting.later(3);
        setting.poll().await;
        assert_eq!(setting.feedback(MILD).await, down(0, 0));
    }

    async fn whether_an_author_maintains_it_waits_for_the_limit(database: TestDatabase) {
        let mut setting = Setting::new(&database).await;
        let posted = setting.pull_by("maint").await;
        setting.react(posted.comment(MILD), &[("maint", "-1")]);
        let limited = Answer::message(403, "You have exceeded a secondary rate limit").header("retry-after", "7200");
        setting.emulator.fault(Fault::on("GET", PERMISSION).answer_with(limited));
        let report = setting.poll().await;
        assert!(report.retry_at.is_some() && report.kept == 0, "{report:?}");
        setting.later(2);
        assert_eq!(setting.poll().await.kept, 1);
        assert_eq!(setting.feedback(MILD).await, down(1, 1));
    }

    async fn reactions_to_a_comment_that_is_gone_are_gone(database: TestDatabase) {
        let mut setting = Setting::new(&database).await;
        let posted = setting.pull_by("ann").await;
        setting.react(posted.comment(MILD), &[("ada", "-1")]);
        setting.poll().await;
        // A repository that cannot be seen says nothing about reactions.
        setting.later(3);
        setting.emulator.fault(Fault::on("GET", REACTIONS).always().answer(404));
        setting.emulator.fault(Fault::on("GET", &format!("/repos/{REPO}")).always().answer(404));
        let report = setting.poll().await;
        assert_eq!((report.asked, report.removed, report.failed.len()), (0, 0, 1), "{report:?}");
        assert_eq!(setting.feedback(MILD).await, down(1, 1));
        setting.emulator.clear_faults();
        {
            let mut world = setting.emulator.world();
            let number = u64::try_from(posted.number.get()).expect("positive");
            let issue = world.get_mut(REPO).issues.get_mut(&number).expect("there");
            issue.pull.as_mut().expect("a pull request").review_comments.retain(|one| one.id != posted.comment(MILD));
        }
        let heard = FindingReactionsReport { asked: 2, gone: 1, removed: 1, ..FindingReactionsReport::default() };
        assert_eq!(setting.poll().await, heard);
        assert_eq!(setting.feedback(MILD).await, down(0, 0));
    }

    async fn a_finding_that_is_said_anew_is_heard_in_both_places(database: TestDatabase) {
        let mut setting = Setting::new(&database).await;
        let posted = setting.pull_by("ann").await;
        setting.react(posted.comment(MILD), &[("ada", "-1")]);
        setting.poll().await;
        setting.later(29 * 24);
        let comments = setting.post(posted.number, &posted.report).await;
        setting.later(3 * 24);
        // The first comment is too old to be polled for itself, but its reactions still count.
        let fresh = comments.iter().find(|(finding, _)| *finding == posted.finding(MILD)).expect("posted").1;
        setting.react(u64::try_from(fresh.0).expect("positive"), &[("bea", "-1")]);
        let heard = FindingReactionsReport { asked: 4, kept: 1, ..FindingReactionsReport::default() };
        assert_eq!(setting.poll().await, heard);
        assert_eq!(setting.feedback(MILD).await, down(2, 1));
        setting.later(31 * 24);
        assert_eq!(setting.poll().await, FindingReactionsReport::default());
        assert_eq!(setting.feedback(MILD).await, down(2, 1));
    }

    async fn a_limit_ends_the_round_and_the_next_one_goes_on(database: TestDatabase) {
        let mut setting = Setting::new(&database).await;
        let posted = setting.pull_by("ann").await;
        let path = |title| format!("/repos/{REPO}/pulls/comments/{}/reactions", posted.comment(title));
        let asked = || -> Vec<String> {
            let requests = setting.emulator.requests().into_iter().map(|request| request.path);
            requests.filter(|path| path.ends_with("/reactions")).collect()
        };
        let (first, second) = if posted.finding(MILD) < posted.finding(GRAVE) { (MILD, GRAVE) } else { (GRAVE, MILD) };
        let limited = Answer::message(403, "You have exceeded a secondary rate limit").header("retry-after", "7200");
        setting.emulator.fault(Fault::on("GET", REACTIONS).nth(2).answer_with(limited));
        let report = setting.poll().await;
        assert_eq!((report.asked, report.failed.len()), (1, 0), "{report:?}");
        assert_eq!(report.retry_at.expect("a limit").duration_since(setting.now()).as_hours(), 2);
        assert_eq!(asked(), [path(first), path(second)]);
        setting.emulator.forget_requests();
        setting.later(2);
        assert_eq!(setting.poll().await.asked, 1);
        assert_eq!(asked(), [path(second)], "the first one was heard two hours ago");
    }

    async fn nobody_is_asked_where_we_may_not(database: TestDatabase) {
        let mut setting = Setting::new(&database).await;
        let posted = setting.pull_by("ann").await;
        setting.react(posted.comment(MILD), &[("ada", "-1")]);
        let odd = setting.emulator.fault(Fault::on("GET", REACTIONS).answer(422));
        let report = setting.poll().await;
        assert_eq!((odd.hits(), report.asked, report.failed.len()), (1, 1, 1), "{report:?}");
        let hidden = setting.emulator.fault(Fault::on("GET", REACTIONS).answer(403));
        let report = setting.poll().await;
        assert_eq!((hidden.hits(), report.asked, report.failed.len()), (1, 0, 1), "{report:?}");
        let store = &setting.project.store;
        store.repos().set_access(setting.repo.id, RepoAccess::Removed, setting.now()).await.expect("stored");
        assert_eq!(setting.poll().await, FindingReactionsReport::default());
        assert_eq!(setting.poll_pull(posted.number).await, FindingReactionsReport::default());
        store.repos().set_access(setting.repo.id, RepoAccess::Active, setting.now()).await.expect("stored");
        assert_eq!(setting.poll().await.asked, 1, "the other one was heard a moment ago");
    }
}
