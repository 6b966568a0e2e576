//! Finds secrets in Markdown, also if marks split them: `ghp\_…` and `ghp_<b></b>…` are read as one word.

use super::scan::{merged, redact_found};
use crate::text::markdown::{ShownText, shown_text};
use crate::text::printable::is_invisible;
use crate::{FoundSecret, scan_secrets};

/// Replaces a text that still contains secrets after all rounds.
const WITHHELD: &str = "[redacted]";
/// The number of redaction rounds: the text that remains beside a secret may be a secret too.
const ROUNDS: usize = 4;

/// The secrets in a text that is or may become Markdown: those that are in the source unchanged, those that a reader
/// sees, and those that are split by escapes, entities, emphasis, code and invisible characters.
pub fn scan_shown_secrets(text: &str) -> Vec<FoundSecret> {
    let mut found = scan_secrets(text);
    for view in [shown_text(text), without_marks(text)] {
        found.extend(
            scan_secrets(view.as_str())
                .into_iter()
                .map(|secret| FoundSecret { kind: secret.kind, range: view.source_of(secret.range) }),
        );
    }
    merged(found)
}

/// The text with every such secret replaced by its kind in brackets. Every text of another person must be redacted
/// before it is cut, quoted or escaped: half a secret is no longer recognised.
pub fn redact_shown(text: &str) -> String {
    let mut redacted = text.to_owned();
    for _ in 0..ROUNDS {
        let found = scan_shown_secrets(&redacted);
        if found.is_empty() {
            return redacted;
        }
        redacted = redact_found(&redacted, found);
    }
    if scan_shown_secrets(&redacted).is_empty() { redacted } else { WITHHELD.to_owned() }
}

/// The text without any character that could be a mark, also where it is not one: code shows a backslash, and people
/// read past it.
fn without_marks(text: &str) -> ShownText {
    let mut shown = ShownText::default();
    let mut at = 0;
    while let Some(character) = text[at..].chars().next() {
        let (read, length) = match character {
            '\\' if text[at + 1..].starts_with(|next: char| next.is_ascii_punctuation()) => (None, 1),
            '&' => entity(&text[at..]).unwrap_or((Some('&'), 1)),
            '`' | '*' | '~' => (None, 1),
            other => (Some(other), other.len_utf8()),
        };
        if let Some(read) = read {
            shown.push(read, at..at + length);
        }
        at += length;
    }
    shown
}

/// The character that an entity represents, and the length of the entity.
fn entity(text: &str) -> Option<(Option<char>, usize)> {
    const LONGEST: usize = 20;
    let end = text.bytes().take(LONGEST).position(|byte| byte == b';')?;
    let name = &text[1..end];
    let character = match name.strip_prefix('#') {
        Some(number) => {
            let hex = number.strip_prefix(['x', 'X']);
            let code = hex.map_or_else(|| number.parse(), |hex| u32::from_str_radix(hex, 16)).ok()?;
            char::from_u32(code)?
        }
        None => match name {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "apos" => '\'',
            "lowbar" | "UnderBar" => '_',
            "hyphen" | "dash" => '-',
            "period" => '.',
            "colon" => ':',
            "sol" => '/',
            "commat" => '@',
            "equals" => '=',
            "plus" => '+',
            "ZeroWidthSpace" | "NoBreak" | "shy" | "zwj" | "zwnj" => '\u{200b}',
            _ => return None,
        },
    };
    Some(((!is_invisible(character)).then_some(character), end + 1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::{redact_shown, scan_shown_secrets};
    use crate::scan_secrets;
    use crate::text::secrets::scan::samples::secrets;

    /// Markdown forms of a secret with something between its characters that a reader does not see.
    fn disguises(secret: &str) -> Vec<String> {
        let (before, after) = secret.split_at(secret.len() / 2);
        let every = |with: &dyn Fn(char) -> String| secret.chars().map(with).collect::<String>();
        let mut disguises: Vec<String> = [
            "\u{200b}",
            "\u{ad}",
            "\u{2060}",
            "\u{feff}",
            "\u{fe0f}",
            "&ZeroWidthSpace;",
            "&#8203;",
            "&#x200B;",
            "<!-- x -->",
            "<b></b>",
        ]
        .iter()
        .map(|gap| format!("{before}{gap}{after}"))
        .collect();
        disguises.extend([
            every(&|one| if one.is_ascii_punctuation() { format!("\\{one}") } else { one.to_string() }),
            every(&|one| if one == '\n' { one.to_string() } else { format!("&#{};", u32::from(one)) }),
            every(&|one| if one == '_' { "&lowbar;".to_owned() } else { one.to_string() }),
            format!("`{secret}`"),
            format!("**{secret}**"),
            format!("~~{secret}~~"),
            format!("[{secret}](x)"),
            format!("<!-- {secret} -->"),
            format!("> {}", secret.replace('\n', "\n> ")),
            format!("```\n{secret}\n```"),
            format!("{before}`{after}`"),
            format!("{before}**{after}**"),
        ]);
        disguises
    }

    #[test]
    fn a_secret_is_found_however_it_is_shown() {
        for (kind, secret) in secrets() {
            for text in disguises(&secret) {
                for text in [text.clone(), format!("Before {text} after"), format!("- x\n- {text}\n")] {
                    let kinds: Vec<_> = scan_shown_secrets(&text).into_iter().map(|found| found.kind).collect();
                    assert!(kinds.contains(&kind), "{kind} in {text:?}: {kinds:?}");
                    let redacted = redact_shown(&text);
                    assert_eq!(scan_shown_secrets(&redacted), [], "{text:?} becomes {redacted:?}");
                }
            }
        }
    }

    #[test]
    fn only_the_secret_goes() {
        let token = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
        let parted = token.replace('_', "\\_");
        for (text, redacted) in [
            (format!("x {token} y"), "x [redacted GitHub token] y"),
            (format!("x {parted} *y*"), "x [redacted GitHub token] *y*"),
            (format!("x `{token}` y"), "x `[redacted GitHub token]` y"),
            ("**Nothing** `to` hide &amp; no\\_thing".to_owned(), "**Nothing** `to` hide &amp; no\\_thing"),
        ] {
            assert_eq!(redact_shown(&text), redacted);
        }
    }

    proptest! {
        #[test]
        fn nothing_is_left_to_be_found(before in any::<String>(), after in any::<String>(), which in 0usize..16, how in 0usize..21) {
            let secret = secrets().swap_remove(which).1;
            let disguised = disguises(&secret);
            let text = format!("{before}\n\n{}\n\n{after}", disguised[how % disguised.len()]);
            let redacted = redact_shown(&text);
            prop_assert_eq!(scan_shown_secrets(&redacted), []);
            prop_assert_eq!(scan_secrets(&redacted), []);
            prop_assert_eq!(redact_shown(&redacted), redacted);
        }

        #[test]
        fn a_text_without_secrets_stays_as_it_is(text in "[a-z0-9 _*`~<>&;#\n\\\\-]{0,200}") {
            prop_assert!(scan_shown_secrets(&text).is_empty() || redact_shown(&text) != text);
        }
    }
}
