//! The folders into which changes are fetched. They are removed with their review, or by the next review if a process
//! was killed.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

const PREFIX: &str = "canonry-review-";
/// The process that uses a folder locks this file in it. The lock ends with the process, however it ends.
const LOCK: &str = "in-use";
/// A new folder is not locked yet for a moment.
const JUST_MADE: Duration = Duration::from_secs(60);
/// The age at which a folder without that file counts as abandoned.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);

/// A folder for the files of one review. It is removed on drop, even if a review ends early.
#[derive(Debug)]
pub struct ReviewFolder {
    folder: TempDir,
    _lock: File,
}

impl ReviewFolder {
    /// Makes a folder in the system's folder for temporary files. First removes what killed processes left there.
    pub fn make() -> io::Result<Self> {
        let parent = std::env::temp_dir();
        remove_left_over(&parent, SystemTime::now());
        Self::make_in(&parent)
    }

    fn make_in(parent: &Path) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
        let lock = File::create_new(folder.path().join(LOCK))?;
        lock.lock()?;
        Ok(Self { folder, _lock: lock })
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Removes the folder, and returns an error if that fails.
    pub fn close(self) -> io::Result<()> {
        self.folder.close()
    }
}

/// Removes review folders of killed processes from the system's folder for temporary files.
pub(crate) fn remove_left_over_review_folders() {
    remove_left_over(&std::env::temp_dir(), SystemTime::now());
}

/// Entries that cannot be read or removed stay: they belong to another user, or the system removes them.
fn remove_left_over(parent: &Path, now: SystemTime) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if !is_ours || !is_folder || !is_left_over(&entry.path(), now) {
            continue;
        }
        match fs::remove_dir_all(entry.path()) {
            Ok(()) => {
                tracing::info!(folder = %entry.path().display(), "the files of an interrupted review were deleted");
            }
            Err(error) => {
                tracing::warn!(folder = %entry.path().display(), %error, "the files of an interrupted review could not be deleted");
            }
        }
    }
}

fn is_left_over(folder: &Path, now: SystemTime) -> bool {
    let age = fs::metadata(folder).and_then(|data| data.modified()).ok().and_then(|at| now.duration_since(at).ok());
    let Some(age) = age else { return false };
    let lock = folder.join(LOCK);
    match fs::symlink_metadata(&lock) {
        // A pipe that another user put there would never open.
        Ok(data) if data.is_file() => age >= JUST_MADE && File::open(&lock).is_ok_and(|lock| lock.try_lock().is_ok()),
        Ok(_) => false,
        Err(error) => error.kind() == io::ErrorKind::NotFound && age >= ABANDONED,
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::{LOCK, ReviewFolder, remove_left_over};

    #[test]
    fn what_a_killed_review_left_is_removed_and_nothing_else() {
        let parent = tempfile::tempdir().expect("a folder");
        let place = |name: &str| parent.path().join(name);
        let in_use = ReviewFolder::make_in(parent.path()).expect("made");
        std::fs::create_dir(in_use.path().join("git")).expect("made");
        for name in ["canonry-review-killed", "canonry-review-older-program", "canonry-demo-x", "other"] {
            std::fs::create_dir_all(place(name).join("git/objects")).expect("made");
        }
        for name in ["canonry-review-killed", "canonry-demo-x", "other"] {
            std::fs::write(place(name).join(LOCK), "").expect("written");
        }
        std::fs::write(place("canonry-review-file"), "").expect("written");
        // Only files are opened.
        std::fs::create_dir_all(place("canonry-review-odd").join(LOCK)).expect("made");
        let left = || ["killed", "older-program", "file"].map(|name| place(&format!("canonry-review-{name}")).exists());

        let now = SystemTime::now();
        remove_left_over(parent.path(), now);
        assert_eq!(left(), [true; 3], "it may just be made");
        remove_left_over(parent.path(), now + Duration::from_secs(120));
        assert_eq!(left(), [false, true, true]);
        remove_left_over(parent.path(), now + Duration::from_secs(25 * 60 * 60));
        assert!(place("canonry-review-odd").exists());
        assert_eq!(left(), [false, false, true]);
        assert!(in_use.path().join("git").exists(), "somebody works in it");
        assert!(place("canonry-demo-x/git").exists() && place("other/git").exists());

        let path = in_use.path().to_owned();
        in_use.close().expect("removed");
        assert!(!path.exists());
    }
}
