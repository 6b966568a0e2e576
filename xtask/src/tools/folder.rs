//! The folder of downloads: one per machine, and not writable for others.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};

/// The environment variable with the folder's path.
const FOLDER_VARIABLE: &str = "CANONRY_TEST_TOOLS";

/// Not below the clone or the home folder, which may be closed to the unprivileged user that PostgreSQL runs as, and
/// not `/tmp`, which is often emptied or private to a login.
const DEFAULT_FOLDER: &str = "/var/tmp/canonry-test-tools";

/// The tools' folder: it belongs to us, and an unprivileged user can reach it.
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
    // Programs in it are run, so no other user may be able to put them there.
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

/// What to do about a folder that we cannot write to.
pub(crate) fn not_writable(folder: &Path) -> String {
    format!("{} cannot be written to; set {FOLDER_VARIABLE} to a folder of yours", folder.display())
}

/// The owner of files that this process creates.
pub(crate) fn effective_user() -> Result<u32> {
    Ok(tempfile::tempfile()?.metadata()?.uid())
}
