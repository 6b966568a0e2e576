//! Removes secrets and hidden characters from what a model reads and writes.

use canonry_domain::{is_hidden, redact, scan_secrets};

/// A model's text, safe to be stored and shown: no secrets, no hidden characters.
pub(super) fn harmless(text: &str) -> String {
    let kept = |character: &char| matches!(character, '\n' | '\t') || !is_hidden(*character);
    redact(text.replace("\r\n", "\n").chars().filter(kept).collect::<String>().trim())
}

/// The lines of a text without its secrets. Their number stays the same: a key of several lines is removed from each,
/// so that line numbers stay correct.
pub(super) fn lines_without_secrets(text: &str) -> Vec<String> {
    let mut safe = String::with_capacity(text.len());
    let mut end = 0;
    for secret in scan_secrets(text) {
        safe.push_str(&text[end..secret.range.start]);
        let instead = |line: &str| if line.is_empty() { String::new() } else { format!("[redacted {}]", secret.kind) };
        safe.push_str(&text[secret.range.clone()].split('\n').map(instead).collect::<Vec<_>>().join("\n"));
        end = secret.range.end;
    }
    safe.push_str(&text[end..]);
    safe.lines().map(str::to_owned).collect()
}

/// The first characters of a text, and whether there are more.
pub(super) fn first_chars(text: &str, limit: usize) -> (&str, bool) {
    text.char_indices().nth(limit).map_or((text, false), |(end, _)| (&text[..end], true))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert_eq, proptest};

    use super::{harmless, lines_without_secrets};

    #[test]
    fn a_key_of_several_lines_is_taken_out_of_each() {
        let body = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8".repeat(2);
        let text = format!(
            "one\n-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----\nlast\npassword = x\n"
        );
        let lines = lines_without_secrets(&text);
        assert_eq!(lines.len(), text.lines().count());
        assert_eq!(
            (lines[0].as_str(), lines[2].as_str(), lines[4].as_str()),
            ("one", "[redacted private key]", "last")
        );
    }

    #[test]
    fn what_nobody_sees_is_removed_from_an_answer() {
        assert_eq!(harmless(" a\u{202e}b\r\nc\u{1b}[31m "), "ab\nc[31m");
    }

    proptest! {
        #[test]
        fn lines_keep_their_numbers(text in any::<String>()) {
            prop_assert_eq!(lines_without_secrets(&text).len(), text.lines().count());
        }
    }
}
