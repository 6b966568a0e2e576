//! A validated path inside a repository.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::text::text_newtype::text_newtype;

/// A path relative to the root of a repository, with `/` between its parts and without `.` or `..`.
///
/// [`RepoPath::new`] normalises paths that people and tools write. Paths from git and from the store are used
/// unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RepoPath(String);

text_newtype!(RepoPath);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPath {
    #[error("the path is empty")]
    Empty,
    #[error("the path is absolute")]
    Absolute,
    #[error("the path leads out of the repository")]
    Outside,
    #[error("the path contains a NUL")]
    Nul,
}

impl RepoPath {
    /// Normalises a path as tools write it. It drops `./` and doubled slashes, and resolves `..` as long as the path
    /// stays inside. Windows' separators count as slashes if the path has no other separators.
    pub fn new(text: &str) -> Result<Self, InvalidPath> {
        let text = if text.contains('/') { text.to_owned() } else { text.replace('\\', "/") };
        if text.contains('\0') {
            return Err(InvalidPath::Nul);
        }
        let has_drive = text.as_bytes().get(1) == Some(&b':') && text.as_bytes()[0].is_ascii_alphabetic();
        if text.starts_with('/') || (has_drive && text[2..].starts_with('/')) {
            return Err(InvalidPath::Absolute);
        }
        let mut parts: Vec<&str> = Vec::new();
        for part in text.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    parts.pop().ok_or(InvalidPath::Outside)?;
                }
                part => parts.push(part),
            }
        }
        if parts.is_empty() { Err(InvalidPath::Empty) } else { Ok(Self(parts.join("/"))) }
    }

    /// Accepts a path from git or the store. Nothing is dropped, resolved or replaced, so two different paths stay
    /// different.
    pub fn exact(text: &str) -> Result<Self, InvalidPath> {
        if text.is_empty() {
            return Err(InvalidPath::Empty);
        }
        if text.starts_with('/') {
            return Err(InvalidPath::Absolute);
        }
        if text.contains('\0') {
            return Err(InvalidPath::Nul);
        }
        // No part may be empty: git has no paths such as `a//b` or `a/` either.
        if text.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(InvalidPath::Outside);
        }
        Ok(Self(text.to_owned()))
    }

    /// Accepts a path as bytes; bytes that are not UTF-8 are written as `%XX`.
    pub fn of_bytes(bytes: &[u8]) -> Result<Self, InvalidPath> {
        let mut text = String::with_capacity(bytes.len());
        for chunk in bytes.utf8_chunks() {
            text.push_str(chunk.valid());
            for byte in chunk.invalid() {
                text.push_str(&format!("%{byte:02X}"));
            }
        }
        Self::exact(&text)
    }

    pub fn file_name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }

    /// The part after the last dot of the file name, in lower case; empty if there is none.
    pub fn extension(&self) -> String {
        match self.file_name().rsplit_once('.') {
            Some((stem, extension)) if !stem.is_empty() => extension.to_ascii_lowercase(),
            _ => String::new(),
        }
    }
}

impl TryFrom<String> for RepoPath {
    type Error = InvalidPath;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::exact(&text)
    }
}

impl FromStr for RepoPath {
    type Err = InvalidPath;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::new(text)
    }
}

impl From<RepoPath> for String {
    fn from(path: RepoPath) -> Self {
        path.0
    }
}

#[cfg(test)]
mod tests {
    use super::{InvalidPath, RepoPath};
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    #[test]
    fn what_is_a_path() {
        for (text, expected) in [
            ("src/a.rs", Ok("src/a.rs")),
            ("./src//a.rs", Ok("src/a.rs")),
            ("src/../lib/a.rs", Ok("lib/a.rs")),
            ("src\\win\\a.rs", Ok("src/win/a.rs")),
            ("a \"quoted\" name", Ok("a \"quoted\" name")),
            ("", Err(InvalidPath::Empty)),
            ("./", Err(InvalidPath::Empty)),
            ("../etc/passwd", Err(InvalidPath::Outside)),
            ("a/../../b", Err(InvalidPath::Outside)),
            ("/etc/passwd", Err(InvalidPath::Absolute)),
            ("C:/a.rs", Err(InvalidPath::Absolute)),
            ("C:\\a.rs", Err(InvalidPath::Absolute)),
            ("a\0b", Err(InvalidPath::Nul)),
        ] {
            let path = RepoPath::new(text);
            assert_eq!(path.as_ref().map(RepoPath::as_str).map_err(Clone::clone), expected, "{text}");
        }
        assert_eq!(RepoPath::new("src/A.RS").expect("valid").extension(), "rs");
        assert_eq!(RepoPath::new(".gitignore").expect("valid").extension(), "");
    }

    #[test]
    fn what_git_says_is_taken_as_it_is() {
        for (bytes, expected) in [
            (&b"we\\ird"[..], Ok("we\\ird")),
            (b"C:/a.rs", Ok("C:/a.rs")),
            (b" leading and \"quoted\"\n", Ok(" leading and \"quoted\"\n")),
            (b"caf\xe9.txt", Ok("caf%E9.txt")),
            (b"a/../b", Err(InvalidPath::Outside)),
            (b"a//b", Err(InvalidPath::Outside)),
            (b"/a", Err(InvalidPath::Absolute)),
            (b"", Err(InvalidPath::Empty)),
        ] {
            let path = RepoPath::of_bytes(bytes);
            assert_eq!(path.as_ref().map(RepoPath::as_str).map_err(Clone::clone), expected, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn is_read_back_as_it_is(bytes in proptest::collection::vec(any::<u8>(), 0..20)) {
            if let Ok(path) = RepoPath::of_bytes(&bytes) {
                prop_assert_eq!(RepoPath::try_from(String::from(path.clone())), Ok(path));
            }
        }

        #[test]
        fn never_leads_outside(text in any::<String>()) {
            if let Ok(path) = RepoPath::new(&text) {
                prop_assert!(!path.as_str().starts_with('/') && path.as_str().split('/').all(|part| part != ".." && !part.is_empty()));
            }
        }
    }
}
