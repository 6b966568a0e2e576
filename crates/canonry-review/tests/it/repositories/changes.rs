//! Tests the differences that git reports, on real repositories.

use std::time::Duration;

use canonry_domain::review::Hunk;
use canonry_review::{ChangeKind, CommitsError, ContentKind, FileChange, Git, GitError};

use crate::repositories::test_repository::{TestRepository, path};

async fn changes(repository: &TestRepository) -> Vec<FileChange> {
    let git = repository.git();
    let (from, to) = (git.commit("main").await.expect("main"), git.commit("HEAD").await.expect("HEAD"));
    git.changes(&from, &to).await.expect("readable")
}

fn one<'a>(changes: &'a [FileChange], at: &str) -> &'a FileChange {
    changes.iter().find(|change| change.path.as_str() == at).unwrap_or_else(|| panic!("{at} is not among {changes:#?}"))
}

#[tokio::test]
async fn a_rename_with_changed_lines() {
    let repository = TestRepository::new();
    repository.write_lines("src/old.rs", 1..=40).commit("base");
    repository.branch("topic").run(&["mv", "src/old.rs", "src/new name.rs"]);
    let lines = (1..=4).chain([100, 101]).chain(5..=20).chain(22..=40);
    repository.write_lines("src/new name.rs", lines).commit("rename");
    let changes = changes(&repository).await;
    assert_eq!(changes.len(), 1);
    let change = &changes[0];
    assert_eq!((change.kind, change.path.as_str()), (ChangeKind::Renamed, "src/new name.rs"));
    assert_eq!(change.old_path, Some(path("src/old.rs")));
    assert_eq!(change.added, [(5, "line 100;".to_owned()), (6, "line 101;".to_owned())]);
    assert_eq!(
        change.hunks,
        [Hunk { old_start: 4, old: 0, new_start: 5, new: 2 }, Hunk { old_start: 21, old: 1, new_start: 22, new: 0 }]
    );
    let map = change.line_map();
    assert_eq!((map.line(4), map.line(5), map.line(21), map.line(22)), (Some(4), Some(7), None, Some(23)));
}

#[tokio::test]
async fn line_ends_and_missing_ones() {
    let repository = TestRepository::new();
    repository.write("crlf.txt", "one\r\ntwo\r\n").write("open.txt", "one\ntwo").commit("base");
    repository.branch("topic").write("crlf.txt", "one\r\n2\r\nthree").write("open.txt", "one\ntwo\n").commit("edit");
    let changes = changes(&repository).await;
    let crlf = one(&changes, "crlf.txt");
    assert_eq!(crlf.added, [(2, "2".to_owned()), (3, "three".to_owned())]);
    assert_eq!(crlf.removed, 1);
    assert_eq!(one(&changes, "open.txt").added, [(2, "two".to_owned())]);
}

#[tokio::test]
async fn content_that_is_no_text() {
    let repository = TestRepository::new();
    let other = TestRepository::new();
    other.write("a", "a\n").commit("a");
    repository.write("logo.png", b"\x89PNG\0\x01").write("was.txt", "text\n").write("mode.sh", "echo\n").commit("base");
    repository.branch("topic").write("logo.png", b"\x89PNG\0\x02").write("empty", "");
    std::fs::remove_file(repository.path("was.txt")).expect("removed");
    std::os::unix::fs::symlink("logo.png", repository.path("was.txt")).expect("a link");
    std::os::unix::fs::symlink("/etc/passwd", repository.path("link")).expect("a link");
    repository.run(&["submodule", "--quiet", "add", &other.url(), "vendor/other"]);
    repository.run(&["add", "mode.sh"]);
    repository.run(&["update-index", "--chmod=+x", "mode.sh"]);
    repository.run(&["add", "--all", "."]);
    repository.run(&["update-index", "--chmod=+x", "mode.sh"]);
    repository.run(&["commit", "--quiet", "--message", "others"]);
    let changes = changes(&repository).await;
    let seen: Vec<_> =
        changes.iter().map(|one| (one.path.as_str(), one.kind, one.content, one.is_readable())).collect();
    assert_eq!(
        seen,
        [
            (".gitmodules", ChangeKind::Added, ContentKind::Text, true),
            ("empty", ChangeKind::Added, ContentKind::Text, true),
            ("link", ChangeKind::Added, ContentKind::Symlink, false),
            ("logo.png", ChangeKind::Modified, ContentKind::Binary, false),
            ("mode.sh", ChangeKind::Modified, ContentKind::Text, true),
            ("vendor/other", ChangeKind::Added, ContentKind::Submodule, false),
            ("was.txt", ChangeKind::Modified, ContentKind::Symlink, false),
        ]
    );
    assert!(one(&changes, "mode.sh").hunks.is_empty());
}

#[tokio::test]
async fn names_of_every_kind() {
    let repository = TestRepository::new();
    repository.commit("base");
    let names: [&[u8]; 7] = [
        b"a \"quoted\" name",
        b"tab\tand\nnew line",
        b"caf\xe9",
        "日本/語.rs".as_bytes(),
        b"back\\slash",
        b"-dash",
        b"C:x",
    ];
    repository.branch("topic");
    for name in names {
        repository.write_bytes(name, "one\n");
    }
    repository.commit("names");
    let changes = changes(&repository).await;
    let mut seen: Vec<&str> = changes.iter().map(|change| change.path.as_str()).collect();
    seen.sort_unstable();
    let expected = ["-dash", "C:x", "a \"quoted\" name", "back\\slash", "caf%E9", "tab\tand\nnew line", "日本/語.rs"];
    assert_eq!(seen, expected);
    assert!(changes.iter().all(|change| change.added == [(1, "one".to_owned())]));
    let git = repository.git();
    let paths: Vec<_> = changes.iter().map(|change| &change.path).chain([]).collect();
    let blobs = git.blobs_at(&repository.head(), &paths).await.expect("looked up");
    // The file name that is not UTF-8 is found by its bytes.
    assert_eq!(blobs.len(), 7);
    assert_eq!(blobs[&path("tab\tand\nnew line")].bytes, 4);
    let ids: Vec<&str> = changes.iter().filter_map(|change| change.blob.as_deref()).collect();
    let texts = git.texts(&ids).await.expect("read");
    assert!(ids.iter().all(|id| texts[*id] == "one\n"));
}

#[tokio::test]
async fn nothing_that_is_configured_changes_what_is_read() {
    let repository = TestRepository::new();
    repository.write_lines("sub/a.txt", 1..=30).write("sub/b.txt", "b\n").commit("base");
    repository.branch("topic").write_lines("sub/a.txt", (1..=9).chain([99]).chain(11..=12).chain([98]).chain(14..=30));
    // The change marks its own files as binary, and the owner's settings name programs to run.
    repository.write(".gitattributes", "* -diff\n*.txt diff=custom\n").write("sub/b.txt", "c\n").commit("edit");
    let plain = {
        let git = repository.git();
        git.changes(&git.commit("main").await.expect("main"), &repository.head()).await.expect("readable")
    };
    let marker = repository.path("ran");
    let touch = format!("touch {}", marker.display());
    for (name, value) in [
        ("diff.external", touch.as_str()),
        ("diff.custom.command", &touch),
        ("diff.custom.textconv", &touch),
        ("core.fsmonitor", &touch),
        ("core.pager", &touch),
        ("diff.noprefix", "true"),
        ("diff.mnemonicPrefix", "true"),
        ("diff.interHunkContext", "10"),
        ("diff.context", "7"),
        ("diff.relative", "true"),
        ("diff.submodule", "log"),
        ("diff.orderFile", "/dev/null"),
        ("color.ui", "always"),
        ("diff.colorMoved", "zebra"),
        ("diff.renames", "copies"),
    ] {
        repository.run(&["config", name, value]);
    }
    let git = Git::new(&repository.path("sub"));
    let from = git.commit("main").await.expect("main");
    let configured = git.changes(&from, &repository.head()).await.expect("readable");
    assert_eq!(configured, plain);
    assert_eq!(plain.len(), 3);
    assert!(plain.iter().all(|change| change.content == ContentKind::Text && !change.added.is_empty()));
    assert!(!marker.exists());
}

#[tokio::test]
async fn five_megabytes() {
    let repository = TestRepository::new();
    repository.commit("base");
    let long = format!("{}\n", "x".repeat(3_000_000));
    let many: String = (0..100_000).map(|line| format!("line number {line}\n")).collect();
    repository.branch("topic").write("long.min.js", &long).write("many.txt", &many).commit("large");
    let changes = changes(&repository).await;
    assert_eq!(one(&changes, "long.min.js").added[0].1.len(), 3_000_000);
    assert_eq!(one(&changes, "many.txt").added.len(), 100_000);
    let sizes = repository.git().sizes(&[one(&changes, "long.min.js").blob.as_deref().expect("a blob")]).await;
    assert_eq!(sizes.expect("measured").values().copied().collect::<Vec<_>>(), [3_000_001]);
    // A file that is too large to be read line by line differs from an answer that is too large.
    let texts = repository.git().texts(&[one(&changes, "long.min.js").blob.as_deref().expect("a blob")]).await;
    assert!(texts.expect("asked").is_empty());
    let main = repository.git().commit("main").await.expect("main");
    let refused = repository.git().reading(1024 * 1024).changes(&main, &repository.head()).await.expect_err("too much");
    assert_eq!(refused.to_string(), "read what differs: git answers with more than 1 MiB");
}

#[tokio::test]
async fn names_that_stand_for_nothing() {
    let repository = TestRepository::new();
    repository.write("a", "a\n").commit("base");
    let git = repository.git();
    for name in ["nowhere", "", "--all", "HEAD:a", "0000000000000000000000000000000000000000"] {
        assert!(matches!(git.commit(name).await, Err(CommitsError::Unknown { .. })), "{name}");
    }
    let nobody = "1234567890123456789012345678901234567890".parse().expect("an id");
    assert!(!git.has_commit(&nobody).await.expect("asked"));
    assert!(git.has_commit(&repository.head()).await.expect("asked"));
    let outside = Git::new(std::path::Path::new("/")).commit("HEAD").await.expect_err("no repository");
    assert!(outside.to_string().starts_with("find a commit: git says"), "{outside}");
    let endless = ["-c", "alias.endless=!sleep 600", "endless"];
    let late = git.within(Duration::from_millis(50)).ask("wait", &endless).await.expect_err("no time");
    assert!(matches!(late, GitError::TooLong { .. }));
}
