//! Makes untrusted text of a settings file safe for messages.

/// Quotes a key or value for a message: short, on one line, without invisible characters.
pub(crate) fn quoted(text: &str) -> String {
    const SHOWN: usize = 40;
    let mut shown: String = text.chars().take(SHOWN).map(harmless).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    format!("`{shown}`")
}

/// Makes a message of the YAML parser safe, which may repeat names from the file.
pub(crate) fn harmless_text(text: &str) -> String {
    text.chars().map(harmless).collect()
}

/// Control characters move the cursor, direction marks reorder the text, and a backtick would end the quotation.
fn harmless(c: char) -> char {
    match c {
        '`' => '\'',
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' => '\u{fffd}',
        c if c.is_control() => '\u{fffd}',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn nothing_leaves_the_quotation() {
        assert_eq!(quoted("a`b\u{1b}[2J\nc\u{202e}d"), "`a'b\u{fffd}[2J\u{fffd}c\u{fffd}d`");
        assert_eq!(quoted(&"é".repeat(41)), format!("`{}…`", "é".repeat(40)));
    }
}
