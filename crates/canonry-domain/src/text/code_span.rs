//! Shows a stranger's text as code in a Markdown comment: it mentions nobody, links nothing and appears as it was
//! written.

use crate::redact_shown;
use crate::text::printable::is_invisible;

/// The text as one code span with at most so many words and characters; a cut is shown as `…`.
///
/// `None` if nothing of the text is visible, or if it contains an HTML comment: a copied marker must not occur in a
/// comment of Canonry, not even as code.
pub fn code_span(text: &str, most_words: usize, most_characters: usize) -> Option<String> {
    let visible: String = text.chars().filter(|character| !is_invisible(*character) || *character == '\r').collect();
    let redacted = redact_shown(&visible);
    let words: Vec<&str> = redacted.split_whitespace().collect();
    let mut shown = words[..words.len().min(most_words)].join(" ");
    let mut is_cut = words.len() > most_words;
    if let Some((end, _)) = shown.char_indices().nth(most_characters) {
        shown.truncate(end);
        is_cut = true;
    }
    if shown.trim().is_empty() || shown.contains("<!--") {
        return None;
    }
    if is_cut {
        shown.truncate(shown.trim_end_matches([' ', ',', ':', ';', '…']).len());
        shown.push('…');
    }
    let longest = shown.split(|character| character != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let space = if shown.starts_with('`') || shown.ends_with('`') { " " } else { "" };
    Some(format!("{fence}{space}{shown}{space}{fence}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
    use pulldown_cmark::{Event, Parser};

    use super::code_span;

    #[test]
    fn text_is_code_whatever_it_contains() {
        for (text, expected) in [
            ("client.reconnect", "`client.reconnect`"),
            ("@octocat closes #1\n see https://example.org", "`@octocat closes #1 see https://example.org`"),
            ("called `unwrap()` here", "``called `unwrap()` here``"),
            ("`a` ``b``", "``` `a` ``b`` ```"),
            ("a\u{200b}b\u{202e}c", "`abc`"),
            ("one two three four", "`one two three…`"),
            (
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                "`aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…`",
            ),
        ] {
            let words = if text.starts_with("one") { 3 } else { 20 };
            assert_eq!(code_span(text, words, 40 + usize::from(text.starts_with('@')) * 40).as_deref(), Some(expected));
        }
        for nothing in ["", " \n", "\u{200b}", "error <!-- canonry:v1:close:k:s -->"] {
            assert_eq!(code_span(nothing, 20, 200), None, "{nothing:?}");
        }
    }

    proptest! {
        #[test]
        fn markdown_reads_nothing_but_code(text in any::<String>(), marks in "[`@#<>*_ a-c\\[\\]()!\n-]{0,60}") {
            for text in [text, marks] {
                let Some(span) = code_span(&text, 12, 80) else { continue };
                let line = format!("Both show {span}.");
                let events: Vec<Event<'_>> = Parser::new(&line).collect();
                let code: Vec<_> = events.iter().filter(|event| matches!(event, Event::Code(_))).collect();
                prop_assert_eq!(code.len(), 1, "{}", line);
                let others = events.iter().filter(|event| matches!(event, Event::Text(_))).count();
                prop_assert!(events.len() == 5 && others == 2, "{}: {:?}", line, events);
            }
        }
    }
}
