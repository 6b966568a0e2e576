//! `cargo xtask test` and `cargo xtask soak`: every test on both engines.

use std::process::Stdio;

use anyhow::Result;

use crate::browser;
use crate::environment::TestEnvironment;
use crate::lint_packages;
use crate::process::{cargo, step};

/// Installed if cargo-nextest is missing; a fixed version, so that CI changes only when we change it.
const NEXTEST_VERSION: &str = "0.9.143";

/// Enough cases that a property test runs for minutes instead of a second.
const SOAK_CASES: &str = "20000";

pub(crate) fn test(extra: &[String]) -> Result<()> {
    install_nextest()?;
    if extra.is_empty() {
        lint_packages::lint()?;
    }
    let mut environment = TestEnvironment::prepare()?;
    // If packages are named, the program may not be built, or may be an older one.
    if !selects_packages(extra) {
        let build = [nextest_arguments("default", &[]), vec!["--no-run".to_owned()]].concat();
        step("building", cargo().args(build))?;
        environment.make_template()?;
    }
    step("tests", cargo().args(nextest_arguments("default", extra)).envs(environment.variables()))?;
    if extra.is_empty() {
        step(
            "documentation examples",
            cargo().args(["test", "--doc", "--workspace", "--all-features"]).envs(environment.variables()),
        )?;
    }
    if environment.variables().any(|(variable, _)| variable == browser::NONE) {
        eprintln!("SKIPPED: the tests in a browser. {}", browser::WITHOUT);
    }
    Ok(())
}

pub(crate) fn soak(extra: &[String]) -> Result<()> {
    install_nextest()?;
    let environment = TestEnvironment::prepare()?;
    step(
        "soak",
        cargo()
            .args(nextest_arguments("soak", extra))
            .envs(environment.variables())
            .env("CANONRY_SOAK", "1")
            .env("PROPTEST_CASES", SOAK_CASES),
    )
}

/// The test that compares the pictures writes them if a variable says so.
pub(crate) fn write_pictures() -> Result<()> {
    install_nextest()?;
    let arguments = ["--package", "canonry", "pictures_show_what_canonry_writes"].map(String::from);
    let browser = browser::variable()?;
    browser::install_fonts();
    step(
        "pictures",
        cargo()
            .args(nextest_arguments("default", &arguments))
            .envs([browser, ("CANONRY_WRITE_PICTURES", "1".to_owned())]),
    )
}

fn install_nextest() -> Result<()> {
    let present = cargo()
        .args(["nextest", "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if present {
        return Ok(());
    }
    eprintln!(
        "cargo-nextest, which runs the tests, is not installed: \
         building version {NEXTEST_VERSION} once, which takes some minutes"
    );
    step("install cargo-nextest", cargo().args(["install", "cargo-nextest", "--locked", "--version", NEXTEST_VERSION]))
}

fn nextest_arguments(profile: &str, extra: &[String]) -> Vec<String> {
    let mut arguments: Vec<String> =
        ["nextest", "run", "--all-features", "--profile", profile].map(String::from).into();
    // `--workspace` beside `-p NAME` would win, and test everything.
    if !selects_packages(extra) {
        arguments.push("--workspace".to_owned());
    }
    arguments.extend_from_slice(extra);
    arguments
}

fn selects_packages(extra: &[String]) -> bool {
    extra.iter().take_while(|argument| *argument != "--").any(|argument| {
        argument == "--package"
            || argument.starts_with("--package=")
            || (argument.starts_with("-p") && !argument.starts_with("--"))
    })
}

#[cfg(test)]
mod tests {
    use super::nextest_arguments;

    fn arguments(extra: &[&str]) -> String {
        let extra: Vec<String> = extra.iter().map(|text| (*text).to_owned()).collect();
        nextest_arguments("default", &extra).join(" ")
    }

    #[test]
    fn everything_is_tested_unless_packages_are_named() {
        let common = "nextest run --all-features --profile default";
        for (extra, expected) in [
            (&[][..], " --workspace"),
            (&["imports"], " --workspace imports"),
            (&["-p", "canonry-store"], " -p canonry-store"),
            (&["-pcanonry-store", "imports"], " -pcanonry-store imports"),
            (&["--package=canonry"], " --package=canonry"),
            (&["--", "-p"], " --workspace -- -p"),
            (&["--profile-ish"], " --workspace --profile-ish"),
        ] {
            assert_eq!(arguments(extra), format!("{common}{expected}"));
        }
    }
}
