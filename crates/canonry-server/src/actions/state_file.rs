//! The database as files for the state ref: in pieces, because GitHub refuses a file of more than 100 MB, and not
//! compressed, because git stores what changed in a file.

use std::io;
use std::path::{Path, PathBuf};

use crate::actions::state_ref::StateEntry;

/// A third of GitHub's limit.
const PIECE: usize = 32 * 1024 * 1024;
/// What a repository can bear: GitHub recommends less than 1 GB for all of it.
const MOST: u64 = 768 * 1024 * 1024;
/// A run with a larger database stops before it writes anything: what it adds might not be storable, and a run whose
/// database is not stored would be repeated by each later one.
const FULL: u64 = MOST / 20 * 19;
/// The job summary warns above this.
const NEARLY_FULL: u64 = MOST / 5 * 4;
/// The names of the pieces begin with this.
pub(crate) const DATABASE_PREFIX: &str = "database-";

#[derive(Debug, thiserror::Error)]
pub enum StateFileError {
    #[error("the database cannot be read or written: {0}")]
    Io(#[from] io::Error),
    #[error(
        "the database has {} MB, more than the {} MB that are kept in a repository; run `canonry serve` instead",
        .size / 1_000_000, .limit / 1_000_000
    )]
    TooLarge { size: u64, limit: u64 },
    #[error("piece {0} of the stored database is missing; delete the state ref to start over")]
    Incomplete(usize),
}

/// The pieces of a database file, each with its name.
pub(crate) fn pack_state(file: &Path) -> Result<Vec<StateEntry>, StateFileError> {
    let length = std::fs::metadata(file)?.len();
    check_size(length, MOST)?;
    let bytes = std::fs::read(file)?;
    Ok(bytes.chunks(PIECE).enumerate().map(|(place, piece)| (name_of(place), piece.to_vec())).collect())
}

fn check_size(size: u64, limit: u64) -> Result<(), StateFileError> {
    if size > limit { Err(StateFileError::TooLarge { size, limit }) } else { Ok(()) }
}

pub(crate) fn size_of(pieces: &[StateEntry]) -> u64 {
    pieces.iter().map(|(_, bytes)| bytes.len() as u64).sum()
}

/// What the job summary says about a database of this size.
pub(crate) fn size_warning(size: u64) -> Option<String> {
    let [has, limit] = [size, FULL].map(|bytes| bytes / 1_000_000);
    let warning = format!("**The database has {has} MB.** Runs stop above {limit} MB; run `canonry serve` instead.");
    (size > NEARLY_FULL).then_some(warning)
}

/// Writes a database file from its pieces among these files. `false` if there are none.
fn unpack_state(files: &[StateEntry], to: &Path) -> Result<bool, StateFileError> {
    let count = files.iter().filter(|(name, _)| name.starts_with(DATABASE_PREFIX)).count();
    let mut bytes = Vec::new();
    for place in 0..count {
        let name = name_of(place);
        let piece = files.iter().find(|(found, _)| *found == name).ok_or(StateFileError::Incomplete(place))?;
        bytes.extend_from_slice(&piece.1);
    }
    if count > 0 {
        std::fs::write(to, bytes)?;
    }
    Ok(count > 0)
}

/// Puts the database of the state in its place, whatever is there. Returns the file with the vectors of an earlier run, if
/// there is one.
pub(crate) fn place_database(files: &[StateEntry], database: &Path) -> Result<Option<PathBuf>, StateFileError> {
    check_size(size_of(files), FULL)?;
    remove_database(database)?;
    unpack_state(files, database)?;
    Ok(Some(vectors_beside(database)).filter(|vectors| vectors.exists()))
}

/// Leaves only the vectors: what a workflow caches can be read for weeks, and texts are deleted on GitHub meanwhile.
pub(crate) fn replace_by_vectors(database: &Path, vectors: &Path) -> io::Result<()> {
    std::fs::rename(vectors, vectors_beside(database))?;
    remove_database(database)
}

fn vectors_beside(database: &Path) -> PathBuf {
    database.with_extension("vectors")
}

fn remove_database(database: &Path) -> io::Result<()> {
    for file in [database.to_owned(), database.with_extension("db-wal"), database.with_extension("db-shm")] {
        remove_if_there(&file)?;
    }
    Ok(())
}

pub(super) fn remove_if_there(file: &Path) -> io::Result<()> {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn name_of(place: usize) -> String {
    format!("{DATABASE_PREFIX}{place:03}")
}

#[cfg(test)]
mod tests {
    use super::{FULL, MOST, NEARLY_FULL, PIECE, StateFileError, check_size, pack_state, size_warning, unpack_state};

    #[test]
    fn a_file_comes_back_as_it_was() {
        let folder = tempfile::tempdir().expect("a folder");
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        for length in [1, PIECE, PIECE + 1] {
            let bytes: Vec<u8> = (0..length).map(|place| u8::try_from(place % 251).expect("small")).collect();
            std::fs::write(&from, &bytes).expect("writes");
            let mut pieces = pack_state(&from).expect("packs");
            pieces.reverse();
            pieces.push(("README.md".to_owned(), b"words".to_vec()));
            assert!(unpack_state(&pieces, &to).expect("unpacks"));
            assert_eq!(std::fs::read(&to).expect("reads"), bytes);
        }
        assert!(!unpack_state(&[], &to).expect("nothing to unpack"));
        let second = [("database-001".to_owned(), Vec::new())];
        assert!(matches!(unpack_state(&second, &to), Err(StateFileError::Incomplete(0))));
    }

    #[test]
    fn a_database_that_no_repository_should_hold_is_refused() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        file.as_file().set_len(900_000_000).expect("a file with a hole");
        let refused = pack_state(file.path()).expect_err("refused");
        assert_eq!(
            refused.to_string(),
            "the database has 900 MB, more than the 805 MB that are kept in a repository; run `canonry serve` instead"
        );
    }

    #[test]
    fn a_growing_database_is_warned_of_before_it_is_refused() {
        const { assert!(NEARLY_FULL < FULL && FULL < MOST) };
        assert_eq!(size_warning(NEARLY_FULL), None);
        let warning = size_warning(700_000_000).expect("it is nearly full");
        assert_eq!(warning, "**The database has 700 MB.** Runs stop above 765 MB; run `canonry serve` instead.");
        assert!(check_size(FULL, FULL).is_ok() && check_size(FULL + 1, FULL).is_err());
    }
}
