//! Tests the code beside a finding, as it is in the commit under review.

use canonry_domain::review::FindingStatus;
use canonry_review::output::text;
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;

use crate::pipeline::project::Project;

on_both_engines! {
    async fn each_push_keeps_the_code_of_its_commit(database: TestDatabase) {
        let project = Project::new(&database).await;
        let git = &project.git;
        let base = git.write("a b.js", "start();\n").commit("base");
        git.branch("topic").write("a b.js", "start();\r\n\tdebugger;\r\nend();\r\n").commit("a leftover");
        git.write("a b.js", "not committed\n");
        let first = project.review(&base).await;
        let shown = anstream::adapter::strip_str(&text(&first, 80, None)).to_string();
        assert!(shown.contains("      1 │ start();\n    > 2 │     debugger;\n      3 │ end();\n"), "{shown}");

        git.write("a b.js", "before();\nstart();\n\tdebugger;\nend();\n").commit("a line above");
        project.review(&base).await;
        git.write("a b.js", "before();\nstart();\nend();\n").commit("fixed");
        project.review(&base).await;
        let finding = first.findings[0].id.expect("stored");
        let history = project.store.findings().history(finding).await.expect("reads");
        let codes: Vec<Option<Vec<String>>> =
            history.iter().map(|one| one.excerpt.as_ref().map(|excerpt| excerpt.lines.clone())).collect();
        let lines = |lines: &[&str]| Some(lines.iter().map(|line| (*line).to_owned()).collect());
        assert_eq!(
            codes,
            [
                lines(&["start();", "\tdebugger;", "end();"]),
                lines(&["before();", "start();", "\tdebugger;", "end();"]),
                None,
            ]
        );
        assert_eq!(history[2].status, FindingStatus::Fixed);
        assert_eq!(history[1].excerpt.as_ref().map(|excerpt| excerpt.flagged.first), Some(3));
    }
}
