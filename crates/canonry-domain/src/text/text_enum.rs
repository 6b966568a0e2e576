//! Enums whose values are stored, printed and read as text.

/// The error for a text that is not a value of an enum.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {what}; it must be one of {known}")]
pub struct UnknownText {
    text: String,
    what: &'static str,
    known: String,
}

impl UnknownText {
    pub fn new(text: &str, what: &'static str, known: &[&str]) -> Self {
        Self { text: text.chars().take(60).collect(), what, known: known.join(", ") }
    }
}

/// Defines an enum by its texts. `ALL`, `as_str`, `FromStr`, `Display` and serde all use the same text.
///
/// ```
/// canonry_domain::text_enum! {
///     /// How sure we are.
///     pub enum Sureness: "a sureness" {
///         Sure = "sure",
///         NotAtAll = "not_at_all",
///     }
/// }
/// assert_eq!("not_at_all".parse(), Ok(Sureness::NotAtAll));
/// assert_eq!("no".parse::<Sureness>().unwrap_err().to_string(), "\"no\" is not a sureness; it must be one of sure, not_at_all");
/// ```
#[macro_export]
macro_rules! text_enum {
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident: $what:literal {
            $($(#[$variant_meta:meta])* $variant:ident = $text:literal),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord,
            $crate::serde::Serialize, $crate::serde::Deserialize,
        )]
        #[serde(crate = "::canonry_domain::serde")]
        $vis enum $name {
            $($(#[$variant_meta])* #[serde(rename = $text)] $variant),+
        }

        impl $name {
            /// Every value, in order.
            $vis const ALL: &'static [Self] = &[$(Self::$variant),+];

            $vis const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text),+
                }
            }
        }

        impl ::std::str::FromStr for $name {
            type Err = $crate::UnknownText;

            fn from_str(text: &str) -> ::std::result::Result<Self, Self::Err> {
                match text {
                    $($text => Ok(Self::$variant),)+
                    unknown => Err($crate::UnknownText::new(unknown, $what, &[$($text),+])),
                }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                formatter.pad(self.as_str())
            }
        }
    };
}

#[cfg(test)]
mod tests {
    text_enum! {
        enum Light: "a light" {
            Red = "red",
            RedAndYellow = "red_and_yellow",
        }
    }

    #[test]
    fn every_form_is_the_same_text() {
        for light in Light::ALL.iter().copied() {
            assert_eq!(light.as_str().parse(), Ok(light));
            assert_eq!(serde_json::to_value(light).expect("serialises"), light.as_str());
            assert_eq!(serde_json::from_value::<Light>(light.as_str().into()).expect("reads"), light);
            assert_eq!(format!("{light:>20}").trim(), light.as_str());
        }
        let error = "RED".parse::<Light>().expect_err("unknown");
        assert_eq!(error.to_string(), r#""RED" is not a light; it must be one of red, red_and_yellow"#);
    }
}
