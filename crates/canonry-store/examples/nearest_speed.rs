//! Measures nearest-vector searches in PostgreSQL and prints Markdown: `nearest_speed URL VECTORS [ITEMS]`, with an
//! empty database and a file of `canonry-models`' example `embed_sets`, whose vectors are repeated with noise.
#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

use std::collections::HashSet;
use std::error::Error;
use std::time::Instant;

use canonry_domain::{ItemNumber, ItemRecord, ItemType, content_hash};
use canonry_store::{EmbeddingKey, NewEmbedding, Representation, Store};
use jiff::Timestamp;
use sqlx::Connection as _;

const DIMENSION: usize = 384;
const QUERIES: usize = 200;
const ASKED: u32 = 50;
const BATCH: i64 = 2_000;
/// In each dimension. Noise alone would be no test: among vectors without structure all are equally far, and the
/// index then finds only a fifth of the nearest.
const NOISE: f32 = 0.031;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().ok_or("which database?")?;
    let real = read_vectors(&arguments.next().ok_or("which file of vectors?")?)?;
    let count: i64 = arguments.next().map_or(Ok(100_000), |count| count.parse())?;
    let now = Timestamp::now();
    let store = Store::open(&url.parse()?, now).await?;
    let repo = store.repos().ensure(&"bench/scale".parse()?, now).await?;
    let key = EmbeddingKey { representation: Representation::Raw, model: "made-up".to_owned() };

    let mut random = Random(1);
    let mut vectors: Vec<Vec<f32>> = Vec::new();
    let mut writing = 0.0;
    for first in (1..=count).step_by(usize::try_from(BATCH)?) {
        let numbers: Vec<i64> = (first..=count.min(first + BATCH - 1)).collect();
        let mut records = Vec::new();
        let mut embeddings = Vec::new();
        for number in &numbers {
            let (number, title) = (ItemNumber::new(*number)?, format!("Item {number}"));
            let vector = random.near(&real[vectors.len() % real.len()]);
            let embedded_hash = content_hash(ItemType::Issue, &title, "");
            embeddings.push(NewEmbedding {
                item_type: ItemType::Issue,
                number,
                embedded_hash,
                vector: vector.clone(),
                tokens: None,
            });
            records.push(ItemRecord::new(ItemType::Issue, number, &title));
            vectors.push(vector);
        }
        store.corpus().upsert_items(&repo, records, now).await?;
        let began = Instant::now();
        store.corpus().write_embeddings(repo.id, &key, &embeddings, now).await?;
        writing += began.elapsed().as_secs_f64();
    }
    println!("| among {count} vectors in PostgreSQL | |\n|---|---|");
    println!("| vectors written, without the index | {writing:.1} s |");
    let began = Instant::now();
    store.corpus().ensure_vector_index(DIMENSION).await?;
    println!("| index built | {:.1} s |", began.elapsed().as_secs_f64());
    // A server does this by itself within minutes, and then chooses other plans.
    sqlx::query("ANALYZE").execute(&mut sqlx::PgConnection::connect(&url).await?).await?;

    let queries: Vec<Vec<f32>> = (0..QUERIES).map(|at| random.near(&real[at * 79 % real.len()])).collect();
    let (mut times, mut of_twenty, mut of_fifty) = (Vec::new(), 0.0, 0.0);
    for query in &queries {
        let began = Instant::now();
        let found = store
            .corpus()
            .nearest(repo.id, &key, ItemType::Issue, query, ASKED)
            .await?
            .ok_or("this is not PostgreSQL")?;
        times.push(began.elapsed().as_secs_f64() * 1e3);
        let found: Vec<i64> = found.into_iter().map(|(number, _)| number.get()).collect();
        let exact = exact(&vectors, query);
        of_twenty += shared(&exact, &found, 20);
        of_fifty += shared(&exact, &found, 50);
    }
    times.sort_by(f64::total_cmp);
    println!("| the {ASKED} nearest, p50 / p95 | {:.1} / {:.1} ms |", times[QUERIES / 2], times[QUERIES * 95 / 100]);
    println!(
        "| of the true nearest 20 / 50, found | {:.4} / {:.4} |",
        of_twenty / QUERIES as f64,
        of_fifty / QUERIES as f64
    );

    // The index exists now, so this is the cost of an item that arrives later.
    let mut times = Vec::new();
    for (at, vector) in real.iter().enumerate().take(QUERIES) {
        let number = ItemNumber::new(count + 1 + i64::try_from(at)?)?;
        let title = format!("Item {number}");
        store.corpus().upsert_items(&repo, vec![ItemRecord::new(ItemType::Issue, number, &title)], now).await?;
        let embedded_hash = content_hash(ItemType::Issue, &title, "");
        let vector = random.near(vector);
        let embedding = NewEmbedding { item_type: ItemType::Issue, number, embedded_hash, vector, tokens: None };
        let began = Instant::now();
        store.corpus().write_embeddings(repo.id, &key, &[embedding], now).await?;
        times.push(began.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    println!("| adding a vector, p50 / p95 | {:.1} / {:.1} ms |", times[QUERIES / 2], times[QUERIES * 95 / 100]);
    store.disconnect().await;
    Ok(())
}

/// The share of the true nearest vectors among the same number of found ones.
fn shared(exact: &[i64], found: &[i64], of: usize) -> f64 {
    let found: HashSet<&i64> = found.iter().take(of).collect();
    exact.iter().take(of).filter(|number| found.contains(number)).count() as f64 / of as f64
}

/// The numbers of the nearest vectors, by computing every product.
fn exact(vectors: &[Vec<f32>], query: &[f32]) -> Vec<i64> {
    let product = |vector: &Vec<f32>| vector.iter().zip(query).map(|(one, other)| one * other).sum::<f32>();
    let mut all: Vec<(f32, i64)> = vectors.iter().map(product).zip(1..).collect();
    all.sort_unstable_by(|one, other| other.0.total_cmp(&one.0));
    all.into_iter().take(ASKED as usize).map(|(_, number)| number).collect()
}

/// The layout is that of `embed_sets`. A text without any word has a zero vector, which is skipped.
fn read_vectors(path: &str) -> Result<Vec<Vec<f32>>, Box<dyn Error>> {
    let bytes = std::fs::read(path).map_err(|error| format!("{path}: {error}"))?;
    let rows = bytes.strip_prefix(b"CNRYVEC1").and_then(|rest| rest.get(8..)).ok_or("this is no file of vectors")?;
    let rows = rows.chunks_exact(8 + 4 * DIMENSION);
    let vectors = rows.map(|row| row[8..].as_chunks::<4>().0.iter().map(|&part| f32::from_le_bytes(part)).collect());
    let vectors: Vec<Vec<f32>> = vectors.filter(|vector: &Vec<f32>| vector.iter().any(|part| *part != 0.0)).collect();
    if vectors.len() < QUERIES { Err("too few vectors".into()) } else { Ok(vectors) }
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a vector of length 1 with a cosine of about 0.94 to this one.
    fn near(&mut self, vector: &[f32]) -> Vec<f32> {
        let mut vector: Vec<f32> = vector
            .iter()
            .map(|number| number + NOISE * ((self.next() >> 40) as f32 / (1_u32 << 23) as f32 - 1.0))
            .collect();
        let length = vector.iter().map(|part| part * part).sum::<f32>().sqrt();
        vector.iter_mut().for_each(|part| *part /= length);
        vector
    }
}
