//! The full id of a commit.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::text::text_newtype::{string_conversions, text_newtype};

/// A commit's full id: 40 or 64 hexadecimal digits in lower case.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CommitSha(String);

text_newtype!(CommitSha);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a commit's full id is 40 or 64 hexadecimal digits in lower case")]
pub struct InvalidSha;

impl CommitSha {
    /// The first seven digits, as people read it.
    pub fn short(&self) -> &str {
        &self.0[..7]
    }
}

impl FromStr for CommitSha {
    type Err = InvalidSha;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if matches!(text.len(), 40 | 64) && text.bytes().all(is_digit) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidSha)
        }
    }
}

string_conversions!(CommitSha, InvalidSha);

#[cfg(test)]
mod tests {
    use super::{CommitSha, InvalidSha};

    #[test]
    fn only_full_ids_are_ids() {
        let digits = "0123456789abcdef0123456789abcdef01234567";
        let sha: CommitSha = digits.parse().expect("an id");
        assert_eq!((sha.as_str(), sha.short()), (digits, "0123456"));
        assert_eq!("ab".repeat(32).parse::<CommitSha>().expect("SHA-256").as_str().len(), 64);
        for text in ["", "main", &digits[..39], &digits.to_uppercase(), "--upload-pack=x", &format!("{digits}\n")] {
            assert_eq!(text.parse::<CommitSha>(), Err(InvalidSha), "{text}");
        }
    }
}
