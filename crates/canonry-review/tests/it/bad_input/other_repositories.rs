//! Tests unusual repositories: ids of another length, trees that git would not write, clones without files.

use std::io::Write as _;
use std::process::{Command, Stdio};

use canonry_domain::review::CommitSha;
use canonry_review::{FetchedRepository, Remote, Repository};

use crate::bad_input::reviewed::{lint, reviewed};
use crate::repositories::test_repository::{TestRepository, path};

fn serve(repository: &TestRepository) {
    repository.run(&["config", "uploadpack.allowFilter", "true"]);
    repository.run(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
}

async fn fetched(repository: &TestRepository, base: &CommitSha) -> (tempfile::TempDir, Repository) {
    serve(repository);
    let folder = tempfile::tempdir().expect("a folder");
    let remote = Remote::new(&repository.url(), None).expect("an address");
    let fetched = FetchedRepository::fetch(folder.path(), &remote, base, &repository.head()).await.expect("fetched");
    (folder, Repository::Fetched(fetched))
}

#[tokio::test]
async fn ids_of_sixty_four_digits() {
    let repository = TestRepository::new();
    std::fs::remove_dir_all(repository.path(".git")).expect("removed");
    repository.run(&["init", "--quiet", "--initial-branch=main", "--object-format=sha256"]);
    let base = repository.write("a.js", "a();\n").write("b.js", "b();\n").commit("base");
    repository.branch("topic").write("a.js", "debugger;\n").write(".gitattributes", "* -diff\n").commit("change");
    assert_eq!(repository.head().as_str().len(), 64);
    let report = lint(&[("no-b", "b.js", 1)]);
    let local = reviewed(&repository.local(), &base, &repository.head(), Some(&report)).await;
    assert_eq!(local.places(), ["debug-leftover a.js:1", "no-b b.js:1"]);
    let (_folder, remote) = fetched(&repository, &base).await;
    let fetched = reviewed(&remote, &base, &repository.head(), Some(&report)).await;
    assert_eq!((fetched.scope, fetched.findings), (local.scope, local.findings));
}

#[tokio::test]
async fn a_submodule_in_a_clone_without_files() {
    let repository = TestRepository::new();
    let base = repository.write("a.js", "a();\n").write("b.js", "b();\n").write("c.js", "c();\n").commit("base");
    repository.branch("topic").write("a.js", "debugger;\n").run(&["add", "--all", "."]);
    repository.run(&["update-index", "--add", "--cacheinfo", &format!("160000,{},vendor/lib", "12".repeat(20))]);
    repository.run(&["commit", "--quiet", "--message", "a submodule"]);
    let (_folder, remote) = fetched(&repository, &base).await;
    // A report about the submodule, about files that did not change, and about a file that does not exist.
    let report = lint(&[("x", "vendor/lib", 1), ("x", "vendor/lib/x.js", 1), ("x", "b.js", 1), ("x", "no.js", 1)]);
    let reviewed = reviewed(&remote, &base, &repository.head(), Some(&report)).await;
    let expected = ["debug-leftover a.js:1", "x b.js:1", "x no.js:1", "x vendor/lib/x.js:1", "x vendor/lib:1"];
    assert_eq!(reviewed.places(), expected);
    assert_eq!(reviewed.texts.get(&path("b.js")), Some("b();\n"));
    assert_eq!(reviewed.texts.get(&path("vendor/lib")), None);
}

#[tokio::test]
async fn files_that_did_not_change_come_in_one_go() {
    let repository = TestRepository::new();
    let names: Vec<String> = (0..300).map(|file| format!("src/{file}.js")).collect();
    for name in &names {
        repository.write(name, format!("// {name}\n"));
    }
    let base = repository.write("a.js", "a();\n").commit("base");
    repository.branch("topic").write("a.js", "debugger;\n").commit("change");
    let (folder, remote) = fetched(&repository, &base).await;
    let report: Vec<(&str, &str, u32)> = names.iter().map(|name| ("x", name.as_str(), 1)).collect();
    let reviewed = reviewed(&remote, &base, &repository.head(), Some(&lint(&report))).await;
    assert!(names.iter().all(|name| reviewed.texts.get(&path(name)).is_some()));
    // Each fetch leaves a pack: the commits, the changed file before and after, and all the others.
    let packs = std::fs::read_dir(folder.path().join("objects/pack")).expect("packs");
    let packs = packs.filter_map(Result::ok).filter(|file| file.path().extension().is_some_and(|end| end == "pack"));
    assert!(packs.count() <= 4);
}

/// Writes an object that git itself would refuse to create.
fn write_object(repository: &TestRepository, kind: &str, content: &[u8]) -> String {
    let mut git = Command::new("git")
        .arg("-C")
        .arg(repository.folder())
        .args(["hash-object", "-w", "--literally", "--stdin", "-t", kind])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("git runs");
    git.stdin.take().expect("a pipe").write_all(content).expect("written");
    let output = git.wait_with_output().expect("it ends");
    assert!(output.status.success());
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[tokio::test]
async fn a_tree_that_leads_outside() {
    let repository = TestRepository::new();
    let base = repository.write("a.js", "a();\n").commit("base");
    let blob = write_object(&repository, "blob", b"debugger;\n");
    let id: Vec<u8> = (0..40).step_by(2).map(|at| u8::from_str_radix(&blob[at..at + 2], 16).expect("hex")).collect();
    let mut tree = Vec::new();
    for name in ["..", ".git", "/etc/passwd", "a.js", "b//c.js", "z.js"] {
        tree.extend(format!("100644 {name}\0").bytes().chain(id.iter().copied()));
    }
    let tree = write_object(&repository, "tree", &tree);
    let head = repository.run(&["commit-tree", &tree, "-p", base.as_str(), "-m", "hostile"]).parse().expect("an id");
    let reviewed = reviewed(&repository.local(), &base, &head, None).await;
    assert_eq!(reviewed.places(), ["debug-leftover a.js:1", "debug-leftover z.js:1"]);
    let paths: Vec<&str> = reviewed.scope.changes.iter().map(|change| change.path.as_str()).collect();
    assert_eq!(paths, [".git", "a.js", "z.js"]);
}

#[tokio::test]
async fn a_repository_that_is_damaged_or_empty() {
    let repository = TestRepository::new();
    let unborn = repository.git().commit("HEAD").await.expect_err("no commit").to_string();
    assert_eq!(unborn, "find the commit \"HEAD\"; fetch it first, or name another one");
    let base = repository.write("a.js", "a();\n").commit("base");
    let head = repository.branch("topic").write("a.js", "debugger;\n").commit("change");
    let blob = repository.run(&["rev-parse", "HEAD:a.js"]);
    let object = repository.path(format!(".git/objects/{}/{}", &blob[..2], &blob[2..]));
    std::fs::remove_file(&object).expect("removed");
    let error = repository.git().changes(&base, &head).await.expect_err("damaged").to_string();
    assert!(error.starts_with("read what differs: git says \"fatal: "), "{error}");
    std::fs::write(&object, b"not an object").expect("written");
    let error = repository.git().changes(&base, &head).await.expect_err("damaged").to_string();
    assert!(error.starts_with("read what differs: git says \"fatal: "), "{error}");
    // Two branches without a common history are compared directly, and a note says so.
    repository.switch("main").run(&["checkout", "--quiet", "--orphan", "alone"]);
    let alone = repository.write("a.js", "b();\ndebugger;\n").commit("alone");
    let reviewed = reviewed(&repository.local(), &base, &alone, None).await;
    assert_eq!(reviewed.places(), ["debug-leftover a.js:2"]);
    assert!(reviewed.scope.notes[0].starts_with("there is no common ancestor"), "{:?}", reviewed.scope.notes);
}
