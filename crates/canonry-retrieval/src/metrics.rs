//! How well the right items are found: recall at k and mean reciprocal rank, with confidence intervals.

use std::collections::BTreeSet;

use canonry_domain::{Interval, ItemNumber};
use serde::Serialize;

/// Draws of a bootstrap; with a thousand, the ends of an interval vary by less than half a point.
const DRAWS: usize = 1_000;

/// Measures over the ranks of many queries.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RetrievalMeasures {
    pub queries: usize,
    pub recall_at_1: Interval,
    pub recall_at_5: Interval,
    pub recall_at_10: Interval,
    pub recall_at_20: Interval,
    /// The mean of one divided by the rank; a query whose item is not found adds zero.
    pub mrr: Interval,
}

impl RetrievalMeasures {
    /// Measures ranks, counted from 1; `None` is a query for which no relevant item was found.
    pub fn of(ranks: &[Option<usize>], seed: u64) -> Self {
        let recall = |k: usize| {
            let found = |rank: &Option<usize>| if rank.is_some_and(|rank| rank <= k) { 1.0 } else { 0.0 };
            bootstrap(&ranks.iter().map(found).collect::<Vec<f64>>(), seed)
        };
        let reciprocal = |rank: &Option<usize>| rank.map_or(0.0, |rank| 1.0 / rank as f64);
        Self {
            queries: ranks.len(),
            recall_at_1: recall(1),
            recall_at_5: recall(5),
            recall_at_10: recall(10),
            recall_at_20: recall(20),
            mrr: bootstrap(&ranks.iter().map(reciprocal).collect::<Vec<f64>>(), seed),
        }
    }
}

/// The rank, from 1, of the best relevant item among those found.
pub fn rank_of_best(found: impl IntoIterator<Item = ItemNumber>, relevant: &BTreeSet<ItemNumber>) -> Option<usize> {
    found.into_iter().position(|number| relevant.contains(&number)).map(|position| position + 1)
}

/// The mean of values, with the interval from resampling them. The same seed gives the same interval.
pub fn bootstrap(values: &[f64], seed: u64) -> Interval {
    if values.is_empty() {
        return Interval { value: 0.0, low: 0.0, high: 0.0 };
    }
    let count = values.len();
    let mean = |sum: f64| sum / count as f64;
    let mut random = SplitMix(seed);
    let mut means: Vec<f64> = (0..DRAWS).map(|_| mean((0..count).map(|_| values[random.below(count)]).sum())).collect();
    means.sort_by(f64::total_cmp);
    Interval { value: mean(values.iter().sum()), low: means[DRAWS * 25 / 1_000], high: means[DRAWS * 975 / 1_000 - 1] }
}

/// A generator whose numbers never change with a library's version, because stored reports are compared.
struct SplitMix(u64);

impl SplitMix {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        ((u128::from(mixed) * end as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use canonry_domain::ItemNumber;
    use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};

    use super::{RetrievalMeasures, bootstrap, rank_of_best};

    #[test]
    fn measures_by_hand() {
        let measures = RetrievalMeasures::of(&[Some(1), Some(2), Some(5), Some(11), None], 7);
        assert_eq!(measures.queries, 5);
        assert_eq!(measures.recall_at_1.value, 0.2);
        assert_eq!(measures.recall_at_5.value, 0.6);
        assert_eq!(measures.recall_at_10.value, 0.6);
        assert_eq!(measures.recall_at_20.value, 0.8);
        let expected = (1.0 + 0.5 + 0.2 + 1.0 / 11.0) / 5.0;
        assert!((measures.mrr.value - expected).abs() < 1e-12);
    }

    #[test]
    fn the_best_relevant_item_counts() {
        let number = |number| ItemNumber::new(number).expect("a number");
        let relevant = BTreeSet::from([4, 9].map(number));
        assert_eq!(rank_of_best([7, 9, 4].map(number), &relevant), Some(2));
        assert_eq!(rank_of_best([7, 8].map(number), &relevant), None);
    }

    #[test]
    fn no_queries_measure_nothing() {
        let measures = RetrievalMeasures::of(&[], 1);
        assert_eq!((measures.queries, measures.mrr.value), (0, 0.0));
    }

    #[test]
    fn an_interval_is_as_wide_as_theory_says() {
        // 100 coin tosses: the standard error is .05, the interval about ±.098.
        let tosses: Vec<f64> = (0..100).map(|toss| f64::from(toss % 2)).collect();
        let interval = bootstrap(&tosses, 3);
        assert_eq!(interval.value, 0.5);
        assert!((interval.high - interval.low - 0.196).abs() < 0.03, "{interval:?}");
    }

    proptest! {
        #[test]
        fn intervals_hold_the_value_and_repeat(values in prop::collection::vec(0.0..=1.0_f64, 1..60), seed in 0_u64..9) {
            let interval = bootstrap(&values, seed);
            prop_assert!(interval.low <= interval.value + 1e-9 && interval.value <= interval.high + 1e-9);
            prop_assert_eq!(interval, bootstrap(&values, seed));
        }
    }
}
