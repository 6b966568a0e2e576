//! Finds code in the new version of the files by its hash.

use std::collections::{BTreeMap, HashMap};

use crate::review::{CodeHash, LineRange, RepoPath, flagged};

/// Longer findings are searched only at their expected place: nobody moves a hundred lines without changing one of
/// them.
const LONGEST: u32 = 50;

/// The lines of files in their current version, with an index of code hashes.
#[derive(Debug, Default)]
pub struct CodeIndex<'a> {
    files: BTreeMap<&'a RepoPath, Vec<&'a str>>,
    places: HashMap<(&'a RepoPath, u32), HashMap<CodeHash, Vec<u32>>>,
}

impl<'a> CodeIndex<'a> {
    pub fn new(texts: impl IntoIterator<Item = (&'a RepoPath, &'a str)>) -> Self {
        let files = texts.into_iter().map(|(path, text)| (path, text.lines().collect())).collect();
        Self { files, places: HashMap::new() }
    }

    /// The lines of a file; `None` if it was not read.
    pub fn lines(&self, path: &RepoPath) -> Option<&[&'a str]> {
        self.files.get(path).map(Vec::as_slice)
    }

    /// The place of the code with this hash that is nearest to the expected one.
    pub fn nearest(&mut self, path: &RepoPath, expected: LineRange, code: &CodeHash) -> Option<LineRange> {
        let (path, file) = self.files.get_key_value(path)?;
        if flagged(file, expected).as_ref() == Some(code) {
            return Some(expected);
        }
        let length = expected.last.checked_sub(expected.first)?;
        if length >= LONGEST {
            return None;
        }
        // Each file is hashed once for each requested length.
        let places = self.places.entry((*path, length)).or_insert_with(|| {
            let mut places: HashMap<CodeHash, Vec<u32>> = HashMap::new();
            let starts = u32::try_from(file.len()).unwrap_or(u32::MAX).saturating_sub(length);
            for first in 1..=starts {
                if let Some(hash) = flagged(file, LineRange { first, last: first + length }) {
                    places.entry(hash).or_default().push(first);
                }
            }
            places
        });
        let first = *places.get(code)?.iter().min_by_key(|first| (first.abs_diff(expected.first), **first))?;
        LineRange::new(first, first + length)
    }
}

#[cfg(test)]
mod tests {
    use super::CodeIndex;
    use crate::review::{CodeHash, LineRange, RepoPath};

    #[test]
    fn code_is_found_where_it_is_nearest() {
        let path = RepoPath::new("a.rs").expect("a path");
        let mut index = CodeIndex::new([(&path, "x();\ny();\nz();\n  x();\r\ny();\n")]);
        let lines = |first, last| LineRange::new(first, last).expect("lines");
        let code = CodeHash::of(["x();", "y();"]);
        assert_eq!(index.nearest(&path, lines(1, 2), &code), Some(lines(1, 2)));
        assert_eq!(index.nearest(&path, lines(3, 4), &code), Some(lines(4, 5)));
        assert_eq!(index.nearest(&path, lines(90, 91), &code), Some(lines(4, 5)));
        assert_eq!(index.nearest(&path, lines(1, 1), &code), None);
        assert_eq!(index.nearest(&RepoPath::new("b.rs").expect("a path"), lines(1, 2), &code), None);
        assert_eq!(index.lines(&path).map(<[&str]>::len), Some(5));
    }
}
