//! Parses `--since 30d` and `--since 2026-02-01`.

use std::str::FromStr;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// The start of a time span: a number of days ago, or a date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    DaysAgo(u32),
    /// Midnight in UTC at the beginning of this date.
    Date(Date),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a time span; write a number of days such as 30d, or a date such as 2026-02-01")]
pub struct InvalidSince {
    text: String,
}

impl Since {
    /// The moment at which the span begins, relative to `now`. If that is before the calendar begins, it is the
    /// calendar's first moment.
    pub fn moment(self, now: Timestamp) -> Timestamp {
        match self {
            Self::DaysAgo(days) => {
                now.checked_sub(SignedDuration::from_hours(i64::from(days) * 24)).unwrap_or(Timestamp::MIN)
            }
            Self::Date(date) => date.to_zoned(TimeZone::UTC).map_or(Timestamp::MIN, |zoned| zoned.timestamp()),
        }
    }
}

impl FromStr for Since {
    type Err = InvalidSince;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidSince { text: text.chars().take(60).collect() };
        if let Some(days) = text.strip_suffix('d') {
            let digits = !days.is_empty() && days.bytes().all(|byte| byte.is_ascii_digit());
            return days.parse().ok().filter(|_| digits).map(Self::DaysAgo).ok_or_else(invalid);
        }
        if text.len() != "2026-02-01".len() {
            return Err(invalid());
        }
        text.parse().map(Self::Date).map_err(|_| invalid())
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::Since;

    #[test]
    fn days_and_dates() {
        let now: Timestamp = "2026-02-10T12:00:00Z".parse().expect("valid");
        for (text, expected) in
            [("3d", "2026-02-07T12:00:00Z"), ("0d", "2026-02-10T12:00:00Z"), ("2026-02-01", "2026-02-01T00:00:00Z")]
        {
            let since: Since = text.parse().expect(text);
            assert_eq!(since.moment(now).to_string(), expected, "{text}");
        }
        assert_eq!("4294967295d".parse::<Since>().expect("valid").moment(now), Timestamp::MIN);
    }

    #[test]
    fn everything_else_is_refused() {
        for text in [
            "bad-date",
            "",
            "d",
            "-3d",
            "+3d",
            "3",
            "3w",
            "2026-2-1",
            "2026-02-30",
            "99999999999d",
            "2026-02-01T00:00:00Z",
        ] {
            assert!(text.parse::<Since>().is_err(), "{text:?} was accepted");
        }
    }
}
