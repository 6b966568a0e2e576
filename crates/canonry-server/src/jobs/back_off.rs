//! How long a job that failed waits for its next try.

use jiff::SignedDuration;

/// Long enough that a hiccup of GitHub's or of a model's is over.
const FIRST: SignedDuration = SignedDuration::from_secs(5);
/// With ten tries a job is given up after about forty minutes.
const LONGEST: SignedDuration = SignedDuration::from_mins(30);

/// The pause after the `tries`-th failed try in a row.
///
/// It doubles each time; `jitter` (0 to 1) takes away up to half of it, so that jobs that failed
/// together do not come back together.
pub(crate) fn back_off(tries: i64, jitter: f64) -> SignedDuration {
    let doublings = u32::try_from(tries.clamp(1, 17) - 1).unwrap_or_default();
    let full = FIRST.saturating_mul(1 << doublings).min(LONGEST);
    full.mul_f64(1.0 - 0.5 * jitter.clamp(0.0, 1.0))
}

/// The pause of a job that has waited this long for something that does not answer.
///
/// A quarter of that wait: soon at first, and no more than a quarter too late in the end. `jitter` as above.
pub(crate) fn outage_pause(waited: SignedDuration, jitter: f64) -> SignedDuration {
    (waited / 4).clamp(FIRST, LONGEST).mul_f64(1.0 - 0.5 * jitter.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::{FIRST, LONGEST, back_off, outage_pause};
    use jiff::SignedDuration;
    use proptest::prelude::{prop_assert, proptest};

    #[test]
    fn doubles_up_to_half_an_hour() {
        let pauses: Vec<_> = (1..=11).map(|tries| back_off(tries, 0.0).as_secs()).collect();
        assert_eq!(pauses, [5, 10, 20, 40, 80, 160, 320, 640, 1280, 1800, 1800]);
    }

    #[test]
    fn an_outage_is_looked_at_ever_more_seldom() {
        let pauses: Vec<_> = [-9, 0, 20, 60, 3_600, 7_200, 86_400]
            .map(|waited| outage_pause(SignedDuration::from_secs(waited), 0.0))
            .into();
        assert_eq!(pauses, [5, 5, 5, 15, 900, 1_800, 1_800].map(SignedDuration::from_secs));
    }

    proptest! {
        #[test]
        fn stays_within_bounds(tries: i64, jitter in -1.0f64..2.0) {
            let pause = back_off(tries, jitter);
            prop_assert!(pause >= FIRST / 2 && pause <= LONGEST);
        }
    }
}
