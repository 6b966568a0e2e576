//! Keeps indexes in memory for a service, up to a number of bytes; the least recently used ones are dropped.

use canonry_boxed::boxed;
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use canonry_domain::ItemType;
use canonry_models::Calibration;
use canonry_store::{EmbeddingKey, Repo, RepoId, Representation, Store};
use tokio::sync::{OwnedRwLockReadGuard, RwLock};

use crate::retrieval::index_upkeep::save_index;
use crate::retrieval::loaded_index::{IndexSource, LoadedIndex};
use crate::retrieval::neighbourhood::{Neighbourhood, RetrievalError};

/// Megabytes for the indexes of a service: enough for 100,000 issues, or for hundreds of small repositories.
pub const DEFAULT_INDEX_MEMORY: u32 = 400;
const MEGABYTE: usize = 1_000_000;
const SWEEP_EVERY: Duration = Duration::from_secs(600);

/// The indexes of one database, shared by everything that uses it in this process.
///
/// Other processes write to the same database: before each use the changes are read from the database and applied.
pub struct IndexCache {
    limit: usize,
    kept: Mutex<KeptIndexes>,
    loads: AtomicU64,
}

#[derive(Default)]
struct KeptIndexes {
    uses: u64,
    /// When it was last checked which repositories were purged.
    swept_at: Option<Instant>,
    by_key: HashMap<IndexKey, KeptIndex>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct IndexKey {
    repo: RepoId,
    item_type: ItemType,
    representation: Representation,
    model: String,
}

struct KeptIndex {
    index: SharedIndex,
    /// 0 until it is loaded.
    bytes: usize,
    epoch: i64,
    used: u64,
}

/// `None` until it is loaded, and after a change could not be applied.
type SharedIndex = Arc<RwLock<Option<LoadedIndex>>>;

#[boxed]
impl IndexCache {
    /// An empty cache with a limit in bytes. With 0 nothing is kept: every neighbourhood is loaded from its snapshot.
    pub fn new(limit: usize) -> Self {
        Self { limit, kept: Mutex::default(), loads: AtomicU64::new(0) }
    }

    pub fn with_default_room() -> Self {
        Self::new(DEFAULT_INDEX_MEMORY as usize * MEGABYTE)
    }

    /// The memory of the kept indexes.
    pub fn bytes(&self) -> usize {
        self.kept().bytes()
    }

    /// How often an index was loaded because it was not kept.
    pub fn loads(&self) -> u64 {
        self.loads.load(Ordering::Relaxed)
    }

    /// The items of a type with everything that is stored by now. While an index is loaded, other callers wait for
    /// it.
    pub async fn neighbourhood(
        &self,
        store: &Store,
        repo: &Repo,
        item_type: ItemType,
        key: EmbeddingKey,
        calibration: Calibration,
        snapshots: Option<&Path>,
    ) -> Result<Neighbourhood, RetrievalError> {
        if self.limit == 0 {
            return Neighbourhood::load(store, repo, item_type, key, calibration, snapshots).await;
        }
        self.forget_purged(store).await?;
        let source = IndexSource { store, repo, item_type, key: &key, snapshots };
        let index_key =
            IndexKey { repo: repo.id, item_type, representation: key.representation, model: key.model.clone() };
        let shared = self.kept().shared(&index_key);
        let loaded = self.present_index(&shared, source).await?;
        self.note_use(&index_key, &shared, &loaded);
        if let (Some(place), true) = (source.snapshot_place(), loaded.takes_saving()) {
            // In the background: with 100,000 items it takes a second.
            tokio::spawn(async move { save_index(shared.read_owned().await, place).await });
        }
        Ok(Neighbourhood::cached(source, calibration, loaded))
    }

    /// The same number as the store's `count_texts`, from a kept index; `None` without one. The store reads a row for
    /// each item to count them.
    pub(crate) async fn count_texts(
        &self,
        store: &Store,
        repo: &Repo,
        item_type: ItemType,
        snapshots: Option<&Path>,
    ) -> Result<Option<u64>, RetrievalError> {
        let Some((key, shared)) = self.kept().any_of(repo.id, item_type) else { return Ok(None) };
        let key = EmbeddingKey { representation: key.representation, model: key.model };
        let source = IndexSource { store, repo, item_type, key: &key, snapshots };
        Ok(Some(self.present_index(&shared, source).await?.texts()))
    }

    /// The index with everything that is stored by now. One of the concurrent callers loads or updates it.
    async fn present_index(
        &self,
        shared: &SharedIndex,
        source: IndexSource<'_>,
    ) -> Result<OwnedRwLockReadGuard<Option<LoadedIndex>, LoadedIndex>, RetrievalError> {
        let version = source.store.corpus().index_version(source.repo.id).await?;
        let is_present = |index: &Option<LoadedIndex>| index.as_ref().is_some_and(|loaded| loaded.covers(&version));
        let reading = Arc::clone(shared).read_owned().await;
        let reading = if is_present(&reading) {
            reading
        } else {
            drop(reading);
            let mut writing = Arc::clone(shared).write_owned().await;
            if !is_present(&writing) {
                // Taken out, so that a failure, or a task that is dropped while it waits, leaves nothing half done.
                let loaded = match writing.take() {
                    Some(loaded) => loaded.catch_up(source).await?,
                    None => {
                        self.loads.fetch_add(1, Ordering::Relaxed);
                        LoadedIndex::load(source).await?
                    }
                };
                *writing = Some(loaded);
            }
            writing.downgrade()
        };
        Ok(OwnedRwLockReadGuard::map(reading, |index| index.as_ref().expect("invariant: it was put in above")))
    }

    /// Drops the indexes of repositories that were purged: nobody requests them again.
    async fn forget_purged(&self, store: &Store) -> Result<(), RetrievalError> {
        let due = self.kept().due_for_sweep();
        for (key, epoch) in due {
            if store.corpus().index_version(key.repo).await?.epoch != epoch {
                self.kept().by_key.remove(&key);
            }
        }
        Ok(())
    }

    fn kept(&self) -> MutexGuard<'_, KeptIndexes> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_use(&self, key: &IndexKey, shared: &SharedIndex, loaded: &LoadedIndex) {
        loaded.bound_tokens(self.limit);
        let mut kept = self.kept();
        let bytes = loaded.heap_bytes();
        match kept.by_key.get_mut(key) {
            Some(one) if Arc::ptr_eq(&one.index, shared) => (one.bytes, one.epoch) = (bytes, loaded.epoch()),
            // It was dropped meanwhile.
            _ => return,
        }
        if bytes > self.limit {
            tracing::warn!(
                repo = %key.repo.get(), item_type = %key.item_type, bytes, limit = self.limit,
                "an index is larger than the memory for indexes, and is loaded for every item"
            );
            kept.by_key.remove(key);
        }
        kept.shrink(self.limit, key);
    }
}

impl KeptIndexes {
    fn shared(&mut self, key: &IndexKey) -> SharedIndex {
        self.uses += 1;
        let new = || KeptIndex { index: SharedIndex::default(), bytes: 0, epoch: 0, used: 0 };
        let kept = self.by_key.entry(key.clone()).or_insert_with(new);
        kept.used = self.uses;
        Arc::clone(&kept.index)
    }

    fn any_of(&self, repo: RepoId, item_type: ItemType) -> Option<(IndexKey, SharedIndex)> {
        let mut loaded = self.by_key.iter().filter(|(_, one)| one.bytes > 0);
        let (key, one) = loaded.find(|(key, _)| (key.repo, key.item_type) == (repo, item_type))?;
        Some((key.clone(), Arc::clone(&one.index)))
    }

    /// All loaded indexes, once per sweep interval; empty in between.
    fn due_for_sweep(&mut self) -> Vec<(IndexKey, i64)> {
        if self.swept_at.is_some_and(|swept| swept.elapsed() < SWEEP_EVERY) {
            return Vec::new();
        }
        self.swept_at = Some(Instant::now());
        self.by_key.iter().filter(|(_, one)| one.bytes > 0).map(|(key, one)| (key.clone(), one.epoch)).collect()
    }

    fn bytes(&self) -> usize {
        self.by_key.values().map(|kept| kept.bytes).sum()
    }

    /// Drops the least recently used indexes, but not the one in use now.
    fn shrink(&mut self, limit: usize, used_now: &IndexKey) {
        while self.bytes() > limit {
            let others = self.by_key.iter().filter(|(key, kept)| *key != used_now && kept.bytes > 0);
            let Some(oldest) = others.min_by_key(|(_, kept)| kept.used).map(|(key, _)| key.clone()) else { return };
            self.by_key.remove(&oldest);
        }
    }
}
