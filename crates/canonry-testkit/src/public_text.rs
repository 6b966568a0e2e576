//! Assertions for every text that is posted on GitHub: it must be readable and short.

/// Panics if the text contains something that a reader should not see: percentages, zero-width characters, literal
/// backticks, or entities in code, where they are not rendered.
pub fn assert_readable(text: &str) {
    let outside = outside_code(text);
    assert!(!outside.contains('%'), "a percentage:\n{text}");
    assert!(!outside.contains('`'), "a literal backtick:\n{text}");
    let unseen =
        |c: char| matches!(u32::from(c), 0x00AD | 0x200B..=0x200F | 0x202A..=0x202E | 0x2060..=0x2064 | 0xFEFF);
    assert!(!text.contains(unseen), "a character without width:\n{text}");
    let code = text.len() - outside.len();
    assert!(
        code == 0 || text.matches("&ZeroWidthSpace;").count() == outside.matches("&ZeroWidthSpace;").count(),
        "an entity in code:\n{text}"
    );
}

/// The number of visible words: without finding lines, folded details, code blocks and markup.
pub fn words_in_sight(text: &str) -> usize {
    let (mut folds, mut in_code, mut in_list, mut words) = (0_usize, false, false, 0);
    for line in text.lines() {
        let fence = line.starts_with("```");
        in_code ^= fence;
        folds += line.matches("<details>").count();
        in_list = line.starts_with("- ") || (in_list && line.starts_with("  "));
        if folds == 0 && !fence && !in_code && !in_list {
            words += line.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count();
        }
        folds -= line.matches("</details>").count();
    }
    words
}

/// The text without code blocks and code spans.
fn outside_code(text: &str) -> String {
    let (mut outside, mut rest) = (String::new(), text);
    while let Some(start) = rest.find('`') {
        let ticks = rest[start..].bytes().take_while(|byte| *byte == b'`').count();
        let inside = &rest[start + ticks..];
        let is_escaped = rest[..start].ends_with('\\');
        let Some(end) = inside.find(&"`".repeat(ticks)).filter(|_| !is_escaped) else {
            outside.push_str(&rest[..start + ticks]);
            rest = inside;
            continue;
        };
        outside.push_str(&rest[..start]);
        rest = &inside[end + ticks..];
    }
    outside + rest
}
