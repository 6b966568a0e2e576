//! Hashes flagged code, to detect whether it is still the same.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::review::LineRange;
use crate::text::text_newtype::text_newtype;

/// The number of lines before and after the flagged lines that count as surroundings.
const AROUND: usize = 3;

/// The hash of some lines of code; it ignores indentation and line endings.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CodeHash(String);

text_newtype!(CodeHash);

impl CodeHash {
    pub fn of<'a>(lines: impl IntoIterator<Item = &'a str>) -> Self {
        let mut hasher = Sha256::new();
        for line in lines {
            for word in line.split_whitespace() {
                hasher.update(word);
                hasher.update(b" ");
            }
            hasher.update(b"\n");
        }
        Self(crate::text::hex::hex_digits(&hasher.finalize()[..8]))
    }

    /// Wraps a hash that was read from the store.
    pub fn stored(digits: String) -> Self {
        Self(digits)
    }
}

/// The hash of the flagged lines; `None` if the file does not have these lines, or if they are blank.
pub fn flagged(file: &[&str], lines: LineRange) -> Option<CodeHash> {
    let (first, last) = ((lines.first as usize).checked_sub(1)?, (lines.last as usize).min(file.len()));
    let code = file.get(first..last)?;
    let says_something = code.iter().any(|line| !line.trim().is_empty());
    says_something.then(|| CodeHash::of(code.iter().copied()))
}

/// The hash of the lines around the flagged lines, without the flagged lines. It stays the same when a flagged line is
/// edited.
pub fn around(file: &[&str], lines: LineRange) -> Option<CodeHash> {
    let (first, last) = ((lines.first as usize).checked_sub(1)?, (lines.last as usize).min(file.len()));
    let before = file.get(first.saturating_sub(AROUND)..first)?;
    let after = file.get(last..(last + AROUND).min(file.len()))?;
    let says_something = before.iter().chain(after).any(|line| !line.trim().is_empty());
    // With the separator, a line that moves from below to above changes the hash.
    says_something.then(|| CodeHash::of(before.iter().copied().chain(["\u{0}"]).chain(after.iter().copied())))
}

#[cfg(test)]
mod tests {
    use super::{CodeHash, around, flagged};
    use crate::review::LineRange;

    #[test]
    fn indentation_and_line_ends_do_not_count() {
        let one = CodeHash::of(["if a {", "    b();", "}"]);
        assert_eq!(one, CodeHash::of(["  if a {\r", "\t\tb();", "}  "]));
        assert_ne!(one, CodeHash::of(["if a {", "    c();", "}"]));
        assert_ne!(CodeHash::of(["a b"]), CodeHash::of(["a", "b"]));
        assert_ne!(CodeHash::of(["ab"]), CodeHash::of(["a b"]));
    }

    #[test]
    fn lines_that_are_not_there_have_no_hash() {
        let file = ["one", "", "three"];
        let range = |first, last| LineRange::new(first, last).expect("valid");
        assert_eq!(flagged(&file, range(4, 4)), None);
        assert_eq!(flagged(&file, range(2, 2)), None);
        assert_eq!(flagged(&file, range(3, 9)), Some(CodeHash::of(["three"])));
        assert_eq!(around(&["only"], range(1, 1)), None);
        assert!(around(&file, range(2, 2)).is_some());
    }
}
