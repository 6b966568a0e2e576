//! The pauses between retries.

use jiff::SignedDuration;

/// Pauses that double from the first to the longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackOff {
    pub first: SignedDuration,
    pub longest: SignedDuration,
}

impl BackOff {
    /// Returns the pause after `failures` failed attempts in a row. `jitter` (0 to 1) removes up to half of it, so
    /// that callers that failed together do not retry together.
    pub fn pause(&self, failures: u32, jitter: f64) -> SignedDuration {
        let doublings = failures.saturating_sub(1).min(16);
        self.shorten(self.first.saturating_mul(1 << doublings), jitter)
    }

    /// Returns the pause during an outage that has lasted this long: a quarter of that time. Retries come soon at
    /// first, and the last one comes at most a quarter of the outage too late.
    pub fn outage_pause(&self, lasted: SignedDuration, jitter: f64) -> SignedDuration {
        self.shorten(lasted / 4, jitter)
    }

    fn shorten(&self, pause: SignedDuration, jitter: f64) -> SignedDuration {
        pause.clamp(self.first, self.longest).mul_f64(1.0 - 0.5 * jitter.clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use proptest::prelude::{prop_assert, proptest};

    use super::BackOff;

    const SHORT: BackOff = BackOff { first: SignedDuration::from_secs(1), longest: SignedDuration::from_secs(30) };
    const LONG: BackOff = BackOff { first: SignedDuration::from_secs(5), longest: SignedDuration::from_mins(30) };

    #[test]
    fn doubles_up_to_the_longest() {
        let pauses: Vec<_> = (1..=7).map(|failures| SHORT.pause(failures, 0.0).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
        let pauses: Vec<_> = (1..=11).map(|failures| LONG.pause(failures, 0.0).as_secs()).collect();
        assert_eq!(pauses, [5, 10, 20, 40, 80, 160, 320, 640, 1280, 1800, 1800]);
    }

    #[test]
    fn an_outage_is_asked_about_ever_more_seldom() {
        let pauses: Vec<_> = [-9, 0, 20, 60, 3_600, 7_200, 86_400]
            .map(|lasted| LONG.outage_pause(SignedDuration::from_secs(lasted), 0.0).as_secs())
            .into();
        assert_eq!(pauses, [5, 5, 5, 15, 900, 1_800, 1_800]);
    }

    proptest! {
        #[test]
        fn stays_within_bounds(failures: u32, jitter in -1.0f64..2.0) {
            let pause = SHORT.pause(failures, jitter);
            prop_assert!(pause >= SHORT.first / 2 && pause <= SHORT.longest);
        }
    }
}
