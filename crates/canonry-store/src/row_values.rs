//! How domain values look in a row, the same on both engines.

use std::borrow::Cow;

use canonry_domain::{ItemNumber, Probability, Similarity, whole_micros};
use jiff::Timestamp;

use crate::transaction::StoreError;

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

pub(crate) fn optional_number(number: Option<i64>) -> Result<Option<ItemNumber>, StoreError> {
    number.map(self::number).transpose()
}

pub(crate) fn probability(value: f64) -> Result<Probability, StoreError> {
    Probability::new(value).map_err(StoreError::damaged)
}

pub(crate) fn optional_probability(value: Option<f64>) -> Result<Option<Probability>, StoreError> {
    value.map(probability).transpose()
}

pub(crate) fn similarity(value: f64) -> Result<Similarity, StoreError> {
    Similarity::new(value).map_err(StoreError::damaged)
}

/// A text of a model or a person as both engines can keep it: PostgreSQL cannot keep U+0000.
pub(crate) fn storable(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{fffd}")) } else { Cow::Borrowed(text) }
}
