//! Runs other programs: cargo, and named steps.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Output};

use anyhow::{Context as _, Result, bail};

pub(crate) fn root() -> PathBuf {
    // Cargo's variable at run time comes first: clones that share a build folder share this program, and the path
    // that was compiled into it may be that of another clone.
    let package =
        std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    package.parent().expect("invariant: the task runner's folder lies in the workspace").to_owned()
}

/// The cargo that started this task, in the root of the workspace.
pub(crate) fn cargo() -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(program);
    command.current_dir(root());
    // `cargo run` describes this package in the environment. Build scripts that watch such a variable would run
    // again, and their crates would be compiled again, each time a task calls cargo.
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(describes_a_package) {
            command.env_remove(&name);
        }
    }
    command
}

/// Runs a step on the terminal, and fails with the step's name.
pub(crate) fn step(name: &str, command: &mut Command) -> Result<()> {
    eprintln!("==> {name}");
    let status =
        command.status().with_context(|| format!("step \"{name}\" could not start {:?}", command.get_program()))?;
    if !status.success() {
        bail!("step \"{name}\" failed ({status})");
    }
    Ok(())
}

/// Runs a program quietly; if it fails, the error contains its output.
pub(crate) fn quietly(command: &mut Command) -> Result<Output> {
    let program = command.get_program().to_owned();
    let output = command.output().with_context(|| format!("{program:?} could not be started"))?;
    if !output.status.success() {
        bail!(
            "{program:?} failed ({})\n{}{}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(output)
}

fn describes_a_package(variable: &str) -> bool {
    ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_"].iter().any(|prefix| variable.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::{describes_a_package, quietly, root, step};

    #[test]
    fn settings_of_the_user_reach_cargo() {
        for kept in ["CARGO", "CARGO_HOME", "CARGO_TARGET_DIR", "CARGO_BUILD_JOBS"] {
            assert!(!describes_a_package(kept), "{kept}");
        }
        for removed in ["CARGO_PKG_NAME", "CARGO_MANIFEST_DIR", "CARGO_MANIFEST_PATH"] {
            assert!(describes_a_package(removed), "{removed}");
        }
    }

    #[test]
    fn a_failed_step_is_named() {
        let error = step("the step", &mut Command::new("false")).expect_err("false fails");
        assert!(error.to_string().contains("\"the step\" failed"), "{error}");
    }

    #[test]
    fn a_quiet_failure_says_what_the_program_said() {
        let error =
            quietly(Command::new("sh").args(["-c", "echo broken >&2; exit 3"])).expect_err("exit 3 is a failure");
        assert!(error.to_string().contains("broken"), "{error}");
    }

    #[test]
    fn the_root_is_the_workspace() {
        assert!(root().join("crates/canonry/Cargo.toml").is_file());
    }
}
