//! The index of a repository's issues or pull requests in memory, with item data that is not in the index. It is
//! updated with what changed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use canonry_domain::{Boilerplate, ItemNumber, ItemState, ItemType};
use canonry_retrieval::{ItemIndex, block_bytes, map_bytes, vec_bytes};
use canonry_store::{EmbeddingKey, IndexRow, IndexVersion, Repo, Store};

use crate::retrieval::boilerplate::stored_boilerplate;
use crate::retrieval::index_upkeep::{
    index_anew, is_stale, kept_on_disk, off_async_threads, snapshot_place, stored_index, up_to_date,
};
use crate::retrieval::neighbourhood::{RetrievalError, is_blank};
use crate::retrieval::token_cache::TokenVectorCache;

#[derive(Clone, Copy)]
pub(crate) struct IndexSource<'a> {
    pub(crate) store: &'a Store,
    pub(crate) repo: &'a Repo,
    pub(crate) item_type: ItemType,
    pub(crate) key: &'a EmbeddingKey,
    pub(crate) snapshots: Option<&'a Path>,
}

impl IndexSource<'_> {
    /// Whether the index scans vectors; otherwise the database compares them.
    pub(crate) fn with_vectors(&self) -> bool {
        !self.store.corpus().searches_vectors()
    }

    pub(crate) fn snapshot_place(&self) -> Option<PathBuf> {
        self.snapshots.map(|folder| snapshot_place(folder, self.repo, self.item_type, self.key))
    }
}

pub(crate) struct LoadedIndex {
    pub(crate) index: ItemIndex,
    rows: HashMap<ItemNumber, IndexRow>,
    open: OpenItems,
    /// The same number as the store's `count_texts`.
    texts: i64,
    /// The parts of the items' texts that are not their own.
    pub(crate) boilerplate: Arc<Boilerplate>,
    /// Set if the database compares vectors; `None` if the index contains them.
    pub(crate) sample: Option<VectorSample>,
    /// The most recently read token vectors.
    tokens: Mutex<TokenVectorCache>,
    version: IndexVersion,
    /// The size of everything except the token vectors, when it was last measured.
    measured_bytes: usize,
    changes_since_measured: usize,
    /// The number of items that are outdated in the snapshot.
    unsaved: AtomicUsize,
}

/// How many items are open, and how many of these have a vector for their current text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct OpenItems {
    pub(crate) all: usize,
    pub(crate) embedded: usize,
}

/// Bytes of token vectors to keep in memory: those of 34,000 items with 60 tokens. Neighbours of one item are often
/// neighbours of the next.
const TOKENS_KEPT: usize = 64 << 20;

impl LoadedIndex {
    /// Reads the snapshot and updates it item by item; without a snapshot, everything is indexed. Changes are written
    /// back.
    pub(crate) async fn load(source: IndexSource<'_>) -> Result<Self, RetrievalError> {
        // Read first: changes after this are applied later.
        let version = source.store.corpus().index_version(source.repo.id).await?;
        let known = match source.snapshot_place() {
            Some(place) => {
                let (item_type, model) = (source.item_type, source.key.model.clone());
                off_async_threads(move || stored_index(&place, item_type, &model)).await
            }
            None => None,
        };
        Self::of_all_rows(source, version, known).await
    }

    /// Compares every stored row with the known index.
    async fn of_all_rows(
        source: IndexSource<'_>,
        version: IndexVersion,
        known: Option<ItemIndex>,
    ) -> Result<Self, RetrievalError> {
        let IndexSource { store, repo, item_type, key, .. } = source;
        let rows = store.corpus().index_rows(repo.id, key, item_type, None).await?;
        let boilerplate = Arc::new(stored_boilerplate(store, repo, item_type).await?);
        let (mut index, changed) = up_to_date(source, known, &rows, &boilerplate).await?;
        if let (Some(place), true) = (source.snapshot_place(), changed) {
            index = off_async_threads(move || kept_on_disk(index, &place)).await;
        }
        let mut loaded = Self {
            index,
            rows: HashMap::with_capacity(rows.len()),
            open: OpenItems::default(),
            texts: 0,
            boilerplate,
            sample: None,
            tokens: Mutex::new(TokenVectorCache::new(TOKENS_KEPT)),
            version,
            measured_bytes: 0,
            changes_since_measured: 0,
            unsaved: AtomicUsize::new(0),
        };
        for row in rows {
            loaded.set_row(row);
        }
        if !source.with_vectors() {
            let compared = loaded.rows.keys().copied().filter(|number| loaded.is_compared(*number));
            let mut sample = VectorSample::of(compared);
            sample.read_missing(source).await?;
            loaded.sample = Some(sample);
        }
        loaded.measure();
        Ok(loaded)
    }

    /// Whether it contains everything that changed up to this version.
    pub(crate) fn covers(&self, version: &IndexVersion) -> bool {
        self.version.epoch == version.epoch && self.version.version >= version.version
    }

    pub(crate) fn epoch(&self) -> i64 {
        self.version.epoch
    }

    /// Applies what changed since it was loaded, or compares everything if the changes are unknown.
    pub(crate) async fn catch_up(self, source: IndexSource<'_>) -> Result<Self, RetrievalError> {
        let version = source.store.corpus().index_version(source.repo.id).await?;
        if self.covers(&version) {
            return Ok(self);
        }
        if version.epoch != self.version.epoch || version.relisted > self.version.version {
            return Self::of_all_rows(source, version, Some(self.index)).await;
        }
        match self.with_changes(source, version).await {
            // The model was replaced under the same name: all vectors have another length.
            Err(RetrievalError::Index(error)) => {
                tracing::info!(%error, "the index in memory is built again");
                Self::of_all_rows(source, version, None).await
            }
            caught_up => caught_up,
        }
    }

    async fn with_changes(mut self, source: IndexSource<'_>, version: IndexVersion) -> Result<Self, RetrievalError> {
        let IndexSource { store, repo, item_type, key, .. } = source;
        let changed = store.corpus().items_changed_since(repo.id, item_type, self.version.version).await?;
        let mut is_learned = false;
        if version.boilerplate > self.version.version {
            let learned = stored_boilerplate(store, repo, item_type).await?;
            let stamps = self.boilerplate.stamp() ^ learned.stamp();
            // Otherwise the boilerplate of the other type changed.
            if stamps != 0 {
                // For all items except the changed ones, the own text stays the same.
                self.index.restamp(|stamp| stamp ^ stamps);
                self.boilerplate = Arc::new(learned);
                self.unsaved.store(self.rows.len(), Ordering::Relaxed);
                is_learned = true;
            }
        }
        let rows = match changed.is_empty() {
            true => Vec::new(),
            false => store.corpus().index_rows(repo.id, key, item_type, Some(&changed)).await?,
        };
        let present: BTreeSet<ItemNumber> = rows.iter().map(|row| row.number).collect();
        for number in changed.iter().filter(|number| !present.contains(number)) {
            self.index.remove(*number);
            self.remove_row(*number);
        }
        let shared = self.boilerplate.stamp();
        let stale: Vec<&IndexRow> =
            rows.iter().filter(|row| is_learned || is_stale(source, &self.index, row, shared)).collect();
        self.unsaved.fetch_add(stale.len(), Ordering::Relaxed);
        self.index = index_anew(source, self.index, &stale, &self.boilerplate).await?;
        for row in rows {
            self.set_row(row);
        }
        for number in &changed {
            lock(&self.tokens).remove(*number);
        }
        if let Some(mut sample) = self.sample.take() {
            for number in &changed {
                sample.set_compared(*number, self.is_compared(*number));
            }
            sample.read_missing(source).await?;
            self.sample = Some(sample);
        }
        self.changes_since_measured += changed.len();
        if self.changes_since_measured > self.rows.len() / 64 + 64 {
            self.measure();
        }
        self.version = version;
        Ok(self)
    }

    pub(crate) fn rows(&self) -> &HashMap<ItemNumber, IndexRow> {
        &self.rows
    }

    pub(crate) fn open_items(&self) -> OpenItems {
        self.open
    }

    pub(crate) fn texts(&self) -> u64 {
        self.texts.unsigned_abs()
    }

    pub(crate) fn tokens(&self) -> MutexGuard<'_, TokenVectorCache> {
        lock(&self.tokens)
    }

    /// Whether an item has text of its own.
    pub(crate) fn has_content(&self, number: ItemNumber) -> bool {
        self.index.item_type() == ItemType::Pr || self.index.holds_words(number)
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.measured_bytes + lock(&self.tokens).bytes()
    }

    /// Drops token vectors until the total is within this limit, as far as possible.
    pub(crate) fn bound_tokens(&self, bytes: usize) {
        lock(&self.tokens).set_limit(bytes.saturating_sub(self.measured_bytes).min(TOKENS_KEPT));
    }

    /// Whether enough of the snapshot is outdated to write it again: a start reads it and indexes the rest. The
    /// caller must then write it.
    pub(crate) fn takes_saving(&self) -> bool {
        let is_worth_it = self.unsaved.load(Ordering::Relaxed) > self.rows.len() / 50 + 200;
        if is_worth_it {
            self.unsaved.store(0, Ordering::Relaxed);
        }
        is_worth_it
    }

    /// As in the index: items without text of their own are not part of the distribution of cosines.
    fn is_compared(&self, number: ItemNumber) -> bool {
        self.rows.get(&number).is_some_and(|row| row.embedded) && self.has_content(number)
    }

    fn set_row(&mut self, row: IndexRow) {
        self.remove_row(row.number);
        self.open.count(&row, |count| *count += 1);
        self.texts += row.content_version.get();
        self.rows.insert(row.number, row);
    }

    fn remove_row(&mut self, number: ItemNumber) {
        if let Some(row) = self.rows.remove(&number) {
            self.open.count(&row, |count| *count -= 1);
            self.texts -= row.content_version.get();
        }
    }

    fn measure(&mut self) {
        let author = |row: &IndexRow| row.author.as_ref().map_or(0, |login| block_bytes(login.as_str().len()));
        let rows = map_bytes::<(ItemNumber, IndexRow)>(self.rows.capacity());
        let authors: usize = self.rows.values().map(author).sum();
        let sample = self.sample.as_ref().map_or(0, VectorSample::heap_bytes);
        self.measured_bytes = self.index.heap_bytes() + rows + authors + sample;
        self.changes_since_measured = 0;
    }
}

impl OpenItems {
    fn count(&mut self, row: &IndexRow, step: impl Fn(&mut usize)) {
        if row.state == ItemState::Open {
            step(&mut self.all);
            if row.embedded {
                step(&mut self.embedded);
            }
        }
    }
}

fn lock(tokens: &Mutex<TokenVectorCache>) -> MutexGuard<'_, TokenVectorCache> {
    tokens.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A sample of a repository's vectors, used if the database contains the vectors, to estimate the distribution of
/// cosines.
pub(crate) struct VectorSample {
    /// The items that have vectors, in the order of [`drawing_order`].
    compared: Vec<(u64, ItemNumber)>,
    /// The first ones of them; `None` if the vector is of a text without words.
    vectors: BTreeMap<ItemNumber, Option<Vec<f32>>>,
}

/// The standard error of a mean over 400 cosines is a twentieth of their deviation.
const SAMPLE: usize = 400;

/// An order of items that has nothing to do with their numbers and does not depend on the others, so that an item that
/// comes or goes changes at most one of the sample. (The finalizer of MurmurHash3 for 64 bits.)
fn drawing_order(number: ItemNumber) -> u64 {
    let mut mixed = number.get().unsigned_abs();
    for factor in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53] {
        mixed = (mixed ^ (mixed >> 33)).wrapping_mul(factor);
    }
    mixed ^ (mixed >> 33)
}

impl VectorSample {
    pub(crate) fn vectors(&self) -> impl Iterator<Item = &[f32]> {
        self.vectors.values().flatten().map(Vec::as_slice)
    }

    fn of(compared: impl IntoIterator<Item = ItemNumber>) -> Self {
        let mut compared: Vec<(u64, ItemNumber)> =
            compared.into_iter().map(|number| (drawing_order(number), number)).collect();
        compared.sort_unstable();
        Self { compared, vectors: BTreeMap::new() }
    }

    /// Updates whether a changed item is compared; its vector will be read again.
    fn set_compared(&mut self, number: ItemNumber, is_compared: bool) {
        self.vectors.remove(&number);
        let drawn = (drawing_order(number), number);
        match (self.compared.binary_search(&drawn), is_compared) {
            (Err(place), true) => self.compared.insert(place, drawn),
            (Ok(place), false) => {
                self.compared.remove(place);
            }
            _ => {}
        }
    }

    async fn read_missing(&mut self, source: IndexSource<'_>) -> Result<(), RetrievalError> {
        let chosen: BTreeSet<ItemNumber> = self.compared.iter().take(SAMPLE).map(|(_, number)| *number).collect();
        self.vectors.retain(|number, _| chosen.contains(number));
        let missing: Vec<ItemNumber> = chosen.into_iter().filter(|number| !self.vectors.contains_key(number)).collect();
        let IndexSource { store, repo, item_type, key, .. } = source;
        for entry in store.corpus().index_entries(repo.id, item_type, &missing, Some(key)).await? {
            self.vectors.insert(entry.number, entry.vector.filter(|vector| !is_blank(vector)));
        }
        Ok(())
    }

    fn heap_bytes(&self) -> usize {
        let vectors: usize = self.vectors.values().flatten().map(vec_bytes).sum();
        vectors + vec_bytes(&self.compared) + self.vectors.len() * size_of::<(ItemNumber, Option<Vec<f32>>)>()
    }
}
