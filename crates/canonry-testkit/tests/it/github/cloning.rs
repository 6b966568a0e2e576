//! Git over HTTP: fetching commits by their SHAs, with a token, whole or in part.

use std::path::Path;
use std::process::{Command, Output};

use canonry_testkit::github::{Emulator, Fault, NewPull, Permission};
use tempfile::TempDir;

use crate::github::pulls::{PULL, world_with_pull};
use crate::github::setting::{REPO, small_world};

/// Git without any user's settings.
fn git(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new("git");
    command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    command.env("HOME", folder).env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C");
    command.current_dir(folder).args(arguments).output().expect("git runs")
}

fn done(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    done(&git(folder.path(), &["init", "--quiet"]));
    folder
}

/// The repository's URL, with a token if given.
fn address(emulator: &Emulator, token: Option<&str>) -> String {
    let who = token.map(|token| format!("x-access-token:{token}@")).unwrap_or_default();
    format!("{}/{REPO}.git", emulator.url().replace("http://", &format!("http://{who}")))
}

#[test]
fn two_commits_are_fetched_by_their_shas_whole_or_without_files() {
    let mut world = world_with_pull();
    let (base, head) = (world.pull(REPO, PULL).base_sha.clone(), world.pull(REPO, PULL).head_sha.clone());
    let moved = world.force_push_pull(REPO, PULL, "author", &[("b.txt", Some("b\n"))]);
    let emulator = Emulator::start_blocking(world);
    let from = address(&emulator, Some("maint-token"));
    for (protocol, filter) in
        [("0", None), ("2", None), ("0", Some("--filter=blob:none")), ("2", Some("--filter=blob:none"))]
    {
        let folder = folder();
        done(&git(folder.path(), &["remote", "add", "origin", &from]));
        let version = format!("protocol.version={protocol}");
        let mut arguments = vec!["-c", &version, "fetch", "--quiet", "--no-tags", "--depth=1"];
        arguments.extend(filter);
        arguments.extend(["origin", &base, &head]);
        done(&git(folder.path(), &arguments));
        let objects = done(&git(folder.path(), &["rev-list", "--objects", "--missing=print", &head]));
        let missing = objects.lines().filter(|line| line.starts_with('?')).count();
        assert_eq!(
            missing,
            if filter.is_some() { 2 } else { 0 },
            "{protocol} {filter:?}: files come only when asked for"
        );
        let changed = done(&git(folder.path(), &["diff", "--name-only", &base, &head]));
        assert_eq!(
            changed, "long.txt\nsrc/a.rs\n",
            "{protocol} {filter:?}: the head of before the force-push is there"
        );
        let file = format!("{head}:src/a.rs");
        assert_eq!(
            done(&git(folder.path(), &["cat-file", "-p", &file])),
            "one\ntwo\nthree\nfour\n",
            "files come when they are read"
        );
    }
    let refs = done(&git(folder().path(), &["ls-remote", &from]));
    let refs: Vec<&str> = refs.lines().collect();
    let line = |sha: &str, name: &str| format!("{sha}\t{name}");
    assert_eq!(
        refs,
        [
            line(&base, "HEAD"),
            line(&base, "refs/heads/main"),
            line(&moved, "refs/heads/topic"),
            line(&moved, "refs/pull/4/head")
        ]
    );
    assert!(emulator.writes().is_empty(), "fetching changes nothing");
    assert_eq!(emulator.world().requests_used("maint"), 0, "and costs nothing");
}

#[test]
fn many_wants_are_sent_packed_and_understood() {
    let mut world = small_world();
    let shas: Vec<String> =
        (0..40).map(|index| world.commit(REPO, "main", &[("a", Some(&format!("{index}\n")))])).collect();
    let emulator = Emulator::start_blocking(world);
    let folder = folder();
    let from = address(&emulator, None);
    let mut arguments = vec!["fetch", "--quiet", &from];
    arguments.extend(shas.iter().map(String::as_str));
    done(&git(folder.path(), &arguments));
    let count = done(&git(folder.path(), &["rev-list", "--count", &shas[39]]));
    assert_eq!(count, "41\n");
}

#[test]
fn a_private_repository_is_fetched_with_the_right_token_only() {
    let mut world = world_with_pull();
    world.get_mut(REPO).private = true;
    world.token("no-contents", "maint").fine_grained(&[("issues", "write")]);
    world.token("contents", "maint").fine_grained(&[("contents", "read")]);
    world.collaborator(REPO, "reader", Permission::Read);
    world.token("reader-token", "reader");
    let head = world.pull(REPO, PULL).head_sha.clone();
    let emulator = Emulator::start_blocking(world);
    for (token, fetched) in [
        (None, false),
        (Some("wrong"), false),
        (Some("stranger-token"), false),
        (Some("no-contents"), false),
        (Some("contents"), true),
        (Some("reader-token"), true),
    ] {
        let folder = folder();
        let output = git(folder.path(), &["fetch", "--quiet", &address(&emulator, token), &head]);
        assert_eq!(output.status.success(), fetched, "{token:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_fork_is_fetched_from_the_repository_it_asks_to_be_merged_into() {
    let mut world = small_world();
    let head = world.commit(REPO, "evil", &[("x", Some("x\n"))]);
    let new = NewPull { fork: Some(String::from("mallory")), ..NewPull::new("Hello") };
    let number = world.open_pull(REPO, "mallory", "evil", new);
    let emulator = Emulator::start_blocking(world);
    let from = address(&emulator, None);
    let refs = done(&git(folder().path(), &["ls-remote", &from]));
    assert!(!refs.contains("evil") && refs.contains(&format!("{head}\trefs/pull/{number}/head")), "{refs}");
    done(&git(folder().path(), &["fetch", "--quiet", &from, &head]));
}

#[test]
fn faults_strike_fetches_and_an_old_name_leads_on() {
    let mut world = world_with_pull();
    world.rename_repo(REPO, "acme/gadgets", "maint");
    let emulator = Emulator::start_blocking(world);
    let from = address(&emulator, None);
    done(&git(folder().path(), &["ls-remote", &from]));
    emulator.fault(Fault::on("POST", "/**/git-upload-pack").drop_connection());
    emulator.fault(Fault::on("GET", "/**/info/refs").nth(2).answer(503));
    let fetch = |folder: &TempDir| git(folder.path(), &["fetch", "--quiet", &from, "refs/heads/main"]).status.success();
    let folder = folder();
    assert!(!fetch(&folder), "cut while it was sent");
    emulator.clear_faults();
    assert!(fetch(&folder));
}
