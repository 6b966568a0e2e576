//! The browser of the tests: Debian's chromium, installed if it is missing and can be installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::environment::given;
use crate::process::quietly;
use crate::tools::effective_user;

/// Names the browser's program.
const CHROMIUM: &str = "CANONRY_TEST_CHROMIUM";

/// Says that this machine is known to have no browser: the browser tests end at once.
pub(crate) const NONE: &str = "CANONRY_TEST_WITHOUT_BROWSER";

/// What to do if there is none.
pub(crate) const WITHOUT: &str = "Install chromium, or set CANONRY_TEST_CHROMIUM to a browser of its family.";

const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// The variable that contains the browser's path, or says that there is none. CI must have one.
pub(crate) fn variable() -> Result<(&'static str, String)> {
    if let Some(program) = given(CHROMIUM) {
        return Ok((CHROMIUM, program));
    }
    if let Some(program) = installed() {
        return Ok((CHROMIUM, program.display().to_string()));
    }
    let reason = match install() {
        Ok(program) => return Ok((CHROMIUM, program.display().to_string())),
        Err(error) => format!("{error:#}"),
    };
    if given("CI").is_some() {
        bail!("there is no browser for the tests ({reason}). {WITHOUT}");
    }
    eprintln!("there is no browser, so the tests in one are skipped ({reason}). {WITHOUT}");
    Ok((NONE, "1".to_owned()))
}

/// Installs the fonts of the pictures. With others the text has another width, and thumbs are empty boxes.
pub(crate) fn install_fonts() {
    if let Err(error) = install_packages(&["fonts-liberation", "fonts-noto-color-emoji"]) {
        eprintln!("the pictures are drawn with the fonts that are there ({error:#})");
    }
}

fn install() -> Result<PathBuf> {
    eprintln!("installing chromium, which the tests in a browser need, from Debian's packages");
    install_packages(&["chromium", "fonts-dejavu-core"])?;
    match installed() {
        Some(program) => Ok(program),
        None => bail!("the package brought no program that runs"),
    }
}

fn install_packages(packages: &[&str]) -> Result<()> {
    if find("apt-get").is_none() {
        bail!("this system has no apt-get");
    }
    if effective_user()? != 0 {
        bail!("only root may install packages");
    }
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        // Another process may be installing packages at this moment.
        command.args(["--quiet=2", "--option", "DPkg::Lock::Timeout=300"]).args(arguments);
        quietly(command.env("DEBIAN_FRONTEND", "noninteractive"))
    };
    // The package lists may be good enough: a source that does not answer is not an error by itself.
    let updated = apt(&["update"]);
    let install = [&["install", "--yes", "--no-install-recommends"], packages].concat();
    let installed = apt(&install).map_err(|error| match updated {
        Ok(_) => error,
        Err(stale) => error.context(format!("{stale:#}")),
    });
    installed.map(drop)
}

fn installed() -> Option<PathBuf> {
    NAMES.iter().filter_map(|name| find(name)).find(|program| runs(program))
}

/// Ubuntu has a program `chromium-browser` that only says how to install one.
fn runs(program: &Path) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| is_file(file))
}

fn is_file(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{find, runs};

    #[test]
    fn a_program_that_only_says_what_to_install_is_no_browser() {
        assert!(runs(Path::new("/bin/true")) || runs(Path::new("/usr/bin/true")));
        assert!(!runs(Path::new("/bin/false")) && !runs(Path::new("/no/such/program")));
    }

    #[test]
    fn programs_are_found_where_the_shell_finds_them() {
        assert!(find("sh").is_some_and(|path| path.is_absolute()));
        assert_eq!(find("no-such-program-here"), None);
    }
}
