//! The words that a judge quotes from both texts, and whether they are there.

use crate::duplicates::vague::is_unspaced;
use crate::text::answer_fence::unwrap_answer;
use serde::Deserialize;

/// What an answer quotes of each side; empty if it quotes nothing of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AnswerQuotes {
    pub source: String,
    pub candidate: String,
}

/// Only the quotes of an answer; [`crate::parse_judge_answer`] reads the rest and refuses what is malformed.
#[derive(Deserialize)]
struct RawQuotes {
    #[serde(default, deserialize_with = "present")]
    source_quote: Option<Option<String>>,
    #[serde(default, deserialize_with = "present")]
    candidate_quote: Option<Option<String>>,
}

/// Distinguishes a null from an absent key.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::<String>::deserialize(deserializer).map(Some)
}

/// The quotes of an answer; `None` if it has neither key. A judge that was not given the schema may leave them out.
pub fn quotes_of_answer(answer: &str) -> Option<AnswerQuotes> {
    let raw: RawQuotes = serde_json::from_str(unwrap_answer(answer)).ok()?;
    if raw.source_quote.is_none() && raw.candidate_quote.is_none() {
        return None;
    }
    let quoted = |quote: Option<Option<String>>| quote.flatten().unwrap_or_default();
    Some(AnswerQuotes { source: quoted(raw.source_quote), candidate: quoted(raw.candidate_quote) })
}

/// The minimum length of a quote in bytes of letters and digits: a word or two, or three Chinese characters. Anything
/// shorter is in most texts.
const LEAST_QUOTED: usize = 8;

/// Whether a text contains a quote: the same words in the same order. Punctuation, line breaks and capitals may differ,
/// and an ellipsis stands for anything between two parts, also for the rest of the word that it touches.
pub fn is_quoted(quote: &str, text: &str) -> bool {
    let text = words(text);
    let mut from = 0;
    let mut quoted = 0;
    let quote = quote.replace("...", "…");
    let last = quote.matches('…').count();
    for (at, raw) in quote.split('…').enumerate() {
        let part = words(raw);
        if part.is_empty() {
            continue;
        }
        let is_cut_before = at > 0 && raw.starts_with(char::is_alphanumeric);
        let is_cut_after = at < last && raw.ends_with(char::is_alphanumeric);
        let found = occurrences(&text[from..], &part).map(|place| from + place).find(|start| {
            let end = start + part.len();
            (is_cut_before || is_word_border(&text, *start)) && (is_cut_after || is_word_border(&text, end))
        });
        let Some(start) = found else { return false };
        from = start + part.len();
        quoted += part.len();
    }
    quoted >= LEAST_QUOTED
}

/// Where a part that is not empty occurs in a text. Occurrences may overlap: the first of two may begin inside a word.
fn occurrences(text: &str, part: &str) -> impl Iterator<Item = usize> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let start = from + text[from..].find(part)?;
        from = start + text[start..].chars().next()?.len_utf8();
        Some(start)
    })
}

/// Whether no word continues across this place. Scripts without spaces have no borders, so any place is one.
fn is_word_border(text: &str, at: usize) -> bool {
    let is_in_word = |character: char| character != ' ' && !is_unspaced(character);
    let (before, after) = (text[..at].chars().next_back(), text[at..].chars().next());
    !(before.is_some_and(is_in_word) && after.is_some_and(is_in_word))
}

/// The letters and digits of a text in lower case, with one space for everything between them.
fn words(text: &str) -> String {
    let mut words = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_alphanumeric() {
            words.extend(character.to_lowercase());
        } else if !words.is_empty() && !words.ends_with(' ') {
            words.push(' ');
        }
    }
    words.truncate(words.trim_end().len());
    words
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert, proptest};

    use super::{AnswerQuotes, is_quoted, quotes_of_answer};

    const TEXT: &str =
        "Export stops\n\nAfter the update, `export --all` panics:\n| thread 'main' panicked at\n| src/export.rs:88:40";

    #[test]
    fn a_quote_is_found_however_it_is_set() {
        for quote in [
            "export --all panics",
            "Export Stops After the update",
            "`export --all` panics: thread 'main' panicked at src/export.rs:88:40",
            "After the update … panicked at",
            "After the update ... src/export.rs:88:40",
            "After the upda… panicked at",
        ] {
            assert!(is_quoted(quote, TEXT), "{quote}");
        }
        for quote in ["書き出し", "出しが止まる"] {
            assert!(is_quoted(quote, "書き出しが止まる"), "{quote}");
        }
    }

    #[test]
    fn a_quote_is_found_where_it_overlaps_part_of_a_word() {
        for (quote, text) in [
            ("start start", "prestart start start"),
            ("start start", "Prestart: start, start."),
            ("zurück zurück", "ein Überzurück zurück zurück"),
            ("start start … stop", "prestart start start and stop"),
        ] {
            assert!(is_quoted(quote, text), "{text}");
        }
        for text in ["prestart start", "start starter", "prestart starter start"] {
            assert!(!is_quoted("start start", text), "{text}");
        }
    }

    #[test]
    fn what_is_not_there_is_no_quote() {
        for quote in [
            "",
            "…",
            "the",
            "stops",
            "import --all panics",
            "panics export",
            "panicked at … After the update",
            "!!!",
            "he update export",
            "port --all panics",
            "After the upda",
        ] {
            assert!(!is_quoted(quote, TEXT), "{quote}");
        }
    }

    #[test]
    fn absent_and_empty_quotes_are_told_apart() {
        let quotes = |source: &str, candidate: &str| {
            Some(AnswerQuotes { source: source.to_owned(), candidate: candidate.to_owned() })
        };
        assert_eq!(quotes_of_answer(r#"{"is_duplicate":true}"#), None);
        assert_eq!(quotes_of_answer("not json"), None);
        assert_eq!(quotes_of_answer(r#"{"source_quote":null}"#), quotes("", ""));
        let answer = r#"{"source_quote":"a b","candidate_quote":"c d","fix":"e"}"#;
        assert_eq!(quotes_of_answer(answer), quotes("a b", "c d"));
        assert_eq!(quotes_of_answer(&format!("```json\n{answer}\n```")), quotes("a b", "c d"));
    }

    proptest! {
        #[test]
        fn every_long_enough_run_of_words_is_a_quote(words in vec("[a-zA-Z0-9]{1,9}[.,]?[ \n]", 9..20), from in 0_usize..8, count in 1_usize..9) {
            let (text, piece) = (words.concat(), words[from..].iter().take(count).cloned().collect::<String>());
            let letters = piece.chars().filter(|character| character.is_ascii_alphanumeric()).count();
            if letters >= 8 {
                prop_assert!(is_quoted(&piece, &text), "{piece:?}");
            }
        }

        #[test]
        fn any_quote_of_any_text_is_answered(quote in any::<String>(), text in any::<String>()) {
            is_quoted(&quote, &text);
        }
    }
}
