//! Tests what a run left unread, and how the next run handles it.

use std::path::Path;

use canonry_domain::review::{FindingStatus, ReviewMode};
use canonry_review::reviewers::llm::LlmReviewBudget;
use canonry_review::{ReviewReport, ReviewerChoice, read_settings};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::models::ModelServer;
use canonry_testkit::on_both_engines;
use serde_json::{Value, json};

use crate::pipeline::model::{NOTHING, model, question};
use crate::pipeline::project::{Asked, Project, code, count, pull, statuses};

const REQUESTED: Asked<'static> = Asked { requested: true, full: false, embedder: None, llm: None, reviewers: None };

fn sarif(tool: &str, results: &[(&str, &str)]) -> String {
    let result = |(path, text): &(&str, &str)| {
        json!({"ruleId": text, "level": "warning", "message": {"text": text}, "locations": [{"physicalLocation":
            {"artifactLocation": {"uri": path}, "region": {"startLine": 30}}}]})
    };
    let results: Vec<Value> = results.iter().map(result).collect();
    json!({"version": "2.1.0", "runs": [{"tool": {"driver": {"name": tool}}, "results": results}]}).to_string()
}

fn report(project: &Project, tool: &str, results: &[(&str, &str)]) -> ReviewerChoice {
    ReviewerChoice::Sarif(project.file(&sarif(tool, results)))
}

fn files_of(report: &ReviewReport) -> Vec<(&str, usize)> {
    report.reviewers.iter().map(|one| (one.name.as_str(), one.files)).collect()
}

on_both_engines! {
    async fn a_reviewer_that_failed_reads_everything_the_next_time(database: TestDatabase) {
        let server = ModelServer::start().await;
        let llm = model(&server);
        let mut project = Project::new(&database).await;
        project.reviewers = vec![ReviewerChoice::Builtin, ReviewerChoice::Llm];
        let base = project.git.write("a.js", code("a();")).write("b.js", code("b();")).commit("base");
        let first = project.git.branch("topic").write("a.js", code("debugger;")).commit("push A");
        let failed = project.review(&base).await;
        assert_eq!(files_of(&failed), [("builtin", 1), ("llm", 0)]);

        project.git.write("b.js", code("b2();")).commit("push B");
        server.answer_when(|_| true, NOTHING);
        let asked = Asked { llm: Some(&llm), ..Asked::default() };
        let caught_up = project.review_asked(&base, asked).await;
        assert_eq!(caught_up.reason.to_string(), format!("incremental-from-{}", first.short()));
        assert_eq!(files_of(&caught_up), [("builtin", 1), ("llm", 2)]);
        assert!(question(&server).contains("a.js") && question(&server).contains("b.js"), "{}", question(&server));
        assert_eq!(caught_up.notes, ["llm reads everything: it did not complete the last review"]);
        assert_eq!((caught_up.coverage.files_read, statuses(&caught_up)), (2, vec!["a.js:30 same".to_owned()]));

        // It has caught up: from here it reads what changes.
        project.git.write("b.js", code("b3();")).commit("push C");
        let next = project.review_asked(&base, asked).await;
        assert_eq!((files_of(&next), next.notes.len()), (vec![("builtin", 1), ("llm", 1)], 0));
        // A review without this reviewer counts as missed.
        project.git.write("a.js", code("debugger; a();")).commit("push D");
        project.review_asked(&base, Asked { reviewers: Some(&[ReviewerChoice::Builtin]), ..asked }).await;
        project.git.write("b.js", code("b4();")).commit("push E");
        assert_eq!(files_of(&project.review_asked(&base, asked).await), [("builtin", 1), ("llm", 2)]);
    }

    async fn a_new_or_failed_reviewer_is_asked_though_nothing_came(database: TestDatabase) {
        let server = ModelServer::start().await;
        let llm = model(&server);
        let (mut project, base, head) = Project::pushed(&database, "debugger;").await;
        project.review(&base).await;
        project.reviewers = vec![ReviewerChoice::Builtin, ReviewerChoice::Llm];
        let failed = project.review_asked(&base, REQUESTED).await;
        assert_eq!(failed.reason.to_string(), format!("no-changes-since-{}", head.short()));
        assert_eq!(failed.reviewers.iter().map(|one| (one.name.as_str(), one.problems.len())).collect::<Vec<_>>(), [("llm", 1)]);
        assert_eq!(failed.notes, ["llm reads everything: it is new to this change"]);

        server.answer_when(|_| true, NOTHING);
        let asked = Asked { llm: Some(&llm), ..REQUESTED };
        let heard = project.review_asked(&base, asked).await;
        assert_eq!((files_of(&heard), heard.coverage.files_read), (vec![("llm", 1)], 1));
        assert_eq!(heard.notes, ["llm reads everything: it did not complete the last review"]);
        assert_eq!((heard.mode(), statuses(&heard)), (ReviewMode::Incremental, vec!["a.js:30 same".to_owned()]));
        // Now nothing is left to read.
        let done = project.review_asked(&base, asked).await;
        assert_eq!((done.reviewers.len(), done.notes.len(), done.coverage.files_read), (0, 0, 0));
    }

    async fn what_a_model_had_no_room_for_is_read_the_next_time(database: TestDatabase) {
        let server = ModelServer::start().await;
        server.answer_when(|_| true, NOTHING);
        let llm = model(&server);
        let asked = Asked { llm: Some(&llm), ..Asked::default() };
        let mut project = Project::new(&database).await;
        project.reviewers = vec![ReviewerChoice::Llm];
        let base = project.git.write("a.js", code("a();")).commit("base");
        let long: String = (1..=2_000).map(|line| format!("call{line}();\n")).collect();
        project.git.branch("topic").write("a.js", code("b();")).write("long.js", long).commit("push A");
        project.llm_budget.characters = 8_000;
        let first = project.review_asked(&base, asked).await;
        let skipped = |report: &ReviewReport| -> Vec<(String, bool)> {
            report.coverage.skipped.iter().map(|one| (one.path.to_string(), one.gap)).collect()
        };
        assert_eq!((skipped(&first), first.coverage.files_read), (vec![("long.js".to_owned(), true)], 1));

        project.git.write("c.js", "c();\n").commit("push B");
        project.llm_budget = LlmReviewBudget::default();
        let second = project.review_asked(&base, asked).await;
        assert_eq!((skipped(&second), files_of(&second)), (vec![], vec![("llm", 2)]));
        assert_eq!(second.notes, ["llm also reads 1 file that the last review did not reach"]);
        project.git.write("c.js", "d();\n").commit("push C");
        assert_eq!(files_of(&project.review_asked(&base, asked).await), [("llm", 1)]);
    }

    async fn another_base_shows_what_the_last_one_hid(database: TestDatabase) {
        let mut project = Project::new(&database).await;
        let git = &project.git;
        let main = git.write("a.js", code("a();")).write("c.js", format!("{}{}", code("c();"), code("d();"))).commit("base");
        git.branch("below").write("a.js", code("debugger;"));
        let below = git.write("c.js", format!("{}{}", code("debugger;"), code("d();"))).commit("below");
        git.branch("topic").write("b.js", "b();\ndebugger;\n");
        let head = git.write("c.js", format!("{}{}", code("debugger;"), code("debugger; d();"))).commit("push A");
        assert_eq!(statuses(&project.review(&below).await), ["b.js:2 new!", "c.js:90 new!"]);
        let again = project.review_asked(&main, REQUESTED).await;
        assert_eq!(again.reason.to_string(), format!("incremental-from-{}", head.short()));
        assert_eq!(statuses(&again), ["a.js:30 new!", "b.js:2 same", "c.js:30 new!", "c.js:90 same"]);
        assert_eq!(again.coverage.files_read, 2);
        assert_eq!(
            again.notes,
            [format!("the last review compared with another base ({}): 2 files that it did not see in full are read too", below.short())]
        );
        project.subject = pull(2);
        project.review(&main).await;
        let narrower = project.review_asked(&below, REQUESTED).await;
        assert_eq!((narrower.notes.len(), narrower.coverage.files_read), (0, 0));
    }

    async fn a_damaged_report_keeps_another_one_of_its_tool_from_fixing(database: TestDatabase) {
        let mut project = Project::new(&database).await;
        let base = project.git.write("a.js", code("a();")).write("b.js", code("b();")).commit("base");
        project.git.branch("topic").write("a.js", code("a2();")).write("b.js", code("b2();")).commit("push A");
        let (one, other) = (report(&project, "lint", &[("a.js", "slow")]), report(&project, "lint", &[("b.js", "odd")]));
        project.reviewers = vec![one, other.clone()];
        assert_eq!(statuses(&project.review(&base).await), ["a.js:30 new!", "b.js:30 new!"]);

        let next = |line: &str| format!("{line}\n{}", code("a2();"));
        for (at, damaged) in ["/nowhere/lint.sarif".into(), project.file("{\"runs\": 1}"), project.file("no report")].into_iter().enumerate() {
            project.git.write("a.js", next(&format!("x{at}();"))).commit("another push");
            project.reviewers = vec![ReviewerChoice::Sarif(damaged), other.clone()];
            let report = project.review(&base).await;
            assert_eq!(count(&report, FindingStatus::Fixed), 0, "{:?}", statuses(&report));
        }
        // Both reports are complete: findings that are missing from them are fixed.
        project.git.write("a.js", next("y();")).commit("the last push");
        project.reviewers = vec![report(&project, "lint", &[]), other];
        assert_eq!(statuses(&project.review(&base).await), ["a.js:31 fixed", "b.js:30 same"]);
    }

    async fn a_linter_that_ran_on_changed_files_fixes_nothing_elsewhere(database: TestDatabase) {
        let mut project = Project::new(&database).await;
        let base = project.git.write("a.js", code("a();")).write("b.js", code("b();")).commit("base");
        project.git.branch("topic").write("a.js", code("a2();")).write("b.js", code("b2();")).commit("push A");
        project.reviewers = vec![report(&project, "lint", &[("a.js", "slow"), ("b.js", "odd"), ("b.js", "long")])];
        project.review(&base).await;
        project.git.write("a.js", code("a3();")).commit("push B");
        project.reviewers = vec![report(&project, "lint", &[])];
        let partial = project.review(&base).await;
        assert_eq!(statuses(&partial), ["a.js:30 fixed", "b.js:30 same", "b.js:30 same"]);
        // A file that it reports on counts as read.
        project.git.write("a.js", code("a4();")).commit("push C");
        project.reviewers = vec![report(&project, "lint", &[("b.js", "odd")])];
        assert_eq!(statuses(&project.review(&base).await), ["b.js:30 fixed", "b.js:30 same"]);
    }

    async fn a_file_that_was_put_back_is_no_part_of_the_change_after_a_lost_head(database: TestDatabase) {
        let project = Project::new(&database).await;
        let git = &project.git;
        let base = git.write("a.js", code("a();")).write("b.js", code("b();")).commit("base");
        git.branch("topic").write("a.js", code("debugger;")).write("b.js", code("debugger;")).commit("push A");
        project.review(&base).await;
        git.write("a.js", code("a();"));
        git.run(&["add", "--all", "."]);
        git.run(&["commit", "--quiet", "--amend", "--message", "another"]);
        git.run(&["reflog", "expire", "--expire=now", "--all"]);
        git.run(&["gc", "--quiet", "--prune=now"]);
        let forced = project.review(&base).await;
        assert_eq!(forced.reason.to_string(), "prior-sha-unreachable");
        assert_eq!(statuses(&forced), ["a.js:30 fixed", "b.js:30 same"]);
    }

    async fn settings_that_cannot_be_read_are_told(database: TestDatabase) {
        let project = Project::new(&database).await;
        let base = project.git.write(".canonry.yml", "review:\n  maxComments: 3\n").commit("base");
        let path = ".canonry.yml".parse().expect("a path");
        let id = project.git.git().files_at(&base, &[&path]).await.expect("asked")[&path].clone();
        let object = Path::new(".git/objects").join(&id[..2]).join(&id[2..]);
        std::fs::remove_file(project.git.folder().join(object)).expect("removed");
        let read = read_settings(&project.git.git(), &base).await;
        assert_eq!(read.config, canonry_config::RepoConfig::default());
        assert!(read.notes.len() == 1 && read.notes[0].starts_with(".canonry.yml is not used, so the defaults apply"), "{:?}", read.notes);
    }

    async fn the_same_pushes_give_the_same_reports(database: TestDatabase) {
        let first = Project::new(&database).await;
        let second = Project::named(first.store.clone(), "tide/twin").await;
        let mut told = Vec::new();
        for project in [first, second] {
            told.push(story(project).await);
        }
        assert_eq!(told[0], told[1]);
    }
}

/// The statuses of three pushes with twins, moves and reports.
async fn story(mut project: Project) -> Vec<Vec<String>> {
    let twins = code("debugger;") + &code("debugger;") + &code("debugger;");
    let base = project.git.write("a.js", code("a();")).write("b.js", code("b();")).commit("base");
    project.git.branch("topic");
    let pushes = [
        (twins.clone(), code("debugger;"), vec![("a.js", "slow"), ("b.js", "slow"), ("a.js", "odd")]),
        (format!("x();\n{twins}"), code("b2();"), vec![("b.js", "slow"), ("a.js", "odd")]),
        (code("debugger;") + &code("debugger;"), twins, vec![("a.js", "odd"), ("a.js", "slow")]),
    ];
    let mut told = Vec::new();
    for (a, b, results) in pushes {
        project.git.write("a.js", a).write("b.js", b).commit("a push");
        let reports = [report(&project, "lint", &results), report(&project, "other", &results)];
        project.reviewers = reports.into_iter().chain([ReviewerChoice::Builtin]).collect();
        let report = project.review(&base).await;
        let words = report.findings.iter().map(|one| {
            let (sighting, shown) = (&one.sighting, one.shown);
            format!(
                "{sighting:?} {shown:?} {:?} {} {:?} {:?}",
                one.hidden_by, one.confidence, one.moved_from, one.history
            )
        });
        told.push(words.chain([format!("{:?} {:?}", report.coverage, report.hidden_patterns)]).collect());
    }
    told
}
