//! Chooses the items that a backtest replays: the known duplicates, and a sample of everything else.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use canonry_domain::{ItemNumber, ItemType};
use canonry_retrieval::{CreationOrder, ReplayQuery, RetrievalMode, duplicate_clusters};
use canonry_store::{IndexRow, Repo};
use serde::Serialize;

use crate::lab::backtest::{BacktestError, BacktestOptions};
use crate::lab::backtest_truth::{TruthFile, TruthMistake};
use crate::retrieval::neighbourhood::Neighbourhood;

pub(crate) struct ReplayPlan {
    /// The duplicates, each with the index of its neighbourhood.
    pub(crate) queries: Vec<(usize, ReplayQuery)>,
    pub(crate) others: Vec<(usize, ItemNumber)>,
    pub(crate) counts: BacktestCounts,
    pub(crate) mistakes: Vec<TruthMistake>,
    pub(crate) model: Option<String>,
}

/// How much was replayed, and what was left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct BacktestCounts {
    pub items: usize,
    /// Items without a vector, which only lexical mode finds.
    pub items_without_vector: usize,
    /// Duplicates that people or the truth file named.
    pub duplicates_known: usize,
    /// Duplicates that were left out because no earlier item that they duplicate exists.
    pub duplicates_without_earlier: usize,
    /// Duplicates that were left out because they have no vector to search by.
    pub duplicates_without_vector: usize,
    pub duplicates: usize,
    pub duplicates_replayed: usize,
    /// Items that nobody named as a duplicate and that could be replayed.
    pub others: usize,
    pub others_replayed: usize,
}

/// The minimum number of other items to replay: a share of 1 % among a thousand is known within 0.6 percentage
/// points.
const OTHERS: usize = 1_000;

impl ReplayPlan {
    /// Decides what to replay, or returns why nothing can be replayed.
    pub(crate) fn new(
        repo: &Repo,
        neighbourhoods: &[Neighbourhood],
        truth: Option<&TruthFile>,
        options: BacktestOptions,
    ) -> Result<Self, BacktestError> {
        let with_vectors = options.mode != RetrievalMode::Lexical;
        let model = neighbourhoods.first().map(|neighbourhood| neighbourhood.index().model().to_owned());
        let mut counts = BacktestCounts::default();
        let mut mistakes = truth.map(|file| file.mistakes.clone()).unwrap_or_default();
        let (mut queries, mut others) = (Vec::new(), Vec::new());
        for (place, neighbourhood) in neighbourhoods.iter().enumerate() {
            let rows = neighbourhood.rows();
            let known = match truth {
                Some(file) => named_in(file, neighbourhood.item_type(), rows, &mut mistakes),
                None => LabelledDuplicates::in_corpus(rows),
            };
            let order = CreationOrder::of(rows.values().map(|row| (row.number, row.created_at)));
            let all = order.queries(&known.relevant);
            let duplicates: BTreeSet<ItemNumber> = all.iter().map(|query| query.number).collect();
            let can_search = |number: &ItemNumber| !with_vectors || rows.get(number).is_some_and(|row| row.embedded);
            counts.items += rows.len();
            counts.items_without_vector += rows.values().filter(|row| with_vectors && !row.embedded).count();
            counts.duplicates_known += known.duplicates.union(&duplicates).count();
            counts.duplicates_without_earlier += known.duplicates.difference(&duplicates).count();
            let before = queries.len();
            queries.extend(all.into_iter().filter(|query| can_search(&query.number)).map(|query| (place, query)));
            counts.duplicates_without_vector += duplicates.len() - (queries.len() - before);
            let is_other = |number: &ItemNumber| !duplicates.contains(number) && !known.unclear.contains(number);
            let numbers = rows.keys().copied().filter(|number| is_other(number) && can_search(number));
            others.extend(numbers.map(|number| (place, number)));
        }
        mistakes.sort_by_key(|mistake| mistake.line);
        (counts.duplicates, counts.others) = (queries.len(), others.len());
        if queries.is_empty() {
            return Err(nothing_to_replay(repo, &counts, mistakes, model));
        }
        let most = options.limit_queries.unwrap_or(queries.len());
        let queries = sampled(queries, most, options.seed, |(place, query)| place_and_number(*place, query.number));
        let most = options.limit_queries.unwrap_or(OTHERS.max(queries.len()));
        let others = sampled(others, most, options.seed, |(place, number)| place_and_number(*place, *number));
        (counts.duplicates_replayed, counts.others_replayed) = (queries.len(), others.len());
        Ok(Self { queries, others, counts, mistakes, model: model.filter(|_| with_vectors) })
    }
}

/// An item of a plan.
pub(crate) struct PlannedItem<'a> {
    /// The place of its neighbourhood.
    pub(crate) place: usize,
    pub(crate) number: ItemNumber,
    /// The items that a duplicate was linked with; `None` for another item.
    pub(crate) relevant: Option<&'a BTreeSet<ItemNumber>>,
}

impl ReplayPlan {
    /// Duplicates and other items, mixed by the seed: a budget may end anywhere, and what was replayed until then must be
    /// a sample of both.
    pub(crate) fn in_random_order(&self, seed: u64) -> Vec<PlannedItem<'_>> {
        let duplicates = self.queries.iter().map(|(place, query)| (*place, query.number, Some(&query.relevant)));
        let others = self.others.iter().map(|(place, number)| (*place, *number, None));
        let item = |(place, number, relevant)| PlannedItem { place, number, relevant };
        let mut planned: Vec<PlannedItem<'_>> = duplicates.chain(others).map(item).collect();
        // By another seed than the sample, which contains the first numbers in the order of its own.
        planned.sort_by_cached_key(|one| mixed(place_and_number(one.place, one.number) ^ mixed(!seed)));
        planned
    }
}

/// The known duplicates of one type.
#[derive(Default)]
struct LabelledDuplicates {
    relevant: BTreeMap<ItemNumber, BTreeSet<ItemNumber>>,
    duplicates: BTreeSet<ItemNumber>,
    /// Duplicates of an item that is not in the corpus: an answer to them would be neither right nor wrong.
    unclear: BTreeSet<ItemNumber>,
}

impl LabelledDuplicates {
    fn in_corpus(rows: &HashMap<ItemNumber, IndexRow>) -> Self {
        let links: Vec<(ItemNumber, ItemNumber)> =
            rows.values().filter_map(|row| Some((row.number, row.duplicate_of?))).collect();
        Self {
            duplicates: links.iter().map(|(number, _)| *number).collect(),
            unclear: links.iter().filter(|(_, target)| !rows.contains_key(target)).map(|(number, _)| *number).collect(),
            relevant: duplicate_clusters(links),
        }
    }
}

/// The duplicates of a type that a truth file names. Numbers that are not in the corpus are mistakes.
fn named_in(
    file: &TruthFile,
    item_type: ItemType,
    rows: &HashMap<ItemNumber, IndexRow>,
    mistakes: &mut Vec<TruthMistake>,
) -> LabelledDuplicates {
    let mut known = LabelledDuplicates::default();
    for line in file.lines.iter().filter(|line| line.item_type == item_type) {
        let strangers: Vec<String> = std::iter::once(&line.number)
            .chain(&line.relevant)
            .filter(|number| !rows.contains_key(number))
            .map(|number| format!("#{number}"))
            .collect();
        if !strangers.is_empty() {
            let message = format!("there is no {} {} in the database", item_type.in_words(), strangers.join(", "));
            mistakes.push(TruthMistake { line: line.line, message });
        }
        if rows.contains_key(&line.number) && line.relevant.iter().any(|number| rows.contains_key(number)) {
            known.duplicates.insert(line.number);
            known.relevant.entry(line.number).or_default().extend(&line.relevant);
        }
    }
    known
}

fn nothing_to_replay(
    repo: &Repo,
    counts: &BacktestCounts,
    mistakes: Vec<TruthMistake>,
    model: Option<String>,
) -> BacktestError {
    let repo = repo.name.clone();
    match mistakes.into_iter().next() {
        _ if counts.duplicates_without_vector > 0 => {
            BacktestError::NotEmbedded { repo, model: model.unwrap_or_default() }
        }
        Some(first) if counts.duplicates_known == 0 => BacktestError::UselessTruth { first },
        _ if counts.duplicates_known == 0 => BacktestError::NoDuplicates { repo },
        _ => BacktestError::NothingEarlier { repo, known: counts.duplicates_known },
    }
}

fn place_and_number(place: usize, number: ItemNumber) -> u64 {
    (number.get() as u64) << 1 | place as u64
}

/// At most `most` elements of a list, chosen by the seed.
fn sampled<T>(mut items: Vec<T>, most: usize, seed: u64, key: impl Fn(&T) -> u64) -> Vec<T> {
    if items.len() > most {
        items.sort_by_cached_key(|item| mixed(key(item) ^ mixed(seed)));
        items.truncate(most);
    }
    items
}

/// A bijection that spreads numbers over the whole range (SplitMix's finaliser): samples must not change with a
/// library's version, since reports are compared.
fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use canonry_domain::ItemNumber;
    use canonry_retrieval::ReplayQuery;

    use super::{BacktestCounts, ReplayPlan, sampled};

    #[test]
    fn a_sample_depends_on_the_seed_alone() {
        let numbers: Vec<u64> = (0..100).collect();
        let sample =
            |items: Vec<u64>, seed| -> BTreeSet<u64> { sampled(items, 10, seed, |item| *item).into_iter().collect() };
        let one = sample(numbers.clone(), 1);
        assert_eq!(one.len(), 10);
        assert_eq!(one, sample(numbers.iter().rev().copied().collect(), 1));
        assert_ne!(one, sample(numbers, 2));
        assert_eq!(sampled(vec![3, 1, 2], 3, 1, |item| *item), [3, 1, 2]);
    }

    /// A budget may end after a tenth of the items.
    #[test]
    fn the_first_items_of_a_plan_are_duplicates_and_others() {
        let number = |number| ItemNumber::new(number).expect("positive");
        let query = |at| ReplayQuery { number: number(at), relevant: BTreeSet::from([number(1)]), pool: 0 };
        let plan = ReplayPlan {
            queries: (1_000..1_100).map(|at| (0, query(at))).collect(),
            others: (1..=300).map(|at| (0, number(at))).collect(),
            counts: BacktestCounts::default(),
            mistakes: Vec::new(),
            model: None,
        };
        for seed in 1..=20 {
            let order = plan.in_random_order(seed);
            assert_eq!(order.len(), 400);
            let duplicates = order[..40].iter().filter(|one| one.relevant.is_some()).count();
            assert!((2..=20).contains(&duplicates), "{duplicates} of 40, where 10 are expected");
        }
    }
}
