//! How long a model may think before it answers.

use std::fmt;
use std::str::FromStr;

/// An effort that is translated for every provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thinking {
    Low,
    Medium,
    High,
}

impl Thinking {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    /// The tokens that thoughts may use, for providers that count them.
    pub(super) const fn tokens(self) -> u32 {
        match self {
            Self::Low => 1_024,
            Self::Medium => 4_096,
            Self::High => 16_384,
        }
    }
}

impl fmt::Display for Thinking {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

impl FromStr for Thinking {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let all = [Self::Low, Self::Medium, Self::High];
        let known = all.into_iter().find(|effort| effort.as_str() == word);
        known.ok_or_else(|| format!("{word:?} is not an effort; it must be one of low, medium, high"))
    }
}
