//! How long to pause before a read is tried again.

use jiff::SignedDuration;

/// The first pause is about a second: most hiccups of GitHub's are shorter.
const FIRST: SignedDuration = SignedDuration::from_secs(1);
/// No pause between two tries is longer; what takes longer is an outage and is told as one.
const LONGEST: SignedDuration = SignedDuration::from_secs(30);

/// The pause after the `failures`-th failed try in a row.
///
/// It doubles each time up to half a minute; `jitter` (0 to 1) takes away up to half of it, so that
/// many clients that failed together do not come back together.
pub(crate) fn back_off(failures: u32, jitter: f64) -> SignedDuration {
    let doublings = failures.saturating_sub(1).min(16);
    let full = FIRST.saturating_mul(1 << doublings).min(LONGEST);
    full.mul_f64(1.0 - 0.5 * jitter.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, back_off};
    use jiff::SignedDuration;
    use proptest::prelude::{prop_assert, proptest};

    #[test]
    fn doubles_up_to_half_a_minute() {
        let pauses: Vec<_> = (1..=7).map(|failures| back_off(failures, 0.0).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
    }

    proptest! {
        #[test]
        fn stays_within_bounds(failures in 0u32.., jitter in -1.0f64..2.0) {
            let pause = back_off(failures, jitter);
            prop_assert!(pause >= SignedDuration::from_millis(500) && pause <= LONGEST);
        }
    }
}
