//! Tests what is read after a force-push, a rebase, a lost head, in a shallow clone and after a merge from the base.

use canonry_review::{FetchedRepository, Git, Remote, Repository};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;

use crate::pipeline::project::{Project, code, statuses};

on_both_engines! {
    async fn a_rebase_and_a_merge_from_the_base_lose_nothing(database: TestDatabase) {
        let project = Project::new(&database).await;
        let git = &project.git;
        let base = git.write("a.js", code("a();")).write("b.js", "b();\n").commit("base");
        git.branch("topic").write("a.js", code("debugger;")).commit("push A");
        assert_eq!(statuses(&project.review(&base).await), ["a.js:30 new!"]);

        git.switch("main").write("a.js", format!("base();\nbase2();\n{}", code("a();"))).write("b.js", "b();\nc();\n");
        let base = git.commit("meanwhile");
        let before = git.switch("topic").head();
        git.run(&["rebase", "--quiet", "main"]);
        let rebased = project.review(&base).await;
        assert_eq!(rebased.reason.to_string(), format!("incremental-from-{}", before.short()));
        assert_eq!(statuses(&rebased), ["a.js:32 moved"]);

        let before = git.head();
        git.switch("main").write("b.js", "b();\nd();\n");
        let base = git.commit("more");
        git.switch("topic").run(&["merge", "--quiet", "--no-edit", "main"]);
        let merged = project.review(&base).await;
        assert_eq!(merged.reason.to_string(), format!("no-changes-since-{}", before.short()));
        assert_eq!(statuses(&merged), ["a.js:32 same"]);
        assert_eq!((merged.coverage.files_read, merged.reviewers.len()), (0, 0));
        // A review of nothing is completed: the next push is read from there.
        let before = git.head();
        git.write("c.js", "debugger;\n").commit("push B");
        let next = project.review(&base).await;
        assert_eq!(next.reason.to_string(), format!("incremental-from-{}", before.short()));
        assert_eq!(statuses(&next), ["a.js:32 same", "c.js:1 new!"]);
    }

    async fn a_force_push_whose_old_head_is_gone_reads_everything_and_follows_all_the_same(database: TestDatabase) {
        let project = Project::new(&database).await;
        let git = &project.git;
        let base = git.write("a.js", code("a();")).commit("base");
        git.branch("topic").write("a.js", code("debugger;")).commit("push A");
        project.review(&base).await;
        git.write("a.js", format!("x();\n{}", code("debugger;")));
        git.run(&["add", "--all", "."]);
        git.run(&["commit", "--quiet", "--amend", "--message", "another"]);
        let kept = git.head();
        git.run(&["reflog", "expire", "--expire=now", "--all"]);
        git.run(&["gc", "--quiet", "--prune=now"]);
        let forced = project.review(&base).await;
        assert_eq!(forced.reason.to_string(), "prior-sha-unreachable");
        assert_eq!(statuses(&forced), ["a.js:31 moved"]);

        // After a force-push the change since the old head is read, if it still exists, ancestor or not.
        git.write("a.js", code("debugger;"));
        git.run(&["add", "--all", "."]);
        git.run(&["commit", "--quiet", "--amend", "--message", "a third"]);
        let again = project.review(&base).await;
        assert_eq!(again.reason.to_string(), format!("incremental-from-{}", kept.short()));
        assert_eq!(statuses(&again), ["a.js:30 moved"]);
    }

    async fn a_shallow_clone_compares_what_it_has_and_says_so(database: TestDatabase) {
        let (mut project, base, _) = Project::pushed(&database, "debugger;").await;
        let folder = tempfile::tempdir().expect("a folder");
        let clone = folder.path().join("clone");
        let name = clone.to_str().expect("UTF-8").to_owned();
        project.git.run(&["clone", "--quiet", "--depth=1", "--branch=topic", &project.git.url(), &name]);
        project.git.run(&["-C", &name, "fetch", "--quiet", "--depth=1", "origin", base.as_str()]);
        project.repository = Repository::Local(Git::new(&clone));
        let report = project.review(&base).await;
        assert_eq!(statuses(&report), ["a.js:30 new!"]);
        assert!(report.notes[0].contains("this history is shallow"), "{:?}", report.notes);
    }

    async fn a_fetched_repository_gets_the_head_of_the_last_review_by_its_id(database: TestDatabase) {
        let mut project = Project::new(&database).await;
        project.git.run(&["config", "uploadpack.allowFilter", "true"]);
        project.git.run(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
        let base = project.git.write("a.js", code("a();")).write("b.js", "b();\n").commit("base");
        let old = project.git.branch("topic").write("a.js", code("debugger;")).commit("push A");
        let folders = tempfile::tempdir().expect("a folder");
        let remote = Remote::new(&project.git.url(), None).expect("an address");
        let fetched = FetchedRepository::fetch(&folders.path().join("1"), &remote, &base, &old).await.expect("fetched");
        project.repository = Repository::Fetched(fetched);
        project.review(&base).await;
        // Another machine, and a head that is not an ancestor of the new one.
        project.git.write("b.js", "b();\ndebugger;\n").run(&["add", "--all", "."]);
        project.git.run(&["commit", "--quiet", "--amend", "--message", "another"]);
        let head = project.git.head();
        let fetched = FetchedRepository::fetch(&folders.path().join("2"), &remote, &base, &head).await.expect("fetched");
        project.repository = Repository::Fetched(fetched);
        let report = project.review(&base).await;
        assert_eq!(report.reason.to_string(), format!("incremental-from-{}", old.short()));
        assert_eq!(statuses(&report), ["a.js:30 same", "b.js:2 new!"]);
        assert_eq!(report.coverage.files_read, 1);
    }

    async fn where_the_history_ends_the_later_commits_are_searched(database: TestDatabase) {
        let (mut project, base, cut) = Project::pushed(&database, "a2();").await;
        let token = ["gh", "p_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5", "0smkjE"].concat();
        project.git.write("b.js", format!("const t = '{token}';\n")).commit("push B");
        project.git.write("b.js", "const t = '';\n").commit("push C");
        let folder = tempfile::tempdir().expect("a folder");
        let clone = folder.path().join("clone");
        let name = clone.to_str().expect("UTF-8").to_owned();
        project.git.run(&["clone", "--quiet", "--depth=3", "--branch=topic", &project.git.url(), &name]);
        project.git.run(&["-C", &name, "fetch", "--quiet", "--depth=1", "origin", base.as_str()]);
        project.repository = Repository::Local(Git::new(&clone));
        let report = project.review(&base).await;
        assert_eq!(statuses(&report), ["b.js:0 new!"]);
        let why = "was not searched for credentials: its history is not here; fetch all of it";
        assert_eq!(report.reviewers[0].problems, [format!("{} {why}", cut.short())]);
    }
}
