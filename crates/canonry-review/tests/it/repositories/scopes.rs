//! Which files a review reads after a push, and why.

use canonry_domain::review::{CommitSha, ReviewMode};
use canonry_review::{ReviewScope, ScopeRequest, find_scope};

use crate::repositories::test_repository::{TestRepository, path};

async fn scope(repository: &TestRepository, base: &CommitSha, last: Option<&CommitSha>) -> ReviewScope {
    let head = repository.head();
    let request = ScopeRequest { base, head: &head, last, full: false };
    find_scope(&repository.local(), request).await.expect("a scope")
}

fn read(scope: &ReviewScope) -> Vec<&str> {
    scope.read.iter().map(|path| path.as_str()).collect()
}

/// A change of two files on a base of three.
fn reviewed() -> (TestRepository, CommitSha, CommitSha) {
    let repository = TestRepository::new();
    repository.write_lines("a.rs", 1..=30).write_lines("b.rs", 1..=30).write_lines("c.rs", 1..=30);
    let base = repository.commit("base");
    repository.branch("topic").write_lines("a.rs", 1..=31).write_lines("b.rs", 1..=31);
    let last = repository.commit("change");
    (repository, base, last)
}

#[tokio::test]
async fn the_first_review_reads_everything() {
    let (repository, base, _) = reviewed();
    let scope = scope(&repository, &base, None).await;
    assert_eq!(scope.reason.to_string(), "no-prior-review");
    assert_eq!((scope.reason.mode(), read(&scope)), (ReviewMode::Full, vec!["a.rs", "b.rs"]));
    assert_eq!(scope.notes, [""; 0]);
}

#[tokio::test]
async fn a_push_is_read_alone() {
    let (repository, base, last) = reviewed();
    repository.write_lines("b.rs", 1..=32).write("d.rs", "new\n").commit("push");
    let scope = scope(&repository, &base, Some(&last)).await;
    assert_eq!(scope.reason.to_string(), format!("incremental-from-{}", last.short()));
    assert_eq!(read(&scope), ["b.rs", "d.rs"]);
    assert_eq!(scope.files_read().count(), 2);
    // The whole change is known all the same, and the lines of the earlier push in a file that is read.
    assert_eq!(scope.changes.len(), 3);
    assert_eq!(scope.files_read().next().expect("b.rs").added.len(), 2);
}

#[tokio::test]
async fn everything_when_asked_for() {
    let (repository, base, last) = reviewed();
    repository.write_lines("b.rs", 1..=32).commit("push");
    let head = repository.head();
    let request = ScopeRequest { base: &base, head: &head, last: Some(&last), full: true };
    let scope = find_scope(&repository.local(), request).await.expect("a scope");
    assert_eq!((scope.reason.to_string().as_str(), read(&scope)), ("full-requested", vec!["a.rs", "b.rs"]));
    // Earlier findings are followed all the same.
    assert_eq!(scope.since.map(|since| since.len()), Some(1));
}

#[tokio::test]
async fn a_rename_is_followed() {
    let (repository, base, last) = reviewed();
    repository.run(&["mv", "a.rs", "moved.rs"]);
    repository.write_lines("moved.rs", (100..300).chain(1..=31)).commit("push");
    let scope = scope(&repository, &base, Some(&last)).await;
    assert_eq!(read(&scope), ["a.rs", "moved.rs"]);
    let earlier = [path("a.rs"), path("b.rs")].into();
    let maps =
        scope.file_maps(&repository.git(), &repository.head(), &earlier, Default::default()).await.expect("maps");
    // Two hundred new lines on top of thirty-one are no rename to git.
    assert!(maps.renamed.is_empty() && maps.gone == [path("a.rs")].into());

    let (repository, base, last) = reviewed();
    repository.run(&["mv", "a.rs", "moved.rs"]);
    repository.write_lines("moved.rs", (100..115).chain(1..=31)).commit("push");
    let scope = self::scope(&repository, &base, Some(&last)).await;
    assert_eq!(read(&scope), ["moved.rs"]);
    let maps =
        scope.file_maps(&repository.git(), &repository.head(), &earlier, Default::default()).await.expect("maps");
    assert_eq!(maps.renamed, [(path("a.rs"), path("moved.rs"))].into());
    assert_eq!(maps.lines[&path("a.rs")].line(31), Some(46));
    assert!(maps.gone.is_empty());
}

#[tokio::test]
async fn a_merge_from_the_base_brings_nothing_to_read() {
    let (repository, _, last) = reviewed();
    repository.switch("main").write_lines("c.rs", 1..=40).write("other.rs", "other\n");
    let base = repository.commit("meanwhile");
    repository.switch("topic").run(&["merge", "--quiet", "--no-edit", "main"]);
    let merged = scope(&repository, &base, Some(&last)).await;
    assert_eq!(merged.reason.to_string(), format!("no-changes-since-{}", last.short()));
    assert_eq!((merged.reason.mode(), merged.read.len()), (ReviewMode::Incremental, 0));
    assert_eq!(merged.changes.iter().map(|change| change.path.as_str()).collect::<Vec<_>>(), ["a.rs", "b.rs"]);
}

#[tokio::test]
async fn nothing_pushed_is_nothing_to_read() {
    let (repository, base, last) = reviewed();
    let same = scope(&repository, &base, Some(&last)).await;
    assert_eq!(same.reason.to_string(), format!("no-changes-since-{}", last.short()));
    repository.commit("empty");
    assert_eq!(scope(&repository, &base, Some(&last)).await.read.len(), 0);
}

#[tokio::test]
async fn a_force_push_is_compared_with_what_was_reviewed() {
    let (repository, base, last) = reviewed();
    repository.run(&["reset", "--quiet", "--hard", base.as_str()]);
    repository.write_lines("a.rs", 1..=31).write_lines("b.rs", 1..=33).commit("rewritten");
    let rewritten = scope(&repository, &base, Some(&last)).await;
    assert_eq!(rewritten.reason.to_string(), format!("incremental-from-{}", last.short()));
    assert_eq!(read(&rewritten), ["b.rs"]);
}

#[tokio::test]
async fn a_rebase_is_compared_with_what_was_reviewed() {
    let (repository, _, last) = reviewed();
    repository.switch("main").write_lines("c.rs", 1..=40);
    let base = repository.commit("meanwhile");
    repository.switch("topic").run(&["rebase", "--quiet", "main"]);
    let rebased = scope(&repository, &base, Some(&last)).await;
    assert_eq!(rebased.reason.to_string(), format!("no-changes-since-{}", last.short()));
    assert_eq!(rebased.changes.len(), 2);
}

#[tokio::test]
async fn a_head_that_is_gone_makes_it_a_full_review() {
    let (repository, base, _) = reviewed();
    let nobody = "1234567890123456789012345678901234567890".parse().expect("an id");
    let full = scope(&repository, &base, Some(&nobody)).await;
    assert_eq!((full.reason.to_string().as_str(), read(&full)), ("prior-sha-unreachable", vec!["a.rs", "b.rs"]));
    assert_eq!(full.since, None);
}

#[tokio::test]
async fn a_file_that_was_put_back_is_no_longer_part_of_the_change() {
    let (repository, base, last) = reviewed();
    repository.write_lines("a.rs", 1..=30).commit("put back");
    let scope = scope(&repository, &base, Some(&last)).await;
    assert_eq!(scope.reason.to_string(), format!("no-changes-since-{}", last.short()));
    let earlier = [path("a.rs"), path("b.rs"), path("c.rs")].into();
    let maps =
        scope.file_maps(&repository.git(), &repository.head(), &earlier, Default::default()).await.expect("maps");
    assert_eq!(maps.gone, [path("a.rs")].into());
}

#[tokio::test]
async fn a_shallow_clone_compares_what_it_has_and_says_so() {
    let (repository, base, _) = reviewed();
    repository.switch("main").write_lines("c.rs", 1..=31);
    let newer = repository.commit("meanwhile");
    let clone = TestRepository::new();
    clone.run(&["fetch", "--quiet", "--depth=1", &repository.url(), "topic", "main"]);
    let topic: CommitSha = repository.run(&["rev-parse", "topic"]).parse().expect("an id");
    clone.run(&["switch", "--quiet", "--detach", topic.as_str()]);
    let shallow = scope(&clone, &newer, Some(&base)).await;
    assert_eq!(shallow.reason.to_string(), "prior-sha-unreachable");
    assert_eq!(read(&shallow), ["a.rs", "b.rs", "c.rs"]);
    assert_eq!(shallow.notes.len(), 1);
    assert!(shallow.notes[0].starts_with("no common ancestor of"), "{:?}", shallow.notes);
}

#[tokio::test]
async fn a_base_that_is_gone_is_an_error_with_words() {
    let (repository, _, _) = reviewed();
    let nobody: CommitSha = "1234567890123456789012345678901234567890".parse().expect("an id");
    let request = ScopeRequest { base: &nobody, head: &repository.head(), last: None, full: false };
    let error = find_scope(&repository.local(), request).await.expect_err("no base");
    assert!(error.to_string().starts_with("read what differs: git says \"fatal: bad object"), "{error}");
}
