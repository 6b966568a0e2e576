//! Parses JSON from GitHub and tolerates values that GitHub does not document.

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The value, or the type's default if it is null or of another type.
pub(crate) fn or_default<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(reader: D) -> Result<T, D::Error> {
    let value = Value::deserialize(reader)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

/// A time: GitHub writes RFC 3339 text and, in push events, seconds since 1970.
pub(crate) fn moment<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<Timestamp>, D::Error> {
    Ok(match Value::deserialize(reader)? {
        Value::String(text) => canonry_domain::parse_moment(&text).ok(),
        Value::Number(number) => number.as_i64().and_then(|seconds| Timestamp::from_second(seconds).ok()),
        _ => None,
    })
}

/// A number that may be too large for a JSON number; GraphQL writes it as text then.
pub(crate) fn big_number<'de, D: Deserializer<'de>>(reader: D) -> Result<i64, D::Error> {
    let number = match Value::deserialize(reader)? {
        Value::String(text) => text.parse().ok(),
        value => value.as_i64(),
    };
    number.ok_or_else(|| serde::de::Error::custom("no whole number"))
}

/// The elements of a list that can be parsed; the others are skipped. Null is an empty list.
pub(crate) fn fitting<'de, D: Deserializer<'de>, T: DeserializeOwned>(reader: D) -> Result<Vec<T>, D::Error> {
    Ok(match Value::deserialize(reader)? {
        Value::Array(values) => values.into_iter().filter_map(|value| serde_json::from_value(value).ok()).collect(),
        _ => Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde::Deserialize;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Sample {
        #[serde(deserialize_with = "super::moment")]
        at: Option<Timestamp>,
        #[serde(deserialize_with = "super::or_default")]
        count: i64,
        #[serde(deserialize_with = "super::fitting")]
        words: Vec<String>,
    }

    #[test]
    fn unexpected_shapes_become_nothing() {
        let read = |text: &str| serde_json::from_str::<Sample>(text).expect("lenient");
        assert_eq!(read(r#"{"at":{"x":1},"count":"many","words":null}"#), Sample::default());
        let sample = read(r#"{"at":1609459200,"count":3,"words":["a",1,"b"]}"#);
        assert_eq!(sample.at, Some("2021-01-01T00:00:00Z".parse().expect("valid")));
        assert_eq!((sample.count, sample.words), (3, vec!["a".to_owned(), "b".to_owned()]));
    }
}
