//! The items of one type of a repository, ready to be compared: index in memory, vectors there or in PostgreSQL.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use canonry_domain::{ItemNumber, ItemState, ItemType, PullChanges, Similarity};
use canonry_models::Calibration;
use canonry_retrieval::{
    Ask, Entry, Hit, IndexError, InvalidVector, ItemIndex, Query, RetrievalMode, Spread, rank, read_snapshot,
    words_score, write_snapshot,
};
use canonry_store::{EmbeddingKey, IndexEntry, IndexRow, Repo, Representation, Store, StoreError};

/// Everything that neighbours are looked for in.
pub struct Neighbourhood {
    store: Store,
    repo: Repo,
    key: EmbeddingKey,
    calibration: Calibration,
    index: ItemIndex,
    rows: HashMap<ItemNumber, IndexRow>,
    vectors: Vectors,
}

/// Where vectors are compared.
enum Vectors {
    /// In the index: scanned exactly.
    InIndex,
    /// In the database. A sample of them tells how cosines are spread over the repository.
    InDatabase { sample: Vec<Vec<f32>> },
}

/// How neighbours are looked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wanted {
    /// Which parts count.
    pub mode: RetrievalMode,
    /// How many at most.
    pub k: usize,
    /// The least score.
    pub min_score: Similarity,
    /// In which state neighbours must be; `None` for any.
    pub state: Option<ItemState>,
}

/// Why neighbours could not be looked for.
#[derive(Debug, thiserror::Error)]
pub enum RetrievalError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The index refused a vector, or a query had none.
    #[error("failed to {0}")]
    Index(#[from] IndexError),
}

/// Items whose texts are read at once while an index is built.
const ENTRIES: usize = 400;
/// Vectors that stand for all of them where the spread of cosines is measured. The error of a mean over
/// 400 cosines is a twentieth of their deviation.
const SAMPLE: usize = 400;
/// Neighbours that the database names at least, as many as the index in memory does.
const FROM_DATABASE: u32 = 100;

impl Neighbourhood {
    /// Loads the items of a type. A snapshot in `snapshots` is brought up to date item by item; without
    /// one, everything is indexed. What changed is written back.
    pub async fn load(
        store: &Store,
        repo: &Repo,
        item_type: ItemType,
        key: EmbeddingKey,
        calibration: Calibration,
        snapshots: Option<&Path>,
    ) -> Result<Self, RetrievalError> {
        let rows = store.index_rows(repo.id, &key, item_type).await?;
        let in_database = store.searches_vectors();
        let place = snapshots.map(|folder| snapshot_place(folder, repo, item_type, &key));
        let known = match place.clone() {
            Some(place) => {
                let model = key.model.clone();
                off_async_threads(move || stored_index(&place, item_type, &model)).await
            }
            None => None,
        };
        let (mut index, changed) = up_to_date(store, repo, item_type, &key, known, &rows, !in_database).await?;
        if let (Some(place), true) = (place, changed) {
            index = off_async_threads(move || kept_on_disk(index, &place)).await;
        }
        let vectors = if in_database {
            Vectors::InDatabase { sample: sample(store, repo, item_type, &key, &rows).await? }
        } else {
            Vectors::InIndex
        };
        let rows = rows.into_iter().map(|row| (row.number, row)).collect();
        Ok(Self { store: store.clone(), repo: repo.clone(), key, calibration, index, rows, vectors })
    }

    /// The type of its items.
    pub fn item_type(&self) -> ItemType {
        self.index.item_type()
    }

    /// What its vectors are of.
    pub fn representation(&self) -> Representation {
        self.key.representation
    }

    /// Its items without their texts.
    pub fn rows(&self) -> &HashMap<ItemNumber, IndexRow> {
        &self.rows
    }

    /// The index, for what needs no vectors.
    pub fn index(&self) -> &ItemIndex {
        &self.index
    }

    /// How many items have a vector of their present text.
    pub fn embedded(&self) -> usize {
        self.rows.values().filter(|row| row.embedded).count()
    }

    /// From the model's cosines to scores.
    pub fn calibration(&self) -> &Calibration {
        &self.calibration
    }

    /// An item's own text and vector.
    pub async fn entry(&self, number: ItemNumber) -> Result<Option<IndexEntry>, RetrievalError> {
        let entries = self.store.index_entries(self.repo.id, self.item_type(), &[number], Some(&self.key)).await?;
        Ok(entries.into_iter().next())
    }

    /// The same of many, by number; what is not there is left out.
    pub(crate) async fn entries(&self, numbers: &[ItemNumber]) -> Result<Vec<IndexEntry>, RetrievalError> {
        Ok(self.store.index_entries(self.repo.id, self.item_type(), numbers, Some(&self.key)).await?)
    }

    /// The query that an item is.
    pub fn query_of(entry: &IndexEntry) -> Query {
        let query = Query::new(&entry.title, &entry.body).for_item(entry.number);
        let query = match &entry.changes {
            Some(changes) => query.with_changes(changes),
            None => query,
        };
        match &entry.vector {
            Some(vector) => query.with_vector(vector.clone()),
            None => query,
        }
    }

    /// The nearest items, best first. `vector` is the query's own, which the database needs to search by.
    pub async fn neighbours(
        &self,
        query: &Query,
        vector: Option<&[f32]>,
        wanted: Wanted,
        filter: &(dyn Fn(&IndexRow) -> bool + Sync),
    ) -> Result<Vec<Hit>, RetrievalError> {
        let (Vectors::InDatabase { sample }, true) = (&self.vectors, wanted.mode != RetrievalMode::Lexical) else {
            return Ok(self.neighbours_in_index(query, vector, wanted, filter)?);
        };
        if vector.is_some_and(is_blank) {
            return Ok(Vec::new());
        }
        let allowed = |number: ItemNumber| self.is_allowed(number, wanted, filter);
        let calibrate = |cosine| self.calibration.similarity(cosine).get();
        let vector = vector.ok_or(IndexError::NoVector { mode: wanted.mode })?;
        if let Some(expected) = sample.first().map(Vec::len).filter(|&expected| expected != vector.len()) {
            let reason = InvalidVector::Dimension { expected, found: vector.len() };
            return Err(IndexError::QueryVector { model: self.key.model.clone(), reason }.into());
        }
        let near = self.nearest_allowed(vector, wanted.k, &allowed).await?;
        let numbers: Vec<ItemNumber> = near.keys().copied().collect();
        let mut candidates = match wanted.mode {
            RetrievalMode::Dense => {
                self.index.word_candidates(query, &numbers, 0, &|number| near.contains_key(&number))
            }
            _ => self.index.word_candidates(query, &numbers, wanted.k, &allowed),
        };
        let missing = candidates.iter().map(|candidate| candidate.number).filter(|number| !near.contains_key(number));
        let missing: Vec<ItemNumber> = missing.collect();
        let more = self.store.inner_products(self.repo.id, &self.key, self.item_type(), vector, &missing).await?;
        for candidate in &mut candidates {
            candidate.cosine = near.get(&candidate.number).or_else(|| more.get(&candidate.number)).copied();
        }
        Ok(rank(wanted.mode, &candidates, spread(sample, vector), calibrate, wanted.min_score, wanted.k))
    }

    /// The nearest items of each of these, in their order; on every core where the index holds the vectors.
    ///
    /// The filter is given the item whose neighbours they are.
    pub(crate) async fn neighbours_of_all(
        &self,
        entries: &[IndexEntry],
        wanted: Wanted,
        filter: &(dyn Fn(ItemNumber, &IndexRow) -> bool + Sync),
    ) -> Result<Vec<Vec<Hit>>, RetrievalError> {
        if matches!(self.vectors, Vectors::InDatabase { .. }) && wanted.mode != RetrievalMode::Lexical {
            let mut found = Vec::with_capacity(entries.len());
            for entry in entries {
                let of_entry = |row: &IndexRow| filter(entry.number, row);
                let query = Self::query_of(entry);
                found.push(self.neighbours(&query, entry.vector.as_deref(), wanted, &of_entry).await?);
            }
            return Ok(found);
        }
        let search = |entry: &IndexEntry| {
            let of_entry = |row: &IndexRow| filter(entry.number, row);
            self.neighbours_in_index(&Self::query_of(entry), entry.vector.as_deref(), wanted, &of_entry)
        };
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let portion = entries.len().div_ceil(threads).max(1);
        let found: Vec<Result<Vec<Hit>, IndexError>> = std::thread::scope(|scope| {
            let search = &search;
            let work = |part| scope.spawn(move || <[IndexEntry]>::iter(part).map(search).collect::<Vec<_>>());
            let spawned: Vec<_> = entries.chunks(portion).map(work).collect();
            spawned.into_iter().flat_map(|thread| thread.join().expect("invariant: a search does not panic")).collect()
        });
        found.into_iter().map(|hits| hits.map_err(RetrievalError::from)).collect()
    }

    fn neighbours_in_index(
        &self,
        query: &Query,
        vector: Option<&[f32]>,
        wanted: Wanted,
        filter: &(dyn Fn(&IndexRow) -> bool + Sync),
    ) -> Result<Vec<Hit>, IndexError> {
        if vector.is_some_and(is_blank) && wanted.mode != RetrievalMode::Lexical {
            return Ok(Vec::new());
        }
        let calibrate = |cosine| self.calibration.similarity(cosine).get();
        let allowed = |number: ItemNumber| self.is_allowed(number, wanted, filter);
        let ask = Ask {
            mode: wanted.mode,
            k: wanted.k,
            min_score: wanted.min_score,
            calibrate: &calibrate,
            filter: &allowed,
        };
        self.index.neighbours(query, &ask)
    }

    fn is_allowed(&self, number: ItemNumber, wanted: Wanted, filter: &(dyn Fn(&IndexRow) -> bool + Sync)) -> bool {
        self.rows.get(&number).is_some_and(|row| wanted.state.is_none_or(|state| row.state == state) && filter(row))
    }

    /// The scores between items, each pair once. A pair without a score (one of the two has no vector) is left out.
    pub(crate) async fn pair_scores(
        &self,
        numbers: &[ItemNumber],
        mode: RetrievalMode,
    ) -> Result<Vec<(ItemNumber, ItemNumber, Similarity)>, RetrievalError> {
        let mut pairs: BTreeMap<(ItemNumber, ItemNumber), Similarity> = BTreeMap::new();
        for (at, &one) in numbers.iter().enumerate() {
            for (other, score) in self.scores_from(one, &numbers[at + 1..], mode).await? {
                let pair = (one.min(other), one.max(other));
                let best = pairs.get(&pair).map_or(score, |known| score.max(*known));
                pairs.insert(pair, best);
            }
        }
        Ok(pairs.into_iter().map(|((one, other), score)| (one, other, score)).collect())
    }

    async fn scores_from(
        &self,
        one: ItemNumber,
        others: &[ItemNumber],
        mode: RetrievalMode,
    ) -> Result<Vec<(ItemNumber, Similarity)>, RetrievalError> {
        if others.is_empty() {
            return Ok(Vec::new());
        }
        let score = |cosine| self.calibration.similarity(cosine);
        if mode == RetrievalMode::Lexical {
            let Some(entry) = self.entry(one).await? else { return Ok(Vec::new()) };
            let candidates =
                self.index.word_candidates(&Self::query_of(&entry), others, 0, &|number| others.contains(&number));
            return Ok(candidates.iter().map(|candidate| (candidate.number, words_score(candidate))).collect());
        }
        match &self.vectors {
            Vectors::InIndex => {
                let Some(vector) = self.index.vector(one) else { return Ok(Vec::new()) };
                let cosine = |other: &[f32]| vector.iter().zip(other).map(|(one, other)| one * other).sum();
                let scored = others.iter().filter_map(|&other| Some((other, score(cosine(self.index.vector(other)?)))));
                Ok(scored.collect())
            }
            Vectors::InDatabase { .. } => {
                let Some(vector) = self.entry(one).await?.and_then(|entry| entry.vector) else { return Ok(Vec::new()) };
                let products =
                    self.store.inner_products(self.repo.id, &self.key, self.item_type(), &vector, others).await?;
                Ok(products.into_iter().map(|(other, cosine)| (other, score(cosine))).collect())
            }
        }
    }

    /// The nearest that may be neighbours. The database does not know the filter, so it is asked for
    /// more until enough have passed, or there are no more.
    async fn nearest_allowed(
        &self,
        vector: &[f32],
        k: usize,
        allowed: &(dyn Fn(ItemNumber) -> bool + Sync),
    ) -> Result<HashMap<ItemNumber, f32>, RetrievalError> {
        let wanted = u32::try_from(k).unwrap_or(u32::MAX).max(FROM_DATABASE);
        let mut limit = wanted;
        loop {
            let found = self.store.nearest(self.repo.id, &self.key, self.item_type(), vector, limit).await?;
            let found = found.unwrap_or_default();
            let exhausted = found.len() < limit as usize;
            let passed: HashMap<ItemNumber, f32> = found.into_iter().filter(|(number, _)| allowed(*number)).collect();
            if exhausted || passed.len() >= wanted as usize {
                return Ok(passed);
            }
            limit = limit.saturating_mul(4);
        }
    }
}

/// The index of these rows, and whether it differs from the one that was known.
async fn up_to_date(
    store: &Store,
    repo: &Repo,
    item_type: ItemType,
    key: &EmbeddingKey,
    known: Option<ItemIndex>,
    rows: &[IndexRow],
    with_vectors: bool,
) -> Result<(ItemIndex, bool), RetrievalError> {
    if let Some(index) = known {
        match bring_up_to_date(store, repo, key, index, rows, with_vectors).await {
            Ok(brought) => return Ok(brought),
            // All vectors may have another length by now: the model was exchanged under its name.
            Err(RetrievalError::Index(error)) => tracing::info!(%error, "the index on disk is not used"),
            Err(error) => return Err(error),
        }
    }
    let index = ItemIndex::new(item_type, &key.model);
    let (index, _) = bring_up_to_date(store, repo, key, index, rows, with_vectors).await?;
    Ok((index, true))
}

/// Reading, building and writing an index of many items take seconds, in which nothing else would be answered.
async fn off_async_threads<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.expect("invariant: an index does not panic")
}

/// Puts in what is new or changed and takes out what left; says whether anything did.
async fn bring_up_to_date(
    store: &Store,
    repo: &Repo,
    key: &EmbeddingKey,
    mut index: ItemIndex,
    rows: &[IndexRow],
    with_vectors: bool,
) -> Result<(ItemIndex, bool), RetrievalError> {
    let present: std::collections::HashSet<ItemNumber> = rows.iter().map(|row| row.number).collect();
    let gone: Vec<ItemNumber> = index.numbers().filter(|number| !present.contains(number)).collect();
    for number in &gone {
        index.remove(*number);
    }
    let stale: Vec<&IndexRow> =
        rows.iter().filter(|row| index.stamp(row.number) != Some(stamp(row, with_vectors))).collect();
    for batch in stale.chunks(ENTRIES) {
        let numbers: Vec<ItemNumber> = batch.iter().map(|row| row.number).collect();
        let entries = store.index_entries(repo.id, index.item_type(), &numbers, with_vectors.then_some(key)).await?;
        let stamps: HashMap<ItemNumber, u64> = batch.iter().map(|row| (row.number, stamp(row, with_vectors))).collect();
        index = off_async_threads(move || with_entries(index, &entries, &stamps)).await?;
    }
    Ok((index, !gone.is_empty() || !stale.is_empty()))
}

fn with_entries(
    mut index: ItemIndex,
    entries: &[IndexEntry],
    stamps: &HashMap<ItemNumber, u64>,
) -> Result<ItemIndex, IndexError> {
    for entry in entries {
        let changes: Option<&PullChanges> = entry.changes.as_ref();
        let stamp = stamps.get(&entry.number).copied().unwrap_or_default();
        let vector = entry.vector.as_deref().filter(|vector| !is_blank(vector));
        index.upsert(entry.number, Entry { title: &entry.title, body: &entry.body, vector, changes, stamp })?;
    }
    Ok(index)
}

/// Differs when an item's text, vector or changes do. The hash covers the text, the time of embedding the
/// vector; changes are only ever replaced by longer or shorter ones in practice.
fn stamp(row: &IndexRow, with_vectors: bool) -> u64 {
    let digits = row.content_hash.as_str().get(..16).unwrap_or_default();
    let text = u64::from_str_radix(digits, 16).unwrap_or_default();
    let vector = row.embedded_at.filter(|_| with_vectors).map_or(0, |at| at.as_microsecond().cast_unsigned());
    text ^ vector.wrapping_mul(0xd6e8_feb8_6659_fd93) ^ row.changes_length.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn snapshot_place(folder: &Path, repo: &Repo, item_type: ItemType, key: &EmbeddingKey) -> PathBuf {
    let name = format!("{}-{item_type}-{}-{}.index", repo.name, key.representation.as_str(), key.model);
    // Names of repositories and models hold slashes and colons, which no file name may.
    let name: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' || c == '-' { c } else { '_' }).collect();
    folder.join(name)
}

/// The index on disk; a missing or unreadable one costs only the time to build it again.
fn stored_index(place: &Path, item_type: ItemType, model: &str) -> Option<ItemIndex> {
    if !place.exists() {
        return None;
    }
    read_snapshot(place, item_type, model)
        .inspect_err(|error| tracing::info!(%error, "the index on disk is not used"))
        .ok()
}

fn kept_on_disk(index: ItemIndex, place: &Path) -> ItemIndex {
    if let Err(error) = write_snapshot(&index, place) {
        // Only the next start is slower.
        tracing::warn!(%error, "the index could not be kept on disk");
    }
    index
}

/// Every n-th vector.
async fn sample(
    store: &Store,
    repo: &Repo,
    item_type: ItemType,
    key: &EmbeddingKey,
    rows: &[IndexRow],
) -> Result<Vec<Vec<f32>>, StoreError> {
    let embedded: Vec<ItemNumber> = rows.iter().filter(|row| row.embedded).map(|row| row.number).collect();
    let step = embedded.len().div_ceil(SAMPLE).max(1);
    let chosen: Vec<ItemNumber> = embedded.into_iter().step_by(step).collect();
    let entries = store.index_entries(repo.id, item_type, &chosen, Some(key)).await?;
    Ok(entries.into_iter().filter_map(|entry| entry.vector).filter(|vector| !is_blank(vector)).collect())
}

fn spread(sample: &[Vec<f32>], vector: &[f32]) -> Spread {
    let product = |other: &Vec<f32>| other.iter().zip(vector).map(|(one, other)| one * other).sum();
    Spread::of(sample.iter().map(product))
}

/// A text without words has a vector of zeros, which is near to nothing.
fn is_blank(vector: &[f32]) -> bool {
    vector.iter().all(|number| *number == 0.0)
}
