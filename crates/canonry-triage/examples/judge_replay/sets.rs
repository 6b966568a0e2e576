//! The public duplicate sets, oldest item first. They are not part of the repository.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use canonry_domain::{BoilerplateLearner, ItemNumber, ItemRecord, ItemType, TokenVectors, parse_import_value};
use canonry_retrieval::duplicate_clusters;
use flate2::read::GzDecoder;
use serde_json::Value;

/// An item of a set. Its number is its position in order of creation, from 1: numbers of the trackers occur twice.
pub(crate) struct SetItem {
    pub(crate) number: ItemNumber,
    pub(crate) named: ItemNumber,
    /// What existed when it was filed, and more, which must not be used.
    pub(crate) record: ItemRecord,
    pub(crate) vector: Option<Vec<f32>>,
    pub(crate) tokens: Option<TokenVectors>,
    pub(crate) is_query: bool,
    /// Everything that people linked it with, directly or not.
    pub(crate) cluster: BTreeSet<ItemNumber>,
}

/// A line of a set, and the vectors that a model made for it.
type Loaded = (ItemRecord, Option<Vec<f32>>, Option<TokenVectors>);

/// The folder with the sets, or an error that says what to do if it does not exist.
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
) -> Result<Vec<SetItem>, String> {
    let tokens = vectors.map(|vectors| vectors.join(format!("{set}.{item_type}.tokens"))).filter(|path| path.exists());
    let mut tokens = tokens.as_deref().map(read_tokens).transpose()?.unwrap_or_default();
    let vectors = vectors.map(|vectors| read_vectors(&vectors.join(format!("{set}.{item_type}.vec")))).transpose()?;
    let vectors = vectors.unwrap_or_default();
    let mut records: Vec<Loaded> = Vec::new();
    let path = folder.join(format!("{set}.jsonl.gz"));
    for line in lines(GzDecoder::new(open(&path)?)) {
        let mut value: Value = serde_json::from_str(&line?).map_err(|error| format!("{}: {error}", path.display()))?;
        // Bugzilla and Jira have other names for states; nothing here uses them.
        if let Some(object) = value.as_object_mut() {
            object.remove("state");
        }
        let record = parse_import_value(&value).map_err(|error| format!("{}: {error}", path.display()))?.record;
        if record.item_type == item_type {
            let vector = vectors.get(records.len()).filter(|vector| vector.iter().any(|part| *part != 0.0)).cloned();
            let tokens = tokens.get_mut(records.len()).and_then(Option::take);
            records.push((record, vector, tokens));
        }
    }
    keep_own_texts(&mut records);
    records.sort_by_key(|(record, ..)| (record.created_at, record.number));
    if set == "rails" {
        // The dates of this set are made up.
        records.iter_mut().for_each(|(record, ..)| record.created_at = None);
    }
    let mut positions: HashMap<ItemNumber, Vec<usize>> = HashMap::new();
    for (position, (record, ..)) in records.iter().enumerate() {
        positions.entry(record.number).or_default().push(position);
    }
    let number = |position: usize| ItemNumber::new(position as i64 + 1).expect("positions count from 1");
    let at = |named: ItemNumber| positions.get(&named).cloned().unwrap_or_default();
    let mut links = Vec::new();
    for (position, (record, ..)) in records.iter().enumerate() {
        let target = record.duplicate_of.flatten().into_iter().flat_map(at);
        links.extend(target.map(|target| (number(position), number(target))));
    }
    let mut queries = BTreeSet::new();
    let path = folder.join(format!("{set}.truth.jsonl"));
    for line in lines(open(&path)?) {
        let truth: Value = serde_json::from_str(&line?).map_err(|error| format!("{}: {error}", path.display()))?;
        if truth["type"] != item_type.as_str() {
            continue;
        }
        let named =
            |value: &Value| value.as_i64().and_then(|number| ItemNumber::new(number).ok()).map(at).unwrap_or_default();
        let pool = truth["pool_before"].as_u64().unwrap_or_default() as usize;
        let Some(query) = named(&truth["number"]).into_iter().min_by_key(|position| position.abs_diff(pool)) else {
            return Err(format!("{}: item {} is not in the set", path.display(), truth["number"]));
        };
        queries.insert(query);
        let relevant = truth["relevant"].as_array().into_iter().flatten().flat_map(named);
        links.extend(relevant.map(|other| (number(query), number(other))));
    }
    let mut clusters: BTreeMap<ItemNumber, BTreeSet<ItemNumber>> = duplicate_clusters(links);
    let item = |(position, (record, vector, tokens)): (usize, Loaded)| SetItem {
        number: number(position),
        named: record.number,
        record,
        vector,
        tokens,
        is_query: queries.contains(&position),
        cluster: clusters.remove(&number(position)).unwrap_or_default(),
    };
    Ok(records.into_iter().enumerate().map(item).collect())
}

/// Removes text that many items of the set share, as in the product.
fn keep_own_texts(records: &mut [Loaded]) {
    let mut by_number: Vec<&ItemRecord> = records.iter().map(|(record, ..)| record).collect();
    by_number.sort_by_key(|record| record.number);
    let mut learner = BoilerplateLearner::default();
    for record in by_number {
        let body = record.body.as_deref().unwrap_or_default();
        learner.read(record.number, record.author.as_ref(), &record.title, body);
    }
    let shared = learner.learn();
    for (record, ..) in records {
        record.title = shared.own_title(&record.title);
        record.body = record.body.take().map(|body| shared.own_body(&body));
    }
}

/// Vectors in the order of the set's lines: `CNRYVEC1`, dimension and count as u32, then for each item its
/// number as i64 and its numbers as f32, all little-endian.
fn read_vectors(path: &Path) -> Result<Vec<Vec<f32>>, String> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes).map_err(|error| format!("{}: {error}", path.display()))?;
    let rest = bytes.strip_prefix(b"CNRYVEC1").filter(|rest| rest.len() >= 8);
    let rest = rest.ok_or_else(|| format!("{} is not a file of vectors", path.display()))?;
    let dimension = u32::from_le_bytes([rest[0], rest[1], rest[2], rest[3]]) as usize;
    let rows = rest[8..].chunks_exact(8 + 4 * dimension);
    Ok(rows.map(|row| row[8..].as_chunks::<4>().0.iter().map(|&number| f32::from_le_bytes(number)).collect()).collect())
}

/// Token vectors in the order of the set's lines: `CNRYTOK1`, the count as u32, then for each item its number as i64,
/// the length of its token vectors as u32, and the token vectors.
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
