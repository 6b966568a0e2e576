//! Enums whose values are stored, printed and read as one word each.

/// A word that names none of the known values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{word:?} is not {what}; it must be one of {known}")]
pub struct UnknownWord {
    word: String,
    what: &'static str,
    known: String,
}

impl UnknownWord {
    /// The error for a word, with what was wanted and every value there is.
    pub(crate) fn new(word: &str, what: &'static str, known: &[&str]) -> Self {
        Self { word: word.chars().take(60).collect(), what, known: known.join(", ") }
    }
}

/// Gives an enum its words: `ALL`, `as_str`, `FromStr`, `Display`.
macro_rules! words {
    ($name:ident, $what:literal, $($variant:ident = $word:literal),+ $(,)?) => {
        impl $name {
            /// Every value, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word that is stored, printed and read.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),+
                }
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::UnknownWord;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                Self::ALL
                    .iter()
                    .copied()
                    .find(|value| value.as_str() == word)
                    .ok_or_else(|| $crate::UnknownWord::new(word, $what, &[$($word),+]))
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.pad(self.as_str())
            }
        }
    };
}

pub(crate) use words;
