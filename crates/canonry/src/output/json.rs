//! JSON on stdout: one document, safe to show in a terminal.

use std::fmt::Write as _;
use std::io::IsTerminal as _;

use serde::Serialize;

use crate::output::printable::is_escaped;

/// A document with its line end: indented on a terminal, on one line for a program.
pub(crate) fn document(value: &impl Serialize) -> String {
    let text = if std::io::stdout().is_terminal() {
        serde_json::to_string_pretty(value)
    } else {
        serde_json::to_string(value)
    };
    let mut text = harmless(&text.expect("invariant: reports are plain data"));
    text.push('\n');
    text
}

/// The same JSON with characters escaped that would act on a terminal. They can only occur in strings, so the meaning
/// of the document does not change.
pub(crate) fn harmless(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    for character in json.chars() {
        if character != '\n' && is_escaped(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                write!(safe, "\\u{unit:04x}").expect("invariant: a String takes everything");
            }
        } else {
            safe.push(character);
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::harmless;

    #[test]
    fn hidden_characters_are_escaped_and_mean_the_same() {
        let text = "a\u{9b}31m\u{202e}\u{e0041}\u{7f}\"\\\n";
        let json = serde_json::to_string(text).expect("a string");
        let safe = harmless(&json);
        assert_eq!(safe, r#""a\u009b31m\u202e\udb40\udc41\u007f\"\\\n""#);
        assert_eq!(serde_json::from_str::<String>(&safe).expect("still JSON"), text);
    }
}
