//! Marks untrusted text, so that a model can tell it from its instructions.

use sha2::{Digest as _, Sha256};

use crate::redact;

/// The digits of the hash in a boundary.
const BOUNDARY_DIGITS: usize = 16;

/// A boundary around texts that none of these texts can contain.
pub struct Fence {
    boundary: String,
}

impl Fence {
    /// A boundary for these texts. It depends on every one of them, so that nobody can write a text that contains it.
    pub fn around(texts: &[&str]) -> Self {
        let mut hash = Sha256::new();
        for text in texts {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text.as_bytes());
        }
        let mut digest = hash.finalize();
        loop {
            let boundary = crate::hex_digits(&digest[..BOUNDARY_DIGITS / 2]);
            if texts.iter().all(|text| !text.contains(&boundary)) {
                return Self { boundary };
            }
            digest = Sha256::digest(digest);
        }
    }

    /// A text between its boundaries, each line after a mark: whatever it contains, it cannot end early.
    pub fn fenced(&self, text: &str) -> String {
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
pub fn visible(line: &str) -> String {
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
pub fn visible_text(text: &str) -> String {
    redact(text).lines().map(visible).collect::<Vec<_>>().join("\n")
}

/// Controls, zero-width and filler characters, direction marks, variation selectors, tags, and line ends other than `\n`.
pub fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(u32::from(character),
            0x00AD | 0x034F | 0x061C | 0x115F..=0x1160 | 0x17B4..=0x17B5 | 0x180B..=0x180F | 0x200B..=0x200F
            | 0x2028..=0x202E | 0x2060..=0x206F | 0x2800 | 0x3164 | 0xFE00..=0xFE0F | 0xFEFF | 0xFFA0
            | 0xFFF0..=0xFFFB | 0x1_BCA0..=0x1_BCA3 | 0x1_D173..=0x1_D17A | 0xE_0000..=0xE_0FFF)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    use super::{Fence, visible};

    #[test]
    fn what_nobody_sees_is_spelt_out() {
        assert_eq!(visible("a\u{202e}b\u{2028}c\u{85}d\te\r"), "a\\u{202e}b\\u{2028}c\\u{85}d\te\\u{d}");
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
    }
}
