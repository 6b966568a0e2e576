//! The request for a description on an issue that contains only its template, if the repository wants that.

use canonry_domain::{DESCRIPTION_RECEIVED, DESCRIPTION_REQUEST, ItemNumber, TriageMode};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::NewIssue;
use canonry_testkit::on_both_engines;

use crate::triage::setting::{ALPHA, LABEL, REPO, Setting, number, plain, told, yes};

const FORM: &str = "**Describe the bug**\nA clear and concise description of what the bug is.\n\n**To Reproduce**\n\
    Steps to reproduce the behavior:\n1. Go to '...'\n";

fn unfilled(setting: &Setting, by: &str) -> ItemNumber {
    let mut world = setting.emulator.world();
    world.advance(1);
    number(world.open(REPO, by, NewIssue::new("Bug report", FORM)))
}

fn rewrite(setting: &Setting, item: ItemNumber, title: &str, body: &str) {
    setting.edit_title(item, title);
    setting.emulator.world().edit_body(REPO, plain(item), "ann", body);
}

on_both_engines! {
    async fn an_unfilled_form_is_answered_only_if_the_repository_asks_for_it(database: TestDatabase) {
        let mut setting = Setting::new(database).await;
        let item = unfilled(&setting, "ann");
        assert_eq!(told(&setting.triage(item).await), (Some("recorded"), "not_duplicate"));
        assert!(setting.comments(item).is_empty());
        setting.rules.ask_for_description = true;
        setting.rules.mode = TriageMode::Shadow;
        assert_eq!(told(&setting.triage(item).await), (Some("recorded"), "mode"));
        assert!(setting.comments(item).is_empty());
        setting.rules.mode = TriageMode::Suggest;
        assert_eq!(told(&setting.triage(item).await), (Some("commented"), "asked_for_description"));
        assert_eq!(setting.comments(item).len(), 1);
        assert!(setting.comments(item)[0].contains(DESCRIPTION_REQUEST));
        assert!(setting.labels(item).is_empty(), "it is no possible duplicate");
        assert_eq!(told(&setting.triage(item).await), (Some("recorded"), "said_already"));
        let by_a_bot = unfilled(&setting, "stale[bot]");
        assert_eq!(told(&setting.triage(by_a_bot).await), (Some("recorded"), "not_duplicate"));
    }

    async fn the_request_becomes_an_answer_once_there_is_a_description(database: TestDatabase) {
        let mut setting = Setting::new(database).await;
        setting.rules.ask_for_description = true;
        let item = unfilled(&setting, "ann");
        setting.triage(item).await;
        rewrite(&setting, item, "Sound is gone", "There is no sound after the machine wakes up from its sleep.");
        assert_eq!(told(&setting.triage(item).await), (Some("withdrawn"), "no_longer_predicted"));
        let comments = setting.comments(item);
        assert!(comments.len() == 1 && comments[0].contains(DESCRIPTION_RECEIVED), "{comments:?}");

        let other = unfilled(&setting, "ann");
        setting.triage(other).await;
        rewrite(&setting, other, &setting.title(ALPHA, 0.95), "The exporter writes its summary twice in each run.");
        setting.judge_says(yes(1, 0.96));
        assert_eq!(told(&setting.triage(other).await), (Some("edited"), "above_threshold"));
        let comments = setting.comments(other);
        assert!(comments.len() == 1 && comments[0].contains("the same problem as #1"), "{comments:?}");
        assert_eq!(setting.labels(other), [LABEL]);
    }

    async fn a_request_that_people_deleted_stays_deleted(database: TestDatabase) {
        let mut setting = Setting::new(database).await;
        setting.rules.ask_for_description = true;
        let item = unfilled(&setting, "ann");
        setting.triage(item).await;
        let comment = setting.comment_id(item);
        setting.emulator.world().delete_comment(REPO, comment, "maint");
        // The edit finds that the comment is gone.
        rewrite(&setting, item, "Sound is gone", "There is no sound after the machine wakes up from its sleep.");
        assert_eq!(told(&setting.triage(item).await), (Some("withdrawn"), "no_longer_predicted"));
        setting.later(1_000);
        rewrite(&setting, item, "Bug", FORM);
        assert_eq!(told(&setting.triage(item).await), (Some("recorded"), "comment_deleted"));
        assert!(setting.comments(item).is_empty());
    }
}
