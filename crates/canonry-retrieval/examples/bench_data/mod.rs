//! The public duplicate sets that the examples measure against. They are not part of the repository.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use canonry_domain::{ItemNumber, ItemType, Login, PullChanges, TokenVectors, parse_import_value};
use flate2::read::GzDecoder;
use jiff::Timestamp;
use serde_json::Value;

/// An item of a set. Its number is its position in order of creation, from 1: the numbers of the trackers occur
/// twice.
pub(crate) struct BenchItem {
    pub number: ItemNumber,
    pub title: String,
    pub body: String,
    pub changes: Option<PullChanges>,
    pub author: Option<Login>,
    /// When it was opened, if known.
    pub created_at: Option<Timestamp>,
    pub vector: Option<Vec<f32>>,
    pub tokens: Option<TokenVectors>,
    /// The earlier members of its cluster; empty for an item that is not a query.
    pub relevant: BTreeSet<ItemNumber>,
}

/// The folder with the sets, or an error that says what to do if it is missing.
pub(crate) fn folder() -> Result<PathBuf, String> {
    let folder = std::env::var_os("CANONRY_BENCH_DATA").map_or_else(|| PathBuf::from("../shared/bench"), PathBuf::from);
    if folder.join("rust.jsonl.gz").exists() {
        return Ok(folder);
    }
    Err(format!(
        "there is no benchmark data in {}: run this from the repository's root, or name the folder in CANONRY_BENCH_DATA",
        folder.display()
    ))
}

pub(crate) fn load(
    folder: &Path,
    set: &str,
    item_type: ItemType,
    vectors: Option<&Path>,
) -> Result<Vec<BenchItem>, String> {
    let file = |kind: &str| vectors.map(|vectors| vectors.join(format!("{set}.{item_type}.{kind}")));
    let vectors = match file("vec") {
        Some(path) if path.exists() => Some(read_vectors(&path)?),
        _ => None,
    };
    let mut tokens = match file("tokens") {
        Some(path) if path.exists() => read_tokens(&path)?,
        _ => Vec::new(),
    };
    let mut records = Vec::new();
    let path = folder.join(format!("{set}.jsonl.gz"));
    for line in lines(GzDecoder::new(open(&path)?)) {
        let mut value: Value = serde_json::from_str(&line?).map_err(|error| format!("{}: {error}", path.display()))?;
        // Bugzilla and Jira have other names for states; no measure here uses them.
        if let Some(object) = value.as_object_mut() {
            object.remove("state");
        }
        let record = parse_import_value(&value).map_err(|error| format!("{}: {error}", path.display()))?.record;
        if record.item_type == item_type {
            // A text without words has a vector of zeros, which has no direction.
            let vector = vectors.as_ref().and_then(|vectors| vectors.get(records.len()));
            let vector = vector.filter(|vector| vector.iter().any(|part| *part != 0.0)).cloned();
            let tokens = tokens.get_mut(records.len()).and_then(Option::take);
            records.push((record, vector, tokens));
        }
    }
    records.sort_by_key(|(record, ..)| (record.created_at, record.number));
    let mut positions: HashMap<ItemNumber, Vec<usize>> = HashMap::new();
    for (position, (record, ..)) in records.iter().enumerate() {
        positions.entry(record.number).or_default().push(position);
    }
    let number = |position: usize| ItemNumber::new(position as i64 + 1).expect("positions count from 1");
    let mut items: Vec<BenchItem> = records
        .into_iter()
        .enumerate()
        .map(|(position, (record, vector, tokens))| BenchItem {
            number: number(position),
            title: record.title,
            body: record.body.unwrap_or_default(),
            changes: record.changes,
            author: record.author,
            // The dates of rails are invented.
            created_at: record.created_at.filter(|_| set != "rails"),
            vector,
            tokens,
            relevant: BTreeSet::new(),
        })
        .collect();
    let path = folder.join(format!("{set}.truth.jsonl"));
    for line in lines(open(&path)?) {
        let truth: Value = serde_json::from_str(&line?).map_err(|error| format!("{}: {error}", path.display()))?;
        if truth["type"] != item_type.as_str() {
            continue;
        }
        let at = |value: &Value| {
            let number = value.as_i64().and_then(|number| ItemNumber::new(number).ok());
            number.and_then(|number| positions.get(&number)).cloned().unwrap_or_default()
        };
        let pool = truth["pool_before"].as_u64().unwrap_or_default() as usize;
        let Some(query) = at(&truth["number"]).into_iter().min_by_key(|position| position.abs_diff(pool)) else {
            return Err(format!("{}: item {} is not in the set", path.display(), truth["number"]));
        };
        let relevant = truth["relevant"].as_array().into_iter().flatten().flat_map(at);
        items[query].relevant = relevant.filter(|&position| position < query).map(number).collect();
    }
    Ok(items)
}

/// Reads vectors in the order of the set's lines: `CNRYVEC1`, dimension and count as u32, then for each item its
/// number as i64 and its vector as f32, all little-endian.
fn read_vectors(path: &Path) -> Result<Vec<Vec<f32>>, String> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes).map_err(|error| format!("{}: {error}", path.display()))?;
    let rest = bytes.strip_prefix(b"CNRYVEC1").filter(|rest| rest.len() >= 8);
    let rest = rest.ok_or_else(|| format!("{} is not a file of vectors", path.display()))?;
    let dimension = u32::from_le_bytes([rest[0], rest[1], rest[2], rest[3]]) as usize;
    let rows = rest[8..].chunks_exact(8 + 4 * dimension);
    Ok(rows.map(|row| row[8..].as_chunks::<4>().0.iter().map(|&number| f32::from_le_bytes(number)).collect()).collect())
}

/// Reads token vectors in the order of the set's lines: `CNRYTOK1`, the count as u32, then for each item its number
/// as i64, the length of its token vectors as u32, and the vectors.
fn read_tokens(path: &Path) -> Result<Vec<Option<TokenVectors>>, String> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes).map_err(|error| format!("{}: {error}", path.display()))?;
    let damaged = || format!("{} is not a file of token vectors", path.display());
    let mut rest = bytes.strip_prefix(b"CNRYTOK1").and_then(|rest| rest.get(4..)).ok_or_else(damaged)?;
    let mut tokens = Vec::new();
    while let Some((head, after)) = rest.split_at_checked(12) {
        let length = u32::from_le_bytes([head[8], head[9], head[10], head[11]]) as usize;
        let (own, after) = after.split_at_checked(length).ok_or_else(damaged)?;
        tokens.push(TokenVectors::from_bytes(own).ok());
        rest = after;
    }
    Ok(tokens)
}

fn open(path: &Path) -> Result<File, String> {
    File::open(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn lines(reader: impl Read) -> impl Iterator<Item = Result<String, String>> {
    BufReader::new(reader).lines().map(|line| line.map_err(|error| error.to_string()))
}
