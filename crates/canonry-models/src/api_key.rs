//! A key that must never be printed.

use std::fmt;

/// A provider's key. Its `Debug` output does not contain the key, and it has no `Display`.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// Trims white space around the key, which files and shells leave behind.
    pub fn new(text: &str) -> Self {
        Self(text.trim().to_owned())
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// Removes this key from `text`: providers often quote what they received.
    pub(crate) fn hidden_in(&self, text: &str) -> String {
        if self.0.is_empty() { text.to_owned() } else { text.replace(&self.0, "[key]") }
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ApiKey(redacted)")
    }
}
