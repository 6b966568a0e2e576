//! The steps of a release, run on files like those of a build.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Output};

use sha2::{Digest as _, Sha256};

use crate::packages::{RELEASE, root, steps, yaml};
use crate::place::{Place, names_in};
use crate::registry_packages::{program, search_path};

/// Runs the step of that name in a folder, as a runner does.
pub(crate) fn run_step(name: &str, folder: &Path, given: &[(&str, &str)]) -> Output {
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

/// The files that the jobs `build` and `package` leave, each with its own name as its content.
#[cfg(target_os = "linux")]
fn write_release(place: &Place) -> Vec<String> {
    let rows = yaml(RELEASE)["jobs"]["build"]["strategy"]["matrix"]["include"].as_array().cloned().expect("a matrix");
    let word = |row: &serde_json::Value, name: &str| row[name].as_str().expect("a word").to_owned();
    let mut names: Vec<String> =
        rows.iter().map(|row| format!("canonry-v9.8.7-{}.{}", word(row, "target"), word(row, "archive"))).collect();
    names.extend((1..=5).map(|at| format!("canonry-9.8.7-py3-none-platform{at}.whl")));
    let npm = ["linux-x64-", "linux-arm64-", "darwin-x64-", "darwin-arm64-", "win32-x64-", ""];
    names.extend(npm.map(|platform| format!("canonry-{platform}9.8.7.tgz")));
    names.extend(["canonry-9.8.7.cdx.json", "canonry.rb", "compose.yaml", "install.sh"].map(str::to_owned));
    names.sort();
    fs::create_dir(place.path("dist")).expect("a folder");
    for name in &names {
        place.write(&format!("dist/{name}"), name);
    }
    names
}

#[cfg(target_os = "linux")]
#[test]
fn the_list_of_sums_names_every_file_once_and_misses_none() {
    let place = Place::new();
    let names = write_release(&place);
    assert!(run_step("Checksums", &place.path(""), &[]).status.success());
    let listed = fs::read_to_string(place.path("dist/SHA256SUMS")).expect("a list");
    let mut lines: Vec<&str> = listed.lines().collect();
    lines.sort_by_key(|line| line.split("  ").nth(1));
    let sum = |text: &str| canonry_domain::hex_digits(Sha256::digest(text.as_bytes()));
    assert_eq!(lines, names.iter().map(|name| format!("{}  {name}", sum(name))).collect::<Vec<_>>());
    for missing in &names {
        fs::rename(place.path(&format!("dist/{missing}")), place.path("aside")).expect("it is ours");
        assert!(!run_step("Checksums", &place.path(""), &[]).status.success(), "{missing} is missing");
        fs::rename(place.path("aside"), place.path(&format!("dist/{missing}"))).expect("it is ours");
    }
}

/// Every step that publishes, with programs in place of `gh`, `npm` and so on that record how they are called. An earlier
/// try has published a package and a crate, and the registry of crates takes one at first.
#[cfg(target_os = "linux")]
#[test]
fn what_is_published_is_what_was_built() {
    let place = Place::new();
    write_release(&place);
    place.write("Cargo.toml", "[workspace.package]\nversion = \"9.8.7\"\n");
    for name in ["pipx", "sleep"] {
        record(&place, name, "");
    }
    record(&place, "cargo", CARGO);
    program(
        &place,
        "curl",
        "case \"$2\" in */ca/no/canonry-b) [ -e refused-once ] ;; */ca/no/canonry-a) ;; *) exit 22 ;; esac && echo '{\"vers\":\"9.8.7\"}'",
    );
    record(
        &place,
        "npm",
        "case \"$*\" in config*) echo https://registry.example/; exit 0 ;; 'view @canonry/darwin-x64@9.8.7 version') echo 9.8.7; exit 0 ;; view*) exit 1 ;; esac",
    );
    let digest = format!("sha256:{}", "0af1".repeat(16));
    let answers =
        format!("if [ \"$1\" = login ]; then cat > /dev/null; fi\nif [ \"$3\" = inspect ]; then echo {digest}; fi");
    record(&place, "docker", &answers);
    record(&place, "gh", "if [ \"$4\" = .sha ]; then echo 0123abcd; exit 0; fi");
    let path = search_path(&place);
    let (log, outputs) = (place.write("log", ""), place.write("outputs", ""));
    let given = [
        ("PATH", path.as_str()),
        ("LOG", log.to_str().expect("UTF-8")),
        ("GITHUB_OUTPUT", outputs.to_str().expect("UTF-8")),
        ("TAG", "v9.8.7"),
        ("GH_REPO", "octo/canonry"),
        ("GH_TOKEN", "t0ken"),
        ("NPM_TOKEN", "t0ken"),
        ("TAP", "octo/homebrew-tap"),
        ("ACTOR", "mona"),
        ("IMAGE", "ghcr.io/octo/canonry"),
        ("INDEX", "https://index.example"),
    ];
    for name in PUBLISHING {
        let ran = run_step(name, &place.path(""), &given);
        assert!(ran.status.success(), "{name}: {}", String::from_utf8_lossy(&ran.stderr));
    }
    let recorded = fs::read_to_string(&log).expect("a log");
    assert!(!recorded.contains("t0ken"), "{recorded}");
    let npmrc = fs::read_to_string(place.path("npmrc")).expect("settings for npm");
    assert_eq!(npmrc, "//registry.example/:_authToken=${NPM_TOKEN}\n");
    insta::assert_snapshot!(recorded, @r"
    docker login ghcr.io --username mona --password-stdin
    docker load --input images/image-amd64.tar.gz
    docker tag canonry:amd64 ghcr.io/octo/canonry:9.8.7-amd64
    docker push ghcr.io/octo/canonry:9.8.7-amd64
    docker load --input images/image-arm64.tar.gz
    docker tag canonry:arm64 ghcr.io/octo/canonry:9.8.7-arm64
    docker push ghcr.io/octo/canonry:9.8.7-arm64
    docker buildx imagetools create --tag ghcr.io/octo/canonry:9.8.7 ghcr.io/octo/canonry:9.8.7-amd64 ghcr.io/octo/canonry:9.8.7-arm64
    docker buildx imagetools inspect ghcr.io/octo/canonry:9.8.7 --format {{.Manifest.Digest}}
    pipx run uv==0.13.8 publish --trusted-publishing always dist/canonry-9.8.7-py3-none-platform1.whl dist/canonry-9.8.7-py3-none-platform2.whl dist/canonry-9.8.7-py3-none-platform3.whl dist/canonry-9.8.7-py3-none-platform4.whl dist/canonry-9.8.7-py3-none-platform5.whl
    npm publish --provenance --access public --tag latest ./dist/canonry-darwin-arm64-9.8.7.tgz
    npm publish --provenance --access public --tag latest ./dist/canonry-linux-arm64-9.8.7.tgz
    npm publish --provenance --access public --tag latest ./dist/canonry-linux-x64-9.8.7.tgz
    npm publish --provenance --access public --tag latest ./dist/canonry-win32-x64-9.8.7.tgz
    npm publish --provenance --access public --tag latest ./dist/canonry-9.8.7.tgz
    gh release edit v9.8.7 --draft=false
    gh api --method PUT repos/octo/homebrew-tap/contents/Formula/canonry.rb --field message=canonry v9.8.7 --field content=Y2Fub25yeS5yYg== --field sha=0123abcd
    cargo publish --workspace --locked --no-verify --exclude canonry-a (refused)
    sleep 610
    cargo publish --workspace --locked --no-verify --exclude canonry-a --exclude canonry-b
    ");

    // The job asks nobody for what the steps do not have, and the steps are in this order.
    let document = yaml(RELEASE);
    let job = document["jobs"]["registries"]["steps"].as_array().expect("steps");
    // What is attested is the image that was pushed, before the release is public.
    assert_eq!(fs::read_to_string(&outputs).expect("outputs"), format!("digest={digest}\n"));
    let place_of = |name: &str| job.iter().position(|step| step["name"] == name).expect("the step");
    let attested = place_of("Provenance of the image");
    assert!(place_of("Image to the registry") < attested && attested < place_of("Release is public"));
    let expected = serde_json::json!({"subject-name": "ghcr.io/${{ github.repository }}",
        "subject-digest": "${{ steps.image.outputs.digest }}", "push-to-registry": true});
    assert_eq!((&job[attested]["with"], &job[place_of("Image to the registry")]["id"]), (&expected, &"image".into()));
    let order: Vec<&str> =
        job.iter().filter_map(|step| step["name"].as_str()).filter(|name| PUBLISHING.contains(name)).collect();
    assert_eq!(order, PUBLISHING);
}

#[cfg(target_os = "linux")]
const PUBLISHING: [&str; 6] = ["Image to the registry", "PyPI", "npm", "Release is public", "Homebrew tap", "Crates"];

/// Lists the workspace, and refuses the first publication like the registry.
#[cfg(target_os = "linux")]
const CARGO: &str = r#"if [ "$1" = metadata ]; then
  echo '{"packages":[{"name":"canonry-a","publish":null},{"name":"canonry-b","publish":null},{"name":"canonry-c","publish":null},{"name":"xtask","publish":[]}]}'
  exit 0
fi
if [ ! -e refused-once ]; then
  : > refused-once
  echo "cargo $* (refused)" >> "$LOG"
  echo 'the remote server responded with an error (status 429 Too Many Requests)' >&2
  exit 101
fi"#;

/// A program that writes one line for each call into the file `$LOG`.
#[cfg(target_os = "linux")]
fn record(place: &Place, name: &str, more: &str) {
    let line = "printf ' %s' \"$@\" >> \"$LOG\"\necho >> \"$LOG\"";
    program(place, name, &format!("{more}\nprintf '%s' '{name}' >> \"$LOG\"\n{line}"));
}

#[cfg(target_os = "linux")]
const COMPILING: [&str; 6] = [
    "Toolchain",
    "C compiler for musl",
    "Build",
    "Static, and works",
    "One for this processor, where the other does not run",
    "Every crate as its users compile it",
];

/// The steps that compile, with programs in place of the compilers that record how they are called.
#[cfg(target_os = "linux")]
#[test]
fn what_is_compiled_is_static_and_runs_before_it_is_packed() {
    let place = Place::new();
    place.write("Cargo.toml", "[workspace.package]\nversion = \"9.8.7\"\nrust-version = \"1.95\"\n");
    for name in ["rustup", "sudo"] {
        record(&place, name, "");
    }
    record(&place, "cargo", "[ -z \"$RUSTFLAGS\" ] || echo \"RUSTFLAGS=$RUSTFLAGS\" >> \"$LOG\"");
    record(&place, "file", "echo \"$1: ELF 64-bit LSB pie executable, $LINKED, stripped\"");
    let (path, log) = (search_path(&place), place.write("log", ""));
    let run = |step: &str, target: &str, runs: &str, linked: &str| {
        let log = log.to_str().expect("UTF-8");
        let given = [
            ("PATH", path.as_str()),
            ("LOG", log),
            ("TARGET", target),
            ("RUNS", runs),
            ("LINKED", linked),
            ("RUSTFLAGS", ""),
        ];
        run_step(step, &place.path(""), &given)
    };
    for (target, runs) in
        [("x86_64-unknown-linux-musl", "yes"), ("x86_64-apple-darwin", "no"), ("x86_64-pc-windows-msvc", "yes")]
    {
        let built = format!("target/{target}/dist");
        fs::create_dir_all(place.path(&built)).expect("a folder");
        record(&place, "canonry", "");
        fs::rename(place.path("bin/canonry"), place.path(&built).join("canonry")).expect("it is ours");
        for step in COMPILING {
            let ran = run(step, target, runs, "static-pie linked");
            assert!(ran.status.success(), "{step}: {}", String::from_utf8_lossy(&ran.stderr));
        }
        let dynamic = run("Static, and works", target, runs, "dynamically linked");
        assert_eq!(dynamic.status.success(), !target.contains("musl"), "{target}");
    }
    insta::assert_snapshot!(fs::read_to_string(&log).expect("a log"), @"
    rustup toolchain install 1.95 --profile minimal --component clippy,rustfmt
    rustup default 1.95
    sudo apt-get update
    sudo apt-get install --yes --no-install-recommends musl-tools
    cargo build --profile dist --locked --package canonry --target x86_64-unknown-linux-musl
    file target/x86_64-unknown-linux-musl/dist/canonry
    canonry --version
    canonry demo --headless
    cargo build --locked --package canonry
    cargo publish --dry-run --workspace --locked
    file target/x86_64-unknown-linux-musl/dist/canonry
    rustup toolchain install 1.95 --profile minimal --component clippy,rustfmt
    rustup default 1.95
    sudo apt-get update
    sudo apt-get install --yes --no-install-recommends musl-tools
    cargo build --profile dist --locked --package canonry --target x86_64-apple-darwin
    cargo build --locked --package canonry
    cargo publish --dry-run --workspace --locked
    rustup toolchain install 1.95 --profile minimal --component clippy,rustfmt
    rustup default 1.95
    sudo apt-get update
    sudo apt-get install --yes --no-install-recommends musl-tools
    RUSTFLAGS=-C target-feature=+crt-static
    cargo build --profile dist --locked --package canonry --target x86_64-pc-windows-msvc
    canonry --version
    canonry demo --headless
    cargo build --locked --package canonry
    cargo publish --dry-run --workspace --locked
    canonry --version
    canonry demo --headless
    ");
}

/// The image is made of the program in the archive, started once, and kept as a file.
#[cfg(target_os = "linux")]
#[test]
fn an_image_holds_the_program_of_its_archive() {
    let place = Place::new();
    fs::create_dir_all(place.path("canonry-v9.8.7-x86_64-unknown-linux-musl")).expect("a folder");
    fs::create_dir(place.path("dist")).expect("a folder");
    place.write("canonry-v9.8.7-x86_64-unknown-linux-musl/canonry", "the program");
    let mut pack = Command::new("tar");
    pack.args(["-czf", "dist/canonry.tar.gz", "canonry-v9.8.7-x86_64-unknown-linux-musl"]).current_dir(place.path(""));
    assert!(pack.status().expect("tar starts").success());
    record(&place, "docker", "");
    let (path, log) = (search_path(&place), place.write("log", ""));
    let given = [("PATH", path.as_str()), ("LOG", log.to_str().expect("UTF-8")), ("ARCH", "amd64")];
    let ran = run_step("Image", &place.path(""), &given);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(fs::read_to_string(place.path("dist/linux-amd64/canonry")).expect("a file"), "the program");
    assert!(place.path("images/image-amd64.tar.gz").is_file());
    insta::assert_snapshot!(fs::read_to_string(&log).expect("a log"), @"
    docker build --tag canonry:amd64 --build-arg PROGRAM=prebuilt --file packages/Containerfile .
    docker run --rm canonry:amd64 --version
    docker run --rm canonry:amd64 demo --headless
    docker save canonry:amd64
    ");
}

/// A step that no test runs fails here.
#[cfg(target_os = "linux")]
#[test]
fn every_step_of_a_release_is_rehearsed() {
    let document = yaml(RELEASE);
    let with_scripts = steps(&document).into_iter().filter(|step| step["run"].is_string());
    let names: BTreeSet<&str> = with_scripts.map(|step| step["name"].as_str().expect("a name")).collect();
    let others = [
        // `every_change_and_every_release_is_tested_as_here`: it would run these tests.
        "Everything that CI runs",
        "Version is the tag's",
        "Pack",
        "Packages",
        "Installed into empty environments",
        "Image",
        "Checksums",
        "Release, as a draft",
    ];
    assert_eq!(names, PUBLISHING.into_iter().chain(COMPILING).chain(others).collect());
}

#[cfg(target_os = "linux")]
#[test]
fn a_draft_gets_every_file() {
    let place = Place::new();
    let names = write_release(&place);
    fs::create_dir_all(place.path("bin")).expect("a folder");
    let gh = place.write("bin/gh", "#!/bin/sh\nprintf '%s\\n' \"$@\" > called\n");
    fs::set_permissions(gh, fs::Permissions::from_mode(0o755)).expect("it is ours");
    let path = format!("{}:{}", place.path("bin").display(), std::env::var("PATH").unwrap_or_default());
    let given = [("PATH", path.as_str()), ("TAG", "v9.8.7"), ("GH_REPO", "octo/canonry")];
    assert!(run_step("Checksums", &place.path(""), &[]).status.success());
    assert!(run_step("Release, as a draft", &place.path(""), &given).status.success());
    let called = fs::read_to_string(place.path("called")).expect("a call");
    assert!(called.starts_with("release\ncreate\nv9.8.7\n--draft\n--verify-tag\n"), "{called}");
    let mut files: Vec<&str> = called.lines().filter_map(|line| line.strip_prefix("dist/")).collect();
    files.sort_unstable();
    let mut expected: Vec<&str> = names.iter().map(String::as_str).chain(["SHA256SUMS"]).collect();
    expected.sort_unstable();
    assert_eq!(files, expected);
}

#[test]
fn a_release_is_of_the_version_that_its_tag_names() {
    let tag = format!("v{}", env!("CARGO_PKG_VERSION"));
    let run = |tag: &str| run_step("Version is the tag's", &root(), &[("TAG", tag)]).status.success();
    assert!(run(&tag) && !run("v0.0.1-other"));
}
