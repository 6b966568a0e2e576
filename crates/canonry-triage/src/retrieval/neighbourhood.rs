//! The items of one type of a repository, ready to compare: the index in memory, the vectors there or in PostgreSQL.

use canonry_boxed::boxed;
use std::collections::{BTreeMap, HashMap};
use std::ops::Deref;
use std::path::Path;
use std::sync::{Arc, MutexGuard};

use canonry_domain::{Boilerplate, ItemNumber, ItemState, ItemType, Similarity};
use canonry_models::Calibration;
use canonry_retrieval::{
    Ask, CandidatePool, Hit, IndexError, InvalidVector, ItemIndex, Query, RetrievalMode, SHORTLIST, Spread, shortlist,
    words_score,
};
use canonry_store::{EmbeddingKey, IndexEntry, IndexRow, Repo, Representation, Store, StoreError};
use tokio::sync::OwnedRwLockReadGuard;

use crate::retrieval::compare_shortlist::{RankingQuery, on_all_cores};
use crate::retrieval::loaded_index::{IndexSource, LoadedIndex, OpenItems, VectorSample};
use crate::retrieval::token_cache::TokenVectorCache;

/// The items among which neighbours are searched.
pub struct Neighbourhood {
    pub(crate) store: Store,
    pub(crate) repo: Repo,
    pub(crate) key: EmbeddingKey,
    calibration: Calibration,
    loaded: IndexHold,
}

/// The owner of the index: this neighbourhood, or a cache. Other users of the cache cannot change the index until
/// this one is dropped, so it must not be kept while waiting for an answer from elsewhere.
enum IndexHold {
    Own(Box<LoadedIndex>),
    Cached(OwnedRwLockReadGuard<Option<LoadedIndex>, LoadedIndex>),
}

impl Deref for IndexHold {
    type Target = LoadedIndex;

    fn deref(&self) -> &LoadedIndex {
        match self {
            Self::Own(loaded) => loaded,
            Self::Cached(loaded) => loaded,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NeighbourQuery {
    pub mode: RetrievalMode,
    /// The maximum number of neighbours.
    pub k: usize,
    pub min_score: Similarity,
    /// The state of the neighbours; `None` for any.
    pub state: Option<ItemState>,
}

/// Why the search for neighbours failed.
#[derive(Debug, thiserror::Error)]
pub enum RetrievalError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The index refused a vector, or a query had none.
    #[error("failed to {0}")]
    Index(#[from] IndexError),
}

/// The result for a text without words.
const NOTHING_NEAR: CandidatePool =
    CandidatePool { candidates: Vec::new(), spread: Spread { mean: 0.0, deviation: 0.0 } };

#[boxed]
impl Neighbourhood {
    /// Loads the items of a type. A snapshot in `snapshots` is updated item by item; without one, everything is
    /// indexed. Changes are written back.
    pub async fn load(
        store: &Store,
        repo: &Repo,
        item_type: ItemType,
        key: EmbeddingKey,
        calibration: Calibration,
        snapshots: Option<&Path>,
    ) -> Result<Self, RetrievalError> {
        let source = IndexSource { store, repo, item_type, key: &key, snapshots };
        let loaded = IndexHold::Own(Box::new(LoadedIndex::load(source).await?));
        Ok(Self { store: store.clone(), repo: repo.clone(), key, calibration, loaded })
    }

    pub(crate) fn cached(
        source: IndexSource<'_>,
        calibration: Calibration,
        loaded: OwnedRwLockReadGuard<Option<LoadedIndex>, LoadedIndex>,
    ) -> Self {
        let (store, repo, key) = (source.store.clone(), source.repo.clone(), source.key.clone());
        Self { store, repo, key, calibration, loaded: IndexHold::Cached(loaded) }
    }

    pub fn item_type(&self) -> ItemType {
        self.loaded.index.item_type()
    }

    pub fn representation(&self) -> Representation {
        self.key.representation
    }

    /// The items without their texts.
    pub fn rows(&self) -> &HashMap<ItemNumber, IndexRow> {
        self.loaded.rows()
    }

    /// The index, for queries that need no vectors.
    pub fn index(&self) -> &ItemIndex {
        &self.loaded.index
    }

    pub(crate) fn tokens(&self) -> MutexGuard<'_, TokenVectorCache> {
        self.loaded.tokens()
    }

    pub(crate) fn open_items(&self) -> OpenItems {
        self.loaded.open_items()
    }

    /// How many items have a vector for their current text.
    pub fn embedded(&self) -> usize {
        self.rows().values().filter(|row| row.embedded).count()
    }

    pub fn calibration(&self) -> &Calibration {
        &self.calibration
    }

    /// The parts of the items' texts that are not their own.
    pub(crate) fn boilerplate(&self) -> &Boilerplate {
        &self.loaded.boilerplate
    }

    /// Whether an item has text of its own. An item without one is no neighbour of any item, and has no neighbours.
    pub(crate) fn has_content(&self, number: ItemNumber) -> bool {
        self.loaded.has_content(number)
    }

    pub async fn entry(&self, number: ItemNumber) -> Result<Option<IndexEntry>, RetrievalError> {
        Ok(self.entries(&[number]).await?.into_iter().next())
    }

    /// Like `entry`, for many items by number; missing items are left out.
    pub(crate) async fn entries(&self, numbers: &[ItemNumber]) -> Result<Vec<IndexEntry>, RetrievalError> {
        let mut entries =
            self.store.corpus().index_entries(self.repo.id, self.item_type(), numbers, Some(&self.key)).await?;
        for entry in &mut entries {
            (entry.title, entry.body) =
                (self.boilerplate().own_title(&entry.title), self.boilerplate().own_body(&entry.body));
        }
        Ok(entries)
    }

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

    /// The nearest items, best first. `vector` is the query's own, which the database needs for the search.
    pub async fn neighbours(
        &self,
        query: &Query,
        vector: Option<&[f32]>,
        wanted: NeighbourQuery,
        filter: &(dyn Fn(&IndexRow) -> bool + Sync),
    ) -> Result<Vec<Hit>, RetrievalError> {
        let pool = match &self.loaded.sample {
            Some(sample) if wanted.mode != RetrievalMode::Lexical => {
                self.pool_by_database(sample, query, vector, wanted, filter).await?
            }
            _ => self.pool_in_index(query, vector, wanted, filter)?,
        };
        let asked = RankingQuery { item: query.item(), tokens: query.tokens().cloned().map(Arc::new), pool };
        Ok(self.ranked(vec![asked], wanted).await?.pop().unwrap_or_default())
    }

    /// The nearest items of each of these, in their order; uses every core if the index contains the vectors.
    ///
    /// The first argument of the filter is the item whose neighbours are searched.
    pub(crate) async fn neighbours_of_all(
        &self,
        entries: &[IndexEntry],
        wanted: NeighbourQuery,
        filter: &(dyn Fn(ItemNumber, &IndexRow) -> bool + Sync),
    ) -> Result<Vec<Vec<Hit>>, RetrievalError> {
        let pools: Vec<CandidatePool> = match &self.loaded.sample {
            Some(sample) if wanted.mode != RetrievalMode::Lexical => {
                let mut pools = Vec::with_capacity(entries.len());
                for entry in entries {
                    let of_entry = |row: &IndexRow| filter(entry.number, row);
                    let (query, vector) = (Self::query_of(entry), entry.vector.as_deref());
                    pools.push(self.pool_by_database(sample, &query, vector, wanted, &of_entry).await?);
                }
                pools
            }
            _ => {
                let pools = on_all_cores(entries, |entry| {
                    let of_entry = |row: &IndexRow| filter(entry.number, row);
                    self.pool_in_index(&Self::query_of(entry), entry.vector.as_deref(), wanted, &of_entry)
                });
                pools.into_iter().collect::<Result<_, _>>()?
            }
        };
        let asked =
            |(entry, pool): (&IndexEntry, CandidatePool)| RankingQuery { item: Some(entry.number), tokens: None, pool };
        self.ranked(entries.iter().zip(pools).map(asked).collect(), wanted).await
    }

    /// The candidates, if the index contains the vectors or none are needed.
    fn pool_in_index(
        &self,
        query: &Query,
        vector: Option<&[f32]>,
        wanted: NeighbourQuery,
        filter: &(dyn Fn(&IndexRow) -> bool + Sync),
    ) -> Result<CandidatePool, IndexError> {
        if query.item().is_some_and(|item| !self.has_content(item)) {
            return Ok(NOTHING_NEAR);
        }
        if vector.is_some_and(is_blank) && wanted.mode != RetrievalMode::Lexical {
            return Ok(NOTHING_NEAR);
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
        self.index().candidates(query, &ask)
    }

    /// The candidates, if the database contains the vectors.
    async fn pool_by_database(
        &self,
        sample: &VectorSample,
        query: &Query,
        vector: Option<&[f32]>,
        wanted: NeighbourQuery,
        filter: &(dyn Fn(&IndexRow) -> bool + Sync),
    ) -> Result<CandidatePool, RetrievalError> {
        if vector.is_some_and(is_blank) || query.item().is_some_and(|item| !self.has_content(item)) {
            return Ok(NOTHING_NEAR);
        }
        let allowed = |number: ItemNumber| self.is_allowed(number, wanted, filter);
        let calibrate = |cosine| self.calibration.similarity(cosine).get();
        let vector = vector.ok_or(IndexError::NoVector { mode: wanted.mode })?;
        if let Some(expected) = sample.vectors().next().map(<[f32]>::len).filter(|&expected| expected != vector.len()) {
            let reason = InvalidVector::Dimension { expected, found: vector.len() };
            return Err(IndexError::QueryVector { model: self.key.model.clone(), reason }.into());
        }
        let near = self.nearest_allowed(vector, wanted.k, &allowed).await?;
        let numbers: Vec<ItemNumber> = near.keys().copied().collect();
        let mut candidates = match wanted.mode {
            RetrievalMode::Dense => {
                self.index().word_candidates(query, &numbers, 0, &|number| near.contains_key(&number))
            }
            _ => self.index().word_candidates(query, &numbers, wanted.k, &allowed),
        };
        let missing = candidates.iter().map(|candidate| candidate.number).filter(|number| !near.contains_key(number));
        let missing: Vec<ItemNumber> = missing.collect();
        let more =
            self.store.corpus().inner_products(self.repo.id, &self.key, self.item_type(), vector, &missing).await?;
        for candidate in &mut candidates {
            candidate.cosine = near.get(&candidate.number).or_else(|| more.get(&candidate.number)).copied();
        }
        let (spread, limit) = (spread(sample, vector), wanted.k.max(SHORTLIST));
        let mut candidates = shortlist(wanted.mode, candidates, spread, calibrate, wanted.min_score, limit);
        self.index().compare(query, &mut candidates);
        Ok(CandidatePool { candidates, spread })
    }

    fn is_allowed(
        &self,
        number: ItemNumber,
        wanted: NeighbourQuery,
        filter: &(dyn Fn(&IndexRow) -> bool + Sync),
    ) -> bool {
        let row = self.rows().get(&number).filter(|row| wanted.state.is_none_or(|state| row.state == state));
        row.is_some_and(filter) && self.has_content(number)
    }

    /// The scores between items, each pair once. A pair without a score (one of the two has no vector) is left out.
    pub(crate) async fn pair_scores(
        &self,
        numbers: &[ItemNumber],
        mode: RetrievalMode,
    ) -> Result<Vec<(ItemNumber, ItemNumber, Similarity)>, RetrievalError> {
        // PostgreSQL has the vectors: one statement, instead of three for each item.
        let stored = match (&self.loaded.sample, mode) {
            (None, _) | (_, RetrievalMode::Lexical) => HashMap::new(),
            _ => self.store.corpus().item_vectors(self.repo.id, self.item_type(), numbers, &self.key).await?,
        };
        let mut pairs: BTreeMap<(ItemNumber, ItemNumber), Similarity> = BTreeMap::new();
        for (at, &one) in numbers.iter().enumerate() {
            for (other, score) in self.scores_from(one, &numbers[at + 1..], mode, &stored).await? {
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
        stored: &HashMap<ItemNumber, Vec<f32>>,
    ) -> Result<Vec<(ItemNumber, Similarity)>, RetrievalError> {
        if others.is_empty() {
            return Ok(Vec::new());
        }
        if mode == RetrievalMode::Lexical {
            let Some(entry) = self.entry(one).await? else { return Ok(Vec::new()) };
            let candidates =
                self.index().word_candidates(&Self::query_of(&entry), others, 0, &|number| others.contains(&number));
            return Ok(candidates.iter().map(|candidate| (candidate.number, words_score(candidate))).collect());
        }
        let vector = |number: ItemNumber| match self.loaded.sample {
            None => self.index().vector(number),
            Some(_) => stored.get(&number).map(Vec::as_slice),
        };
        let Some(own) = vector(one) else { return Ok(Vec::new()) };
        let cosine = |other: &[f32]| own.iter().zip(other).map(|(one, other)| one * other).sum();
        let scored =
            others.iter().filter_map(|&other| Some((other, self.calibration.similarity(cosine(vector(other)?)))));
        Ok(scored.collect())
    }

    /// The nearest items that pass the filter. The database does not know the filter: if few items pass, it compares only
    /// those; otherwise so many of the nearest are requested that enough of them probably pass.
    async fn nearest_allowed(
        &self,
        vector: &[f32],
        k: usize,
        allowed: &(dyn Fn(ItemNumber) -> bool + Sync),
    ) -> Result<HashMap<ItemNumber, f32>, RetrievalError> {
        let corpus = self.store.corpus();
        // At least as many as the index in memory returns.
        let wanted = k.max(SHORTLIST);
        // The order of a hash map has nothing to do with the filter.
        let numbers = || self.rows().keys().copied();
        let sampled = self.rows().len().clamp(1, FILTER_SAMPLE);
        let passed = numbers().take(sampled).filter(|number| allowed(*number)).count();
        if self.rows().len() * passed <= FEW * sampled {
            let named: Vec<ItemNumber> = numbers().filter(|number| allowed(*number)).take(2 * FEW).collect();
            if named.len() < 2 * FEW {
                let products = corpus.inner_products(self.repo.id, &self.key, self.item_type(), vector, &named).await?;
                let mut products: Vec<(ItemNumber, f32)> = products.into_iter().collect();
                products.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
                products.truncate(wanted);
                return Ok(products.into_iter().collect());
            }
        }
        // A fifth more, because the nearest ones are not a random part, and not so few that it is asked twice for them.
        let likely = wanted * sampled * 6 / (passed.max(1) * 5);
        let mut limit = u32::try_from(likely).unwrap_or(u32::MAX).max(LEAST_REQUESTED);
        loop {
            let found = corpus.nearest(self.repo.id, &self.key, self.item_type(), vector, limit).await?;
            let found = found.unwrap_or_default();
            let exhausted = found.len() < limit as usize;
            let passed: HashMap<ItemNumber, f32> = found.into_iter().filter(|(number, _)| allowed(*number)).collect();
            if exhausted || passed.len() >= wanted {
                return Ok(passed);
            }
            limit = limit.saturating_mul(4);
        }
    }
}

/// Items on which a filter is tried to learn which share of all passes it.
const FILTER_SAMPLE: usize = 1_000;
/// PostgreSQL finds 400 of 100,000 in 5 ms, and 700 in 12.
const LEAST_REQUESTED: u32 = 400;
/// Up to as many items are compared without the database's index: an issue among 1,000 items took 53 ms either way.
const FEW: usize = 1_000;

fn spread(sample: &VectorSample, vector: &[f32]) -> Spread {
    let product = |other: &[f32]| other.iter().zip(vector).map(|(one, other)| one * other).sum();
    Spread::of(sample.vectors().map(product))
}

/// A text without words has a vector of zeros; nothing is near it.
pub(crate) fn is_blank(vector: &[f32]) -> bool {
    vector.iter().all(|number| *number == 0.0)
}
