//! Words that a column has to hold, in a pattern that both engines read alike.

/// So many words of a search count: each costs every row that is looked at.
const MOST_WORDS: usize = 8;

/// One pattern for each word of a text, for `lower(column) LIKE lower(pattern) ESCAPE '\\'`.
///
/// The engines lower both sides by what they know of letters: SQLite those of ASCII, PostgreSQL those of its locale.
pub(crate) fn patterns(text: &str) -> Vec<String> {
    text.split_whitespace().take(MOST_WORDS).map(pattern).collect()
}

/// The pattern of a text that a column has to hold as it is, but for the case of its letters.
pub(crate) fn pattern(held: &str) -> String {
    let mut pattern = String::with_capacity(held.len() + 2);
    pattern.push('%');
    for character in held.chars() {
        if matches!(character, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        // PostgreSQL takes no U+0000, and no column holds one.
        pattern.push(if character == '\0' { '\u{fffd}' } else { character });
    }
    pattern.push('%');
    pattern
}

#[cfg(test)]
mod tests {
    use super::patterns;

    #[test]
    fn signs_that_mean_something_stand_for_themselves() {
        assert_eq!(patterns(" 100% a_b\tc\\d "), ["%100\\%%", "%a\\_b%", "%c\\\\d%"]);
        assert_eq!(patterns("\0"), ["%\u{fffd}%"]);
        assert_eq!(patterns("  "), [""; 0]);
        assert_eq!(patterns(&"a ".repeat(99)).len(), 8);
    }
}
