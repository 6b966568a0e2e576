//! Times in a form for people.

use canonry_domain::counted;
use jiff::{SignedDuration, Timestamp};

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// From a week on, a date says more than a number of days.
const WEEK: i64 = 7 * DAY;

/// `3 minutes ago`, `in 2 hours`, or the date if it is a week or more away.
pub(crate) fn in_words(at: Timestamp, now: Timestamp) -> String {
    let apart: SignedDuration = at.duration_until(now);
    let seconds = apart.abs().as_secs();
    let (count, unit) = match seconds {
        0..MINUTE => return "just now".to_owned(),
        MINUTE..HOUR => (seconds / MINUTE, "minute"),
        HOUR..DAY => (seconds / HOUR, "hour"),
        DAY..WEEK => (seconds / DAY, "day"),
        _ => return date(at),
    };
    let length = counted(count.unsigned_abs(), unit);
    if apart.is_negative() { format!("in {length}") } else { format!("{length} ago") }
}

/// `4 Jan 2026`, in UTC.
pub(crate) fn date(at: Timestamp) -> String {
    at.strftime("%-d %b %Y").to_string()
}

/// `4 Jan 2026, 20:00 UTC`.
pub(crate) fn date_and_time(at: Timestamp) -> String {
    at.strftime("%-d %b %Y, %H:%M UTC").to_string()
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};

    use super::{date_and_time, in_words};

    #[test]
    fn near_times_are_told_by_their_distance() {
        let now: Timestamp = "2026-05-14T12:00:00.123456Z".parse().expect("valid");
        for (seconds, words) in [
            (5, "just now"),
            (60, "1 minute ago"),
            (7_199, "1 hour ago"),
            (86_400 * 3, "3 days ago"),
            (86_400 * 8, "6 May 2026"),
            (-180, "in 3 minutes"),
            (-86_400 * 30, "13 Jun 2026"),
        ] {
            assert_eq!(in_words(now - SignedDuration::from_secs(seconds), now), words);
        }
        assert_eq!(date_and_time(now), "14 May 2026, 12:00 UTC");
    }
}
