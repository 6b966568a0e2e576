//! When a remote embedder is asked again, and the clock that the waiting goes through.

use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;

/// The first pause: providers' limits are counted in seconds.
const FIRST: Duration = Duration::from_secs(1);
/// The longest pause of our own choosing.
const LONGEST: Duration = Duration::from_secs(30);
/// A provider that asks for a longer wait than this is told as a failure, not waited for: a command that
/// stands still for many minutes looks broken, and a rerun continues where it stopped.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;

    fn sleep(&self, pause: Duration) -> BoxFuture<'_, ()>;
}

#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn sleep(&self, pause: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(pause))
    }
}

/// The pause after the `failures`-th failure in a row: doubled each time, less up to half of it by `jitter`
/// (0 to 1), so that workers that failed together do not come back together.
pub(crate) fn back_off(failures: u32, jitter: f64) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    FIRST.saturating_mul(1 << doublings).min(LONGEST).mul_f64(1.0 - 0.5 * jitter.clamp(0.0, 1.0))
}

/// What a `Retry-After` header asks for: seconds, or a moment.
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
    use super::{LONGEST, asked_pause, back_off};
    use proptest::prelude::{prop_assert, proptest};
    use std::time::Duration;

    #[test]
    fn doubles_up_to_half_a_minute() {
        let pauses: Vec<_> = (1..=7).map(|failures| back_off(failures, 0.0).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
    }

    #[test]
    fn reads_seconds_and_moments() {
        let now = "2026-01-01T00:00:00Z".parse().expect("valid");
        assert_eq!(asked_pause(" 7 ", now), Some(Duration::from_secs(7)));
        assert_eq!(asked_pause("0.5", now), Some(Duration::from_millis(500)));
        assert_eq!(asked_pause("Thu, 01 Jan 2026 00:00:09 GMT", now), Some(Duration::from_secs(9)));
        assert_eq!(asked_pause("Wed, 31 Dec 2025 00:00:09 GMT", now), Some(Duration::ZERO));
        assert_eq!([asked_pause("-3", now), asked_pause("soon", now), asked_pause("NaN", now)], [None; 3]);
    }

    proptest! {
        #[test]
        fn stays_within_bounds(failures in 0u32.., jitter in -1.0f64..2.0) {
            let pause = back_off(failures, jitter);
            prop_assert!(pause >= Duration::from_millis(500) && pause <= LONGEST);
        }
    }
}
