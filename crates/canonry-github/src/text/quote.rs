//! Quotes text from strangers so that it pings nobody, links nothing, reveals no secret and renders as plain text.

use canonry_domain::printable::is_invisible;
use canonry_domain::redact_shown;

/// Splits a word for GitHub without a visible gap. GitHub searches for mentions and references in the rendered text, so
/// a backslash before `@` or `#` does not help; this entity does.
const GAP: &str = "&ZeroWidthSpace;";

/// Quotes text as one line: line breaks become spaces, at most `limit` characters of the text are used, and a cut is
/// shown as `…`.
///
/// Mentions (teams too), issue references (`#12`, `GH-12`, `owner/repo#1`), URLs, Markdown, HTML and marker-like
/// comments lose their meaning; control, zero-width and direction characters are removed, and secrets redacted.
pub fn quote_line(text: &str, limit: usize) -> String {
    let visible = without_secrets(text);
    let words: Vec<&str> = visible.split_whitespace().collect();
    escape_line(&cut(&words.join(" "), limit))
}

/// Quotes text as a block quote: as [`quote_line`], but keeps the lines, each after `> `.
pub fn quote_block(text: &str, limit: usize) -> String {
    let visible = cut(&without_secrets(text), limit);
    let mut quoted: Vec<String> = Vec::new();
    for line in visible.lines().map(str::trim) {
        // Several blank lines become one.
        if !(line.is_empty() && quoted.last().is_none_or(|last| last == ">")) {
            quoted.push(format!("> {}", escape_line(line)).trim_end().to_owned());
        }
    }
    while quoted.last().is_some_and(|last| last == ">") {
        quoted.pop();
    }
    quoted.join("\n")
}

/// The visible text without secrets. Secrets are removed first: a cut or escaped secret would not be recognized any
/// more.
fn without_secrets(text: &str) -> String {
    redact_shown(&visible(text))
}

/// The text without invisible characters. All kinds of line ends become `\n`, other white space becomes a space.
fn visible(text: &str) -> String {
    text.replace("\r\n", "\n")
        .chars()
        .filter_map(|character| match character {
            '\n' | '\r' | '\u{2028}' | '\u{2029}' | '\u{85}' | '\u{b}' | '\u{c}' => Some('\n'),
            _ if is_invisible(character) => None,
            _ if character.is_whitespace() => Some(' '),
            _ => Some(character),
        })
        .collect()
}

fn cut(text: &str, limit: usize) -> String {
    let text = text.trim();
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

fn escape_line(line: &str) -> String {
    let characters: Vec<char> = line.chars().collect();
    let mut escaped = String::with_capacity(line.len() + line.len() / 4);
    for (index, &character) in characters.iter().enumerate() {
        let (before, after) = (&characters[..index], &characters[index + 1..]);
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '@' => {
                escaped.push('@');
                escaped.push_str(GAP);
            }
            '#' => {
                escaped.push_str("\\#");
                if after.first().is_some_and(char::is_ascii_digit) {
                    escaped.push_str(GAP);
                }
            }
            // `://` makes a link of any URL, `www.` of some.
            ':' if after.starts_with(&['/', '/']) => {
                escaped.push(':');
                escaped.push_str(GAP);
            }
            '.' if ends_with_word(before, "www") => {
                escaped.push_str(GAP);
                escaped.push('.');
            }
            '-' if ends_with_word(before, "gh") && after.first().is_some_and(char::is_ascii_digit) => {
                escaped.push('-');
                escaped.push_str(GAP);
            }
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '$' => {
                escaped.push('\\');
                escaped.push(character);
            }
            // At the start of a line these make a list, a rule or a heading.
            '-' | '+' | '=' if before.is_empty() => {
                escaped.push('\\');
                escaped.push(character);
            }
            '.' | ')' if !before.is_empty() && before.iter().all(char::is_ascii_digit) => {
                escaped.push('\\');
                escaped.push(character);
            }
            _ => escaped.push(character),
        }
    }
    escaped
}

fn ends_with_word(before: &[char], word: &str) -> bool {
    before.len() >= word.len()
        && before[before.len() - word.len()..]
            .iter()
            .zip(word.chars())
            .all(|(have, want)| have.eq_ignore_ascii_case(&want))
}

#[cfg(test)]
mod tests {
    use super::{GAP, quote_block, quote_line, without_secrets};
    use proptest::prelude::{Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};
    use regex::Regex;

    #[test]
    fn each_trick_loses_its_meaning() {
        let quoted = |text: &str| quote_line(text, 1000).replace(GAP, "¦");
        insta::assert_snapshot!(quoted("ping @octocat and @org/team, mail a@b.c"), @"ping @¦octocat and @¦org/team, mail a@¦b.c");
        insta::assert_snapshot!(quoted("Fixes #12, GH-13, gh-14 and owner/repo#15"), @r"Fixes \#¦12, GH-¦13, gh-¦14 and owner/repo\#¦15");
        insta::assert_snapshot!(quoted("see https://github.com/a/b/issues/1 or www.example.com"), @"see https:¦//github.com/a/b/issues/1 or www¦.example.com");
        insta::assert_snapshot!(quoted("<img src=x onerror=y> <!-- canonry:v1:close:k:s -->"), @"&lt;img src=x onerror=y&gt; &lt;!-- canonry:v1:close:k:s --&gt;");
        insta::assert_snapshot!(quoted("**bold** `code` [a](b) ![i](j) ~~no~~ | $x$ \\"), @r"\*\*bold\*\* \`code\` \[a\](b) !\[i\](j) \~\~no\~\~ \| \$x\$ \\");
        insta::assert_snapshot!(quoted("a\u{202e}b\u{200b}c\u{0}d\te\r\nf"), @"abcd e f");
        insta::assert_snapshot!(quoted("# head"), @r"\# head");
        insta::assert_snapshot!(quoted("&#64;octocat &commat;x"), @r"&amp;\#¦64;octocat &amp;commat;x");
        insta::assert_snapshot!(quoted("@\u{200b}#\u{2060}1"), @r"@¦\#¦1");
    }

    #[test]
    fn blocks_keep_their_lines() {
        let quoted = quote_block("\n# Title\n\n\n    code\n- item\n1. one\n2) two\n> quote\n===\n---\n\n", 1000);
        insta::assert_snapshot!(quoted, @r"
        > \# Title
        >
        > code
        > \- item
        > 1\. one
        > 2\) two
        > &gt; quote
        > \===
        > \---
        ");
    }

    #[test]
    fn long_texts_are_cut_visibly() {
        assert_eq!(quote_line("abc def", 4), "abc…");
        assert_eq!(quote_line("abc def", 7), "abc def");
        assert_eq!(quote_line("", 7), "");
        assert_eq!(quote_block("a\nb\nc", 3), "> a\n> b…");
    }

    /// Undoes escapes and entities, as rendering would.
    fn rendered(quoted: &str) -> String {
        let mut text = String::new();
        let mut rest = quoted;
        'next: while !rest.is_empty() {
            for (entity, character) in [("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"), (GAP, "")] {
                if let Some(tail) = rest.strip_prefix(entity) {
                    text.push_str(character);
                    rest = tail;
                    continue 'next;
                }
            }
            rest = rest.strip_prefix('\\').unwrap_or(rest);
            let mut characters = rest.chars();
            text.extend(characters.next());
            rest = characters.as_str();
        }
        text
    }

    fn tricky_text() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            any::<String>(),
            prop::sample::select(vec![
                "@",
                "#",
                "1",
                "GH-",
                "www.",
                "://",
                "https",
                "<!-- canonry:v1:a:b:c -->",
                "<b>",
                "\\",
                "`",
                "\n",
                "@org/team",
                "o/r#1",
                "\u{200b}",
                "\u{202e}",
                "&#64;",
                "-",
                "```\n",
                "~~~",
            ])
            .prop_map(str::to_owned),
        ];
        prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn nothing_stays_live(text in tricky_text(), limit in 0usize..200) {
            let live = Regex::new(r"(?i)@[a-z0-9]|#[0-9]|gh-[0-9]|://|www\.|<|>|[^\\](\\\\)*[`*_\[\]|~$]").expect("valid");
            for quoted in [quote_line(&text, limit), quote_block(&text, limit).replace("\n> ", "\n").replace("\n>\n", "\n\n")] {
                let quoted = quoted.strip_prefix("> ").unwrap_or(&quoted);
                prop_assert!(live.find(quoted).is_none(), "{quoted:?} keeps {:?}", live.find(quoted));
                prop_assert!(!quoted.chars().any(canonry_domain::printable::is_invisible), "{quoted:?}");
            }
        }

        #[test]
        fn the_words_stay_readable(text in tricky_text()) {
            // The pieces can make a URL with a password.
            let words = without_secrets(&text).split_whitespace().collect::<Vec<_>>().join(" ");
            prop_assert_eq!(rendered(&quote_line(&text, usize::MAX)), words);
        }

        #[test]
        fn the_length_is_bounded(text in any::<String>(), limit in 0usize..50) {
            prop_assert!(rendered(&quote_line(&text, limit)).chars().count() <= limit + 1);
        }
    }
}
