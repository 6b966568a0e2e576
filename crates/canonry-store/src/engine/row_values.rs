//! How domain values look in a row, the same on both engines.

use std::borrow::Cow;

use canonry_domain::{Component, CurrentThreshold, ItemNumber, Probability, Similarity, Threshold, whole_micros};
use jiff::Timestamp;
use serde::Deserialize as _;
use serde::de::IntoDeserializer;

use crate::engine::transaction::StoreError;

/// Times are whole microseconds since 1970.
pub(crate) fn micros(moment: Timestamp) -> i64 {
    whole_micros(moment).as_microsecond()
}

pub(crate) fn moment(micros: i64) -> Result<Timestamp, StoreError> {
    Timestamp::from_microsecond(micros).map_err(StoreError::damaged)
}

pub(crate) fn optional_moment(micros: Option<i64>) -> Result<Option<Timestamp>, StoreError> {
    micros.map(moment).transpose()
}

/// A stored word of one of the domain's enums or names.
pub(crate) fn word<T: std::str::FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, StoreError> {
    text.parse().map_err(StoreError::damaged)
}

pub(crate) fn optional_word<T: std::str::FromStr<Err: std::fmt::Display>>(
    text: Option<&str>,
) -> Result<Option<T>, StoreError> {
    text.map(word).transpose()
}

pub(crate) fn number(number: i64) -> Result<ItemNumber, StoreError> {
    ItemNumber::new(number).map_err(StoreError::damaged)
}

pub(crate) fn probability(value: f64) -> Result<Probability, StoreError> {
    Probability::new(value).map_err(StoreError::damaged)
}

pub(crate) fn similarity(value: f64) -> Result<Similarity, StoreError> {
    Similarity::new(value).map_err(StoreError::damaged)
}

/// A text of a model or a person as both engines can keep it: PostgreSQL cannot keep U+0000.
pub(crate) fn storable(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{fffd}")) } else { Cow::Borrowed(text) }
}

/// As much of a key or a path as the indexes of findings hold. SQLite puts a value that a column must equal wherever the
/// column stands and so loses the index, unless the column's own condition is written as `key || '' = …`.
pub(crate) fn beginning(text: &str) -> String {
    text.chars().take(200).collect()
}

/// A stored component. Its name is what was left of a label, so that any text can be one.
pub(crate) fn optional_component(name: Option<String>) -> Result<Option<Component>, StoreError> {
    let read =
        |name: String| Component::deserialize(IntoDeserializer::<serde::de::value::Error>::into_deserializer(name));
    name.map(read).transpose().map_err(StoreError::damaged)
}

/// A stored threshold; null is silence.
pub(crate) fn current_threshold(points: Option<i64>) -> Result<CurrentThreshold, StoreError> {
    let read = |points: i64| {
        let points = u8::try_from(points).map_err(StoreError::damaged)?;
        Threshold::new(points).map_err(StoreError::damaged)
    };
    Ok(points.map(read).transpose()?.into())
}

pub(crate) fn points(threshold: CurrentThreshold) -> Option<i64> {
    threshold.threshold().map(|threshold| i64::from(threshold.get()))
}

pub(crate) fn count(rows: i64) -> Result<u64, StoreError> {
    u64::try_from(rows).map_err(StoreError::damaged)
}

/// A value as JSON that both engines can keep: PostgreSQL cannot keep U+0000 in it either.
pub(crate) fn storable_json<T: serde::Serialize + ?Sized>(value: &T) -> Result<serde_json::Value, StoreError> {
    let mut json = serde_json::to_value(value).map_err(StoreError::damaged)?;
    replace_nul(&mut json);
    Ok(json)
}

fn replace_nul(json: &mut serde_json::Value) {
    match json {
        serde_json::Value::String(text) => {
            if let Cow::Owned(storable) = storable(text) {
                *text = storable;
            }
        }
        serde_json::Value::Array(values) => values.iter_mut().for_each(replace_nul),
        serde_json::Value::Object(map) => {
            if map.keys().any(|name| name.contains('\0')) {
                *map = std::mem::take(map)
                    .into_iter()
                    .map(|(name, value)| (storable(&name).into_owned(), value))
                    .collect();
            }
            map.values_mut().for_each(replace_nul);
        }
        _ => {}
    }
}
