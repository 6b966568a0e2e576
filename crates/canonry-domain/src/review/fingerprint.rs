//! Fingerprints of titles, and the keys by which findings form a pattern.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization as _;

use crate::text::text_newtype::text_newtype;

/// The fingerprint of a finding's title: `fp-` and eight hexadecimal digits.
///
/// Letter case, punctuation and runs of white space do not count. The fingerprint of a title never changes: stored
/// data is found by it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint(String);

text_newtype!(Fingerprint);

impl Fingerprint {
    pub fn of_title(title: &str) -> Self {
        let title = title.trim_matches(is_outer_space);
        let lower = title.to_lowercase();
        let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        // Without this all titles in other scripts would be one pattern.
        let hashed = if lower.contains(is_word) {
            let mut normal = String::with_capacity(lower.len());
            for c in lower.chars() {
                if is_word(c) {
                    normal.push(c);
                } else if !normal.ends_with(' ') {
                    normal.push(' ');
                }
            }
            normal
        } else {
            title.nfkc().collect::<String>().to_lowercase()
        };
        Self(format!("fp-{:08x}", fnv1a(hashed.encode_utf16())))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a fingerprint is fp- and eight hexadecimal digits")]
pub struct InvalidFingerprint;

impl FromStr for Fingerprint {
    type Err = InvalidFingerprint;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_prefix("fp-").ok_or(InvalidFingerprint)?;
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if digits.len() == 8 && digits.bytes().all(is_digit) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidFingerprint)
        }
    }
}

/// The characters that ECMAScript's `trim` removes, because the first fingerprints were made with it: a byte order
/// mark too, but not U+0085.
fn is_outer_space(c: char) -> bool {
    (c.is_whitespace() && c != '\u{85}') || c == '\u{feff}'
}

/// FNV-1a with 32 bits, over UTF-16 code units.
fn fnv1a(units: impl Iterator<Item = u16>) -> u32 {
    units.fold(2_166_136_261, |hash, unit| (hash ^ u32::from(unit)).wrapping_mul(16_777_619))
}

/// The key by which feedback is pooled: a model's findings by their titles, a tool's by its rules.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PatternKey(String);

text_newtype!(PatternKey);

impl PatternKey {
    pub fn of_title(title: &str) -> Self {
        Self(Fingerprint::of_title(title).0)
    }

    pub fn of_rule(tool: &str, rule: &str) -> Self {
        Self(format!("{}:{}", tool.trim().to_lowercase(), rule.trim()))
    }

    /// Wraps a key that was read from the store.
    pub fn stored(text: String) -> Self {
        Self(text)
    }
}

#[cfg(test)]
mod tests {
    use super::{Fingerprint, PatternKey};
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    #[test]
    fn the_goldens() {
        for (title, expected) in [
            ("Missing error handling", "fp-79e99c7e"),
            ("Missing error handling!", "fp-48c127fa"),
            ("  [Bug]  SQL injection in `query()`", "fp-e0241fc7"),
        ] {
            assert_eq!(Fingerprint::of_title(title).as_str(), expected, "{title}");
        }
    }

    /// Another program in another language computed these values from the written rule alone.
    #[test]
    fn more_goldens() {
        for (title, expected) in [
            ("Unused variable", "fp-9d0f6809"),
            ("UNUSED   VARIABLE", "fp-9d0f6809"),
            ("unused-variable", "fp-9d0f6809"),
            ("Unused variable.", "fp-6840f88b"),
            ("(Unused) variable", "fp-db3c2183"),
            ("Potential null dereference in `parse_config()`", "fp-1002b038"),
            ("N+1 query in OrderController#index", "fp-ab6f72c5"),
            ("x", "fp-fd0c5087"),
            ("0", "fp-350ca8af"),
            ("C++ destructor isn't virtual", "fp-376117e4"),
            ("日本語 title", "fp-f5af1bb7"),
            ("Überprüfung fehlt", "fp-e1d4513b"),
            ("naïve café", "fp-5bd56b21"),
            ("Race condition 🎉 in worker", "fp-65a2401a"),
            ("𝔘𝔫𝔲𝔰𝔢𝔡", "fp-85cf281b"),
            ("未使用の変数", "fp-245a31dd"),
            ("エラー処理がない", "fp-240c3480"),
            ("ｴﾗｰ処理がない", "fp-240c3480"),
            ("Неиспользуемая переменная", "fp-559b5043"),
            ("НЕИСПОЛЬЗУЕМАЯ ПЕРЕМЕННАЯ", "fp-559b5043"),
            ("  Неиспользуемая переменная  ", "fp-559b5043"),
            ("🎉", "fp-682eae76"),
            ("…", "fp-0ac31c19"),
            ("???", "fp-7bcac794"),
            ("Kelvin \u{212a}", "fp-08471835"),
            ("İstanbul", "fp-1df603ff"),
            ("line\nbreak\tand\u{a0}space", "fp-4d2d63bf"),
            ("\u{feff}byte order mark", "fp-b1022b88"),
            ("ΟΔΟΣ", "fp-bed665f3"),
            ("ＡＢＣ", "fp-1a47e90b"),
        ] {
            assert_eq!(Fingerprint::of_title(title).as_str(), expected, "{title}");
        }
    }

    #[test]
    fn titles_in_other_scripts_are_told_apart() {
        let all = ["未使用の変数", "エラー処理がない", "Неиспользуемая переменная", "🎉", "…"];
        let mut prints: Vec<_> = all.iter().map(|title| Fingerprint::of_title(title)).collect();
        prints.sort_unstable();
        prints.dedup();
        assert_eq!(prints.len(), all.len());
        assert_eq!(Fingerprint::of_title("ПЕРЕМЕННАЯ"), Fingerprint::of_title("переменная"));
    }

    #[test]
    fn a_tools_pattern_is_its_rule() {
        assert_eq!(PatternKey::of_rule(" ESLint", "no-eval").as_str(), "eslint:no-eval");
        assert_ne!(PatternKey::of_rule("eslint", "a"), PatternKey::of_title("a"));
    }

    proptest! {
        #[test]
        fn case_and_punctuation_do_not_count(words in proptest::collection::vec("[a-z0-9]{1,8}", 1..6)) {
            let plain = Fingerprint::of_title(&words.join(" "));
            prop_assert_eq!(&Fingerprint::of_title(&words.join(" -- ").to_uppercase()), &plain);
            prop_assert_eq!(&Fingerprint::of_title(&format!("\n{}\t", words.join("_"))), &plain);
        }

        #[test]
        fn is_read_back(title in any::<String>()) {
            let print = Fingerprint::of_title(&title);
            prop_assert_eq!(print.as_str().parse(), Ok(print.clone()));
            prop_assert!(print.as_str().len() == 11);
        }
    }
}
