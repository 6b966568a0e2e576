//! Which past items a backtest uses as queries, and what existed when they were filed.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use canonry_domain::ItemNumber;
use jiff::Timestamp;

/// The order in which items were created: by time, then by number. Items of unknown time come first, because later
/// queries may have seen them.
#[derive(Debug, Clone, Default)]
pub struct CreationOrder {
    positions: HashMap<ItemNumber, usize>,
    numbers: Vec<ItemNumber>,
}

/// A past item that is used as a query, as if it were new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayQuery {
    pub number: ItemNumber,
    /// The earlier members of its cluster: the expected results.
    pub relevant: BTreeSet<ItemNumber>,
    /// How many items existed before it.
    pub pool: usize,
}

impl CreationOrder {
    pub fn of(items: impl IntoIterator<Item = (ItemNumber, Option<Timestamp>)>) -> Self {
        let mut items: Vec<(Option<Timestamp>, ItemNumber)> =
            items.into_iter().map(|(number, created_at)| (created_at, number)).collect();
        items.sort_unstable();
        items.dedup_by_key(|item| item.1);
        let numbers: Vec<ItemNumber> = items.into_iter().map(|(_, number)| number).collect();
        let positions = numbers.iter().enumerate().map(|(position, &number)| (number, position)).collect();
        Self { positions, numbers }
    }

    pub fn numbers(&self) -> &[ItemNumber] {
        &self.numbers
    }

    /// Whether one item existed before another; false if either item is unknown.
    pub fn is_before(&self, one: ItemNumber, other: ItemNumber) -> bool {
        match (self.positions.get(&one), self.positions.get(&other)) {
            (Some(one), Some(other)) => one < other,
            _ => false,
        }
    }

    /// The queries, oldest first: every known item with an earlier relevant item.
    pub fn queries(&self, truth: &BTreeMap<ItemNumber, BTreeSet<ItemNumber>>) -> Vec<ReplayQuery> {
        let mut queries: Vec<ReplayQuery> = truth
            .iter()
            .filter_map(|(&number, relevant)| {
                let pool = *self.positions.get(&number)?;
                let relevant: BTreeSet<ItemNumber> =
                    relevant.iter().copied().filter(|&other| self.is_before(other, number)).collect();
                (!relevant.is_empty()).then_some(ReplayQuery { number, relevant, pool })
            })
            .collect();
        queries.sort_by_key(|query| query.pool);
        queries
    }
}

/// For every linked item, the other members of its cluster: duplicates of duplicates are duplicates.
pub fn duplicate_clusters(
    links: impl IntoIterator<Item = (ItemNumber, ItemNumber)>,
) -> BTreeMap<ItemNumber, BTreeSet<ItemNumber>> {
    let mut joined: BTreeMap<ItemNumber, BTreeSet<ItemNumber>> = BTreeMap::new();
    for (one, other) in links.into_iter().filter(|(one, other)| one != other) {
        joined.entry(one).or_default().insert(other);
        joined.entry(other).or_default().insert(one);
    }
    let mut clusters = BTreeMap::new();
    for &start in joined.keys() {
        if clusters.contains_key(&start) {
            continue;
        }
        let mut members = BTreeSet::from([start]);
        let mut open = vec![start];
        while let Some(member) = open.pop() {
            open.extend(joined[&member].iter().filter(|&&next| members.insert(next)));
        }
        for &member in &members {
            let mut others = members.clone();
            others.remove(&member);
            clusters.insert(member, others);
        }
    }
    clusters
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use canonry_domain::{ItemNumber, parse_moment};

    use super::{CreationOrder, duplicate_clusters};

    fn number(number: i64) -> ItemNumber {
        ItemNumber::new(number).expect("a number")
    }

    fn order(items: &[(i64, &str)]) -> CreationOrder {
        CreationOrder::of(items.iter().map(|&(item, time)| (number(item), parse_moment(time).ok())))
    }

    #[test]
    fn time_decides_before_the_number() {
        let order = order(&[(5, "2020-01-01"), (2, "2021-01-01"), (1, "2021-01-01"), (9, "unknown")]);
        assert_eq!(order.numbers(), [9, 5, 1, 2].map(number));
        assert!(order.is_before(number(5), number(1)));
        assert!(!order.is_before(number(1), number(1)));
        assert!(!order.is_before(number(77), number(1)));
    }

    #[test]
    fn links_join_into_clusters_and_only_earlier_members_are_relevant() {
        let clusters = duplicate_clusters([(3, 1), (4, 3), (8, 7), (6, 6)].map(|(a, b)| (number(a), number(b))));
        assert_eq!(clusters[&number(1)], BTreeSet::from([3, 4].map(number)));
        assert_eq!(clusters.len(), 5);
        let order = order(&[(1, "2020-01-01"), (3, "2020-01-03"), (4, "2020-01-04"), (7, "2020-01-07")]);
        let queries = order.queries(&clusters);
        let told: Vec<(i64, Vec<i64>, usize)> = queries
            .iter()
            .map(|query| (query.number.get(), query.relevant.iter().map(|n| n.get()).collect(), query.pool))
            .collect();
        assert_eq!(told, [(3, vec![1], 1), (4, vec![1, 3], 2)]);
    }
}
