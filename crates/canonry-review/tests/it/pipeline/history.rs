//! Tests the search of a change's commits for credentials, and what it leaves open.

use canonry_review::ReviewReport;
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;

use crate::pipeline::project::{Project, code, statuses};

/// A text in UTF-16.
fn wide(text: &str) -> Vec<u8> {
    [0xff, 0xfe].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect()
}

/// Assembled at run time, so that no scanner reports this file as a leak.
fn leak() -> String {
    format!("token = '{}'\n", ["gh", "p_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5", "0smkjE"].concat())
}

fn gaps(report: &ReviewReport) -> Vec<&str> {
    report.coverage.skipped.iter().filter(|one| one.gap).map(|one| one.path.as_str()).collect()
}

on_both_engines! {
    async fn a_text_in_place_of_a_binary_file_is_searched_whole(database: TestDatabase) {
        let project = Project::new(&database).await;
        let git = &project.git;
        let base = git.write("a.js", code("a();")).write("a.cfg", wide("x = 1\n")).commit("base");
        let leaked = git.branch("topic").write("a.cfg", leak()).commit("push A");
        std::fs::remove_file(git.path("a.cfg")).expect("removed");
        git.commit("push B");
        let report = project.review(&base).await;
        assert_eq!((statuses(&report), gaps(&report)), (vec!["a.cfg:0 new!".to_owned()], vec![]));
        let message = &report.findings[0].sighting.finding.message;
        assert!(message.starts_with(&format!("Commit {} adds what looks like a GitHub token", leaked.short())), "{message}");
    }

    async fn what_the_base_has_is_no_gap_when_it_comes_back(database: TestDatabase) {
        let project = Project::new(&database).await;
        let git = &project.git;
        let base = git.write("a.js", code("a();")).write("data.bin", [0_u8, 1, 2]).commit("base");
        git.branch("topic").write("a.js", code("b();"));
        git.run(&["mv", "data.bin", "old.bin"]);
        git.commit("push A");
        git.run(&["mv", "old.bin", "data.bin"]);
        git.commit("push B");
        std::fs::remove_file(git.path("data.bin")).expect("removed");
        git.commit("push C");
        git.write("data.bin", [0_u8, 1, 2]).commit("push D");
        assert_eq!(gaps(&project.review(&base).await), Vec::<&str>::new());
    }

    async fn a_gap_of_the_history_ends_with_it(database: TestDatabase) {
        let project = Project::new(&database).await;
        let git = &project.git;
        let base = git.write("a.js", code("a();")).commit("base");
        git.branch("topic").write("notes.txt", wide("x\n")).commit("push A");
        git.write("notes.txt", "x\n").commit("push B");
        assert_eq!(gaps(&project.review(&base).await), ["notes.txt"]);
        // Another commit keeps it: nobody has searched the first one since.
        git.write("a.js", code("b();")).commit("push C");
        let report = project.review(&base).await;
        assert_eq!((gaps(&report), report.coverage.skipped.len()), (vec!["notes.txt"], 1));
        git.run(&["reset", "--quiet", "--soft", base.as_str()]);
        git.commit("All of it at once");
        assert_eq!(gaps(&project.review(&base).await), Vec::<&str>::new());
    }
}
