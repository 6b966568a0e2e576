//! What `--version` says, and which commit a build records.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::place::Place;

#[test]
fn the_version_names_commit_model_and_features() {
    let place = Place::new();
    let ran = place.canonry(&["--version"]).succeeded();
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines[0], concat!("canonry ", env!("CARGO_PKG_VERSION")));
    let value = |name: &str| {
        let found = lines.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        found.unwrap_or_else(|| panic!("no {name}: {}", ran.stdout))
    };
    // Tests are no release: without CANONRY_COMMIT they have no commit.
    match option_env!("CANONRY_BUILT_COMMIT") {
        Some(commit) => assert_eq!(value("commit"), commit),
        None => assert!(value("commit").starts_with("not recorded; "), "{}", ran.stdout),
    }
    let model = canonry_models::LocalEmbedder::compiled_in().expect("the model is readable");
    assert!(value("model").starts_with(&format!("{}, {} dimensions", model.model_id, model.dimension)));
    assert!(value("features").starts_with("sqlite, postgresql, "));
    assert!(value("target").starts_with(std::env::consts::ARCH));
    assert_eq!(lines.len(), 5, "{}", ran.stdout);

    let short = place.canonry(&["-V"]).succeeded();
    assert_eq!(short.stdout, format!("{}\n", lines[0]));
}

/// Compiles the build script alone and runs it as cargo does, in folders like a clone, a packaged crate and a copy.
#[test]
fn a_release_records_the_commit_that_it_is_built_from() {
    let place = Place::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("build.rs");
    let program = place.path("build-script");
    let compiled = Command::new("rustc").args(["--edition", "2024", "-o"]).arg(&program).arg(script).status();
    assert!(compiled.expect("rustc starts").success());
    let recorded = |folder: &Path, profile: &str, given: Option<&str>| {
        let mut command = Command::new(&program);
        command.current_dir(folder).env("PROFILE", profile).env("TARGET", "here").env_remove("CANONRY_COMMIT");
        command.envs(given.map(|commit| ("CANONRY_COMMIT", commit)));
        let output = command.output().expect("it starts");
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        text.lines().find_map(|line| line.strip_prefix("cargo::rustc-env=CANONRY_BUILT_COMMIT=")).map(str::to_owned)
    };
    let copy = place.path("clone/crates/canonry");
    fs::create_dir_all(&copy).expect("a folder");
    assert_eq!(recorded(&copy, "release", None), None, "a copy without git");

    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.arg("-C").arg(place.path("clone")).args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]);
        git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        let output = git.args(arguments).output().expect("git starts");
        assert!(output.status.success(), "{arguments:?}");
        String::from_utf8(output.stdout).expect("UTF-8").trim().to_owned()
    };
    git(&["init", "--quiet"]);
    git(&["commit", "--quiet", "--allow-empty", "--message", "Begin"]);
    let head = git(&["rev-parse", "HEAD"]);
    assert_eq!(recorded(&copy, "release", None), Some(head));
    assert_eq!(recorded(&copy, "debug", None), None, "it would be compiled again after every commit");
    assert_eq!(recorded(&copy, "release", Some("0123abcd")).as_deref(), Some("0123abcd"));
    assert_ne!(recorded(&copy, "release", Some("v1; rm")).as_deref(), Some("v1; rm"), "no commit");

    let inside = place.path("clone/vendor/canonry");
    fs::create_dir_all(&inside).expect("a folder");
    assert_eq!(recorded(&inside, "release", None), None, "the commit of another repository");
    let packaged = "{\n  \"git\": {\n    \"sha1\": \"89abcdef89abcdef89abcdef89abcdef89abcdef\"\n  }\n}";
    fs::write(inside.join(".cargo_vcs_info.json"), packaged).expect("a file");
    let commit = recorded(&inside, "debug", None);
    assert_eq!(commit.as_deref(), Some("89abcdef89abcdef89abcdef89abcdef89abcdef"));
}
