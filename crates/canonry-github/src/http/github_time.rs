//! Reads GitHub's own time from the `Date` of its answers, and how far our clock differs from it.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use reqwest::header::HeaderMap;

use crate::http::client::GitHub;
use crate::http::error::header;

/// The time of the latest answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GithubTime {
    /// The time on GitHub's clock when it answered, in whole seconds.
    pub date: Timestamp,
    /// How far our clock is ahead of GitHub's; negative if it is behind. The duration of the request does not count as
    /// a difference.
    pub skew: SignedDuration,
}

impl GithubTime {
    /// Reads an answer to a request that was sent and answered at these times of our clock.
    fn read(headers: &HeaderMap, sent_at: Timestamp, answered_at: Timestamp) -> Option<Self> {
        let text = header(headers, "date")?;
        let date = DateTime::strptime("%a, %d %b %Y %H:%M:%S GMT", &text).ok()?;
        let date = date.to_zoned(TimeZone::UTC).ok()?.timestamp();
        let skew = if date < sent_at {
            // GitHub sends whole seconds, so its clock may be up to a second later.
            (sent_at.duration_since(date) - SignedDuration::from_secs(1)).max(SignedDuration::ZERO)
        } else {
            answered_at.duration_since(date).min(SignedDuration::ZERO)
        };
        Some(Self { date, skew })
    }
}

impl GitHub {
    /// The time of the latest answer; `None` before the first, or if it contained none.
    pub fn github_time(&self) -> Option<GithubTime> {
        *self.latest_time()
    }

    /// Records the time of an answer to a request that was sent and answered at these times of our clock.
    pub(crate) fn note_time(&self, headers: &HeaderMap, sent_at: Timestamp, answered_at: Timestamp) {
        *self.latest_time() = GithubTime::read(headers, sent_at, answered_at);
    }
}

#[cfg(test)]
mod tests {
    use super::GithubTime;
    use jiff::{SignedDuration, Timestamp};
    use reqwest::header::{HeaderMap, HeaderValue};

    fn read(date: &'static str, sent: &str, answered: &str) -> Option<GithubTime> {
        let at = |text: &str| text.parse::<Timestamp>().expect("valid");
        let headers: HeaderMap =
            [("date".parse().expect("a name"), HeaderValue::from_static(date))].into_iter().collect();
        GithubTime::read(&headers, at(sent), at(answered))
    }

    #[test]
    fn an_answer_on_its_way_is_no_difference() {
        let skew = |sent, answered| read("Sun, 01 Feb 2026 12:00:00 GMT", sent, answered).expect("a date").skew;
        assert_eq!(skew("2026-02-01T11:59:50Z", "2026-02-01T12:00:30Z"), SignedDuration::ZERO);
        assert_eq!(skew("2026-02-01T12:00:00.9Z", "2026-02-01T12:00:01Z"), SignedDuration::ZERO);
        assert_eq!(skew("2026-02-05T12:00:01Z", "2026-02-05T12:00:02Z"), SignedDuration::from_hours(96));
        assert_eq!(skew("2026-01-28T11:59:59Z", "2026-01-28T12:00:00Z"), SignedDuration::from_hours(-96));
    }

    #[test]
    fn what_is_no_date_is_no_time() {
        assert_eq!(read("soon", "2026-02-01T12:00:00Z", "2026-02-01T12:00:00Z"), None);
    }
}
