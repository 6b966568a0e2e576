//! Keyboard keys in the form that the browser's protocol requires.

use serde_json::{Value, json};

/// The two events of pressing and releasing a key: a character, a name such as `Enter`, or `Shift+` and a name.
pub(super) fn press(key: &str) -> [Value; 2] {
    let (holds_shift, key) = key.strip_prefix("Shift+").map_or((false, key), |key| (true, key));
    let named = NAMED.iter().find(|(name, ..)| *name == key);
    let (code, number, text) = match (named, key.chars().next()) {
        (Some((name, number, text)), _) => ((*name).to_owned(), *number, *text),
        (None, Some(character)) if character.is_ascii_alphabetic() => {
            let upper = character.to_ascii_uppercase();
            (format!("Key{upper}"), u32::from(upper), key)
        }
        (None, character) => (String::new(), character.map_or(0, u32::from), key),
    };
    let is_capital = key.len() == 1 && key.bytes().all(|byte| byte.is_ascii_uppercase());
    let shift = u8::from(holds_shift || is_capital) * 8;
    let mut down = json!({
        "type": if text.is_empty() { "rawKeyDown" } else { "keyDown" },
        "key": key, "code": code, "windowsVirtualKeyCode": number, "modifiers": shift,
    });
    let mut up = down.clone();
    up["type"] = json!("keyUp");
    if !text.is_empty() {
        down["text"] = json!(text);
    }
    [down, up]
}

/// Whether a word is a key: one character, or a named key.
pub(super) fn is_key(word: &str) -> bool {
    let name = word.strip_prefix("Shift+").unwrap_or(word);
    name.chars().count() == 1 || NAMED.iter().any(|(named, ..)| *named == name)
}

/// Keys that are not characters: the name, the number, and what they type.
const NAMED: [(&str, u32, &str); 8] = [
    ("Enter", 13, "\r"),
    ("Tab", 9, ""),
    ("Escape", 27, ""),
    ("Home", 36, ""),
    ("ArrowLeft", 37, ""),
    ("ArrowUp", 38, ""),
    ("ArrowRight", 39, ""),
    ("ArrowDown", 40, ""),
];

#[cfg(test)]
mod tests {
    use super::{is_key, press};

    #[test]
    fn letters_type_themselves_and_capitals_hold_shift() {
        for (key, code, modifiers, text) in
            [("j", "KeyJ", 0, Some("j")), ("A", "KeyA", 8, Some("A")), ("Enter", "Enter", 0, Some("\r"))]
        {
            let [down, up] = press(key);
            assert_eq!((down["code"].as_str(), down["modifiers"].as_u64()), (Some(code), Some(modifiers)));
            assert_eq!((down["type"].as_str(), down["text"].as_str()), (Some("keyDown"), text));
            assert_eq!((up["type"].as_str(), up.get("text")), (Some("keyUp"), None));
        }
        assert_eq!(press("Escape")[0]["type"], "rawKeyDown");
        assert_eq!(
            (press("Shift+Tab")[0]["key"].as_str(), press("Shift+Tab")[0]["modifiers"].as_u64()),
            (Some("Tab"), Some(8))
        );
        assert_eq!(["a", "ß", "Tab", "Shift+Tab", "close 3", ""].map(is_key), [true, true, true, true, false, false]);
    }
}
