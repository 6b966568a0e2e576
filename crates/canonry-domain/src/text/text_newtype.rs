//! Macros for newtypes over text.

/// Implements `as_str` and `Display` for a newtype over `String`.
macro_rules! text_newtype {
    ($name:ident) => {
        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.pad(&self.0)
            }
        }
    };
}

/// Implements the conversions to and from `String` by `FromStr` and `Display`, for serde and for stored columns.
macro_rules! string_conversions {
    ($name:ident, $error:ident) => {
        impl TryFrom<String> for $name {
            type Error = $error;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> Self {
                value.to_string()
            }
        }
    };
}

pub(crate) use {string_conversions, text_newtype};
