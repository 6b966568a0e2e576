//! A folder in memory for the temporary files of tests.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

/// The folder that Linux keeps in memory.
const MEMORY: &str = "/dev/shm";

/// Many times what all tests need at once. A container has 64 MiB there by default.
const ENOUGH: u64 = 4 << 30;

/// A new folder in memory; `None` if there is none that is large enough and allows running programs.
///
/// SQLite waits for the disk with each transaction. Tests kill processes and not machines, so that wait proves
/// nothing, and a test that kills a write at each of its steps takes half the time without it.
pub(crate) fn memory_folder() -> Option<TempDir> {
    let memory = Path::new(MEMORY);
    let left = left_in(memory)?;
    let folder = tempfile::Builder::new().prefix("canonry-tests-").tempdir_in(memory).ok()?;
    (left >= ENOUGH && runs_programs(folder.path())).then_some(folder)
}

/// The free bytes of a folder.
fn left_in(folder: &Path) -> Option<u64> {
    let told = Command::new("df").args(["--output=avail", "--block-size=1"]).arg(folder).output().ok()?;
    String::from_utf8(told.stdout).ok()?.lines().last()?.trim().parse().ok()
}

fn runs_programs(folder: &Path) -> bool {
    let program = folder.join("program");
    let is_written = fs::write(&program, "#!/bin/sh\n").is_ok()
        && fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).is_ok();
    let runs = is_written && Command::new(&program).status().is_ok_and(|status| status.success());
    drop(fs::remove_file(&program));
    runs
}

#[cfg(test)]
mod tests {
    use super::{left_in, runs_programs};

    #[test]
    fn what_is_left_is_a_number_and_a_folder_for_tests_runs_programs() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(left_in(folder.path()).is_some_and(|left| left > 0));
        assert!(runs_programs(folder.path()));
        assert_eq!(left_in(&folder.path().join("nothing")), None);
        assert!(!runs_programs(&folder.path().join("nothing")));
    }
}
