//! Makes text from strangers harmless for a terminal.
//!
//! A title may contain escape sequences that move the cursor or rename the window, and bidirectional controls that
//! make a line look different from its content. They are shown as `\u{…}` instead.

use std::fmt::Write as _;

use crate::text::untrusted_text::is_hidden;

/// The text on one line, with every character escaped that would act on a terminal.
pub fn one_line(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push(' '),
            other => push(&mut shown, other),
        }
    }
    shown
}

/// The text with its line breaks, and with every other character escaped that would act on a terminal.
pub fn block(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.replace("\r\n", "\n").chars() {
        match character {
            '\n' | '\t' => shown.push(character),
            other => push(&mut shown, other),
        }
    }
    shown
}

/// Whether a character acts on a terminal or is hidden there.
pub fn is_escaped(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            // Soft hyphen, Arabic letter mark, zero-width space, direction marks, line and paragraph
            // separators, embeddings and overrides, invisible operators and isolates, byte order
            // mark, interlinear marks. The zero-width joiners stay: emoji and Indic scripts need them.
            '\u{ad}' | '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
                // Tag characters, which can encode whole invisible sentences.
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// Whether a character changes a text without being visible: controls, zero-width and filler characters, direction
/// marks, variation selectors, tags. Line ends and tabs count as visible.
pub fn is_invisible(character: char) -> bool {
    is_hidden(character) && !matches!(character, '\n' | '\t' | '\u{2028}' | '\u{2029}')
}

fn push(shown: &mut String, character: char) {
    if is_escaped(character) {
        write!(shown, "\\u{{{:x}}}", u32::from(character)).expect("invariant: a String takes everything");
    } else {
        shown.push(character);
    }
}

#[cfg(test)]
mod tests {
    use super::{block, one_line};

    #[test]
    fn what_acts_on_a_terminal_is_shown() {
        for (text, shown) in [
            ("plain – ünïcode 👩‍💻", "plain – ünïcode 👩‍💻"),
            ("\u{1b}[2Jgone", "\\u{1b}[2Jgone"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("a\nb\r\nc\td", "a\\nb\\r\\nc d"),
            ("safe\u{202e}exe.txt", "safe\\u{202e}exe.txt"),
            ("zero\u{200b}width\u{feff}", "zero\\u{200b}width\\u{feff}"),
            ("tag\u{e0041}", "tag\\u{e0041}"),
            ("bell\u{7}\u{7f}", "bell\\u{7}\\u{7f}"),
        ] {
            assert_eq!(one_line(text), shown);
        }
    }

    #[test]
    fn a_block_keeps_its_lines() {
        assert_eq!(block("a\r\nb\n\tc\rd\u{1b}"), "a\nb\n\tc\\u{d}d\\u{1b}");
    }
}
