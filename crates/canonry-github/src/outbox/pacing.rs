//! Limits how fast content is written, by GitHub's own advice.

use canonry_store::WritePriority;
use jiff::{SignedDuration, Timestamp};

/// GitHub asks for at most this many content-creating requests a minute (its secondary limits).
pub const WRITES_PER_MINUTE: usize = 80;
/// GitHub asks for at most this many content-creating requests an hour (its secondary limits).
pub const WRITES_PER_HOUR: usize = 500;

/// The part of these for ordinary writes: the rest is reserved for reopenings and corrections, so that undoing a wrong
/// close never waits a minute, or an hour, because there is much else to write.
pub const ORDINARY_WRITES_PER_MINUTE: usize = 60;
pub const ORDINARY_WRITES_PER_HOUR: usize = 400;

/// Limits, each with its period.
type Windows = [(usize, SignedDuration); 2];

const fn windows(priority: WritePriority) -> Windows {
    let (minute, hour) = match priority {
        WritePriority::Correction => (WRITES_PER_MINUTE, WRITES_PER_HOUR),
        WritePriority::Ordinary => (ORDINARY_WRITES_PER_MINUTE, ORDINARY_WRITES_PER_HOUR),
    };
    [(minute, SignedDuration::from_secs(60)), (hour, SignedDuration::from_hours(1))]
}

/// When the next content write of a priority may be sent, given the times of earlier ones of both priorities (in any
/// order): `now`, or the first later time at which neither limit would be broken.
///
/// Only the last hour's writes matter; older ones may be included. Times later than `now` (another replica's clock runs
/// ahead) count as well, so the answer never breaks a limit.
pub fn next_write_at(earlier: &[Timestamp], now: Timestamp, priority: WritePriority) -> Timestamp {
    let mut latest_first = earlier.to_vec();
    latest_first.sort_unstable_by(|one, other| other.cmp(one));
    windows(priority).iter().fold(now, |allowed, (most, window)| {
        // The write that has to leave the window before one more fits in.
        match latest_first.get(most - 1) {
            Some(oldest_in_window) => allowed.max(oldest_in_window.saturating_add(*window).unwrap_or(Timestamp::MAX)),
            None => allowed,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::{next_write_at, windows};
    use canonry_store::WritePriority::{self, Correction, Ordinary};
    use jiff::{SignedDuration, Timestamp};
    use proptest::prelude::{ProptestConfig, prop_assert, prop_assert_eq, proptest};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).expect("in range")
    }

    fn of(is_correction: bool) -> WritePriority {
        if is_correction { Correction } else { Ordinary }
    }

    #[test]
    fn the_eighty_first_write_waits_for_the_first_to_be_a_minute_old() {
        let writes: Vec<_> = (0..80).map(|index| at(index / 2)).collect();
        assert_eq!(next_write_at(&writes[..79], at(40), Correction), at(40));
        assert_eq!(next_write_at(&writes, at(40), Correction), at(60));
        assert_eq!(next_write_at(&writes, at(61), Correction), at(61));
    }

    #[test]
    fn ordinary_writes_leave_a_quarter_of_the_minute_to_corrections() {
        let writes: Vec<_> = (0..60).map(|index| at(index / 2)).collect();
        assert_eq!(next_write_at(&writes[..59], at(40), Ordinary), at(40));
        assert_eq!(next_write_at(&writes, at(40), Ordinary), at(60));
        assert_eq!(next_write_at(&writes, at(40), Correction), at(40));
    }

    #[test]
    fn the_hour_counts_too() {
        let writes: Vec<_> = (0..500).map(|index| at(index * 2)).collect();
        assert_eq!(next_write_at(&writes, at(1000), Correction), at(3600));
        assert_eq!(next_write_at(&writes[..400], at(1000), Ordinary), at(3600));
        assert_eq!(next_write_at(&writes[..400], at(1000), Correction), at(1000));
        assert_eq!(next_write_at(&[], at(7), Ordinary), at(7));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]
        #[test]
        fn following_the_rule_never_breaks_a_limit(asked in proptest::collection::vec((0i64..3, proptest::bool::ANY), 400..1200)) {
            let mut clock = at(0);
            let mut writes: Vec<Timestamp> = Vec::new();
            for (gap, is_correction) in asked {
                clock += SignedDuration::from_secs(gap);
                let allowed = next_write_at(&writes, clock, of(is_correction));
                prop_assert!(allowed >= clock);
                clock = allowed;
                writes.push(clock);
            }
            for (most, window) in windows(Correction) {
                for (index, write) in writes.iter().enumerate().skip(most) {
                    prop_assert!(write.duration_since(writes[index - most]) >= window, "{} writes within {}", most + 1, window);
                }
            }
        }

        #[test]
        fn however_much_is_ordinary_a_correction_goes_at_once(gaps in proptest::collection::vec(0i64..3, 0..1200), later in 0i64..100) {
            let mut clock = at(0);
            let mut writes: Vec<Timestamp> = Vec::new();
            for gap in gaps {
                clock = next_write_at(&writes, clock + SignedDuration::from_secs(gap), Ordinary);
                writes.push(clock);
            }
            let asked = clock + SignedDuration::from_secs(later);
            prop_assert_eq!(next_write_at(&writes, asked, Correction), asked);
        }

        #[test]
        fn waiting_is_never_longer_than_needed(
            seconds in proptest::collection::vec(0i64..4000, 0..700), now in 0i64..4000, is_correction in proptest::bool::ANY,
        ) {
            let writes: Vec<_> = seconds.iter().copied().map(at).collect();
            let allowed = next_write_at(&writes, at(now), of(is_correction));
            let fits = |moment: Timestamp| windows(of(is_correction)).iter().all(|(most, window)| {
                writes.iter().filter(|write| write.duration_since(moment) > -*window).count() < *most
            });
            prop_assert!(fits(allowed));
            if allowed > at(now) {
                prop_assert!(!fits(allowed - SignedDuration::from_secs(1)));
            } else {
                prop_assert_eq!(allowed, at(now));
            }
        }
    }
}
