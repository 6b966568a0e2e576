//! The `scale` benchmark: search among 100,000 items in memory, with token vectors in SQLite, and among as many
//! vectors in PostgreSQL.

use super::{data, example, folder};
use crate::postgres::{Durability, PostgresServer};
use crate::process::step;

const ITEMS: [&str; 4] = ["50000", "100000", "200000", "1000000"];
const SQLITE_ITEMS: &str = "100000";
/// The most token vectors of an item.
const TOKENS: [&str; 2] = ["60", "128"];
const POSTGRES_ITEMS: &str = "100000";

pub(crate) fn run() -> anyhow::Result<()> {
    data("rust.jsonl.gz")?;
    for items in ITEMS {
        step(&format!("{items} items in memory"), example("canonry-retrieval", "scale")?.arg(items))?;
    }
    for tokens in TOKENS {
        let mut in_store = example("canonry-triage", "store_scale")?;
        let what = format!("{SQLITE_ITEMS} items with {tokens} token vectors in SQLite");
        step(&what, in_store.arg(SQLITE_ITEMS).arg(tokens))?;
    }
    let vectors = folder()?.join("vectors");
    step("real vectors", example("canonry-models", "embed_sets")?.arg(&vectors).arg("rust.issue"))?;
    let server = PostgresServer::start(Durability::Full)?;
    let url = server.create_database("bench_nearest")?;
    let mut nearest = example("canonry-store", "nearest_speed")?;
    nearest.arg(url).arg(vectors.join("rust.issue.vec")).arg(POSTGRES_ITEMS);
    step(&format!("{POSTGRES_ITEMS} vectors in PostgreSQL"), &mut nearest)
}
