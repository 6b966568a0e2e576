//! Defines a text that must never be printed.

use std::fmt;

/// A token, a key or a webhook's secret. Its `Debug` shows nothing of it, and it has no `Display`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Trims white space, which files and shells leave around a secret.
    pub fn new(text: &str) -> Self {
        Self(text.trim().to_owned())
    }

    /// The secret itself, for the one place that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(redacted)")
    }
}

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn debug_shows_nothing() {
        let secret = Secret::new("hunter2-hunter2\n");
        assert_eq!(secret.expose(), "hunter2-hunter2");
        assert_eq!(format!("{:?}", Some(secret)), "Some(Secret(redacted))");
    }
}
