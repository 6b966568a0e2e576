//! Tests repositories whose own configuration names programs to run: none of them runs.

use std::path::{Path, PathBuf};
use std::process::Command;

use canonry_review::{ContentKind, Git, GitError, Repository};

use crate::bad_input::reviewed::{lint, reviewed};
use crate::repositories::test_repository::TestRepository;

/// A program that leaves a mark when it runs.
struct Trap {
    folder: tempfile::TempDir,
}

impl Trap {
    fn new() -> Self {
        let trap = Self { folder: tempfile::tempdir().expect("a folder") };
        std::fs::create_dir(trap.folder.path().join("hooks")).expect("a folder");
        for name in ["program", "hooks/post-checkout", "hooks/reference-transaction", "hooks/post-index-change"] {
            let path = trap.folder.path().join(name);
            std::fs::write(&path, format!("#!/bin/sh\ntouch {}\n", trap.mark().display())).expect("a program");
            Command::new("chmod").arg("+x").arg(&path).status().expect("chmod runs");
        }
        trap
    }

    fn program(&self) -> String {
        self.folder.path().join("program").display().to_string()
    }

    fn hooks(&self) -> String {
        self.folder.path().join("hooks").display().to_string()
    }

    fn mark(&self) -> PathBuf {
        self.folder.path().join("ran")
    }

    /// Whether it ran; resets the trap.
    fn ran(&self) -> bool {
        std::fs::remove_file(self.mark()).is_ok()
    }
}

/// A repository with a mistake on a branch, and every configuration that runs a program.
fn hostile(trap: &Trap) -> TestRepository {
    let repository = TestRepository::new();
    repository.write("a.js", "a();\n").write("sub/b.js", "b();\n").commit("base");
    repository.branch("topic").write("a.js", "debugger;\n").write("sub/b.js", "c();\n");
    repository.write(".gitattributes", "*.js -diff -text\n").commit("change");
    repository.write(".git/info/attributes", "*.js diff=evil filter=evil merge=evil working-tree-encoding=UTF-16\n");
    let program = trap.program();
    for (name, value) in [
        ("core.fsmonitor", program.as_str()),
        ("core.hooksPath", &trap.hooks()),
        ("core.pager", &program),
        ("core.editor", &program),
        ("core.askPass", &program),
        ("core.sshCommand", &program),
        ("core.gitProxy", &program),
        ("core.alternateRefsCommand", &program),
        ("core.bigFileThreshold", "1"),
        ("credential.helper", &program),
        ("diff.external", &program),
        ("diff.evil.command", &program),
        ("diff.evil.textconv", &program),
        ("diff.evil.xfuncname", "^.*$"),
        ("filter.evil.clean", &program),
        ("filter.evil.smudge", &program),
        ("filter.evil.process", &program),
        ("filter.evil.required", "true"),
        ("merge.evil.driver", &program),
        ("gpg.program", &program),
        ("log.showSignature", "true"),
        ("pager.diff", &program),
        ("pager.cat-file", &program),
        ("alias.diff", &format!("!{program}")),
        ("alias.rev-parse", &format!("!{program}")),
        ("alias.ls-tree", &format!("!{program}")),
        ("alias.cat-file", &format!("!{program}")),
        ("sequence.editor", &program),
        ("uploadpack.packObjectsHook", &program),
        ("gc.auto", "1"),
        ("maintenance.auto", "true"),
    ] {
        repository.run(&["config", name, value]);
    }
    repository
}

/// Reviews a folder, and returns the findings.
async fn places(folder: &Path) -> Vec<String> {
    let git = Git::new(folder);
    let (base, head) = (git.commit("main").await.expect("main"), git.commit("topic").await.expect("topic"));
    git.patch(&base, &head).await.expect("a patch");
    let report = lint(&[("no-b", "sub/b.js", 1)]);
    let reviewed = reviewed(&Repository::Local(git), &base, &head, Some(&report)).await;
    assert!(reviewed.scope.changes.iter().all(|change| change.content == ContentKind::Text));
    reviewed.places()
}

const FOUND: [&str; 2] = ["debug-leftover a.js:1", "no-b sub/b.js:1"];

#[tokio::test]
async fn nothing_that_is_configured_runs() {
    let trap = Trap::new();
    let repository = hostile(&trap);
    // The trap works.
    let plain = Command::new("git").arg("-C").arg(repository.folder()).args(["diff", "main", "topic"]).output();
    assert!(plain.is_ok() && trap.ran());
    assert_eq!(places(repository.folder()).await, FOUND);
    assert_eq!(places(&repository.path("sub")).await, FOUND);
    assert!(!trap.ran());
}

#[tokio::test]
async fn no_filter_runs_to_read_the_work_tree() {
    let trap = Trap::new();
    let repository = hostile(&trap);
    repository.write(".git/info/attributes", "a.js filter=evil\nsub/* filter=other.with.dots\n");
    repository.run(&["config", "filter.other.with.dots.clean", &trap.program()]);
    std::fs::write(repository.path("sub/b.js"), "d();\n").expect("a file");
    std::fs::write(repository.path("a.js"), "debugger;\nmore();\n").expect("a file");
    let git = repository.git();
    let made = git.ask("read the work tree", &["stash", "create"]).await;
    assert!(trap.ran(), "the trap is a real one: {made:?}");
    let made = git.without_filters().await.expect("asked").ask("read the work tree", &["stash", "create"]).await;
    let made = String::from_utf8(made.expect("made")).expect("text");
    assert!(!trap.ran());
    let changes = git.changes(&repository.head(), &made.trim().parse().expect("an id")).await.expect("readable");
    assert_eq!(changes[0].added.last(), Some(&(2, "more();".to_owned())));
    // Without a configured filter there is none to switch off.
    let plain = TestRepository::new();
    plain.write("a", "a\n").commit("base");
    assert!(plain.git().without_filters().await.is_ok_and(|git| format!("{git:?}") == format!("{:?}", plain.git())));
}

#[tokio::test]
async fn a_git_file_that_points_elsewhere() {
    let trap = Trap::new();
    let repository = hostile(&trap);
    let folder = tempfile::tempdir().expect("a folder");
    let pointer = folder.path().join(".git");
    std::fs::write(&pointer, format!("gitdir: {}\n", repository.path(".git").display())).expect("a file");
    assert_eq!(places(folder.path()).await, FOUND);
    assert!(!trap.ran());
    for nowhere in ["gitdir: /nonexistent/.git\n", "gitdir: .git\n", "nonsense\n", ""] {
        std::fs::write(&pointer, nowhere).expect("a file");
        let error = Git::new(folder.path()).commit("HEAD").await.expect_err("no repository").to_string();
        assert!(error.starts_with("find a commit: git says \"fatal: "), "{nowhere:?}: {error}");
    }
}

#[tokio::test]
async fn a_partial_clone_fetches_nothing_and_says_what_to_do() {
    let trap = Trap::new();
    let served = TestRepository::new();
    served.write("a.js", "a();\n").commit("base");
    served.branch("topic").write("a.js", "debugger;\n").commit("change");
    served.run(&["config", "uploadpack.allowFilter", "true"]);
    let folder = tempfile::tempdir().expect("a folder");
    let clone = folder.path().join("clone");
    let arguments = ["clone", "--quiet", "--no-checkout", "--filter=blob:none", &served.url()];
    let status = Command::new("git").args(arguments).arg(&clone).status().expect("git runs");
    assert!(status.success());
    let configure = |name: &str, value: &str| {
        let status = Command::new("git").arg("-C").arg(&clone).args(["config", name, value]).status();
        assert!(status.expect("git runs").success());
    };
    configure("core.sshCommand", &trap.program());
    configure("core.askPass", &trap.program());
    configure("remote.origin.uploadpack", &trap.program());
    configure("protocol.ext.allow", "always");
    let git = Git::new(&clone);
    let (base, head) =
        (git.commit("origin/main").await.expect("main"), git.commit("origin/topic").await.expect("topic"));
    for url in [served.url(), "ssh://git@localhost/x".to_owned(), format!("ext::{} %S", trap.program())] {
        configure("remote.origin.url", &url);
        let error = git.changes(&base, &head).await.expect_err("files are missing").to_string();
        let expected = "this clone is a partial one and lacks some files; `git diff BASE...HEAD` there fetches them";
        assert_eq!(error, format!("read what differs: {expected}"), "{url}");
        assert!(git.texts(&["78981922613b2afb6025042ff6bd878ac1994e85"]).await.expect("asked").is_empty());
        assert!(!trap.ran(), "{url}");
    }
    configure("remote.origin.url", &served.url());
    let plain = Command::new("git").arg("-C").arg(&clone).args(["diff", "origin/main", "origin/topic"]).output();
    assert!(plain.is_ok() && trap.ran(), "the trap is a real one");
}

#[tokio::test]
async fn an_object_is_what_its_id_says() {
    let repository = TestRepository::new();
    let base = repository.write("a.js", "a();\n").commit("base");
    let head = repository.branch("topic").write("a.js", "debugger;\n").commit("change");
    repository.write("harmless", "b();\n").run(&["add", "harmless"]);
    let blob = |path: &str| repository.run(&["rev-parse", path]);
    repository.run(&["replace", &blob("HEAD:a.js"), &blob(":harmless")]);
    repository.run(&["replace", "--graft", head.as_str()]);
    let reviewed = reviewed(&repository.local(), &base, &head, None).await;
    assert_eq!((reviewed.places(), reviewed.scope.notes), (vec!["debug-leftover a.js:1".to_owned()], Vec::new()));
}

#[tokio::test]
async fn a_file_that_never_ends_is_not_waited_for() {
    let repository = TestRepository::new();
    let base = repository.write("a.js", "a();\n").commit("base");
    repository.branch("topic").write("a.js", "debugger;\n").commit("change");
    let pipe = repository.path(".git/pipe").display().to_string();
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs").success());
    for name in ["diff.orderFile", "core.attributesFile", "core.excludesFile", "blame.ignoreRevsFile"] {
        repository.run(&["config", name, &pipe]);
    }
    let git = repository.git().within(std::time::Duration::from_secs(20));
    let reviewed = reviewed(&Repository::Local(git.clone()), &base, &repository.head(), None).await;
    assert_eq!(reviewed.places(), ["debug-leftover a.js:1"]);
    // A read that waits is ended by the time limit.
    let late = git.within(std::time::Duration::from_millis(200)).ask("read a pipe", &["hash-object", &pipe]).await;
    assert!(matches!(late, Err(GitError::TooLong { .. })), "{late:?}");
}
