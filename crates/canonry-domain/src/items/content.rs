//! Normalises and hashes an item's text, and cuts it to the raw representation.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::ItemType;

/// The maximum number of code points of a title in the raw representation.
pub const TITLE_LIMIT: usize = 300;
/// The maximum number of code points of a body in the raw representation.
pub const BODY_LIMIT: usize = 7_700;
/// The maximum number of code points of the whole raw representation, including the blank line between title and body.
pub const TEXT_LIMIT: usize = 8_000;

/// SHA-256 over an item's type and normalised text, as 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ContentHash(String);

impl ContentHash {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Wraps a hash that was read from the store.
    pub fn stored(digits: String) -> Self {
        Self(digits)
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl FromStr for ContentHash {
    type Err = std::convert::Infallible;

    fn from_str(digits: &str) -> Result<Self, Self::Err> {
        Ok(Self(digits.to_owned()))
    }
}

/// The hash that shows whether an item's text changed.
///
/// It is computed over compact JSON with sorted keys, UTF-8, non-ASCII unescaped. A missing body hashes like an empty
/// one.
pub fn content_hash(item_type: ItemType, title: &str, body: &str) -> ContentHash {
    #[derive(Serialize)]
    struct Hashed<'a> {
        body: &'a str,
        title: &'a str,
        #[serde(rename = "type")]
        item_type: ItemType,
    }
    let hashed = Hashed { body: &normalise_text(body), title: &normalise_text(title), item_type };
    let json = serde_json::to_vec(&hashed).expect("invariant: strings always serialise");
    let digest = Sha256::digest(&json);
    ContentHash(crate::text::hex::hex_digits(digest))
}

/// Normalises line endings and trims white space.
pub fn normalise_text(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n").trim().to_owned()
}

/// The raw representation: title, blank line, body, each cut by code points.
pub fn raw_text(title: &str, body: &str) -> String {
    let title: String = normalise_text(title).chars().take(TITLE_LIMIT).collect();
    let body = normalise_text(body);
    if body.is_empty() {
        return title;
    }
    if title.is_empty() {
        return body.chars().take(BODY_LIMIT).collect();
    }
    let room = TEXT_LIMIT - title.chars().count() - 2;
    let body: String = body.chars().take(BODY_LIMIT.min(room)).collect();
    format!("{title}\n\n{body}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, prop_assert_eq, prop_assert_ne, proptest};

    use super::{TEXT_LIMIT, content_hash, normalise_text, raw_text};
    use crate::ItemType;

    #[test]
    fn golden_hashes() {
        let golden = "569363a54b503456ad0292a2db8e4466266a59b97b5077257bd58de6aa12b65e";
        assert_eq!(content_hash(ItemType::Issue, "Title\n", "Body\r\n").as_str(), golden);
        assert_eq!(content_hash(ItemType::Issue, "Title", "Body").as_str(), golden);
        assert_eq!(
            content_hash(ItemType::Pr, "Title", "Body").as_str(),
            "6e8975d8f7553bf305a7dc8e540c28495fa917f6ec9764e30c0c2fe488727443"
        );
    }

    #[test]
    fn non_ascii_is_hashed_unescaped() {
        // sha256sum of {"body":"größer\n\"x\"","title":"日本","type":"issue"}
        assert_eq!(
            content_hash(ItemType::Issue, "日本", "größer\n\"x\"").as_str(),
            "ec07fc50c45f421ec614bf4ca0980066d4a1a96cab8fa29673ac152e12887e73"
        );
    }

    #[test]
    fn a_long_item_is_cut_to_eight_thousand_code_points() {
        let text = raw_text(&"ä".repeat(400), &"ö".repeat(9_000));
        assert_eq!(text.chars().count(), TEXT_LIMIT);
        assert_eq!(text.chars().filter(|&character| character == 'ä').count(), 300);
        assert_eq!(text.chars().filter(|&character| character == 'ö').count(), 7_698);
    }

    #[test]
    fn an_empty_half_leaves_no_blank_line() {
        assert_eq!(raw_text(" Title ", " \r\n"), "Title");
        assert_eq!(raw_text("", "Body"), "Body");
        assert_eq!(raw_text("", ""), "");
    }

    proptest! {
        #[test]
        fn normalising_twice_changes_nothing(text in any::<String>()) {
            let once = normalise_text(&text);
            prop_assert!(!once.contains('\r'));
            prop_assert_eq!(normalise_text(&once), once);
        }

        #[test]
        fn line_endings_and_outer_space_never_change_the_hash(title in "[a-z\n]{0,20}", body in "[a-z\n ]{0,40}") {
            let plain = content_hash(ItemType::Issue, &title, &body);
            let windows = content_hash(ItemType::Issue, &format!(" {}\r\n", title.replace('\n', "\r\n")), &body.replace('\n', "\r"));
            prop_assert_eq!(plain, windows);
        }

        #[test]
        fn other_text_has_another_hash(body in any::<String>(), more in "[a-z]{1,5}") {
            let title = "t";
            prop_assert_ne!(content_hash(ItemType::Issue, title, &body), content_hash(ItemType::Issue, title, &format!("{body}{more}")));
            prop_assert_ne!(content_hash(ItemType::Issue, title, &body), content_hash(ItemType::Pr, title, &body));
        }

        #[test]
        fn raw_text_is_bounded(title in any::<String>(), body in any::<String>()) {
            prop_assert!(raw_text(&title, &body).chars().count() <= TEXT_LIMIT);
        }
    }
}
