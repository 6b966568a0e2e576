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
/// What stands beside a database that a run may delete.
const MARK: &str = "A run of Canonry placed the database beside this file, and the next run replaces it.\n";
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
    #[error(
        "{} is not the database of a run, and this run would delete it; name another file with --db, or remove it",
        .0.display()
    )]
    NotOfRun(PathBuf),
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

/// Refuses a database that no run placed: a run deletes the one that it finds.
pub(crate) fn check_place(database: &Path) -> Result<(), StateFileError> {
    if database.exists() && !mark_of(database).exists() {
        return Err(StateFileError::NotOfRun(database.to_owned()));
    }
    Ok(())
}

/// Puts the database of the state in the place of one that a killed run left. Returns the file with the vectors of an
/// earlier run, if there is one.
pub(crate) fn place_database(files: &[StateEntry], database: &Path) -> Result<Option<PathBuf>, StateFileError> {
    check_size(size_of(files), FULL)?;
    check_place(database)?;
    std::fs::write(mark_of(database), MARK)?;
    remove_database(database)?;
    unpack_state(files, database)?;
    Ok(Some(vectors_beside(database)).filter(|vectors| vectors.exists()))
}

/// Leaves only the vectors: what a workflow caches can be read for weeks, and texts are deleted on GitHub meanwhile.
pub(crate) fn replace_by_vectors(database: &Path, vectors: &Path) -> io::Result<()> {
    std::fs::rename(vectors, vectors_beside(database))?;
    remove_database(database)?;
    remove_if_there(&mark_of(database))
}

/// From now on the file itself is kept: no later run may delete it.
pub(crate) fn keep_database(database: &Path) -> io::Result<()> {
    remove_if_there(&mark_of(database))
}

fn vectors_beside(database: &Path) -> PathBuf {
    database.with_extension("vectors")
}

/// The file that tells the database of a run from any other.
fn mark_of(database: &Path) -> PathBuf {
    with_ending(database, ".of-a-run")
}

fn remove_database(database: &Path) -> io::Result<()> {
    for ending in ["", "-wal", "-shm"] {
        remove_if_there(&with_ending(database, ending))?;
    }
    Ok(())
}

/// Unlike an extension, an ending leaves the files of `canonry.db` alone if the database is `canonry.sqlite`.
fn with_ending(database: &Path, ending: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
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
    use super::{
        FULL, MOST, NEARLY_FULL, PIECE, StateFileError, check_size, keep_database, name_of, pack_state, place_database,
        replace_by_vectors, size_warning, unpack_state,
    };

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
    fn a_database_that_no_run_placed_is_refused_and_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let database = folder.path().join("canonry.db");
        let place = || place_database(&[(name_of(0), b"state".to_vec())], &database);
        std::fs::write(&database, "years of rulings").expect("writes");
        let refused = place().expect_err("refused").to_string();
        let words = "is not the database of a run, and this run would delete it; \
                     name another file with --db, or remove it";
        assert_eq!(refused, format!("{} {words}", database.display()));
        assert_eq!(std::fs::read(&database).expect("reads"), b"years of rulings");
        // What a killed run left is replaced, unless a run without a state ref kept it.
        std::fs::remove_file(&database).expect("it is there");
        for _ in 0..2 {
            assert_eq!(place().expect("placed"), None);
            assert_eq!(std::fs::read(&database).expect("reads"), b"state");
        }
        keep_database(&database).expect("kept");
        assert!(matches!(place(), Err(StateFileError::NotOfRun(_))));
    }

    #[test]
    fn a_run_leaves_only_its_vectors_and_what_is_not_its_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        for other in ["canonry.db", "canonry.db-wal", "canonry.db-shm"] {
            std::fs::write(path(other), "of another database").expect("writes");
        }
        let database = path("canonry.sqlite");
        place_database(&[(name_of(0), b"state".to_vec())], &database).expect("placed");
        for own in ["canonry.sqlite-wal", "vectors-new"] {
            std::fs::write(path(own), "its own").expect("writes");
        }
        replace_by_vectors(&database, &path("vectors-new")).expect("replaced");
        let entries = std::fs::read_dir(folder.path()).expect("a folder").map(|entry| entry.expect("an entry"));
        let mut left: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        left.sort();
        assert_eq!(left, ["canonry.db", "canonry.db-shm", "canonry.db-wal", "canonry.vectors"]);
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
