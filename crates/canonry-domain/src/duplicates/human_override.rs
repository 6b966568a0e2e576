//! People's rulings about items. They outrank every judge.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{ItemNumber, ItemType, Login, text_enum};

text_enum! {
    pub enum OverrideKind: "a kind of override" {
        Duplicate = "duplicate",
        NotDuplicate = "not_duplicate",
        /// The item is the canonical of any cluster that contains it.
        Canonical = "canonical",
        /// The item must not be closed as a duplicate of the other item, or of anything in that item's cluster.
        Excluded = "excluded",
    }
}

/// A person's ruling, in force until it is removed or a later ruling about the same pair replaces it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Override {
    pub id: i64,
    pub item_type: ItemType,
    pub kind: OverrideKind,
    pub item: ItemNumber,
    pub other: Option<ItemNumber>,
    pub note: Option<String>,
    pub created_at: Timestamp,
    pub created_by: Option<Login>,
}

/// The overrides of one type of item. For each pair the latest one is in force.
#[derive(Debug, Clone, Default)]
pub struct Rulings {
    // (duplicate, target) → the time of the last ruling. If a pair is ruled in both directions, both are in force:
    // which of the two stays open is decided elsewhere.
    together: BTreeMap<(ItemNumber, ItemNumber), Timestamp>,
    apart: BTreeMap<ItemNumber, BTreeSet<ItemNumber>>,
    // The greatest rank is the latest ruling.
    canonicals: BTreeMap<ItemNumber, usize>,
    // (item, the item that it must not be closed as a duplicate of) → the time of the last ruling.
    excluded: BTreeMap<(ItemNumber, ItemNumber), Timestamp>,
}

impl Rulings {
    /// Sorts the overrides, which may be in any order, and ignores those of other types.
    pub fn of(item_type: ItemType, overrides: &[Override]) -> Self {
        let mut ordered: Vec<&Override> = overrides.iter().filter(|ruled| ruled.item_type == item_type).collect();
        ordered.sort_by_key(|ruled| (ruled.created_at, ruled.id));
        let mut rulings = Self::default();
        for (rank, ruled) in ordered.into_iter().enumerate() {
            match (ruled.kind, ruled.other.filter(|other| *other != ruled.item)) {
                (OverrideKind::Canonical, _) => {
                    rulings.canonicals.insert(ruled.item, rank);
                }
                (_, None) => {}
                (OverrideKind::Duplicate, Some(of)) => {
                    rulings.set_apart(ruled.item, of, false);
                    rulings.together.insert((ruled.item, of), ruled.created_at);
                }
                (OverrideKind::NotDuplicate, Some(other)) => {
                    rulings.set_apart(ruled.item, other, true);
                    rulings.together.remove(&(ruled.item, other));
                    rulings.together.remove(&(other, ruled.item));
                }
                (OverrideKind::Excluded, Some(other)) => {
                    rulings.excluded.insert((ruled.item, other), ruled.created_at);
                }
            }
        }
        rulings
    }

    fn set_apart(&mut self, one: ItemNumber, other: ItemNumber, apart: bool) {
        for (one, other) in [(one, other), (other, one)] {
            let others = self.apart.entry(one).or_default();
            if apart {
                others.insert(other);
            } else {
                others.remove(&other);
            }
        }
    }

    pub fn are_apart(&self, one: ItemNumber, other: ItemNumber) -> bool {
        self.apart.get(&one).is_some_and(|others| others.contains(&other))
    }

    /// Every pair that is ruled to be duplicates, as (duplicate, target).
    pub fn duplicates(&self) -> impl Iterator<Item = (ItemNumber, ItemNumber)> + '_ {
        self.together.keys().copied()
    }

    /// Whether an item is ruled not to be a duplicate of one of these.
    pub(crate) fn is_apart_from_any(&self, item: ItemNumber, others: &BTreeSet<ItemNumber>) -> bool {
        self.apart.get(&item).is_some_and(|apart| apart.iter().any(|other| others.contains(other)))
    }

    /// Whether an item must not be closed as a duplicate of any of these: a person excluded it, and no later ruling
    /// says that it is a duplicate of one of them.
    pub fn is_excluded_from(&self, item: ItemNumber, others: &BTreeSet<ItemNumber>) -> bool {
        let last = |said: &BTreeMap<(ItemNumber, ItemNumber), Timestamp>| {
            let about = said.iter().filter(|((one, other), _)| *one == item && others.contains(other));
            about.map(|(_, at)| *at).max()
        };
        last(&self.excluded).is_some_and(|excluded| last(&self.together).is_none_or(|said| said <= excluded))
    }

    /// When a person last ruled that this item is a duplicate, if the ruling is in force.
    pub(crate) fn said_duplicate_at(&self, item: ItemNumber) -> Option<Timestamp> {
        let said = self.together.iter().filter(|((duplicate, _), _)| *duplicate == item);
        said.map(|(_, at)| *at).max()
    }

    /// The member that was ruled canonical last.
    pub(crate) fn canonical_among(&self, members: &BTreeSet<ItemNumber>) -> Option<ItemNumber> {
        let ruled = members.iter().filter_map(|member| self.canonicals.get(member).map(|rank| (*rank, *member)));
        ruled.max().map(|(_, member)| member)
    }
}

#[cfg(test)]
mod tests {
    use super::{Override, OverrideKind, Rulings};
    use crate::{ItemNumber, ItemType, parse_moment};

    fn number(number: i64) -> ItemNumber {
        ItemNumber::new(number).expect("valid")
    }

    fn ruled(id: i64, kind: OverrideKind, item: i64, other: Option<i64>, day: &str) -> Override {
        let created_at = parse_moment(day).expect("valid");
        Override {
            id,
            item_type: ItemType::Issue,
            kind,
            item: number(item),
            other: other.map(number),
            note: None,
            created_at,
            created_by: None,
        }
    }

    #[test]
    fn the_latest_ruling_of_a_pair_holds_whichever_way_it_is_written() {
        let overrides = [
            ruled(2, OverrideKind::NotDuplicate, 2, Some(1), "2026-02-02"),
            ruled(1, OverrideKind::Duplicate, 1, Some(2), "2026-02-01"),
            ruled(3, OverrideKind::Duplicate, 3, Some(4), "2026-02-03"),
            ruled(4, OverrideKind::Duplicate, 4, Some(3), "2026-02-03"),
        ];
        let rulings = Rulings::of(ItemType::Issue, &overrides);
        assert!(rulings.are_apart(number(1), number(2)) && rulings.are_apart(number(2), number(1)));
        assert_eq!(rulings.said_duplicate_at(number(1)), None);
        // If a pair is ruled in both directions, both are in force; the ranking decides which of the two stays open.
        assert_eq!(rulings.duplicates().collect::<Vec<_>>(), [(number(3), number(4)), (number(4), number(3))]);
        assert!(rulings.said_duplicate_at(number(3)).is_some());
    }

    #[test]
    fn an_exclusion_holds_in_its_cluster_until_somebody_says_duplicate() {
        let excluded = ruled(1, OverrideKind::Excluded, 2, Some(1), "2026-02-01");
        let cluster = [number(1), number(2), number(3)].into();
        let is_excluded = |overrides: &[Override], item| {
            Rulings::of(ItemType::Issue, overrides).is_excluded_from(number(item), &cluster)
        };
        assert!(is_excluded(std::slice::from_ref(&excluded), 2));
        assert!(!is_excluded(std::slice::from_ref(&excluded), 1), "it is about one of the two");
        let elsewhere = ruled(2, OverrideKind::Duplicate, 2, Some(9), "2026-02-02");
        assert!(is_excluded(&[excluded.clone(), elsewhere], 2));
        let before = ruled(3, OverrideKind::Duplicate, 2, Some(3), "2026-01-31");
        assert!(is_excluded(&[excluded.clone(), before], 2));
        let since = ruled(4, OverrideKind::Duplicate, 2, Some(3), "2026-02-02");
        assert!(!is_excluded(&[excluded.clone(), since], 2));
        let rulings = Rulings::of(ItemType::Issue, &[excluded]);
        assert!(!rulings.are_apart(number(1), number(2)), "they may be duplicates all the same");
    }

    #[test]
    fn the_latest_canonical_among_the_members_holds() {
        let overrides = [
            ruled(3, OverrideKind::Canonical, 7, None, "2026-02-03"),
            ruled(2, OverrideKind::Canonical, 2, None, "2026-02-02"),
            ruled(1, OverrideKind::Canonical, 1, None, "2026-02-01"),
        ];
        let rulings = Rulings::of(ItemType::Issue, &overrides);
        let members = [number(1), number(2), number(3)].into();
        assert_eq!(rulings.canonical_among(&members), Some(number(2)));
        assert_eq!(rulings.canonical_among(&[number(3)].into()), None);
    }

    #[test]
    fn other_types_and_half_pairs_do_not_count() {
        let overrides = [
            Override { item_type: ItemType::Pr, ..ruled(1, OverrideKind::NotDuplicate, 1, Some(2), "2026-02-01") },
            ruled(2, OverrideKind::NotDuplicate, 1, None, "2026-02-01"),
            ruled(3, OverrideKind::Duplicate, 1, Some(1), "2026-02-01"),
        ];
        let rulings = Rulings::of(ItemType::Issue, &overrides);
        assert_eq!(rulings.duplicates().count(), 0);
        assert!(!rulings.are_apart(number(1), number(2)));
    }
}
