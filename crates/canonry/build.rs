//! Strips the symbols of a release, and records the commit that it is built from.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=CANONRY_COMMIT");
    let is = |variable: &str, value: &str| env::var(variable).is_ok_and(|found| found == value);
    // Profiles that inherit from `release` have this name too.
    let is_release = is("PROFILE", "release");
    // Symbols are 9 of 68 MB; a panic still names its place. `strip` belongs into the profile, but cargo ignores it for
    // a package with profile settings of its own.
    if is_release && is("CARGO_CFG_TARGET_OS", "linux") {
        println!("cargo::rustc-link-arg-bins=-Wl,--strip-all");
    }
    println!("cargo::rustc-env=CANONRY_TARGET={}", env::var("TARGET").unwrap_or_default());
    if let Some(commit) = given_commit().or_else(packaged_commit).or_else(|| cloned_commit(is_release)) {
        println!("cargo::rustc-env=CANONRY_BUILT_COMMIT={commit}");
    }
}

/// The commit that whoever builds names, such as a container's build, which has no `.git`.
fn given_commit() -> Option<String> {
    env::var("CANONRY_COMMIT").ok().as_deref().and_then(commit_in)
}

/// The commit that cargo wrote into a packaged crate.
fn packaged_commit() -> Option<String> {
    let text = fs::read_to_string(".cargo_vcs_info.json").ok()?;
    commit_in(text.split("\"sha1\"").nth(1)?.split('"').nth(1)?)
}

/// The commit of the clone. Only a release asks: a development build would be compiled again after every commit.
fn cloned_commit(is_release: bool) -> Option<String> {
    // A copy of this crate inside another repository must not name that repository's commit.
    let is_clone =
        env::current_dir().is_ok_and(|here| here.ends_with("crates/canonry") && here.join("../../.git").exists());
    if !is_release || !is_clone {
        return None;
    }
    // A commit changes the branch's file, or, after `git pack-refs`, the packed list; a checkout changes HEAD.
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]);
    for name in ["HEAD", "packed-refs"].into_iter().chain(branch.as_deref()) {
        if let Some(path) = git(&["rev-parse", "--git-path", name]).filter(|path| Path::new(path).exists()) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    git(&["rev-parse", "HEAD"]).as_deref().and_then(commit_in)
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

fn commit_in(text: &str) -> Option<String> {
    let is_commit = text.len() >= 7 && text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_commit.then(|| text.to_owned())
}
