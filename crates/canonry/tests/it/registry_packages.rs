//! What the crates, the installer and the compose file need to be published.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::packages::{RELEASE, root, text, yaml};
use crate::place::{Place, Ran, names_in};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The largest crate that the registry takes.
const CRATE_LIMIT: u64 = 10_000_000;

/// The names of the workspace's crates that are published.
fn published_crates() -> Vec<String> {
    let mut metadata = Command::new(env!("CARGO"));
    metadata.args(["metadata", "--format-version", "1", "--no-deps", "--offline"]).current_dir(root());
    let metadata = metadata.output().expect("cargo starts");
    let metadata: Value = serde_json::from_slice(&metadata.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    // `publish = false` is an empty list of registries.
    let published = packages.iter().filter(|package| package["publish"].is_null());
    let mut names: Vec<String> =
        published.map(|package| package["name"].as_str().expect("a name").to_owned()).collect();
    names.sort();
    names
}

/// Cargo itself refuses a dependency without a version, a version that is not the workspace's, and a dependency on a
/// crate that is not published. What it does not do here is compile the crates: the release workflow does.
#[test]
fn every_crate_can_be_packaged_and_is_small_enough() {
    let place = Place::new();
    let crates = published_crates();
    assert!(!crates.iter().any(|name| name == "xtask" || name == "canonry-testworld"), "{crates:?}");
    let mut package = Command::new(env!("CARGO"));
    package.args(["package", "--no-verify", "--offline", "--locked", "--allow-dirty", "--target-dir"]);
    package.arg(place.path("target")).args(crates.iter().flat_map(|name| ["--package", name])).current_dir(root());
    let output = package.output().expect("cargo starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    assert!(!said.contains("warning"), "a crate lacks a description, a licence or a repository:\n{said}");
    let folder = place.path("target/package");
    let made: Vec<String> = names_in(&folder).into_iter().filter(|name| name.ends_with(".crate")).collect();
    let mut expected: Vec<String> = crates.iter().map(|name| format!("{name}-{VERSION}.crate")).collect();
    expected.sort();
    assert_eq!(made, expected);
    for name in made {
        let size = fs::metadata(folder.join(&name)).expect("a file").len();
        assert!(size < CRATE_LIMIT, "{name} has {size} bytes");
    }
}

/// Makes a program for the steps of the workflow to find.
pub(crate) fn program(place: &Place, name: &str, script: &str) {
    fs::create_dir_all(place.path("bin")).expect("a folder");
    let path = place.write(&format!("bin/{name}"), format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it is ours");
}

/// A search path that finds those programs first.
pub(crate) fn search_path(place: &Place) -> String {
    format!("{}:{}", place.path("bin").display(), std::env::var("PATH").unwrap_or_default())
}

pub(crate) fn sum_of(path: &Path) -> String {
    canonry_domain::hex_digits(Sha256::digest(fs::read(path).expect("a file")))
}

/// A release in a folder, which the installer reads through a `file:` address.
struct LocalRelease {
    place: Place,
}

impl LocalRelease {
    fn new(target: &str) -> Self {
        let place = Place::new();
        let name = format!("canonry-v9.8.7-{target}");
        let folder = place.path("releases/download/v9.8.7");
        fs::create_dir_all(&folder).expect("a folder");
        fs::create_dir(place.path(&name)).expect("a folder");
        let own = format!("#!/bin/sh\nexec '{}' \"$@\"\n", env!("CARGO_BIN_EXE_canonry"));
        place.write(&format!("{name}/canonry"), own);
        let archive = folder.join(format!("{name}.tar.gz"));
        let mut pack = Command::new("tar");
        pack.arg("-czf").arg(&archive).arg(&name).current_dir(place.path(""));
        assert!(pack.status().expect("tar starts").success());
        let sums = format!("{}  other.txt\n{}  {name}.tar.gz\n", "0".repeat(64), sum_of(&archive));
        fs::write(folder.join("SHA256SUMS"), sums).expect("a file");
        Self { place }
    }

    fn install(&self, system: &str, processor: &str) -> Ran {
        let answer = format!("if [ \"$1\" = -m ]; then echo {processor}; else echo {system}; fi");
        program(&self.place, "uname", &answer);
        let mut sh = Command::new("sh");
        sh.arg(root().join("packages/install.sh")).env_clear().current_dir(self.place.path(""));
        sh.env("PATH", search_path(&self.place)).env("HOME", self.place.path("home"));
        sh.env("CANONRY_VERSION", "v9.8.7");
        sh.env("CANONRY_RELEASES_URL", format!("file://{}", self.place.path("releases").display()));
        Ran::of(sh.output().expect("sh starts"))
    }
}

#[test]
fn the_installer_takes_the_archive_for_this_system_and_checks_it() {
    for (system, processor, target) in [
        ("Linux", "x86_64", "x86_64-unknown-linux-musl"),
        ("Linux", "aarch64", "aarch64-unknown-linux-musl"),
        ("Darwin", "arm64", "aarch64-apple-darwin"),
        ("Darwin", "x86_64", "x86_64-apple-darwin"),
    ] {
        let release = LocalRelease::new(target);
        let ran = release.install(system, processor).succeeded();
        let installed = release.place.path("home/.local/bin/canonry");
        assert!(ran.stdout.starts_with(&format!("installed canonry {VERSION} as {}", installed.display())), "{ran:?}");
        assert!(ran.stdout.contains("is not in your PATH"), "{ran:?}");
        assert_eq!(names_in(&release.place.path("home/.local/bin")), ["canonry"]);
        release.install(system, processor).succeeded();
    }

    let release = LocalRelease::new("x86_64-unknown-linux-musl");
    let missing = release.install("Linux", "aarch64");
    assert!(missing.exit == Some(1) && missing.stderr.contains("has no archive for aarch64-unknown-linux-musl"));
    let unknown = release.install("Linux", "riscv64");
    assert!(unknown.exit == Some(1) && unknown.stderr.contains("no program for the processor riscv64"), "{unknown:?}");
    let archive = release.place.path("releases/download/v9.8.7/canonry-v9.8.7-x86_64-unknown-linux-musl.tar.gz");
    let mut bytes = fs::read(&archive).expect("a file");
    bytes.push(0);
    fs::write(&archive, bytes).expect("a file");
    let damaged = release.install("Linux", "x86_64");
    assert!(damaged.exit == Some(1) && damaged.stderr.contains("is damaged"), "{damaged:?}");
    assert!(!release.place.path("home").exists(), "nothing is installed");
}

#[test]
fn the_installer_and_binstall_fetch_what_a_release_makes() {
    let installer = text("packages/install.sh");
    let manifest = text("crates/canonry/Cargo.toml");
    let matrix = yaml(RELEASE)["jobs"]["build"]["strategy"]["matrix"]["include"].as_array().cloned().expect("a matrix");
    for row in matrix {
        let (target, archive) = (row["target"].as_str().expect("a target"), row["archive"].as_str().expect("a kind"));
        let (_, system) = target.split_once('-').expect("a processor and a system");
        if archive == "zip" {
            let heading = format!("[package.metadata.binstall.overrides.{target}]\n");
            let rest = manifest.split_once(&heading).unwrap_or_else(|| panic!("no {heading}")).1;
            assert!(rest.starts_with("pkg-url = ") && rest.contains("{ target }.zip\""), "{target}");
        } else {
            assert!(installer.contains(&format!("echo \"$processor-{system}\"")), "{target}");
        }
    }
    assert!(manifest.contains("/releases/download/v{ version }/canonry-v{ version }-{ target }.tar.gz\""));
    assert!(text(RELEASE).contains("cp packages/install.sh packages/compose.yaml packed/"));
}

#[test]
fn the_compose_file_starts_this_version_on_a_healthy_database() {
    let document = yaml("packages/compose.yaml");
    let service = &document["services"]["canonry"];
    assert_eq!(service["image"], format!("ghcr.io/canonry/canonry:${{CANONRY_VERSION:-{VERSION}}}"));
    assert_eq!(service["depends_on"]["database"]["condition"], "service_healthy");
    let database = &document["services"]["database"];
    assert!(database["image"].as_str().is_some_and(|image| image.contains("pgvector")), "{database}");
    for one in [service, database] {
        assert_eq!(one["healthcheck"]["test"][0], "CMD", "{one}");
        let volume = one["volumes"][0].as_str().and_then(|volume| volume.split(':').next()).expect("a volume");
        assert!(document["volumes"].get(volume).is_some(), "{volume} is not declared");
    }
    // As in the image: the service must have time to drain.
    let grace = service["stop_grace_period"].as_str().and_then(|grace| grace.strip_suffix('s')).expect("seconds");
    assert!(grace.parse::<u64>().expect("a number") > canonry_server::DRAIN.as_secs());
    let health = service["healthcheck"]["test"].as_array().expect("words").last().cloned();
    let containerfile = text("packages/Containerfile");
    assert!(containerfile.contains(health.as_ref().and_then(Value::as_str).expect("an address")));
}
