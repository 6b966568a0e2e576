//! Measures the search for neighbours among many items with token vectors in a real SQLite database, and prints
//! Markdown.
//!
//! `cargo run --release -p canonry-triage --example store_scale -- [ITEMS [TOKENS]]`: real issues repeated with
//! noise, synthetic vectors in dense clusters, and synthetic token vectors, thirteen for ten words of a text and at
//! most TOKENS.
#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

#[expect(dead_code, reason = "only the texts are used here")]
#[path = "../../canonry-retrieval/examples/bench_data/mod.rs"]
mod bench_data;

use std::path::Path;
use std::time::Instant;

use bench_data::{BenchItem, folder, load};
use canonry_domain::{ItemNumber, ItemRecord, ItemState, ItemType, Similarity, TokenVectors};
use canonry_models::Calibration;
use canonry_retrieval::{Ask, Candidate, CandidatePool, LateQuery, RetrievalMode, rank, tokens};
use canonry_store::{EmbedFilter, EmbeddingKey, NewEmbedding, Repo, Store};
use canonry_triage::{NeighbourQuery, Neighbourhood};
use jiff::Timestamp;

type Failure = Box<dyn std::error::Error>;

const DIMENSION: usize = 384;
/// The same width as the local model's.
const TOKEN_WIDTH: usize = 32;
const QUERIES: usize = 200;
const BATCH: u32 = 1_000;
const WANTED: NeighbourQuery =
    NeighbourQuery { mode: RetrievalMode::Hybrid, k: 10, min_score: Similarity::ZERO, state: None };

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let argument =
        |at: usize, otherwise: usize| std::env::args().nth(at).map_or(Ok(otherwise), |number| number.parse());
    let (count, most_tokens) = (argument(1, 100_000)?, argument(2, 128)?);
    let place = tempfile::tempdir()?;
    let file = place.path().join("canonry.db");
    let url = format!("sqlite:{}", file.display()).parse()?;
    let key = EmbeddingKey::raw("made-up");
    let store = Store::open(&url, Timestamp::UNIX_EPOCH).await?;
    let repo = store.repos().ensure(&"rust-lang/rust".parse()?, Timestamp::UNIX_EPOCH).await?;
    {
        let items = load(&folder()?, "rust", ItemType::Issue, None)?;
        for from in (0..count).step_by(BATCH as usize) {
            let records = (from..count.min(from + BATCH as usize)).map(|at| record(&items, at));
            store.corpus().upsert_items(&repo, records.collect(), Timestamp::UNIX_EPOCH).await?;
        }
    }
    println!("| among {count} items in SQLite, up to {most_tokens} tokens each | |\n|---|---|");
    let started = Instant::now();
    embed(&store, &repo, &key, |_| None).await?;
    line("vectors written", started);
    store.disconnect().await;
    let without = size(&file)?;

    let store = Store::open(&url, Timestamp::UNIX_EPOCH).await?;
    let started = Instant::now();
    let mut written = 0;
    embed(&store, &repo, &key, |(random, text)| {
        // The average number of tokens that the model makes of the words of rust issues.
        let length = (tokens(text).len() * 13 / 10 + 2).min(most_tokens);
        written += length;
        Some(random.tokens(length))
    })
    .await?;
    line("written again with token vectors", started);
    store.disconnect().await;
    let with = size(&file)?;
    println!("| tokens of an item, mean | {:.0} |", written as f64 / count as f64);
    println!("| the file without / with token vectors | {} / {} MB |", without >> 20, with >> 20);
    println!("| token vectors on disk, for each item | {} bytes |", (with - without) / count as u64);

    let store = Store::open(&url, Timestamp::UNIX_EPOCH).await?;
    let snapshots = place.path().join("indexes");
    std::fs::create_dir(&snapshots)?;
    loaded(&store, &repo, &key, &snapshots, "index built from the database").await?;
    let before = resident();
    let near = loaded(&store, &repo, &key, &snapshots, "start from its snapshot").await?;
    println!("| resident memory of the index | {} MB |", resident().saturating_sub(before));
    let asked: Vec<ItemNumber> = (0..QUERIES).map(|at| number((at * 7_919) % count)).collect();

    let mut times = Vec::new();
    for &of in &asked {
        let started = Instant::now();
        let entry = near.entry(of).await?.ok_or("the item is there")?;
        let query = Neighbourhood::query_of(&entry);
        let hits = near.neighbours(&query, entry.vector.as_deref(), WANTED, &|_| true).await?;
        times.push(milliseconds(started));
        assert_eq!(hits.len(), 10);
    }
    percentiles("whole query", times);
    println!("| resident memory after {QUERIES} queries | {} MB |", resident().saturating_sub(before));

    let [mut reading, mut comparing, mut all] = [const { Vec::new() }; 3];
    for &of in &asked {
        let entry = near.entry(of).await?.ok_or("the item is there")?;
        let pool = pool(&near, &entry)?;
        let mut numbers: Vec<ItemNumber> = pool.candidates.iter().map(|candidate| candidate.number).collect();
        assert_eq!(numbers.len(), 100);
        numbers.push(of);
        let started = Instant::now();
        let read = store.corpus().token_vectors(repo.id, &key, ItemType::Issue, &numbers).await?;
        reading.push(milliseconds(started));
        let compared = Instant::now();
        let query = LateQuery::of(&read[&of]).ok_or("the item has tokens")?;
        let late = |candidate: &Candidate| Candidate { late: query.compare(&read[&candidate.number]), ..*candidate };
        let candidates: Vec<Candidate> = pool.candidates.iter().map(late).collect();
        comparing.push(milliseconds(compared));
        let hits = rank(ItemType::Issue, WANTED.mode, &candidates, pool.spread, f64::from, WANTED.k);
        all.push(milliseconds(started));
        assert_eq!(hits.len(), 10);
    }
    percentiles("token vectors of a hundred read", reading);
    percentiles("a hundred compared by MaxSim", comparing);
    percentiles("a hundred ranked again: read, compared, ordered", all);
    Ok(())
}

fn record(items: &[BenchItem], at: usize) -> ItemRecord {
    let item = &items[at % items.len()];
    ItemRecord {
        body: Some(noisy(&item.body, at, &mut Random(at as u64 + 7))),
        state: Some(ItemState::Open),
        author: item.author.clone(),
        created_at: item.created_at,
        ..ItemRecord::new(ItemType::Issue, number(at), item.title.clone())
    }
}

/// Gives every item the same vector each time, and the token vectors that are made from its text.
async fn embed(
    store: &Store,
    repo: &Repo,
    key: &EmbeddingKey,
    mut tokens: impl FnMut((&mut Random, &str)) -> Option<TokenVectors>,
) -> Result<(), Failure> {
    let mut random = Random(1);
    let centres: Vec<Vec<f32>> = (0..500).map(|_| random.vector(&[0.0; DIMENSION], 1.0)).collect();
    let mut after = None;
    loop {
        let items = store.corpus().items_to_embed(repo.id, key, EmbedFilter::default(), after, BATCH).await?;
        let Some(last) = items.last() else { return Ok(()) };
        after = Some((last.number, last.item_type));
        let made = items.into_iter().map(|item| {
            let at = item.number.get().unsigned_abs();
            let mut random = Random(at);
            NewEmbedding {
                vector: random.vector(&centres[at as usize % centres.len()], 0.5),
                tokens: tokens((&mut random, &format!("{}\n\n{}", item.title, item.body))),
                item_type: item.item_type,
                number: item.number,
                embedded_hash: item.content_hash,
            }
        });
        let made: Vec<NewEmbedding> = made.collect();
        store.corpus().write_embeddings(repo.id, key, &made, Timestamp::UNIX_EPOCH).await?;
    }
}

async fn loaded(
    store: &Store,
    repo: &Repo,
    key: &EmbeddingKey,
    snapshots: &Path,
    name: &str,
) -> Result<Neighbourhood, Failure> {
    let started = Instant::now();
    let calibration = Calibration::identity();
    let near = Neighbourhood::load(store, repo, ItemType::Issue, key.clone(), calibration, Some(snapshots)).await?;
    line(name, started);
    Ok(near)
}

fn pool(near: &Neighbourhood, entry: &canonry_store::IndexEntry) -> Result<CandidatePool, Failure> {
    let ask =
        Ask { mode: WANTED.mode, k: WANTED.k, min_score: WANTED.min_score, calibrate: &f64::from, filter: &|_| true };
    Ok(near.index().candidates(&Neighbourhood::query_of(entry), &ask)?)
}

fn number(at: usize) -> ItemNumber {
    ItemNumber::new(at as i64 + 1).expect("counted from 1")
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

fn size(file: &Path) -> Result<u64, Failure> {
    Ok(std::fs::metadata(file)?.len())
}

fn milliseconds(started: Instant) -> f64 {
    started.elapsed().as_secs_f64() * 1e3
}

fn percentiles(name: &str, mut times: Vec<f64>) {
    times.sort_by(f64::total_cmp);
    let at = |share: usize| times[times.len() * share / 100];
    println!("| {name}, p50 / p95 | {:.2} / {:.2} ms |", at(50), at(95));
}

fn line(name: &str, started: Instant) {
    println!("| {name} | {:.2} s |", started.elapsed().as_secs_f64());
}

/// Resident memory in megabytes, or 0 if the system does not report it.
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

    /// Each vector has length 127.
    fn tokens(&mut self, count: usize) -> TokenVectors {
        let mut codes = Vec::with_capacity(count * TOKEN_WIDTH);
        for _ in 0..count {
            let row = self.vector(&[0.0; TOKEN_WIDTH], 1.0);
            let length = row.iter().map(|number| number * number).sum::<f32>().sqrt();
            codes.extend(row.iter().map(|number| (number / length * 127.0).round() as i8));
        }
        TokenVectors::new(TOKEN_WIDTH, codes).expect("whole rows")
    }
}
