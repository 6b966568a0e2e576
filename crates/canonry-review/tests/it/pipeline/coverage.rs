//! Tests what is read and what is not.

use canonry_domain::review::{CheckConclusion, check_conclusion};
use canonry_review::output::{counts, gaps, json};
use canonry_review::{ReviewReport, ReviewerChoice};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use serde_json::{Value, json as object};

use crate::pipeline::project::{Asked, Project, code, statuses};

on_both_engines! {
    async fn what_is_not_read_is_told_with_its_reason(database: TestDatabase) {
        let mut project = Project::new(&database).await;
        let git = &project.git;
        let base = git.write("a.js", code("a();")).write("gone.js", "x();\n").commit("base");
        git.branch("topic").write("a.js", code("debugger;")).write("vendor/b.js", "debugger;\n");
        git.write("image.bin", [0_u8, 1, 2, 0, 255]).write("large.txt", "x\n".repeat(1_100_000));
        std::fs::remove_file(git.path("gone.js")).expect("removed");
        std::os::unix::fs::symlink("a.js", git.path("link.js")).expect("a link");
        git.run(&["add", "--all", "."]);
        git.run(&["update-index", "--add", "--cacheinfo", &format!("160000,{base},module")]);
        git.run(&["commit", "--quiet", "--message", "push A"]);
        let sarif = concat!(
            r#"{"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "lint"}}, "results": [{"ruleId": "key", "level": "error","#,
            r#""properties": {"security-severity": "9.5"}, "message": {"text": "Key"}, "locations": [{"physicalLocation":"#,
            r#" {"artifactLocation": {"uri": "vendor/b.js"}, "region": {"startLine": 1}}}]}]}]}"#
        );
        project.reviewers = vec![ReviewerChoice::Builtin, ReviewerChoice::Sarif(project.file(sarif))];
        project.settings = canonry_config::parse("review:\n  skipPaths: ['vendor/**']\n").config;
        let report = project.review(&base).await;
        let skipped: Vec<_> = report.coverage.skipped.iter().map(|one| (one.path.as_str(), one.why.as_str())).collect();
        assert_eq!(
            skipped,
            [
                ("vendor/b.js", "skipped by review.skipPaths"),
                ("image.bin", "it contains NUL bytes, so it is not read as text"),
                ("large.txt", "it is too large: 2200 kB, and at most 2097 kB are read"),
                ("link.js", "it is a symbolic link"),
                ("module", "it is a submodule: the code of its new commit is not read"),
            ]
        );
        assert_eq!((report.coverage.files_changed, report.coverage.files_read), (7, 2));
        let gaps = report.coverage.skipped.iter().filter(|one| one.gap).map(|one| one.path.as_str());
        assert_eq!(gaps.collect::<Vec<_>>(), ["image.bin", "large.txt", "module"]);
        // Nothing is reported in skipped files, however severe.
        assert!(report.findings.iter().all(|one| !one.sighting.finding.path.as_str().starts_with("vendor/")));
        assert!(statuses(&report).contains(&"a.js:30 new!".to_owned()));

        // Earlier findings stay unchanged while their file is not read, and do not count as fixed.
        project.settings = canonry_config::parse("review:\n  skipPaths: ['**/*.js', '*.js']\n").config;
        project.git.write("a.js", code("done();")).commit("push B");
        let silent = project.review(&base).await;
        assert!(silent.findings.iter().all(|one| one.sighting.finding.path.as_str() != "a.js"));
        project.settings = canonry_config::RepoConfig::default();
        project.git.write("a.js", code("really_done();")).commit("push C");
        let seen = project.review(&base).await;
        assert!(statuses(&seen).contains(&"a.js:30 fixed".to_owned()), "{:?}", statuses(&seen));
        // Nobody has read the large file yet, although it did not change again; once it is deleted, nothing is missing.
        let gaps = |report: &ReviewReport| -> Vec<String> {
            let gaps = report.coverage.skipped.iter().filter(|one| one.gap);
            gaps.map(|one| one.path.as_str().to_owned()).collect()
        };
        // The next commit has no submodule any more.
        let unread = ["image.bin", "large.txt"].map(str::to_owned).to_vec();
        assert_eq!((gaps(&silent), gaps(&seen)), (unread.clone(), unread));
        std::fs::remove_file(project.git.path("large.txt")).expect("removed");
        std::fs::remove_file(project.git.path("image.bin")).expect("removed");
        project.git.run(&["commit", "--quiet", "--all", "--message", "push D"]);
        // Nobody ever searched the binary file for credentials; the lines of the large one were searched in its commit.
        assert_eq!(gaps(&project.review(&base).await), ["image.bin"]);
    }

    async fn a_report_that_does_not_list_its_files_is_no_proof_that_it_read_them(database: TestDatabase) {
        let mut project = Project::new(&database).await;
        let base = project.git.write("a.js", code("a();")).commit("base");
        project.git.branch("topic").write("a.js", code("b();")).write("b.py", "b()\n").write("c.py", "c()\n").commit("push A");
        let report = |artifacts: Value| {
            let result = object!({"ruleId": "slow", "message": {"text": "Slow"}, "locations": [{"physicalLocation":
                {"artifactLocation": {"uri": "a.js"}, "region": {"startLine": 30}}}]});
            object!({"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "lint"}}, "results": [result], "artifacts": artifacts}]})
        };
        let sarif = |project: &Project, report: Value| vec![ReviewerChoice::Sarif(project.file(&report.to_string()))];
        let (full, numbers) = (
            Asked { requested: true, full: true, ..Asked::default() },
            |report: &ReviewReport| {
                let read = &report.coverage;
                (read.files_read, read.files_unlisted, read.lines_read, read.skipped.iter().filter(|one| one.gap).count())
            },
        );
        project.reviewers = sarif(&project, report(object!([])));
        let unlisted = project.review(&base).await;
        assert_eq!((numbers(&unlisted), unlisted.reviewers[0].files), ((1, 2, 2, 0), 1));
        assert_eq!(json(&unlisted)["coverage"]["files_unlisted"], 2);
        // What a report lists is read, and what it leaves out is a gap.
        let target = |path: &str| object!({"location": {"uri": path}, "roles": ["analysisTarget"]});
        project.reviewers = sarif(&project, report(object!([target("a.js"), target("b.py")])));
        assert_eq!(numbers(&project.review_asked(&base, full).await), (2, 0, 3, 1));
        // Another reviewer that read them settles it.
        project.reviewers = [sarif(&project, report(object!([]))), vec![ReviewerChoice::Builtin]].concat();
        assert_eq!(numbers(&project.review_asked(&base, full).await), (3, 0, 4, 0));
    }

    async fn a_review_that_may_have_read_nothing_is_no_approval(database: TestDatabase) {
        let mut project = Project::new(&database).await;
        let base = project.git.write("a.js", code("a();")).commit("base");
        project.git.branch("topic").write("a.js", code("b();")).write("b.js", "b();\n").commit("push A");
        let report = |artifacts: Value| {
            object!({"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "ruff"}}, "results": [], "artifacts": artifacts}]}).to_string()
        };
        let conclusion = |report: &ReviewReport| check_conclusion(&counts(report), &gaps(report), &report.reason);
        let requested = Asked { requested: true, ..Asked::default() };
        let path = project.file(&report(object!([])));
        project.reviewers = vec![ReviewerChoice::Sarif(path.clone())];
        // Asking again changes nothing.
        for asked in [Asked::default(), requested] {
            let unread = project.review_asked(&base, asked).await;
            let read = &unread.coverage;
            assert_eq!((read.files_read, read.files_unlisted, gaps(&unread).skipped_files), (0, 2, 0));
            assert_eq!(conclusion(&unread), CheckConclusion::Neutral);
        }
        // A report with a list settles it, and so does another reviewer.
        let target = |path: &str| object!({"location": {"uri": path}, "roles": ["analysisTarget"]});
        std::fs::write(&path, report(object!([target("a.js"), target("b.js")]))).expect("written");
        let listed = project.review_asked(&base, requested).await;
        assert_eq!((listed.coverage.files_read, conclusion(&listed)), (2, CheckConclusion::Success));
        std::fs::write(&path, report(object!([]))).expect("written");
        project.reviewers.push(ReviewerChoice::Builtin);
        project.git.write("b.js", "c();\n").commit("push B");
        assert_eq!(conclusion(&project.review(&base).await), CheckConclusion::Success);
        // What another reviewer read before stays read.
        let late = ReviewerChoice::Sarif(project.file(&report(object!([]))));
        project.reviewers = vec![ReviewerChoice::Builtin, late];
        let late = project.review_asked(&base, requested).await;
        assert_eq!((late.coverage.files_read, late.coverage.files_unlisted), (0, 2));
        assert_eq!(conclusion(&late), CheckConclusion::Success);
    }
}
