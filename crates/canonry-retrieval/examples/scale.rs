//! Measures speed and memory with many items and prints Markdown.
//!
//! `cargo run --release -p canonry-retrieval --example scale -- [ITEMS]`: real issues repeated with noise, and
//! invented vectors in clusters like those of a sentence encoder.
#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

#[expect(dead_code, reason = "only the texts are used here")]
mod bench_data;

use std::time::Instant;

use bench_data::{BenchItem, folder, load};
use canonry_domain::{ItemNumber, ItemType, Similarity};
use canonry_retrieval::{
    Ask, Bag, DenseIndex, Entry, ItemIndex, LexicalIndex, Query, RetrievalMode, Slot, read_snapshot, write_snapshot,
};

const DIMENSION: usize = 384;
const QUERIES: usize = 200;

fn main() -> Result<(), String> {
    let count: usize =
        std::env::args().nth(1).map_or(Ok(100_000), |count| count.parse()).map_err(|_| "ITEMS is a number")?;
    let items = load(&folder()?, "rust", ItemType::Issue, None)?;
    let mut random = Random(1);
    let centres: Vec<Vec<f32>> = (0..500).map(|_| random.vector(&[0.0; DIMENSION], 1.0)).collect();
    let mut index = ItemIndex::new(ItemType::Issue, "made-up");
    let started = Instant::now();
    let before = resident();
    for at in 0..count {
        add(&mut index, &items, &centres, &mut random, at);
    }
    println!("| among {count} items | |\n|---|---|");
    line("index built", started);
    println!("| resident memory of the index | {} MB |", resident().saturating_sub(before));

    let mut dense = DenseIndex::new();
    for number in index.numbers() {
        dense.put(slot(number), index.vector(number).expect("every item has a vector")).expect("a vector");
    }
    let vectors: Vec<Vec<f32>> = (0..QUERIES).map(|at| random.vector(&centres[at % centres.len()], 0.5)).collect();
    let mut scans = Vec::new();
    timed("dense query", |at| scans.push(dense.nearest(&vectors[at], 50, Some).expect("a vector")));
    let differs = |at: &usize| scans[*at].hits.iter().map(|hit| hit.slot).ne(exact(&dense, &vectors[*at], count));
    let missed = (0..20).filter(differs).count();
    drop(dense);

    let mut text = LexicalIndex::new();
    for at in 0..count {
        let item = &items[at % items.len()];
        text.put(Slot::at(at), &Bag::of_item(&item.title, &noisy(&item.body, at, &mut Random(at as u64 + 7))));
    }
    let asked = |at: usize| &items[(at * 7_919) % items.len()];
    timed("BM25 query with a whole issue", |at| {
        let bag = Bag::of_item(&asked(at).title, &asked(at).body);
        assert!(!text.scores(&bag).best(100, Some).is_empty(), "a copy of the query is in the index");
    });
    drop(text);

    let ask = Ask {
        mode: RetrievalMode::Hybrid,
        k: 10,
        min_score: Similarity::ZERO,
        calibrate: &f64::from,
        filter: &|_| true,
    };
    timed("hybrid query", |at| {
        let query = Query::new(&asked(at).title, &asked(at).body).with_vector(vectors[at].clone());
        assert_eq!(index.neighbours(&query, &ask).expect("a vector").len(), 10);
    });
    timed("adding an item", |at| add(&mut index, &items, &centres, &mut random, count + at));
    timed("replacing an item", |at| add(&mut index, &items, &centres, &mut random, at * 31));
    println!("| dense queries of 20 that differ from an exact scan | {missed} |");

    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = folder.path().join("index");
    let started = Instant::now();
    write_snapshot(&index, &path).map_err(|error| error.to_string())?;
    line("snapshot written", started);
    let bytes = std::fs::metadata(&path).map_err(|error| error.to_string())?.len();
    println!("| its size | {} MB |", bytes >> 20);
    drop(index);
    let started = Instant::now();
    let index = read_snapshot(&path, ItemType::Issue, "made-up").map_err(|error| error.to_string())?;
    line("start from the snapshot", started);
    println!("| items after it | {} |", index.len());
    Ok(())
}

fn add(index: &mut ItemIndex, items: &[BenchItem], centres: &[Vec<f32>], random: &mut Random, at: usize) {
    let item = &items[at % items.len()];
    let body = noisy(&item.body, at, random);
    let vector = random.vector(&centres[at % centres.len()], 0.5);
    let number = ItemNumber::new(at as i64 + 1).expect("counted from 1");
    let entry =
        Entry { title: &item.title, body: &body, vector: Some(&vector), changes: item.changes.as_ref(), stamp: 1 };
    index.upsert(number, entry).expect("a made-up item");
}

/// Calls `each` for every query and prints how long that took.
fn timed(name: &str, mut each: impl FnMut(usize)) {
    let mut times: Vec<f64> = (0..QUERIES)
        .map(|at| {
            let started = Instant::now();
            each(at);
            started.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("| {name}, p50 / p95 | {:.2} / {:.2} ms |", times[QUERIES / 2], times[QUERIES * 95 / 100]);
}

/// Replaces a tenth of the words, some by words that occur nowhere else.
fn noisy(body: &str, at: usize, random: &mut Random) -> String {
    let mut noisy = String::with_capacity(body.len());
    for word in body.split_inclusive(char::is_whitespace) {
        match random.next() % 40 {
            0 => noisy.push_str(&format!("fresh_{at}_{} ", random.next() % 100)),
            1..4 => noisy.push_str(&format!("noise{} ", random.next() % 5_000)),
            _ => noisy.push_str(word),
        }
    }
    noisy
}

fn exact(dense: &DenseIndex, vector: &[f32], count: usize) -> Vec<Slot> {
    let unit = dense.unit(vector).expect("a vector");
    let mut all: Vec<(f32, Slot)> =
        (0..count).filter_map(|slot| Some((dense.cosine(Slot::at(slot), &unit)?, Slot::at(slot)))).collect();
    all.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
    all.into_iter().take(50).map(|(_, slot)| slot).collect()
}

fn slot(number: ItemNumber) -> Slot {
    Slot::at(usize::try_from(number.get() - 1).expect("counted from 1"))
}

fn line(name: &str, started: Instant) {
    println!("| {name} | {:.2} s |", started.elapsed().as_secs_f64());
}

/// Resident memory in megabytes, if the system reports it.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").trim().parse::<u64>().ok()).unwrap_or(0) >> 10
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn vector(&mut self, centre: &[f32], spread: f32) -> Vec<f32> {
        centre
            .iter()
            .map(|number| number + spread * ((self.next() >> 40) as f32 / (1_u32 << 23) as f32 - 1.0))
            .collect()
    }
}
