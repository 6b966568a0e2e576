//! Reads the fields of a model's answer as raw JSON, and classifies texts that contain no object.

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use regex::Regex;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::InvalidAnswer;

/// The keys of an object with their raw values. A map would keep the last of two equal keys, and serde's numbers would
/// turn 1e999 into a syntax error.
pub(crate) struct AnswerFields<'a>(Vec<(String, &'a RawValue)>);

impl<'a> AnswerFields<'a> {
    /// Reads an object that has only these keys, each at most once.
    pub(crate) fn read(text: &'a str, keys: &[&str]) -> Result<Self, InvalidAnswer> {
        if !text.starts_with('{') {
            return Err(no_object(text));
        }
        let fields = object(text)?;
        for (at, (key, _)) in fields.0.iter().enumerate() {
            if !keys.contains(&key.as_str()) {
                return Err(InvalidAnswer::UnknownKey);
            }
            // Only known keys come before this one, so the list to search is short.
            if fields.0[..at].iter().any(|(earlier, _)| earlier == key) {
                return Err(InvalidAnswer::BadType);
            }
        }
        Ok(fields)
    }

    pub(crate) fn required(&self, wanted: &str) -> Result<&'a str, InvalidAnswer> {
        let found = self.0.iter().find(|(key, _)| key == wanted);
        found.map(|(_, value)| value.get()).ok_or(InvalidAnswer::MissingKey)
    }

    /// The value of a key, or `None` if the key is absent or null.
    pub(crate) fn optional(&self, wanted: &str) -> Option<&'a str> {
        self.required(wanted).ok().filter(|value| *value != "null")
    }

    /// Parses the string value of a key that may be absent or null.
    pub(crate) fn word<T: FromStr>(&self, key: &str) -> Result<Option<T>, InvalidAnswer> {
        let Some(value) = self.optional(key) else {
            return Ok(None);
        };
        string(value)?.parse().map(Some).map_err(|_| InvalidAnswer::BadType)
    }
}

impl<'de> Deserialize<'de> for AnswerFields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = AnswerFields<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(AnswerFields(fields))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

fn object(text: &str) -> Result<AnswerFields<'_>, InvalidAnswer> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let fields = AnswerFields::deserialize(&mut reader).map_err(|_| InvalidAnswer::NotJson)?;
    reader.end().map_err(|_| InvalidAnswer::TrailingText)?;
    Ok(fields)
}

/// The error for a text that does not begin with an object.
fn no_object(text: &str) -> InvalidAnswer {
    // A fenced block with text behind it: that text is text after the JSON.
    if let Some((_, inside)) = text.strip_prefix("```").and_then(|rest| rest.split_once('\n')) {
        let is_followed = object(inside).err() == Some(InvalidAnswer::TrailingText);
        return if is_followed { InvalidAnswer::TrailingText } else { InvalidAnswer::NotJson };
    }
    if serde_json::from_str::<IgnoredAny>(text).is_ok() {
        return InvalidAnswer::BadType;
    }
    if !text.contains('{') && REFUSAL.is_match(text) { InvalidAnswer::Refusal } else { InvalidAnswer::NotJson }
}

/// A refusal must be at the start of the text: a quoted report may say "I can't log in" anywhere.
static REFUSAL: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"(?xi) ^ \W*
        (?: (?: unfortunately | sorry | apologies | my\ apologies ) \b [\s,.!:;—-]* (?: but \s+ )? )?
        (?: i \s* (?: cannot | can \s? not | can['’]?t | won['’]?t | will\ not | must\ decline | have\ to\ decline
              | (?: do\ not | don['’]t ) \s+ feel\ comfortable ) \b
          | i (?: ['’]?m | \s+ am ) \s+ (?: very\ | so\ |really\ )? (?: sorry | unable | not\ able | afraid ) \b
          | (?: as | being ) \s+ an \s+ ai \b )
        | ^ \W* (?: sorry | my\ apologies ) \b";
    Regex::new(pattern).expect("invariant: the pattern is constant")
});

pub(crate) fn string(value: &str) -> Result<String, InvalidAnswer> {
    if !value.starts_with('"') {
        return Err(InvalidAnswer::BadType);
    }
    // The only error that remains possible is a lone surrogate.
    serde_json::from_str(value).map_err(|_| InvalidAnswer::NotJson)
}

/// A JSON number. A number that is too large for a double becomes infinite, so it is in no valid range.
pub(crate) fn number(value: &str) -> Result<f64, InvalidAnswer> {
    if !value.starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
        return Err(InvalidAnswer::BadType);
    }
    value.parse().map_err(|_| InvalidAnswer::BadType)
}

/// A whole number, as `12`, `12.0` or `1.2e1`.
pub(crate) fn whole_number(value: &str) -> Result<i64, InvalidAnswer> {
    /// Up to this value a double represents every whole number exactly.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if let Ok(whole) = value.parse() {
        return Ok(whole);
    }
    let number = number(value)?;
    if number.abs() > EXACT {
        return Err(InvalidAnswer::OutOfRange);
    }
    if number.fract() == 0.0 { Ok(number as i64) } else { Err(InvalidAnswer::BadType) }
}
