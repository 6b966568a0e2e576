//! Chooses the sources of an audit.

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};

use crate::{ItemNumber, ItemType};

/// At most `size` of the sources, chosen by the seed alone: the same on every machine and for every input order.
///
/// Sources are sorted by a hash of seed and source, and the first ones are chosen. So a larger sample contains the
/// smaller one, and a new source replaces at most one other.
pub fn audit_sample(
    sources: impl IntoIterator<Item = (ItemType, ItemNumber)>,
    seed: i64,
    size: usize,
) -> BTreeSet<(ItemType, ItemNumber)> {
    let sources: BTreeSet<_> = sources.into_iter().collect();
    let mut ordered: Vec<_> = sources.into_iter().map(|source| (place(seed, source), source)).collect();
    ordered.sort_unstable();
    ordered.into_iter().take(size).map(|(_, source)| source).collect()
}

fn place(seed: i64, (item_type, number): (ItemType, ItemNumber)) -> [u8; 32] {
    Sha256::digest(format!("{seed} {item_type} {number}")).into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::audit_sample;
    use crate::{ItemNumber, ItemType};

    fn issues(numbers: impl IntoIterator<Item = i64>) -> Vec<(ItemType, ItemNumber)> {
        numbers.into_iter().map(|number| (ItemType::Issue, ItemNumber::new(number).expect("positive"))).collect()
    }

    fn sample(numbers: impl IntoIterator<Item = i64>, seed: i64, size: usize) -> Vec<i64> {
        audit_sample(issues(numbers), seed, size).into_iter().map(|(_, number)| number.get()).collect()
    }

    /// Golden: a stored audit must be repeatable with a later build, so the order must never change.
    #[test]
    fn the_seed_alone_decides() {
        assert_eq!(sample(1..=100, 42, 5), GOLDEN);
        assert_eq!(sample((1..=100).rev(), 42, 5), GOLDEN);
        assert_ne!(sample(1..=100, 43, 5), GOLDEN);
        assert_eq!(sample(1..=3, 42, 5), [1, 2, 3]);
        assert!(sample(1..=3, 42, 0).is_empty());
    }

    const GOLDEN: [i64; 5] = [1, 5, 8, 40, 74];

    #[test]
    fn every_source_has_the_same_chance() {
        let mut chosen = [0_u32; 20];
        for seed in 0..2_000 {
            for number in sample(1..=20, seed, 5) {
                chosen[usize::try_from(number - 1).expect("small")] += 1;
            }
        }
        // Each is expected 500 times, with a standard deviation of about 19.
        assert!(chosen.iter().all(|times| (400..=600).contains(times)), "{chosen:?}");
    }

    proptest! {
        #[test]
        fn a_larger_sample_holds_the_smaller(seed in any::<i64>(), size in 0_usize..30) {
            let (small, large) = (sample(1..=40, seed, size), sample(1..=40, seed, size + 5));
            prop_assert_eq!(small.len(), size);
            prop_assert!(small.iter().all(|number| large.contains(number)));
        }
    }
}
