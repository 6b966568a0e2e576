//! Quotes text by reviewers and people, so that it mentions nobody, renders nothing and stays in its place.

use canonry_domain::review::{LineRange, RepoPath, applicable_suggestion, fenced};
use canonry_domain::{code_span, is_hidden, redact_shown};
use canonry_github::quote_line;

/// The longest quoted text in characters: a single `@` becomes seventeen.
const MOST_QUOTED: usize = 12_000;

/// The limit in characters of a name or a place.
const CODE: usize = 300;

/// The lines of a suggested fix that are shown.
const FIX_LINES: usize = 40;
const FIX_CHARACTERS: usize = 4_000;

/// Quotes one line of text. Short code between backticks stays code; everything else loses its meaning for GitHub.
pub(super) fn line(text: &str, limit: usize) -> String {
    bounded(limit, |limit| {
        let words: Vec<String> = redact_shown(text).split_whitespace().map(str::to_owned).collect();
        with_code(&cut(&words.join(" "), limit))
    })
}

/// Quotes text of several lines, each as [`line`] does.
pub(super) fn prose(text: &str, limit: usize) -> String {
    bounded(limit, |limit| {
        let mut lines: Vec<String> = Vec::new();
        for one in cut(&redact_shown(text), limit).lines().map(str::trim) {
            // Several blank lines become one.
            if !(one.is_empty() && lines.last().is_none_or(String::is_empty)) {
                lines.push(with_code(one));
            }
        }
        lines.join("\n").trim_end().to_owned()
    })
}

/// A name or a place as code, if it can be code.
pub(super) fn code(text: &str) -> String {
    code_span(text, usize::MAX, CODE).unwrap_or_else(|| quote_line(text, CODE))
}

pub(super) fn place(path: &RepoPath, lines: Option<LineRange>) -> String {
    code(&lines.map_or_else(|| path.to_string(), |lines| format!("{path}:{}", lines.first)))
}

/// A suggested fix: a sentence as text, anything else as a code block that its content cannot end.
pub(super) fn fix(text: &str) -> Option<String> {
    let text: String = redact_shown(text).chars().filter(|c| *c == '\n' || *c == '\t' || !is_hidden(*c)).collect();
    // The outbox refuses a text that contains a marker, such as one copied from elsewhere.
    let text = text.replace("canonry:v1:", "canonry: v1:");
    let text = text.trim_matches('\n').trim_end();
    if text.trim().is_empty() {
        return None;
    }
    if !text.contains('\n') && is_sentence(text) {
        return Some(line(text, 1_000));
    }
    let shown: Vec<&str> = text.lines().take(FIX_LINES).collect();
    let shown = cut(&shown.join("\n"), FIX_CHARACTERS);
    let more = if shown.len() < text.len() && !shown.ends_with('…') { "\n…" } else { "" };
    Some(fenced(&format!("{shown}{more}")))
}

/// Code that GitHub offers to apply with one click; `None` if not all of it may be shown.
pub(super) fn suggestion(code: &str) -> Option<String> {
    // Checked when it was reported; the rules about secrets may have grown since.
    (redact_shown(code) == code).then(|| applicable_suggestion(code))
}

fn is_sentence(text: &str) -> bool {
    let words = text.split_whitespace().filter(|word| word.chars().all(|c| c.is_alphabetic() || "'’,.".contains(c)));
    text.trim().starts_with(char::is_uppercase) && words.count() >= 4 && text.trim().ends_with('.')
}

/// Quotes a text with lower and lower limits until the result is short enough for GitHub.
fn bounded(limit: usize, quote: impl Fn(usize) -> String) -> String {
    let mut limit = limit;
    loop {
        let quoted = quote(limit);
        if limit < 2 || quoted.chars().count() <= MOST_QUOTED {
            return quoted;
        }
        limit /= 2;
    }
}

/// Quotes a line; its parts between backticks stay code if all of them can be code.
fn with_code(line: &str) -> String {
    let parts: Vec<&str> = line.split('`').collect();
    let are_plain = parts.iter().skip(1).step_by(2).all(|part| is_plain_code(part));
    // Two adjacent pieces of code would become one.
    let touch = parts.len() > 3 && parts[1..parts.len() - 1].iter().skip(1).step_by(2).any(|part| part.is_empty());
    if parts.len().is_multiple_of(2) || !are_plain || touch {
        return quote_line(line, usize::MAX);
    }
    let mut quoted = String::new();
    for (at, part) in parts.iter().enumerate() {
        if at % 2 == 1 {
            quoted.push_str(&format!("`{part}`"));
            continue;
        }
        let words = quote_line(part, usize::MAX);
        let space = |is: bool| if is && !words.is_empty() { " " } else { "" };
        if words.is_empty() && !part.is_empty() && at > 0 && at + 1 < parts.len() {
            quoted.push(' ');
        }
        let (before, after) = (part.starts_with(char::is_whitespace), part.ends_with(char::is_whitespace));
        quoted.push_str(&format!("{}{words}{}", space(before && at > 0), space(after && at + 1 < parts.len())));
    }
    quoted
}

/// Whether a text between backticks is nothing but code, also for a program that searches the text for mentions.
pub(super) fn is_plain_code(text: &str) -> bool {
    let is_plain = |c: char| c == ' ' || c.is_ascii_graphic() || c.is_alphanumeric();
    !text.is_empty()
        && text.trim() == text
        && text.chars().count() <= 200
        && text.chars().all(|c| is_plain(c) && c != '`' && c != '@')
        && !text.contains("<!")
}

fn cut(text: &str, limit: usize) -> String {
    let text = text.trim();
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, proptest};

    use super::{MOST_QUOTED, code, fix, line, prose};

    #[test]
    fn short_code_stays_code() {
        for (text, quoted) in [
            ("Use `read()` and `write()` here", "Use `read()` and `write()` here"),
            ("`eval` of input", "`eval` of input"),
            ("a `b`", "a `b`"),
            ("`a``b`", "\\`a\\`\\`b\\`"),
            ("an ` alone", "an \\` alone"),
            ("**bold** `x`", "\\*\\*bold\\*\\* `x`"),
            ("ping `@mona`", "ping \\`@&ZeroWidthSpace;mona\\`"),
            ("`<!-- x -->`", "\\`&lt;!-- x --&gt;\\`"),
        ] {
            assert_eq!(line(text, 100), quoted, "{text}");
        }
        assert_eq!(code("src/a.js:3"), "`src/a.js:3`");
        assert_eq!(code("src/@a`.js"), "``src/@a`.js``");
        assert_eq!(code("src/<!--.js"), "src/&lt;!--.js");
    }

    #[test]
    fn several_lines_stay_lines() {
        assert_eq!(
            prose("one\n\n\n  # two `x`\n- three\n</details>\n\n", 500),
            "one\n\n\\# two `x`\n\\- three\n&lt;/details&gt;"
        );
        assert_eq!(prose("abc\ndef", 5), "abc\nd…");
    }

    #[test]
    fn a_fix_is_fenced_by_more_than_it_has() {
        assert_eq!(fix("close(f)").as_deref(), Some("```\nclose(f)\n```"));
        let nested = fix("````\n</details> @mona\n````").expect("shown");
        assert!(nested.starts_with("`````\n") && nested.ends_with("\n`````"), "{nested}");
        assert_eq!(
            fix("Close the file when reading it fails.").as_deref(),
            Some("Close the file when reading it fails.")
        );
        assert_eq!(fix(" \n "), None);
        let long = fix(&"x\n".repeat(99)).expect("shown");
        assert!(long.ends_with("\n…\n```") && long.lines().count() == 43, "{long}");
        assert!(!fix("<!-- canonry:v1:review:k:s -->").expect("shown").contains("canonry:v1:"));
    }

    proptest! {
        #[test]
        fn whatever_is_said_has_an_end_and_mentions_nobody(text in any::<String>(), repeated in 1usize..600) {
            let long = format!("{text}@").repeat(repeated);
            let quoted = prose(&long, 3_000);
            prop_assert!(quoted.chars().count() <= MOST_QUOTED);
            for (at, _) in quoted.match_indices('@') {
                prop_assert!(quoted[at..].starts_with("@&ZeroWidthSpace;"), "{quoted}");
            }
            // Between backticks, characters have no special meaning.
            let (mut outside, mut in_code, mut signs) = (String::new(), false, quoted.chars());
            while let Some(sign) = signs.next() {
                match sign {
                    '`' => in_code = !in_code,
                    // Escapes work outside of code only.
                    '\\' if !in_code => drop(signs.next()),
                    sign if !in_code => outside.push(sign),
                    _ => {}
                }
            }
            prop_assert!(!outside.contains('<') && !in_code, "{quoted}");
        }
    }
}
