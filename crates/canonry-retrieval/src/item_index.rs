//! The index of one repository's issues or pull requests: every part of retrieval in one place.

use canonry_domain::{ItemNumber, ItemType, PullChanges, Similarity, TokenVectors};

use crate::bag::Bag;
use crate::changes::{diff_bag, path_bag};
use crate::dense::{DenseIndex, InvalidVector, Spread};
use crate::evidence::{CommonFacts, TextFacts};
use crate::fuse::{Candidate, Hit, Overlap, RetrievalMode, SHORTLIST, rank, shortlist};
use crate::heap_bytes::vec_bytes;
use crate::lexical::{LexicalIndex, LexicalScores};
use crate::search_rules::{SearchHit, apply_search_rules};
use crate::slots::{Slot, Slots};
use crate::title_shape::TitleShape;

#[derive(Debug)]
pub struct ItemIndex {
    pub(crate) item_type: ItemType,
    pub(crate) model: String,
    pub(crate) slots: Slots,
    pub(crate) stamps: Vec<u64>,
    pub(crate) shapes: Vec<TitleShape>,
    pub(crate) text: LexicalIndex,
    pub(crate) evidence: LexicalIndex,
    pub(crate) paths: LexicalIndex,
    pub(crate) diff: LexicalIndex,
    pub(crate) dense: DenseIndex,
}

#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    pub title: &'a str,
    pub body: &'a str,
    /// The vector of exactly this text by the index's model, if there is one yet.
    pub vector: Option<&'a [f32]>,
    pub changes: Option<&'a PullChanges>,
    /// A number that changes when the item's text, vector or changes do. [`ItemIndex::stamp`] returns it, so that an
    /// index from a snapshot can be updated item by item.
    pub stamp: u64,
}

#[derive(Debug, Clone)]
pub struct Query {
    item: Option<ItemNumber>,
    number: Option<ItemNumber>,
    shape: TitleShape,
    text: Bag,
    evidence: Bag,
    paths: Option<Bag>,
    diff: Option<Bag>,
    vector: Option<Vec<f32>>,
    tokens: Option<TokenVectors>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CandidatePool {
    /// At most [`SHORTLIST`], or `k` if that is more; the best of the fusion first.
    pub candidates: Vec<Candidate>,
    /// The distribution of cosines to the query over the repository.
    pub spread: Spread,
}

#[derive(Clone, Copy)]
pub struct Ask<'a> {
    pub mode: RetrievalMode,
    pub k: usize,
    pub min_score: Similarity,
    /// Maps the model's cosine to the similarity that gates use.
    pub calibrate: &'a dyn Fn(f32) -> f64,
    /// Which items may be neighbours: by state, or by time in a backtest.
    pub filter: &'a dyn Fn(ItemNumber) -> bool,
}

/// A fact that more than one in so many items contain proves nothing.
const COMMON_IN: usize = 50;
/// In a small repository the crash that most people report is in far more than one item in fifty: up to a fifth of the
/// items within these limits may be reports of one problem.
const REPORTS_OF_ONE: (usize, usize) = (8, 16);

/// Whether a fact that `holders` of `items` items contain proves nothing.
pub(crate) fn is_common(holders: usize, items: usize) -> bool {
    holders > (items / COMMON_IN).max((items / 5).clamp(REPORTS_OF_ONE.0, REPORTS_OF_ONE.1))
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    #[error("index {item_type} {number} with the vector of {model}: {reason}")]
    Vector { item_type: ItemType, number: ItemNumber, model: String, reason: InvalidVector },
    #[error("search with the query's vector of {model}: {reason}")]
    QueryVector { model: String, reason: InvalidVector },
    /// A mode that compares vectors was used without one.
    #[error("search in {mode} mode: the query has no vector; embed it first, or use lexical mode")]
    NoVector { mode: RetrievalMode },
    #[error("index {item_type} {number}: an index holds at most {} items", Slot::COUNT)]
    Full { item_type: ItemType, number: ItemNumber },
}

impl Query {
    /// A query for an item or for words that a person typed (those are a title).
    pub fn new(title: &str, body: &str) -> Self {
        Self {
            item: None,
            number: None,
            shape: TitleShape::of(title),
            text: Bag::of_item(title, body),
            evidence: TextFacts::of(&format!("{title}\n{body}")).bag(),
            paths: None,
            diff: None,
            vector: None,
            tokens: None,
        }
    }

    /// Excludes the item itself from its neighbours.
    #[must_use]
    pub fn for_item(mut self, number: ItemNumber) -> Self {
        self.item = Some(number);
        self.numbered(number)
    }

    /// Also compares numbers, by which items that were opened at about the same time are near. It need not be in the index.
    #[must_use]
    pub fn numbered(mut self, number: ItemNumber) -> Self {
        self.number = Some(number);
        self
    }

    /// Also compares what a pull request changes.
    #[must_use]
    pub fn with_changes(mut self, changes: &PullChanges) -> Self {
        if !changes.is_empty() {
            self.paths = Some(path_bag(changes));
            self.diff = Some(diff_bag(changes));
        }
        self
    }

    /// Also compares a vector of the index's model.
    #[must_use]
    pub fn with_vector(mut self, vector: Vec<f32>) -> Self {
        self.vector = Some(vector);
        self
    }

    #[must_use]
    pub fn with_tokens(mut self, tokens: TokenVectors) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// The item that the query is about, if any.
    pub fn item(&self) -> Option<ItemNumber> {
        self.item
    }

    pub fn tokens(&self) -> Option<&TokenVectors> {
        self.tokens.as_ref()
    }
}

impl ItemIndex {
    /// An empty index for items of one type, whose vectors all come from one model.
    pub fn new(item_type: ItemType, model: &str) -> Self {
        Self {
            item_type,
            model: model.to_owned(),
            slots: Slots::default(),
            stamps: Vec::new(),
            shapes: Vec::new(),
            text: LexicalIndex::new(),
            evidence: LexicalIndex::new(),
            paths: LexicalIndex::new(),
            diff: LexicalIndex::new(),
            dense: DenseIndex::new(),
        }
    }

    pub fn item_type(&self) -> ItemType {
        self.item_type
    }

    pub fn model(&self) -> &str {
        &self.model
    }

    pub fn len(&self) -> usize {
        self.slots.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of items with a vector.
    pub fn vectors(&self) -> usize {
        self.dense.len()
    }

    /// The indexed items, in arbitrary order.
    pub fn numbers(&self) -> impl Iterator<Item = ItemNumber> + '_ {
        self.slots.places().iter().copied().flatten()
    }

    pub fn stamp(&self, number: ItemNumber) -> Option<u64> {
        self.slots.find(number).map(|slot| self.stamps[slot.index()])
    }

    /// Replaces the stamp of every item; see [`ItemIndex::stamp`].
    pub fn restamp(&mut self, stamp: impl Fn(u64) -> u64) {
        for (kept, number) in self.stamps.iter_mut().zip(self.slots.places()) {
            if number.is_some() {
                *kept = stamp(*kept);
            }
        }
    }

    /// The heap memory in bytes, including allocated but unused space.
    pub fn heap_bytes(&self) -> usize {
        let parts = [&self.text, &self.evidence, &self.paths, &self.diff];
        let lexical: usize = parts.into_iter().map(LexicalIndex::heap_bytes).sum();
        let by_slot = vec_bytes(&self.stamps) + vec_bytes(&self.shapes);
        lexical + self.dense.heap_bytes() + self.slots.heap_bytes() + by_slot
    }

    /// Whether an item's text contains any word.
    pub fn holds_words(&self, number: ItemNumber) -> bool {
        self.slots.find(number).is_some_and(|slot| self.text.holds_words(slot))
    }

    pub fn vector(&self, number: ItemNumber) -> Option<&[f32]> {
        self.dense.vector(self.slots.find(number)?)
    }

    /// Adds an item or replaces what was known about it. After an error everything is as before.
    pub fn upsert(&mut self, number: ItemNumber, entry: Entry<'_>) -> Result<(), IndexError> {
        let item_type = self.item_type;
        if let Some(vector) = entry.vector {
            let model = &self.model;
            self.dense.unit(vector).map_err(|reason| IndexError::Vector {
                item_type,
                number,
                model: model.clone(),
                reason,
            })?;
        }
        let slot = self.slots.take(number).ok_or(IndexError::Full { item_type, number })?;
        if self.stamps.len() <= slot.index() {
            self.stamps.resize(slot.index() + 1, 0);
            self.shapes.resize(slot.index() + 1, TitleShape::default());
        }
        self.stamps[slot.index()] = entry.stamp;
        self.shapes[slot.index()] = TitleShape::of(entry.title);
        self.text.put(slot, &Bag::of_item(entry.title, entry.body));
        self.evidence.put(slot, &TextFacts::of(&format!("{}\n{}", entry.title, entry.body)).bag());
        match entry.changes.filter(|changes| !changes.is_empty()) {
            Some(changes) => {
                self.paths.put(slot, &path_bag(changes));
                self.diff.put(slot, &diff_bag(changes));
            }
            None => {
                self.paths.remove(slot);
                self.diff.remove(slot);
            }
        }
        match entry.vector {
            Some(vector) => self.dense.put(slot, vector).expect("invariant: the vector was checked above"),
            None => {
                self.dense.remove(slot);
            }
        }
        Ok(())
    }

    /// Removes an item; returns whether it existed.
    pub fn remove(&mut self, number: ItemNumber) -> bool {
        let Some(slot) = self.slots.give_back(number) else {
            return false;
        };
        for part in [&mut self.text, &mut self.evidence, &mut self.paths, &mut self.diff] {
            part.remove(slot);
        }
        self.dense.remove(slot);
        self.stamps[slot.index()] = 0;
        true
    }

    /// The nearest items, by what the index alone knows.
    pub fn neighbours(&self, query: &Query, ask: &Ask<'_>) -> Result<Vec<Hit>, IndexError> {
        let CandidatePool { candidates, spread } = self.candidates(query, ask)?;
        Ok(rank(self.item_type, ask.mode, &candidates, spread, ask.calibrate, ask.k))
    }

    /// The candidates for a closer comparison: the best by the fusion of all parts, all with at least the minimum
    /// score. A caller that knows more about them (their tokens, authors, times) sets that, then calls [`rank`].
    pub fn candidates(&self, query: &Query, ask: &Ask<'_>) -> Result<CandidatePool, IndexError> {
        let key = |slot: Slot| self.allowed(query, ask.filter, slot);
        let limit = SHORTLIST.max(ask.k);
        let mut found: Vec<Slot> = Vec::with_capacity(4 * limit);
        let mut unit = None;
        let mut spread = Spread { mean: 0.0, deviation: 0.0 };
        if ask.mode != RetrievalMode::Lexical {
            let vector = query.vector.as_deref().ok_or(IndexError::NoVector { mode: ask.mode })?;
            let named = |reason| IndexError::QueryVector { model: self.model.clone(), reason };
            let scan = self.dense.nearest(vector, limit, key).map_err(named)?;
            unit = Some(self.dense.unit(vector).map_err(named)?);
            spread = scan.spread;
            found.extend(scan.hits.iter().map(|hit| hit.slot));
        }
        let words = WordScores::of(self, query);
        if ask.mode != RetrievalMode::Dense {
            found.extend(words.best(limit, key));
        }
        found.sort_unstable();
        found.dedup();
        let candidates = found.into_iter().filter_map(|slot| {
            let cosine = unit.as_deref().and_then(|unit| self.dense.cosine(slot, unit));
            Some(words.candidate(slot, self.slots.number(slot)?, cosine))
        });
        let mut candidates = shortlist(ask.mode, candidates.collect(), spread, ask.calibrate, ask.min_score, limit);
        self.compare(query, &mut candidates);
        Ok(CandidatePool { candidates, spread })
    }

    /// Sets what the query and the candidates share, in both directions. [`ItemIndex::candidates`] has already done
    /// this.
    pub fn compare(&self, query: &Query, candidates: &mut [Candidate]) {
        for candidate in candidates {
            if let Some(slot) = self.slots.find(candidate.number) {
                candidate.overlap = Some(self.overlap(query, candidate.number, slot));
            }
        }
    }

    fn overlap(&self, query: &Query, number: ItemNumber, slot: Slot) -> Overlap {
        let shared = self.text.shared(&query.text, slot);
        Overlap {
            words_back: shared.words_back,
            title_within: shared.title_within,
            title_within_back: shared.title_within_back,
            diff_back: query.diff.as_ref().and_then(|diff| self.diff.held_back(diff, slot)),
            series: query.shape.is_series_with(self.shapes[slot.index()]),
            numbers_apart: query.number.map(|own| own.get().abs_diff(number.get())),
        }
    }

    /// Selects the results of a search from its neighbours, by the rules of [`apply_search_rules`].
    ///
    /// A person who types a word expects items that contain it, whatever the model says: a hit's score is the higher
    /// of the calibrated similarity and the score of its words. `min_score` applies after include terms have raised a
    /// hit.
    pub fn search_among(
        &self,
        hits: Vec<Hit>,
        mode: RetrievalMode,
        min_score: Similarity,
        limit: usize,
        include: &[String],
        exclude: &[String],
    ) -> Vec<SearchHit> {
        let held = |number, terms: &[String]| terms.iter().map(|term| self.holds(number, term)).collect();
        let hits = hits.into_iter().map(|hit| {
            let words = hit.parts.get("words").and_then(|&words| Similarity::clamped(words).ok());
            let score =
                if mode == RetrievalMode::Dense { hit.score } else { hit.score.max(words.unwrap_or(hit.score)) };
            let (includes, excludes) = (held(hit.number, include), held(hit.number, exclude));
            SearchHit { number: hit.number, rank: hit.rank, score, includes, excludes }
        });
        apply_search_rules(hits.collect(), min_score, limit)
    }

    /// Candidates by everything except vectors: those found by words, and the items of `also`. It is used if the
    /// vectors are searched elsewhere: set their cosines, then call [`shortlist`], [`ItemIndex::compare`] and
    /// [`rank`].
    pub fn word_candidates(
        &self,
        query: &Query,
        also: &[ItemNumber],
        k: usize,
        filter: &dyn Fn(ItemNumber) -> bool,
    ) -> Vec<Candidate> {
        let key = |slot: Slot| self.allowed(query, filter, slot);
        let words = WordScores::of(self, query);
        let mut found = words.best(SHORTLIST.max(k), key);
        found.extend(also.iter().filter_map(|&number| self.slots.find(number)).filter(|&slot| key(slot).is_some()));
        found.sort_unstable();
        found.dedup();
        let candidate = |slot| Some(words.candidate(slot, self.slots.number(slot)?, None));
        found.into_iter().filter_map(candidate).collect()
    }

    /// Those facts of a text that more than one in fifty items contain: sharing them proves nothing.
    pub fn common_facts(&self, facts: &TextFacts) -> CommonFacts {
        facts.common(|term| is_common(self.evidence.holders(term), self.len()))
    }

    /// The share of a term's words that an item contains, 0..1; rare words count more.
    fn holds(&self, number: ItemNumber, term: &str) -> f64 {
        let bag = Bag::of_item("", term);
        self.slots.find(number).map_or(0.0, |slot| self.text.covered(&bag, slot))
    }

    fn allowed(&self, query: &Query, filter: &dyn Fn(ItemNumber) -> bool, slot: Slot) -> Option<ItemNumber> {
        self.slots.number(slot).filter(|&number| query.item != Some(number) && filter(number))
    }
}

/// The scores of every item by the parts without vectors.
struct WordScores {
    text: LexicalScores,
    evidence: LexicalScores,
    paths: Option<LexicalScores>,
    diff: Option<LexicalScores>,
}

impl WordScores {
    fn of(index: &ItemIndex, query: &Query) -> Self {
        Self {
            text: index.text.scores(&query.text),
            evidence: index.evidence.scores(&query.evidence),
            paths: query.paths.as_ref().map(|paths| index.paths.scores(paths)),
            diff: query.diff.as_ref().map(|diff| index.diff.scores(diff)),
        }
    }

    fn best(&self, limit: usize, key: impl Fn(Slot) -> Option<ItemNumber>) -> Vec<Slot> {
        let mut found = self.text.best(limit, &key);
        // Few items share evidence, so its candidates cost little. A common error line alone can find an item that
        // other words hide.
        for part in [Some(&self.evidence), self.paths.as_ref(), self.diff.as_ref()].into_iter().flatten() {
            found.extend(part.best(limit, &key));
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    fn candidate(&self, slot: Slot, number: ItemNumber, cosine: Option<f32>) -> Candidate {
        Candidate {
            cosine,
            lexical: self.text.text(slot),
            title: self.text.title(slot),
            evidence: self.evidence.text(slot),
            paths: self.paths.as_ref().map(|paths| paths.text(slot)),
            diff: self.diff.as_ref().map(|diff| diff.text(slot)),
            ..Candidate::of(number)
        }
    }
}
