//! Fits untrusted text into the columns of a terminal.

use canonry_domain::printable::{block, is_escaped, one_line};
use unicode_width::UnicodeWidthChar as _;

const TAB: usize = 4;

/// Fits a line of code: tabs become spaces, characters that would control the terminal become visible, and the rest
/// beyond `width` is cut.
pub fn fitted(line: &str, width: usize) -> String {
    let mut shown = String::new();
    let (mut column, mut marks) = (0, 0);
    for character in line.chars() {
        let piece = match character {
            '\t' => " ".repeat(TAB - column % TAB),
            hidden if is_escaped(hidden) => one_line(hidden.encode_utf8(&mut [0; 4])),
            other => other.to_string(),
        };
        let wide = columns(&piece);
        // Combining marks take no column, and hundreds of them on one letter would cover the lines around it.
        marks = if wide == 0 { marks + 1 } else { 0 };
        if marks > 8 {
            continue;
        }
        if column + wide > width {
            while column + 1 > width {
                column -= shown.pop().and_then(|last| last.width()).unwrap_or_default();
                if shown.is_empty() {
                    break;
                }
            }
            shown.push('…');
            return shown;
        }
        column += wide;
        shown.push_str(&piece);
    }
    shown.truncate(shown.trim_end().len());
    shown
}

/// The columns of a text without hidden characters.
pub fn columns(text: &str) -> usize {
    text.chars().map(|character| character.width().unwrap_or_default()).sum()
}

/// Wraps a text between words and keeps its own lines; several blank lines become one. Text beyond `most` lines is left
/// out, and a mark shows the cut.
pub fn wrapped(text: &str, width: usize, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for own in block(text.trim()).lines() {
        if lines.len() > most {
            break;
        }
        let space = &own[..own.len() - own.trim_start().len()];
        let indent: usize = space.chars().map(|character| if character == '\t' { TAB } else { 1 }).sum();
        let indent = indent.min(width / 2);
        let mut line = " ".repeat(indent);
        let mut is_empty = true;
        for word in own.split_whitespace() {
            for part in broken(word, width - indent) {
                let gap = usize::from(!is_empty);
                if !is_empty && columns(&line) + gap + columns(&part) > width {
                    lines.push(std::mem::replace(&mut line, " ".repeat(indent)));
                    is_empty = true;
                }
                if !is_empty {
                    line.push(' ');
                }
                line.push_str(&part);
                is_empty = false;
            }
        }
        if !is_empty {
            lines.push(line);
        } else if lines.last().is_some_and(|last| !last.is_empty()) {
            lines.push(String::new());
        }
    }
    if lines.len() > most {
        lines.truncate(most);
        lines.push("…".to_owned());
    }
    lines
}

/// Breaks a word into pieces that fit; most words are one piece.
fn broken(word: &str, width: usize) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut column = 0;
    for character in word.chars() {
        let wide = character.width().unwrap_or_default();
        if column + wide > width && column > 0 {
            parts.push(String::new());
            column = 0;
        }
        column += wide;
        parts.last_mut().expect("invariant: there is a part").push(character);
    }
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, proptest};

    use super::{columns, fitted, wrapped};

    #[test]
    fn code_is_fitted() {
        for (line, width, shown) in [
            ("\tif x {\t// y", 40, "    if x {  // y"),
            ("trailing   ", 40, "trailing"),
            ("a\u{1b}[31mred\u{202e}", 40, "a\\u{1b}[31mred\\u{202e}"),
            ("cut off here", 7, "cut of…"),
            ("just fits", 9, "just fits"),
            ("日本語のコード", 8, "日本語…"),
            ("日本語のコード", 7, "日本語…"),
            ("lone\rreturn", 40, "lone\\rreturn"),
            ("a\u{1b}b", 3, "a…"),
        ] {
            assert_eq!(fitted(line, width), shown, "{line:?}");
        }
        let stacked = format!("a{}b", "\u{301}".repeat(500));
        assert_eq!(fitted(&stacked, 40).chars().count(), 10);
    }

    #[test]
    fn prose_is_wrapped_between_words() {
        let text = "One two three four.\n\n\n  - indented item that wraps\r\nlast";
        assert_eq!(
            wrapped(text, 12, 20),
            ["One two", "three four.", "", "  - indented", "  item that", "  wraps", "last"]
        );
        assert_eq!(wrapped("a b c d", 1, 2), ["a", "b", "…"]);
        assert_eq!(wrapped("unbreakable", 5, 9), ["unbre", "akabl", "e"]);
        assert_eq!(wrapped(" \n ", 5, 9), [""; 0]);
    }

    proptest! {
        #[test]
        fn nothing_is_wider_than_it_may_be(text in any::<String>(), width in 4_usize..60) {
            prop_assert!(columns(&fitted(&text, width)) <= width);
            for line in wrapped(&text, width, 5) {
                prop_assert!(columns(&line) <= width, "{line:?}");
                prop_assert!(!line.contains(|c: char| c.is_control()), "{line:?}");
            }
        }
    }
}
