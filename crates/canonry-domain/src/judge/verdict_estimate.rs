//! How often verdicts are right, from people's links and from what people read. Links miss duplicates, so what nobody
//! linked counts as people read it.

use serde::Serialize;

use crate::{Interval, wilson_interval};

/// Verdicts that stand for the same number of items each, such as all verdicts about a sample of items.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct VerdictStratum {
    /// How many items of the repository one verdict stands for.
    pub weight: f64,
    /// People linked the two.
    pub linked: u64,
    /// Nobody linked the two, and a person read them.
    pub read_same: u64,
    pub read_different: u64,
    /// Nobody linked or read the two, or a reader could not tell.
    pub unread: u64,
}

impl VerdictStratum {
    pub const fn given(&self) -> u64 {
        self.linked + self.read_same + self.read_different + self.unread
    }

    /// Counts one verdict. `read` is a person's answer about the pair.
    pub const fn count(&mut self, is_linked: bool, read: Option<bool>) {
        match (is_linked, read) {
            (_, Some(true)) if !is_linked => self.read_same += 1,
            (_, Some(false)) => self.read_different += 1,
            (true, _) => self.linked += 1,
            (false, _) => self.unread += 1,
        }
    }
}

/// How often verdicts of one kind are right.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct VerdictEstimate {
    pub given: u64,
    pub linked: u64,
    pub read_same: u64,
    pub read_different: u64,
    pub unread: u64,
    /// As if what nobody linked were wrong: a lower bound. `None` if no verdict was given.
    pub by_links: Option<Interval>,
    /// Links and readings together; `None` if nothing was given, or if what nobody linked was not read either.
    pub combined: Option<Interval>,
}

impl VerdictEstimate {
    /// In each stratum, those that were read stand for all that nobody linked, as if each had been drawn with the same
    /// probability (inverse probability weights).
    pub fn of(strata: &[VerdictStratum]) -> Self {
        let sum = |count: fn(&VerdictStratum) -> u64| strata.iter().map(count).sum::<u64>();
        let given = sum(VerdictStratum::given);
        // Verdicts of unequal weights say as much as this many of equal weights (Kish).
        let weights = |power: i32| -> f64 {
            strata.iter().map(|stratum| stratum.weight.powi(power) * stratum.given() as f64).sum()
        };
        let effective = if given > 0 { weights(1).powi(2) / weights(2) } else { 0.0 };
        let weighed = |count: &dyn Fn(&VerdictStratum) -> f64| {
            let all: f64 = strata.iter().map(|stratum| stratum.weight * stratum.given() as f64).sum();
            strata.iter().map(|stratum| stratum.weight * count(stratum)).sum::<f64>() / all
        };
        let linked = |stratum: &VerdictStratum| stratum.linked as f64;
        let by_links = (given > 0).then(|| wilson_interval(weighed(&linked), effective));
        let (same, different) = (sum(|one| one.read_same), sum(|one| one.read_different));
        let unread = sum(|one| one.unread);
        let combined = (given > 0 && (unread == 0 || same + different > 0)).then(|| {
            // A stratum that nobody read in counts like the others.
            let share = |stratum: &VerdictStratum| match stratum.read_same + stratum.read_different {
                0 => (same, same + different),
                read => (stratum.read_same, read),
            };
            let right = |unread: &dyn Fn(Interval) -> f64| {
                weighed(&|stratum| {
                    let (right, read) = share(stratum);
                    let sure = (stratum.linked + stratum.read_same) as f64;
                    let mut share = wilson_interval(right as f64 / read.max(1) as f64, read as f64);
                    if stratum.read_same + stratum.read_different == 0 {
                        // The readings are of another stratum, so they do not narrow what is possible here.
                        (share.low, share.high) = (0.0, 1.0);
                    }
                    sure + stratum.unread as f64 * unread(share)
                })
            };
            let (value, least, most) =
                (right(&|share| share.value), right(&|share| share.low), right(&|share| share.high));
            let sample = wilson_interval(value, effective);
            Interval {
                value,
                low: (value - (value - sample.low).hypot(value - least)).max(0.0),
                high: (value + (sample.high - value).hypot(most - value)).min(1.0),
            }
        });
        Self {
            given,
            linked: sum(|one| one.linked),
            read_same: same,
            read_different: different,
            unread,
            by_links,
            combined,
        }
    }

    /// The combined estimate, or what the links alone say.
    pub fn precision(&self) -> Option<Interval> {
        self.combined.or(self.by_links)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{Strategy, prop_assert, proptest};

    use super::{VerdictEstimate, VerdictStratum};

    fn stratum(weight: f64, linked: u64, read_same: u64, read_different: u64, unread: u64) -> VerdictStratum {
        VerdictStratum { weight, linked, read_same, read_different, unread }
    }

    #[test]
    fn what_was_read_stands_for_what_was_not() {
        // 10 of 30 are linked; of the other 20, 10 were read and 6 are the same, so 12 of 20 count.
        let all = VerdictEstimate::of(&[stratum(1.0, 10, 6, 4, 10)]);
        let combined = all.combined.expect("read");
        assert!((combined.value - 22.0 / 30.0).abs() < 1e-9, "{combined:?}");
        assert!((all.by_links.expect("given").value - 10.0 / 30.0).abs() < 1e-9);
        // A sample of other items, each standing for four: (10 + 4 × 3) of (10 + 4 × 6).
        let two = VerdictEstimate::of(&[stratum(1.0, 10, 0, 0, 0), stratum(4.0, 0, 3, 3, 0)]);
        assert!((two.combined.expect("read").value - 22.0 / 34.0).abs() < 1e-9);
        // Nobody read in the second stratum: it counts like the first, and may be anything.
        let half = VerdictEstimate::of(&[stratum(1.0, 0, 40, 0, 0), stratum(1.0, 0, 0, 0, 40)]);
        let combined = half.combined.expect("read");
        assert!((combined.value - 1.0).abs() < 1e-9 && combined.low < 0.5, "{combined:?}");
    }

    #[test]
    fn without_readings_only_the_links_say_something() {
        let unread = VerdictEstimate::of(&[stratum(1.0, 3, 0, 0, 5)]);
        assert_eq!((unread.combined, unread.precision()), (None, unread.by_links));
        let linked = VerdictEstimate::of(&[stratum(1.0, 3, 0, 0, 0)]);
        assert_eq!(linked.combined.map(|share| share.value), Some(1.0));
        let nothing = VerdictEstimate::of(&[stratum(1.0, 0, 0, 0, 0)]);
        assert_eq!((nothing.by_links, nothing.combined), (None, None));
    }

    #[test]
    fn a_reading_outranks_a_link() {
        let mut counted = stratum(1.0, 0, 0, 0, 0);
        counted.count(true, None);
        counted.count(true, Some(true));
        counted.count(true, Some(false));
        counted.count(false, Some(true));
        counted.count(false, Some(false));
        counted.count(false, None);
        assert_eq!(counted, stratum(1.0, 2, 1, 2, 1));
    }

    fn any_strata() -> impl Strategy<Value = Vec<VerdictStratum>> {
        let counts = (1.0..20.0_f64, 0_u64..30, 0_u64..30, 0_u64..30, 0_u64..30);
        vec(
            counts
                .prop_map(|(weight, linked, same, different, unread)| stratum(weight, linked, same, different, unread)),
            1..4,
        )
    }

    proptest! {
        #[test]
        fn intervals_contain_their_value_and_links_are_a_lower_bound(strata in any_strata()) {
            let estimate = VerdictEstimate::of(&strata);
            for share in [estimate.by_links, estimate.combined].into_iter().flatten() {
                prop_assert!(0.0 <= share.low && share.low <= share.value + 1e-9, "{share:?}");
                prop_assert!(share.value <= share.high + 1e-9 && share.high <= 1.0 + 1e-9, "{share:?}");
            }
            if let (Some(links), Some(combined)) = (estimate.by_links, estimate.combined) {
                prop_assert!(links.value <= combined.value + 1e-9);
            }
        }
    }
}
