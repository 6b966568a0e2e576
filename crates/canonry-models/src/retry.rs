//! When a request to a remote model is retried.

use std::time::Duration;

use canonry_clock::BackOff;
use jiff::{SignedDuration, Timestamp};

/// Providers count their limits in seconds.
pub(crate) const BETWEEN_TRIES: BackOff =
    BackOff { first: SignedDuration::from_secs(1), longest: SignedDuration::from_secs(30) };
/// If a provider asks for a longer wait than this, the request fails instead: a command that does nothing for many
/// minutes looks broken, and a rerun continues where it stopped.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// The wait that a `Retry-After` header asks for: seconds, or a time.
pub(crate) fn asked_pause(header: &str, now: Timestamp) -> Option<Duration> {
    let header = header.trim();
    if let Ok(seconds) = header.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let until = jiff::fmt::rfc2822::parse(header).ok()?.timestamp();
    Some(Duration::try_from(until.duration_since(now)).unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::asked_pause;
    use std::time::Duration;

    #[test]
    fn reads_seconds_and_moments() {
        let now = "2026-01-01T00:00:00Z".parse().expect("valid");
        assert_eq!(asked_pause(" 7 ", now), Some(Duration::from_secs(7)));
        assert_eq!(asked_pause("0.5", now), Some(Duration::from_millis(500)));
        assert_eq!(asked_pause("Thu, 01 Jan 2026 00:00:09 GMT", now), Some(Duration::from_secs(9)));
        assert_eq!(asked_pause("Wed, 31 Dec 2025 00:00:09 GMT", now), Some(Duration::ZERO));
        assert_eq!([asked_pause("-3", now), asked_pause("soon", now), asked_pause("NaN", now)], [None; 3]);
    }
}
