//! The steps of a release, run on files like those of a build.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Output};

use sha2::{Digest as _, Sha256};

use crate::packages::{RELEASE, root, steps, yaml};
use crate::place::{Place, names_in};

/// Runs the step of that name in a folder, as a runner does.
fn run_step(name: &str, folder: &Path, given: &[(&str, &str)]) -> Output {
    let document = yaml(RELEASE);
    let step = steps(&document).into_iter().find(|step| step["name"] == name).expect("the step");
    let mut bash = Command::new("bash");
    bash.args(["--noprofile", "--norc", "-eo", "pipefail", "-c"]).arg(step["run"].as_str().expect("a script"));
    bash.current_dir(folder).envs(given.iter().copied()).output().expect("bash starts")
}

/// For a program that runs on the machine that built it, and for one that does not.
#[test]
fn every_archive_holds_the_manual_and_the_completions() {
    let own = format!("#!/bin/sh\nexec '{}' \"$@\"\n", env!("CARGO_BIN_EXE_canonry"));
    for (target, runs, built) in [
        ("x86_64-unknown-linux-musl", "yes", [("target/x86_64-unknown-linux-musl/dist", own.as_str())].as_slice()),
        ("x86_64-apple-darwin", "no", &[("target/x86_64-apple-darwin/dist", "not for here"), ("target/debug", &own)]),
    ] {
        let place = Place::new();
        for (folder, program) in built {
            fs::create_dir_all(place.path(folder)).expect("a folder");
            let path = place.write(&format!("{folder}/canonry"), program);
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it is ours");
        }
        for packed in ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "CHANGELOG.md", "crates", "docs", "packages"] {
            symlink(root().join(packed), place.path(packed)).expect("a link");
        }
        let name = format!("canonry-v9.8.7-{target}");
        let given = [("TARGET", target), ("ARCHIVE", "tar.gz"), ("NAME", &name), ("RUNS", runs)];
        let packed = run_step("Pack", &place.path(""), &given);
        assert!(packed.status.success(), "{target}: {}", String::from_utf8_lossy(&packed.stderr));
        assert_eq!(names_in(&place.path("dist")), [format!("{name}.tar.gz")]);
        let mut unpack = Command::new("tar");
        unpack.arg("-xzf").arg(place.path(&format!("dist/{name}.tar.gz"))).current_dir(place.path(""));
        assert!(unpack.status().expect("tar starts").success());
        let program = fs::read_to_string(place.path(&format!("{name}/canonry"))).expect("a program");
        assert_eq!(program, built[0].1, "{target}");
        let manual = names_in(&place.path(&format!("{name}/man")));
        assert!(["canonry.1", "canonry-serve.1"].iter().all(|page| manual.iter().any(|one| one == page)), "{manual:?}");
        let completions = names_in(&place.path(&format!("{name}/completions")));
        assert_eq!(completions, ["bash", "elvish", "fish", "powershell", "zsh"].map(|one| format!("canonry.{one}")));
        for file in completions {
            let path = place.path(&format!("{name}/completions/{file}"));
            assert!(fs::read_to_string(path).expect("a text").contains("detect-new"), "{file}");
        }
    }
    let document = yaml(RELEASE);
    let native = steps(&document).into_iter().find(|step| step["if"] == "matrix.runs == 'no'").expect("a step");
    assert_eq!(native["run"], "cargo build --locked --package canonry");
}

#[cfg(target_os = "linux")]
#[test]
fn the_list_of_sums_names_every_archive_once_and_misses_none() {
    let place = Place::new();
    let rows = yaml(RELEASE)["jobs"]["build"]["strategy"]["matrix"]["include"].as_array().cloned().expect("a matrix");
    let word = |row: &serde_json::Value, name: &str| row[name].as_str().expect("a word").to_owned();
    let mut names: Vec<String> =
        rows.iter().map(|row| format!("canonry-v9.8.7-{}.{}", word(row, "target"), word(row, "archive"))).collect();
    names.sort();
    fs::create_dir(place.path("dist")).expect("a folder");
    for name in &names {
        place.write(&format!("dist/{name}"), name);
    }
    assert!(run_step("Checksums", &place.path(""), &[]).status.success());
    let listed = fs::read_to_string(place.path("dist/SHA256SUMS")).expect("a list");
    let mut lines: Vec<&str> = listed.lines().collect();
    lines.sort_by_key(|line| line.split("  ").nth(1));
    let sum = |text: &str| canonry_domain::hex_digits(Sha256::digest(text.as_bytes()));
    assert_eq!(lines, names.iter().map(|name| format!("{}  {name}", sum(name))).collect::<Vec<_>>());
    fs::remove_file(place.path(&format!("dist/{}", names[0]))).expect("it is ours");
    assert!(!run_step("Checksums", &place.path(""), &[]).status.success(), "one is missing");
}

#[test]
fn a_release_is_of_the_version_that_its_tag_names() {
    let tag = format!("v{}", env!("CARGO_PKG_VERSION"));
    let run = |tag: &str| run_step("Version is the tag's", &root(), &[("TAG", tag)]).status.success();
    assert!(run(&tag) && !run("v0.0.1-other"));
}
