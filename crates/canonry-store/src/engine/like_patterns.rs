//! LIKE patterns for words that a column must contain, with the same meaning on both engines.

/// The number of words of a search that count: each word costs time for every row.
const MOST_WORDS: usize = 8;

/// Returns one pattern for each word of a text, for `lower(column) LIKE lower(pattern) ESCAPE '\\'`.
///
/// SQLite lowers only ASCII letters, PostgreSQL the letters of its locale.
pub(crate) fn patterns(text: &str) -> Vec<String> {
    text.split_whitespace().take(MOST_WORDS).map(pattern).collect()
}

/// Returns the pattern for a text that a column must contain literally, ignoring case.
pub(crate) fn pattern(held: &str) -> String {
    let mut pattern = String::with_capacity(held.len() + 2);
    pattern.push('%');
    for character in held.chars() {
        if matches!(character, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        // PostgreSQL accepts no U+0000, and no column contains one.
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
