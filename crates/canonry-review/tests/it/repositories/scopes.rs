//! Tests which files a review reads after a push, and why.

use canonry_domain::review::CommitSha;
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
async fn a_push_is_read_alone() {
    let (repository, base, last) = reviewed();
    repository.write_lines("b.rs", 1..=32).write("d.rs", "new\n").commit("push");
    let scope = scope(&repository, &base, Some(&last)).await;
    assert_eq!(scope.reason.to_string(), format!("incremental-from-{}", last.short()));
    assert_eq!(read(&scope), ["b.rs", "d.rs"]);
    assert_eq!(scope.files_read().count(), 2);
    // The whole change is still known, and so are the lines of the earlier push in a file that is read.
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
    // Earlier findings are still tracked.
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
    // For git, two hundred new lines on top of thirty-one are not a rename.
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
async fn nothing_pushed_is_nothing_to_read() {
    let (repository, base, last) = reviewed();
    let same = scope(&repository, &base, Some(&last)).await;
    assert_eq!(same.reason.to_string(), format!("no-changes-since-{}", last.short()));
    repository.commit("empty");
    assert_eq!(scope(&repository, &base, Some(&last)).await.read.len(), 0);
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
async fn a_base_that_is_gone_is_an_error_with_words() {
    let (repository, _, _) = reviewed();
    let nobody: CommitSha = "1234567890123456789012345678901234567890".parse().expect("an id");
    let request = ScopeRequest { base: &nobody, head: &repository.head(), last: None, full: false };
    let error = find_scope(&repository.local(), request).await.expect_err("no base");
    assert!(error.to_string().starts_with("read what differs: git says \"fatal: bad object"), "{error}");
}
