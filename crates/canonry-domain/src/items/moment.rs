//! Parses times as GitHub and other trackers write them, and cuts them to the precision that both engines store.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a time; write it as 2026-02-01T12:00:00Z")]
pub struct InvalidMoment {
    text: String,
}

/// Parses a time. A time without a zone is in UTC, a date alone is its midnight.
pub fn parse_moment(text: &str) -> Result<Timestamp, InvalidMoment> {
    let text = text.trim();
    let moment = text.parse::<Timestamp>().or_else(|_| {
        let civil: DateTime = text.parse()?;
        Ok::<_, jiff::Error>(civil.to_zoned(TimeZone::UTC)?.timestamp())
    });
    moment.map(whole_micros).map_err(|_| InvalidMoment { text: text.chars().take(60).collect() })
}

/// Cuts a time to whole microseconds, which both engines store: a time that was stored and read again must equal the
/// original.
pub fn whole_micros(moment: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(moment.as_microsecond()).unwrap_or(moment)
}

/// The first moment of the calendar month in UTC. Budgets are counted from there.
pub fn month_of(now: Timestamp) -> Timestamp {
    let first = now.to_zoned(TimeZone::UTC).date().first_of_month();
    first.to_zoned(TimeZone::UTC).map_or(now, |zoned| zoned.timestamp())
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::{month_of, parse_moment};

    #[test]
    fn months_begin_at_their_first_midnight() {
        let at = |text: &str| text.parse::<Timestamp>().expect("valid");
        assert_eq!(month_of(at("2026-02-28T23:59:59Z")), at("2026-02-01T00:00:00Z"));
        assert_eq!(month_of(at("2026-03-01T00:00:00Z")), at("2026-03-01T00:00:00Z"));
    }

    #[test]
    fn zones_dates_and_fractions() {
        for (text, expected) in [
            ("2026-02-01T12:00:00Z", "2026-02-01T12:00:00Z"),
            ("2026-02-01T12:00:00+02:00", "2026-02-01T10:00:00Z"),
            ("2026-02-01T12:00:00", "2026-02-01T12:00:00Z"),
            ("2026-02-01 12:00:00", "2026-02-01T12:00:00Z"),
            ("2026-02-01", "2026-02-01T00:00:00Z"),
            ("2026-02-01T12:00:00.123456789Z", "2026-02-01T12:00:00.123456Z"),
        ] {
            assert_eq!(parse_moment(text).expect(text).to_string(), expected, "{text}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "yesterday", "2026-13-01", "2026-02-30T00:00:00Z", "1700000000"] {
            assert!(parse_moment(text).is_err(), "{text:?} was accepted");
        }
    }
}
