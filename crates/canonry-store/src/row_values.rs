//! How domain values look in a row, the same on both engines.

use canonry_domain::whole_micros;
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
