//! Converts domain values to and from columns, the same on both engines.

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

/// Parses the stored text of a domain enum or name.
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

/// Makes text of a model or a person storable: PostgreSQL cannot store U+0000.
pub(crate) fn storable(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{fffd}")) } else { Cow::Borrowed(text) }
}

/// Returns the part of a key or a path that the indexes of findings contain. SQLite replaces a column by the value it
/// must equal everywhere and then misses the index, unless the condition on the column itself is written as `key ||
/// '' = …`.
pub(crate) fn beginning(text: &str) -> String {
    text.chars().take(200).collect()
}

/// Reads a stored component. Its name is part of a label, so any text is valid.
pub(crate) fn optional_component(name: Option<String>) -> Result<Option<Component>, StoreError> {
    let read =
        |name: String| Component::deserialize(IntoDeserializer::<serde::de::value::Error>::into_deserializer(name));
    name.map(read).transpose().map_err(StoreError::damaged)
}

/// Reads a stored threshold; null means that Canonry does not comment.
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

/// Converts a value to storable JSON: PostgreSQL cannot store U+0000 in JSON either.
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
