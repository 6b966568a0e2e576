//! Tests fetching commits from another repository.

use canonry_review::{FetchedRepository, GitError, Remote, Repository, ScopeRequest, find_scope};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::repositories::test_repository::TestRepository;

/// A repository that serves any object on request, as GitHub does.
fn served() -> TestRepository {
    let repository = TestRepository::new();
    repository.run(&["config", "uploadpack.allowFilter", "true"]);
    repository.run(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
    repository
}

async fn fetched(repository: &TestRepository, into: &std::path::Path, base: &str) -> (FetchedRepository, ScopeParts) {
    let remote = Remote::new(&repository.url(), None).expect("an address");
    let (base, head) = (base.parse().expect("an id"), repository.head());
    let fetched = FetchedRepository::fetch(into, &remote, &base, &head).await.expect("fetched");
    (fetched, ScopeParts { base, head })
}

struct ScopeParts {
    base: canonry_domain::review::CommitSha,
    head: canonry_domain::review::CommitSha,
}

#[tokio::test]
async fn two_commits_come_without_a_work_tree_and_without_hooks() {
    let repository = served();
    repository.write("a.txt", "one\n").write("unrelated.bin", vec![7; 100_000]);
    let base = repository.commit("base");
    repository.branch("topic").write("a.txt", "one\ntwo\n").commit("change");
    let folder = tempfile::tempdir().expect("a folder");
    let (fetched, parts) = fetched(&repository, folder.path(), base.as_str()).await;
    let git = fetched.git().clone();
    let missing =
        git.ask("list", &["rev-list", "--objects", "--missing=print", parts.head.as_str()]).await.expect("listed");
    assert!(String::from_utf8_lossy(&missing).lines().filter(|line| line.starts_with('?')).count() >= 2);
    assert!(!folder.path().join("a.txt").exists() && !folder.path().join("hooks").exists());
    // Files are fetched when they are read.
    let request = ScopeRequest { base: &parts.base, head: &parts.head, last: None, full: false };
    let scope = find_scope(&Repository::Fetched(fetched.clone()), request).await.expect("a scope");
    assert_eq!(scope.changes[0].added, [(2, "two".to_owned())]);
    // Fetching again into the same folder works.
    let remote = Remote::new(&repository.url(), None).expect("an address");
    let again =
        FetchedRepository::fetch(folder.path(), &remote, &parts.base, &parts.head).await.expect("fetched again");
    assert!(again.git().has_commit(&parts.head).await.expect("asked"));
}

#[tokio::test]
async fn a_long_history_is_deepened_once() {
    let repository = served();
    repository.write("a.txt", "one\n").commit("base");
    repository.branch("topic").write("a.txt", "one\ntwo\n").commit("change");
    repository.switch("main");
    for commit in 0..120 {
        repository.run(&["commit", "--quiet", "--allow-empty", "--message", &commit.to_string()]);
    }
    let base = repository.head();
    repository.switch("topic");
    let folder = tempfile::tempdir().expect("a folder");
    let (fetched, parts) = fetched(&repository, folder.path(), base.as_str()).await;
    assert_eq!(fetched.git().merge_base(&parts.base, &parts.head).await.expect("asked"), None);
    let request = ScopeRequest { base: &parts.base, head: &parts.head, last: None, full: false };
    let scope = find_scope(&Repository::Fetched(fetched), request).await.expect("a scope");
    assert_eq!((scope.changes.len(), scope.notes.len()), (1, 0));
    assert_eq!(scope.changes[0].added, [(2, "two".to_owned())]);
}

#[tokio::test]
async fn the_head_of_the_last_review_is_fetched_when_it_is_still_there() {
    let repository = served();
    repository.write("a.txt", "one\n").write("b.txt", "one\n");
    let base = repository.commit("base");
    repository.branch("topic").write("a.txt", "two\n").write("b.txt", "two\n");
    let last = repository.commit("reviewed");
    repository.run(&["reset", "--quiet", "--hard", base.as_str()]);
    repository.write("a.txt", "two\n").write("b.txt", "three\n").commit("rewritten");
    let folder = tempfile::tempdir().expect("a folder");
    let (fetched, parts) = fetched(&repository, folder.path(), base.as_str()).await;
    assert!(!fetched.git().has_commit(&last).await.expect("asked"));
    let repository = Repository::Fetched(fetched);
    let request = ScopeRequest { base: &parts.base, head: &parts.head, last: Some(&last), full: false };
    let scope = find_scope(&repository, request).await.expect("a scope");
    assert_eq!(scope.reason.to_string(), format!("incremental-from-{}", last.short()));
    assert_eq!(scope.read.iter().map(|path| path.as_str()).collect::<Vec<_>>(), ["b.txt"]);
    let nobody = "1234567890123456789012345678901234567890".parse().expect("an id");
    let gone = ScopeRequest { last: Some(&nobody), ..request };
    let scope = find_scope(&repository, gone).await.expect("a scope");
    assert_eq!(scope.reason.to_string(), "prior-sha-unreachable");
    assert!(
        scope.notes[0].starts_with("failed to fetch the commit that was reviewed last: git says"),
        "{:?}",
        scope.notes
    );
}

#[tokio::test]
async fn the_token_is_sent_to_its_host_and_left_nowhere() {
    let server = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/o/n.git", server.local_addr().expect("an address"));
    let heard = tokio::spawn(async move {
        let (mut stream, _) = server.accept().await.expect("a request");
        let mut request = vec![0; 8192];
        let read = stream.read(&mut request).await.expect("a request");
        stream
            .write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            .await
            .expect("answered");
        String::from_utf8_lossy(&request[..read]).into_owned()
    });
    let folder = tempfile::tempdir().expect("a folder");
    let remote = Remote::new(&url, Some("very-secret")).expect("an address");
    let sha = "1234567890123456789012345678901234567890".parse().expect("an id");
    let error = FetchedRepository::fetch(folder.path(), &remote, &sha, &sha).await.expect_err("forbidden");
    assert!(matches!(&error, GitError::Refused { said, .. } if said.contains("403")), "{error}");
    let request = heard.await.expect("heard");
    // `x-access-token:very-secret`
    assert!(request.contains("Authorization: Basic eC1hY2Nlc3MtdG9rZW46dmVyeS1zZWNyZXQ="), "{request}");
    let config = std::fs::read_to_string(folder.path().join("config")).expect("a configuration");
    assert!(!config.contains("secret") && !config.contains("eC1h"), "{config}");
}
