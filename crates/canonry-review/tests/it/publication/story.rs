//! Tests pushes A, B (forced) and C, with a finding that is dismissed, one that is fixed, one that moves, and new ones.

use canonry_domain::review::{CheckConclusion, DismissalKind, Dismisser};
use canonry_github::api::CheckState;
use canonry_review::{StoredDetails, written_check};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use serde_json::Value;

use crate::publication::setting::{ALL, Setting, code, done, finding, saying};

const EVAL: (u32, &str) = (5, "eval(input);");
const OPEN: (u32, &str) = (12, "const file = open(path);");
const UNUSED: (u32, &str) = (20, "let unused = 1;");

fn eval(line: u32) -> Value {
    let said = "Whoever controls `input` runs code here. Ask @mona, see #1 and <b>this</b>.";
    let mut eval = saying(finding("Eval of input", line, "critical", "security"), said);
    eval["fix"] = "JSON.parse(input);".into();
    eval
}

fn open(line: u32) -> Value {
    saying(finding("File stays open", line, "medium", "correctness"), "Nothing closes `file` when reading fails.")
}

fn unused(line: u32) -> Value {
    finding("Unused variable `unused`", line, "minor", "style")
}

on_both_engines! {
    async fn a_conversation_that_people_like_to_read(database: TestDatabase) {
        let setting = Setting::with_app(database, &ALL, &code(&[EVAL, OPEN, UNUSED])).await;
        let first = setting.review(&[eval(5), open(12), unused(20)]).await;
        assert_eq!(done(&setting.publish(&first).await), (3, true, 0));
        insta::assert_snapshot!("push_a", setting.conversation());
        // The store contains what was written to GitHub.
        let run = first.review.expect("stored");
        let check = written_check(&setting.store, &setting.repo, setting.pull, run).await.expect("reads").expect("it");
        assert_eq!((check.state, check.is_sent), (CheckState::Failure, true));
        let stored = setting.store.review().get_of_repo(setting.repo.id, run).await.expect("reads").expect("it");
        let counts = setting.store.review().sighting_counts(run).await.expect("reads");
        let details = StoredDetails::of(&stored, &counts).expect("this version's own");
        assert_eq!((&details.coverage, &details.reviewers, &details.model), (&first.coverage, &first.reviewers, &first.model));
        assert_eq!(details.scope.as_deref(), Some("Full review: no earlier review."));
        assert_eq!(details.conclusion, Some(CheckConclusion::Failure));

        // A maintainer dismisses one of them.
        let unused_id = first.findings.iter().find(|one| one.sighting.finding.title.starts_with("Unused")).expect("it");
        let (unused_id, mona) = (unused_id.id.expect("stored"), "mona".parse().expect("a login"));
        let now = setting.emulator.world().now;
        let said = setting.store.findings().dismiss(unused_id, first.review, DismissalKind::WontFix, Dismisser::Maintainer, &mona, now).await;
        assert!(said.expect("stored"));

        // Input is no longer evaluated, the code moved down by a line, and there is a new finding.
        let moved = code(&[(1, "step1();\nstep1b();"), OPEN, UNUSED, (30, "audit(secret);")]);
        setting.force_push(&moved);
        let new = finding("Secret is logged", 31, "major", "security");
        let second = setting.review(&[open(13), unused(21), new.clone()]).await;
        assert_eq!(done(&setting.publish(&second).await), (1, true, 1));
        insta::assert_snapshot!("push_b", setting.conversation());

        // The same head again: nothing is posted again, and a review that nobody requested writes nothing at all.
        let writes = setting.emulator.writes().len();
        assert_eq!(done(&setting.publish(&second).await), (1, false, 0));
        assert!(setting.emulator.writes().split_off(writes).iter().all(|write| !write.path.starts_with("/repos/")));
        let again = setting.review(&[open(13), unused(21), new.clone()]).await;
        let published = setting.publish(&again).await;
        assert_eq!((done(&published).0, done(&published).2), (0, 0));
        let written = setting.emulator.writes().split_off(writes);
        let anew = written.iter().filter(|write| write.path.starts_with("/repos/") && write.method != "PATCH");
        assert_eq!(anew.map(|write| write.path.clone()).collect::<Vec<String>>(), Vec::<String>::new());

        // The file is opened in another way: the finding is posted again, at its present line.
        setting.push(&moved.replace("open(path)", "open(path, 'r')"));
        let third = setting.review(&[open(13), unused(21), new]).await;
        assert_eq!(done(&setting.publish(&third).await), (1, true, 1));
        insta::assert_snapshot!("push_c", setting.conversation());
        assert_eq!((setting.own_reviews().0, setting.own_comments().len()), (3, 0), "one review a push, and no comment beside it");

        // A push that only fixes something needs no further review: the check shows it.
        setting.push(&code(&[UNUSED]));
        let fourth = setting.review(&[unused(20)]).await;
        assert_eq!(done(&setting.publish(&fourth).await), (0, false, 2));
        assert_eq!((setting.own_reviews().0, setting.own_comments().len()), (3, 0));
        let (_, conclusion, title) = setting.check().expect("a check run");
        assert_eq!((conclusion.as_deref(), title.as_str()), (Some("success"), "No findings shown; 1 finding hidden"));
        assert!(setting.check_text().starts_with("Since the last review: 2 fixed.\n\n"), "{}", setting.check_text());
    }

    async fn a_clean_change_gets_the_check_and_nothing_else(database: TestDatabase) {
        let setting = Setting::with_app(database, &ALL, &code(&[])).await;
        let report = setting.review(&[]).await;
        assert_eq!(done(&setting.publish(&report).await), (0, false, 0));
        assert_eq!((setting.own_reviews(), setting.own_comments().len()), ((0, 0), 0));
        let (status, conclusion, title) = setting.check().expect("a check run");
        assert_eq!((status.as_str(), conclusion.as_deref(), title.as_str()), ("completed", Some("success"), "No findings"));
    }

    async fn a_plain_token_has_no_check_run(database: TestDatabase) {
        let setting = Setting::with_token(database, &code(&[EVAL])).await;
        let report = setting.review(&[eval(5)]).await;
        assert_eq!(done(&setting.publish(&report).await), (1, true, 0));
        assert_eq!((setting.own_reviews(), setting.own_comments().len(), setting.check()), ((1, 1), 0, None));
        let run = report.review.expect("stored");
        assert_eq!(written_check(&setting.store, &setting.repo, setting.pull, run).await.expect("reads"), None);
        // Without check runs, one comment contains what the check would show and no review contains; each push edits
        // it.
        for (lines, finds, status) in [
            (code(&[]), vec![], "**No findings.** Since the last review: 1 fixed. Last reviewed commit: `"),
            (code(&[(3, "more();")]), vec![], "**No findings.** Last reviewed commit: `"),
            (code(&[OPEN]), vec![open(12)], "**1 finding**: 1 medium. Last reviewed commit: `"),
        ] {
            setting.push(&lines);
            let report = setting.review(&finds).await;
            setting.publish(&report).await;
            let said = setting.own_comments();
            assert!(said.len() == 1 && said[0].starts_with(status), "{said:?}");
            assert!(!said[0].contains("File stays open"), "the review says it: {said:?}");
        }
        assert_eq!(setting.own_reviews(), (2, 2));
    }
}
