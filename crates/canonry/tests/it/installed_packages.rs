//! The packages of a release, made from this build and installed into empty environments without a network.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::packages::{RELEASE, root, yaml};
use crate::place::{Place, Ran, names_in};
use crate::registry_packages::{program, search_path, sum_of};
use crate::release::run_step;
use crate::working_copy::{WorkingCopy, code};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The job `package` of the release workflow, step by step, without a network: every package is made from archives, the
/// wheel and the npm package are installed into empty environments, and what they install works.
#[test]
fn packages_install_without_a_network_and_work() {
    let place = Place::new();
    write_archives(&place);
    for file in ["Cargo.toml", "packages"] {
        std::os::unix::fs::symlink(root().join(file), place.path(file)).expect("a link");
    }
    let here = place.path("");
    let runner = task_runner();
    program(
        &place,
        "cargo",
        &format!(
            "test \"$1\" = xtask && shift\nCARGO_MANIFEST_DIR='{}' CARGO='{}' exec '{}' \"$1\" --quick --archives '{}' --out '{}'",
            root().join("xtask").display(),
            env!("CARGO"),
            runner.display(),
            here.join("dist").display(),
            here.join("packed").display(),
        ),
    );
    let path = search_path(&place);
    // Nothing listens there: whoever asked a registry would fail.
    let elsewhere = "http://127.0.0.1:9";
    let given = [
        ("PATH", path.as_str()),
        ("HOME", here.to_str().expect("UTF-8")),
        ("PIP_INDEX_URL", elsewhere),
        ("npm_config_registry", elsewhere),
    ];
    // Cargo needs the real home.
    let made = run_step("Packages", &here, &given[..1]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let names = names_in(&place.path("packed"));
    let kinds = |ending: &str| -> Vec<&str> {
        names.iter().map(String::as_str).filter(|name| name.ends_with(ending)).collect()
    };
    assert_eq!((kinds(".whl").len(), kinds(".tgz").len()), (5, 6), "{names:?}");
    let static_wheel =
        format!("canonry-{VERSION}-py3-none-manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64.whl");
    for expected in [static_wheel.as_str(), "canonry.rb", "install.sh", "compose.yaml"] {
        assert!(names.iter().any(|name| name == expected), "no {expected} in {names:?}");
    }
    assert_formula(&place);
    assert_bill_of_materials(&place);

    let installed = run_step("Installed into empty environments", &here, &given);
    let said = String::from_utf8_lossy(&installed.stdout).into_owned();
    assert!(installed.status.success(), "{said}{}", String::from_utf8_lossy(&installed.stderr));
    assert_eq!(said.matches(&format!("canonry {VERSION}\ncommit: ")).count(), 2, "{said}");
    assert_eq!(said.matches("canonry demo --headless --keep demo").count(), 2, "the end of the demo: {said}");

    let clone = WorkingCopy::new();
    clone.write("src/app.js", &code("debugger;")).commit("Look closer");
    let own = clone.canonry(&["review", "--base", "main"]);
    for canonry in ["installed/python/bin/canonry", "installed/npm/node_modules/.bin/canonry"] {
        let home = Place::new();
        let run = |arguments: &[&str]| {
            let mut command = Command::new(place.path(canonry));
            command.args(arguments).current_dir(clone.path("")).env_clear().env("HOME", home.path(""));
            command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
            Ran::of(command.output().expect("it starts"))
        };
        let ran = run(&["review", "--base", "main"]);
        assert_eq!((ran.exit, ran.stdout), (own.exit, own.stdout.clone()), "{canonry}");
        // Arguments and exit statuses pass through the launcher.
        assert_eq!(run(&["show", "a b"]).exit, Some(2), "{canonry}");
    }
}

/// The least that is taken for a program of that system, since this machine cannot build one.
fn foreign_program(target: &str) -> Vec<u8> {
    let mut bytes = vec![0; 256];
    match target {
        "aarch64-unknown-linux-musl" => {
            bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
            bytes[18] = 183;
        }
        "x86_64-pc-windows-msvc" => {
            bytes[..2].copy_from_slice(b"MZ");
            bytes[0x3c] = 0x80;
            bytes[0x80..0x84].copy_from_slice(b"PE\0\0");
            bytes[0x84..0x86].copy_from_slice(&0x8664_u16.to_le_bytes());
        }
        apple => {
            bytes[..4].copy_from_slice(&[0xcf, 0xfa, 0xed, 0xfe]);
            let processor: u32 = if apple.starts_with("aarch64") { 0x0100_000c } else { 0x0100_0007 };
            bytes[4..8].copy_from_slice(&processor.to_le_bytes());
            bytes[16] = 1;
            bytes[32] = 0x32;
            bytes[36] = 24;
            bytes[44..48].copy_from_slice(&0x000c_0000_u32.to_le_bytes());
        }
    }
    bytes
}

/// The archives of a release in `dist`, with this build as the program for x86_64 Linux.
fn write_archives(place: &Place) {
    fs::create_dir_all(place.path("dist")).expect("a folder");
    let rows = yaml(RELEASE)["jobs"]["build"]["strategy"]["matrix"]["include"].as_array().cloned().expect("a matrix");
    for row in rows {
        let target = row["target"].as_str().expect("a target");
        let name = format!("canonry-v{VERSION}-{target}");
        fs::create_dir(place.path(&name)).expect("a folder");
        let is_zip = row["archive"] == "zip";
        let program = place.path(&name).join(if is_zip { "canonry.exe" } else { "canonry" });
        if target == "x86_64-unknown-linux-musl" {
            fs::copy(env!("CARGO_BIN_EXE_canonry"), program).expect("a copy");
        } else {
            fs::write(program, foreign_program(target)).expect("a file");
        }
        let mut pack = if is_zip { Command::new("python3") } else { Command::new("tar") };
        if is_zip {
            pack.args(["-m", "zipfile", "-c"]).arg(format!("dist/{name}.zip"));
        } else {
            // Packing a build for tests tightly would take longer than installing it.
            pack.args(["-I", "gzip -1", "-cf"]).arg(format!("dist/{name}.tar.gz"));
        }
        assert!(pack.arg(&name).current_dir(place.path("")).status().expect("it starts").success());
    }
}

/// The task runner that `cargo xtask test` built.
fn task_runner() -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_canonry")).with_file_name("xtask");
    assert!(path.is_file(), "there is no {}: run the tests with `cargo xtask test`", path.display());
    path
}

fn assert_formula(place: &Place) {
    let formula = fs::read_to_string(place.path("packed/canonry.rb")).expect("a formula");
    for target in
        ["aarch64-apple-darwin", "x86_64-apple-darwin", "aarch64-unknown-linux-musl", "x86_64-unknown-linux-musl"]
    {
        let name = format!("canonry-v{VERSION}-{target}.tar.gz");
        let sum = sum_of(&place.path(&format!("dist/{name}")));
        let lines = format!("/releases/download/v{VERSION}/{name}\"\n      sha256 \"{sum}\"\n");
        assert!(formula.contains(&lines), "{target}: {formula}");
    }
}

fn assert_bill_of_materials(place: &Place) {
    let bill = fs::read(place.path(&format!("packed/canonry-{VERSION}.cdx.json"))).expect("a bill");
    let bill: Value = serde_json::from_slice(&bill).expect("JSON");
    assert_eq!(bill["metadata"]["component"]["name"], "canonry");
    let components = bill["components"].as_array().expect("components");
    let find = |name: &str| components.iter().find(|component| component["name"] == name);
    assert_eq!(find("tokio").expect("tokio is in it")["hashes"][0]["alg"], "SHA-256");
    assert!(find("canonry-store").is_some() && find("proptest").is_none(), "tests are not in the program");
    let references: Vec<&Value> = components.iter().map(|component| &component["bom-ref"]).collect();
    let dependencies = bill["dependencies"].as_array().expect("dependencies");
    let needed = dependencies.iter().flat_map(|one| one["dependsOn"].as_array().expect("a list"));
    for reference in needed {
        assert!(references.contains(&reference), "{reference} is no component");
    }
}
