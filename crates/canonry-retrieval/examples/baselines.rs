//! Prints recall on public duplicate sets as Markdown: plain methods, the fusion, late interaction, the ranker, and
//! the ranker without each kind of feature.
//!
//! `baselines --vectors FOLDER [--plain-vectors FOLDER] [SET.TYPE…]`. Plain methods compare the vectors of the second
//! folder, if it is given. Lines marked as such use weights that were fitted without the set, from
//! `training/ranker.json`.
#![expect(clippy::print_stdout, reason = "the tables are what this program is for")]

mod bench_data;
mod close_look;
mod plain_bm25;
mod plain_methods;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bench_data::{BenchItem, folder, load};
use canonry_domain::{ItemNumber, ItemType, Similarity};
use canonry_retrieval::{
    Ask, CandidatePool, Hit, ItemIndex, RANKER_FEATURES, RankerFeatures, RetrievalMeasures, RetrievalMode, bootstrap,
    rank, rank_of_best, ranker_features,
};
use close_look::{add, looked_at, query};
use plain_methods::Plain;

/// How many neighbours are examined; a relevant item after that counts as not found.
pub(crate) const DEPTH: usize = 100;

/// The result of one ranking method: its group in the table, its name, the items.
pub(crate) type Answer = (u8, String, Vec<ItemNumber>);

/// The rank of the best relevant item of each query, by group and name.
type Ranks = BTreeMap<(u8, String), Vec<Option<usize>>>;

const SHIPPED: &str = "**as it is shipped**";

fn main() -> Result<(), String> {
    let (mut vectors, mut plain_vectors) = (None, None);
    let mut wanted = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--vectors" => vectors = arguments.next().map(PathBuf::from),
            "--plain-vectors" => plain_vectors = arguments.next().map(PathBuf::from),
            _ => wanted.push(argument),
        }
    }
    let folder = folder()?;
    let fitted = Fitted::read()?;
    for (set, item_type) in [
        ("rust", ItemType::Issue),
        ("rust", ItemType::Pr),
        ("rails", ItemType::Pr),
        ("openoffice", ItemType::Issue),
        ("gitbugs_hadoop", ItemType::Issue),
        ("gitbugs_seamonkey", ItemType::Issue),
    ] {
        let name = format!("{set}.{item_type}");
        if !wanted.is_empty() && !wanted.contains(&name) {
            continue;
        }
        let items = load(&folder, set, item_type, vectors.as_deref())?;
        let plain_items = plain_vectors.as_deref().map(|vectors| load(&folder, set, item_type, Some(vectors)));
        let plain_items = plain_items.transpose()?;
        let ranks = replay(&items, plain_items.as_deref().unwrap_or(&items), item_type, &fitted.without(&name));
        let queries: Vec<&BenchItem> = items.iter().filter(|item| !item.relevant.is_empty()).collect();
        let title = format!("{set}, {}", item_type.in_words());
        print(&format!("{title} ({} items, {} queries)", items.len(), queries.len()), &ranks);
        if name == "rust.issue" {
            let later: Vec<bool> = queries.iter().map(|item| is_later(item)).collect();
            let chosen = |ranks: &Vec<Option<usize>>| {
                ranks.iter().zip(&later).filter(|(_, later)| **later).map(|(rank, _)| *rank).collect()
            };
            let ranks: Ranks = ranks.iter().map(|(name, ranks)| (name.clone(), chosen(ranks))).collect();
            let count = later.iter().filter(|later| **later).count();
            print(&format!("{title}, from 2014-07-01 on: neither trained on nor fitted to ({count} queries)"), &ranks);
        }
    }
    Ok(())
}

fn is_later(item: &BenchItem) -> bool {
    let split: jiff::Timestamp = "2014-07-01T00:00:00Z".parse().expect("a moment");
    item.created_at.is_some_and(|created_at| created_at >= split)
}

fn print(title: &str, ranks: &Ranks) {
    println!("\n### {title}\n");
    println!("| ranked by | R@1 | R@5 | R@10 | R@20 | MRR | 95 % of R@10 |\n|---|---|---|---|---|---|---|");
    for ((_, name), ranks) in ranks {
        let measures = RetrievalMeasures::of(ranks, 1);
        println!(
            "| {name} | {} | {} | {} | {} | {} | {}–{} |",
            three(measures.recall_at_1.value),
            three(measures.recall_at_5.value),
            three(measures.recall_at_10.value),
            three(measures.recall_at_20.value),
            three(measures.mrr.value),
            three(measures.recall_at_10.low),
            three(measures.recall_at_10.high),
        );
    }
    println!(
        "\nAgainst the best plain method of each column, in points, with the interval of the paired differences:\n"
    );
    println!("| ranked by | R@1 | R@5 | R@10 | MRR |\n|---|---|---|---|---|");
    for ((_, name), own) in ranks.iter().filter(|((group, _), _)| (1..=3).contains(group)) {
        let differences: Vec<String> = VALUES.iter().map(|value| difference(ranks, own, *value)).collect();
        println!("| {name} | {} |", differences.join(" | "));
    }
}

type Value = fn(Option<usize>) -> f64;

const VALUES: [Value; 4] = [
    |rank| if rank.is_some_and(|rank| rank <= 1) { 1.0 } else { 0.0 },
    |rank| if rank.is_some_and(|rank| rank <= 5) { 1.0 } else { 0.0 },
    |rank| if rank.is_some_and(|rank| rank <= 10) { 1.0 } else { 0.0 },
    |rank| rank.map_or(0.0, |rank| 1.0 / rank as f64),
];

/// The paired difference to the best plain method.
fn difference(ranks: &Ranks, own: &[Option<usize>], value: Value) -> String {
    let sum = |ranks: &[Option<usize>]| ranks.iter().map(|rank| value(*rank)).sum::<f64>();
    let plain = ranks.iter().filter(|((group, _), _)| *group == 0).map(|(_, ranks)| ranks);
    let Some(best) = plain.max_by(|one, other| sum(one).total_cmp(&sum(other))) else { return "–".to_owned() };
    let differences: Vec<f64> = own.iter().zip(best).map(|(own, best)| value(*own) - value(*best)).collect();
    let interval = bootstrap(&differences, 1);
    format!("{:+.1} ({:+.1} to {:+.1})", 100.0 * interval.value, 100.0 * interval.low, 100.0 * interval.high)
}

fn three(value: f64) -> String {
    format!("{value:.3}").trim_start_matches('0').to_owned()
}

/// Replays every item in order of creation: a query is answered first and added afterwards. So each query sees
/// exactly what existed when it was filed, in the pool and in the word counts.
fn replay(
    items: &[BenchItem],
    plain_items: &[BenchItem],
    item_type: ItemType,
    fitted: &[(String, RankerFeatures)],
) -> Ranks {
    let mut index = ItemIndex::new(item_type, "bench");
    let mut plain = Plain::new(item_type);
    let mut ranks = Ranks::new();
    for (item, plain_item) in items.iter().zip(plain_items) {
        if !item.relevant.is_empty() {
            let mut answers = answers(&index, items, item, fitted);
            answers.extend(plain.answers(plain_item));
            for (group, name, found) in answers {
                ranks.entry((group, name)).or_default().push(rank_of_best(found, &item.relevant));
            }
        }
        add(&mut index, item);
        plain.add(plain_item);
    }
    ranks
}

/// What each of our ranking methods finds for a query.
fn answers(
    index: &ItemIndex,
    items: &[BenchItem],
    item: &BenchItem,
    fitted: &[(String, RankerFeatures)],
) -> Vec<Answer> {
    let ask = |mode| {
        let ask = Ask { mode, k: DEPTH, min_score: Similarity::ZERO, calibrate: &f64::from, filter: &|_| true };
        index.neighbours(&query(item), &ask).expect("a query with its vector")
    };
    let numbers = |hits: &[Hit]| hits.iter().map(|hit| hit.number).collect::<Vec<_>>();
    let words = numbers(&ask(RetrievalMode::Lexical));
    let mut answers = vec![(1, "without vectors (lexical mode)".to_owned(), words)];
    if item.vector.is_none() {
        // A text without words has no vector, so no item finds it by vectors.
        for name in ["by vectors alone (dense mode)", "the fusion", "the fusion and late interaction"] {
            answers.push((1, name.to_owned(), Vec::new()));
        }
        answers.push((2, SHIPPED.to_owned(), Vec::new()));
        answers.extend(fitted.iter().map(|(name, _)| (group_of(name), name.clone(), Vec::new())));
        return answers;
    }
    answers.push((1, "by vectors alone (dense mode)".to_owned(), numbers(&ask(RetrievalMode::Dense))));
    let pool = looked_at(index, items, item);
    answers.push((1, "the fusion".to_owned(), pool.candidates.iter().map(|candidate| candidate.number).collect()));
    let mode = RetrievalMode::Hybrid;
    let shipped = rank(index.item_type(), mode, &pool.candidates, pool.spread, f64::from, DEPTH);
    answers.push((1, "the fusion and late interaction".to_owned(), with_late(&shipped)));
    answers.push((2, SHIPPED.to_owned(), numbers(&shipped)));
    let features = ranker_features(&pool.candidates, pool.spread);
    for (name, weights) in fitted {
        let sum = |features: &RankerFeatures| features.iter().zip(weights).map(|(one, other)| one * other).sum();
        answers.push((group_of(name), name.clone(), ordered(&pool, &features.iter().map(sum).collect::<Vec<f64>>())));
    }
    answers
}

fn group_of(name: &str) -> u8 {
    if name.contains(", and without") { 4 } else { 3 }
}

/// The sum of the fusion and both directions of late interaction, each in standard deviations over the shortlist.
fn with_late(hits: &[Hit]) -> Vec<ItemNumber> {
    let part = |hit: &Hit, name: &str| hit.parts.get(name).copied().unwrap_or(0.0);
    let fused: Vec<f64> = hits.iter().map(|hit| part(hit, "fused")).collect();
    let late: Vec<f64> = hits.iter().map(|hit| part(hit, "late_there") + part(hit, "late_back")).collect();
    let sums = standard(&fused).into_iter().zip(standard(&late)).map(|(one, other)| one + other);
    let mut order: Vec<(f64, ItemNumber)> = sums.zip(hits.iter().map(|hit| hit.number)).collect();
    order.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
    order.into_iter().map(|(_, number)| number).collect()
}

pub(crate) fn standard(values: &[f64]) -> Vec<f64> {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let deviation = (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt().max(1e-9);
    values.iter().map(|value| (value - mean) / deviation).collect()
}

fn ordered(pool: &CandidatePool, sums: &[f64]) -> Vec<ItemNumber> {
    let mut order: Vec<(f64, ItemNumber)> =
        sums.iter().copied().zip(pool.candidates.iter().map(|candidate| candidate.number)).collect();
    order.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
    order.into_iter().map(|(_, number)| number).collect()
}

/// Ranker weights that were fitted without a given set.
struct Fitted(serde_json::Value);

impl Fitted {
    fn read() -> Result<Self, String> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../training/ranker.json");
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        serde_json::from_str(&text).map(Self).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// The weights in the order of the file, each with the name of its table line.
    fn without(&self, set: &str) -> Vec<(String, RankerFeatures)> {
        let tables = self.0["without"][set].as_object().into_iter().flatten();
        tables
            .map(|(kind, weights)| {
                let name = match kind.as_str() {
                    "late" => "ranker fitted without this project".to_owned(),
                    "no_late" => "the same, without late interaction".to_owned(),
                    _ => format!("ranker fitted without this project, and {}", kind.trim_start_matches("late, ")),
                };
                (name, RANKER_FEATURES.map(|feature| weights[feature].as_f64().unwrap_or(0.0)))
            })
            .collect()
    }
}
