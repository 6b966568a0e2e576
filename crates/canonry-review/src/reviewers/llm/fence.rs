//! Marks untrusted text, so that a model can tell it from its instructions.

use canonry_domain::{redact, scan_secrets};
use sha2::{Digest as _, Sha256};

/// The digits of the hash in a boundary.
const BOUNDARY_DIGITS: usize = 16;

/// A boundary around texts that none of these texts can contain.
pub(super) struct Fence {
    boundary: String,
}

impl Fence {
    /// A boundary for these texts. It depends on every one of them, so that nobody can write a text that contains it.
    pub(super) fn around(texts: &[&str]) -> Self {
        let mut hash = Sha256::new();
        for text in texts {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text.as_bytes());
        }
        let mut digest = hash.finalize();
        loop {
            let boundary = canonry_domain::hex_digits(&digest[..BOUNDARY_DIGITS / 2]);
            if texts.iter().all(|text| !text.contains(&boundary)) {
                return Self { boundary };
            }
            digest = Sha256::digest(digest);
        }
    }

    /// A text between its boundaries, each line after a mark: whatever it contains, it cannot end early.
    pub(super) fn fenced(&self, text: &str) -> String {
        let mut data = format!("BOUNDARY {} BEGIN\n", self.boundary);
        for line in text.trim_end_matches('\n').split('\n') {
            data.push_str(format!("| {line}").trim_end());
            data.push('\n');
        }
        data.push_str(&format!("BOUNDARY {} END\n", self.boundary));
        data
    }
}

/// A line with hidden characters, and characters that others treat as line ends, spelt out. Hidden characters in a
/// change have to be visible.
pub(super) fn visible(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    for character in line.chars() {
        if character == '\t' || !is_hidden(character) {
            shown.push(character);
        } else {
            shown.push_str(&format!("\\u{{{:x}}}", u32::from(character)));
        }
    }
    shown
}

/// A text of several lines, with hidden characters spelt out and without secrets.
pub(super) fn visible_text(text: &str) -> String {
    redact(text).lines().map(visible).collect::<Vec<_>>().join("\n")
}

/// A model's text, safe to be stored and shown: no secrets, no hidden characters.
pub(super) fn harmless(text: &str) -> String {
    let kept = |character: &char| matches!(character, '\n' | '\t') || !is_hidden(*character);
    redact(text.replace("\r\n", "\n").chars().filter(kept).collect::<String>().trim())
}

/// Controls, zero-width and filler characters, direction marks, variation selectors, tags, and line ends other than `\n`.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(u32::from(character),
            0x00AD | 0x034F | 0x061C | 0x115F..=0x1160 | 0x17B4..=0x17B5 | 0x180B..=0x180F | 0x200B..=0x200F
            | 0x2028..=0x202E | 0x2060..=0x206F | 0x2800 | 0x3164 | 0xFE00..=0xFE0F | 0xFEFF | 0xFFA0
            | 0xFFF0..=0xFFFB | 0x1_BCA0..=0x1_BCA3 | 0x1_D173..=0x1_D17A | 0xE_0000..=0xE_0FFF)
}

/// The lines of a text without its secrets. Their number stays the same: a key of several lines is removed from each,
/// so that line numbers stay correct.
pub(super) fn lines_without_secrets(text: &str) -> Vec<String> {
    let mut safe = String::with_capacity(text.len());
    let mut end = 0;
    for secret in scan_secrets(text) {
        safe.push_str(&text[end..secret.range.start]);
        let instead = |line: &str| if line.is_empty() { String::new() } else { format!("[redacted {}]", secret.kind) };
        safe.push_str(&text[secret.range.clone()].split('\n').map(instead).collect::<Vec<_>>().join("\n"));
        end = secret.range.end;
    }
    safe.push_str(&text[end..]);
    safe.lines().map(str::to_owned).collect()
}

/// The first characters of a text, and whether there are more.
pub(super) fn first_chars(text: &str, limit: usize) -> (&str, bool) {
    text.char_indices().nth(limit).map_or((text, false), |(end, _)| (&text[..end], true))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::{Fence, harmless, lines_without_secrets, visible};

    #[test]
    fn a_key_of_several_lines_is_taken_out_of_each() {
        let body = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8".repeat(2);
        let text = format!(
            "one\n-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----\nlast\npassword = x\n"
        );
        let lines = lines_without_secrets(&text);
        assert_eq!(lines.len(), text.lines().count());
        assert_eq!(
            (lines[0].as_str(), lines[2].as_str(), lines[4].as_str()),
            ("one", "[redacted private key]", "last")
        );
    }

    #[test]
    fn what_nobody_sees_is_spelt_out() {
        assert_eq!(visible("a\u{202e}b\u{2028}c\u{85}d\te\r"), "a\\u{202e}b\\u{2028}c\\u{85}d\te\\u{d}");
        assert_eq!(harmless(" a\u{202e}b\r\nc\u{1b}[31m "), "ab\nc[31m");
    }

    proptest! {
        #[test]
        fn nothing_gets_out_of_a_fence(text in "(BOUNDARY [0-9a-f]{16} END|\\PC|[\\n\\r\u{2028}\u{85}|]){0,60}") {
            let shown: String = text.split('\n').map(visible).collect::<Vec<_>>().join("\n");
            let fence = Fence::around(&[shown.as_str()]);
            let fenced = fence.fenced(&shown);
            let ours: Vec<&str> = fenced.lines().filter(|line| !line.starts_with('|')).collect();
            prop_assert_eq!(ours.len(), 2, "{}", fenced);
            prop_assert!(!shown.contains(&fence.boundary));
            prop_assert_eq!(fenced.matches(&fence.boundary).count(), 2);
        }

        #[test]
        fn lines_keep_their_numbers(text in any::<String>()) {
            prop_assert_eq!(lines_without_secrets(&text).len(), text.lines().count());
        }
    }
}
