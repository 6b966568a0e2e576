//! People keep rejecting a pattern: it is hidden if the settings say so, the check reports it, and it can be undone.

use canonry_domain::review::{HiddenBy, ShownAs};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;

use crate::feedback::reviewed::{
    LEFTOVER, LEFTOVER_LINE, comment, feedback, inline, key_line, next_round, pull_by, react, reviewed_pool,
    settle_for, shown,
};
use crate::world::review_world::{REPO as POOL, ReviewWorld};

const OPTED_IN: &str = "feedback: {autoSuppress: {enabled: true}}\n";
const SAID: &str = "1 pattern auto-suppressed based on prior feedback";

/// Three people reject the finding with this title on two pull requests.
async fn reject(setting: &ReviewWorld, lines: &str, title: &str) -> [u64; 2] {
    let (first, second) = (pull_by(setting, "ann", lines).await, pull_by(setting, "ben", lines).await);
    let comments = [comment(setting, first, title), comment(setting, second, title)];
    react(setting, &[(comments[0], "ada", "-1"), (comments[0], "bea", "-1"), (comments[1], "cleo", "-1")]).await;
    comments
}

on_both_engines! {
    async fn three_people_on_two_pull_requests_hide_a_pattern_only_where_that_is_wanted(database: TestDatabase) {
        let setting = reviewed_pool(&database, "").await;
        let comments = reject(&setting, LEFTOVER_LINE, LEFTOVER).await;
        assert_eq!((feedback(&setting, LEFTOVER).await.thumbs_down, feedback(&setting, LEFTOVER).await.pull_requests), (3, 2));
        let visible = pull_by(&setting, "ann", LEFTOVER_LINE).await;
        assert_eq!(inline(&setting, visible), 1, "nobody opted in");
        assert!(!setting.check_text(visible).contains("auto-suppressed"), "{}", setting.check_text(visible));

        settle_for(&setting, OPTED_IN).await;
        let hidden = pull_by(&setting, "ann", LEFTOVER_LINE).await;
        assert_eq!(inline(&setting, hidden), 0);
        assert_eq!(shown(&setting, hidden, LEFTOVER).await, (ShownAs::Suppressed, Some(HiddenBy::Feedback)));
        assert!(setting.check_text(hidden).contains(SAID), "{}", setting.check_text(hidden));

        // Two rejections are not enough: withdrawing a thumb shows the pattern again.
        setting.meanwhile(|world| world.unreact_to_review_comment(POOL, comments[0], "bea", "-1"));
        next_round(&setting).await;
        let back = pull_by(&setting, "ann", LEFTOVER_LINE).await;
        assert_eq!(inline(&setting, back), 1);
        assert!(!setting.check_text(back).contains("auto-suppressed"));
        react(&setting, &[(comments[0], "bea", "-1")]).await;
        let again = pull_by(&setting, "ann", LEFTOVER_LINE).await;
        assert_eq!(inline(&setting, again), 0);

        // A maintainer clears the feedback; only later reactions count.
        setting.meanwhile(|world| world.comment(POOL, again, "maint", "/canonry feedback clear"));
        setting.settle().await;
        assert_eq!(feedback(&setting, LEFTOVER).await.thumbs_down, 0);
        let cleared = pull_by(&setting, "ann", LEFTOVER_LINE).await;
        assert_eq!(inline(&setting, cleared), 1);
        assert!(!setting.check_text(cleared).contains("auto-suppressed"));
        next_round(&setting).await;
        assert_eq!(feedback(&setting, LEFTOVER).await.thumbs_down, 0, "the old thumbs are still there, and count no more");
        setting.meanwhile(|world| world.comment(POOL, again, "maint", "/canonry feedback restore"));
        setting.settle().await;
        assert_eq!(feedback(&setting, LEFTOVER).await.thumbs_down, 3, "they count again");
    }

    async fn nobody_hides_what_is_grave(database: TestDatabase) {
        let setting = reviewed_pool(&database, OPTED_IN).await;
        let key = key_line();
        reject(&setting, &key, "AWS").await;
        let title = {
            let repo = setting.repo.id;
            let patterns = setting.store.findings().pattern_feedback(repo).await.expect("reads");
            assert_eq!((patterns.len(), patterns[0].feedback.thumbs_down, patterns[0].protected), (1, 3, true));
            patterns[0].title.clone()
        };
        let next = pull_by(&setting, "ben", &key).await;
        assert_eq!(shown(&setting, next, &title).await, (ShownAs::Inline, None));
        assert_eq!(inline(&setting, next), 1);
        assert!(!setting.check_text(next).contains("auto-suppressed"));

        // A severity floor makes a minor pattern severe: from then on it is protected too.
        reject(&setting, LEFTOVER_LINE, LEFTOVER).await;
        let hidden = pull_by(&setting, "ann", LEFTOVER_LINE).await;
        assert_eq!(shown(&setting, hidden, LEFTOVER).await.0, ShownAs::Suppressed);
        let floors = "review: {severityFloors: [{pattern: debugging, severity: major}]}\n";
        settle_for(&setting, &format!("{floors}{OPTED_IN}")).await;
        let raised = pull_by(&setting, "ann", LEFTOVER_LINE).await;
        assert_eq!(shown(&setting, raised, LEFTOVER).await, (ShownAs::Inline, None));
    }

    async fn what_does_not_count(database: TestDatabase) {
        let setting = reviewed_pool(&database, OPTED_IN).await;
        let (of_ann, of_maint) =
            (pull_by(&setting, "ann", LEFTOVER_LINE).await, pull_by(&setting, "maint", LEFTOVER_LINE).await);
        let (first, second) = (comment(&setting, of_ann, LEFTOVER), comment(&setting, of_maint, LEFTOVER));
        react(&setting, &[(first, "ann", "-1"), (first, "stale[bot]", "-1"), (first, "ada", "confused")]).await;
        assert_eq!(feedback(&setting, LEFTOVER).await.reactors, 0);
        // One vote per person, even on two pull requests; the vote of an author who is a maintainer counts.
        react(&setting, &[(first, "ada", "-1"), (second, "ada", "-1"), (second, "maint", "-1")]).await;
        let counted = feedback(&setting, LEFTOVER).await;
        assert_eq!((counted.thumbs_down, counted.reactors, counted.pull_requests), (2, 2, 2));
        let next = pull_by(&setting, "ben", LEFTOVER_LINE).await;
        assert_eq!(inline(&setting, next), 1);
    }

    async fn what_people_said_just_before_a_push_counts_in_its_review(database: TestDatabase) {
        let setting = reviewed_pool(&database, OPTED_IN).await;
        let (first, second) = (pull_by(&setting, "ann", LEFTOVER_LINE).await, pull_by(&setting, "ben", LEFTOVER_LINE).await);
        react(&setting, &[(comment(&setting, first, LEFTOVER), "ada", "-1")]).await;
        let own = comment(&setting, second, LEFTOVER);
        for by in ["bea", "cleo"] {
            setting.meanwhile(|world| world.react_to_review_comment(POOL, own, by, "-1"));
        }
        crate::feedback::reviewed::push_elsewhere(&setting, second, "ben", "more();\n").await;
        assert_eq!(shown(&setting, second, LEFTOVER).await, (ShownAs::Suppressed, Some(HiddenBy::Feedback)));
        assert!(setting.check_text(second).contains(SAID), "{}", setting.check_text(second));
    }
}
