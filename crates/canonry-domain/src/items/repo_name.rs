//! The name of a repository, `owner/name`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::text::text_newtype::string_conversions;

/// A repository's full name, checked by GitHub's own rules.
///
/// A name is stored as it was written, but two names that differ only in letter case are the same repository to
/// GitHub: compare and search by [`RepoName::key`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RepoName {
    owner: String,
    name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a repository name; write it as owner/name, for example rust-lang/rust")]
pub struct InvalidRepoName {
    text: String,
}

impl RepoName {
    pub fn owner(&self) -> &str {
        &self.owner
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The form to compare and search by: GitHub ignores letter case in names.
    pub fn key(&self) -> String {
        format!("{}/{}", self.owner, self.name).to_ascii_lowercase()
    }
}

impl FromStr for RepoName {
    type Err = InvalidRepoName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidRepoName { text: text.chars().take(200).collect() };
        let (owner, name) = text.split_once('/').ok_or_else(invalid)?;
        if !is_owner(owner) || !is_name(name) {
            return Err(invalid());
        }
        Ok(Self { owner: owner.to_owned(), name: name.to_owned() })
    }
}

/// GitHub's limits: an account name has at most 39 characters; App accounts and managed users add the underscore and a
/// little more length.
fn is_owner(owner: &str) -> bool {
    (1..=100).contains(&owner.len())
        && owner.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        && owner.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric())
}

fn is_name(name: &str) -> bool {
    (1..=100).contains(&name.len())
        && name != "."
        && name != ".."
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

impl fmt::Display for RepoName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.owner, self.name)
    }
}

string_conversions!(RepoName, InvalidRepoName);

#[cfg(test)]
mod tests {
    use super::RepoName;

    #[test]
    fn accepts_what_github_accepts() {
        for text in ["rust-lang/rust", "a/b", "Owner_corp/.github", "x/a.b-c_d", "0/0"] {
            let repo: RepoName = text.parse().expect(text);
            assert_eq!(repo.to_string(), text);
        }
    }

    #[test]
    fn refuses_everything_else() {
        for text in [
            "", "invalid", "/", "a/", "/b", "a/b/c", "a b/c", "a/b c", "-a/b", "a/..", "a/.", "é/b", "a/b\n", "a/b?x=1",
        ] {
            assert!(text.parse::<RepoName>().is_err(), "{text:?} was accepted");
        }
    }

    #[test]
    fn letter_case_is_one_repository() {
        let (one, other): (RepoName, RepoName) =
            ("Rust-Lang/Rust".parse().expect("valid"), "rust-lang/rust".parse().expect("valid"));
        assert_eq!(one.key(), other.key());
        assert_eq!(one.to_string(), "Rust-Lang/Rust");
    }
}
