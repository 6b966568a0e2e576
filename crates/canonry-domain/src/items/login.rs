//! The login of a person or a bot.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::text::text_newtype::string_conversions;

/// A login as GitHub shows it.
///
/// Comparisons ignore letter case, as GitHub does. Trackers other than GitHub use mail addresses and hashes as names,
/// so only texts that can never be a name are rejected.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Login(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a login; write one name without spaces")]
pub struct InvalidLogin {
    text: String,
}

impl Login {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The form to compare and search by.
    pub fn key(&self) -> String {
        self.0.to_lowercase()
    }

    /// Whether this is the account of a GitHub App, which GitHub writes as `name[bot]`.
    pub fn is_bot(&self) -> bool {
        self.key().ends_with("[bot]")
    }
}

impl PartialEq for Login {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Login {}

impl PartialOrd for Login {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Login {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl std::hash::Hash for Login {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl FromStr for Login {
    type Err = InvalidLogin;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let bare = text.strip_prefix('@').unwrap_or(text);
        let fits = !bare.is_empty()
            && bare.chars().count() <= 200
            && !bare.chars().any(|character| character.is_whitespace() || character.is_control());
        if fits { Ok(Self(bare.to_owned())) } else { Err(InvalidLogin { text: text.chars().take(60).collect() }) }
    }
}

impl fmt::Display for Login {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

string_conversions!(Login, InvalidLogin);

#[cfg(test)]
mod tests {
    use super::Login;

    #[test]
    fn letter_case_and_a_leading_at_do_not_matter() {
        let (one, other): (Login, Login) = ("@Octo-Cat".parse().expect("valid"), "octo-cat".parse().expect("valid"));
        assert_eq!(one, other);
        assert_eq!(one.to_string(), "Octo-Cat");
    }

    #[test]
    fn bots_are_told_by_their_suffix() {
        assert!("stale[bot]".parse::<Login>().expect("valid").is_bot());
        assert!(!"robot".parse::<Login>().expect("valid").is_bot());
    }

    #[test]
    fn what_cannot_be_a_name_is_refused() {
        for text in ["", "  ", "@", "two words", "tab\tbed", "nul\0"] {
            assert!(text.parse::<Login>().is_err(), "{text:?} was accepted");
        }
    }
}
