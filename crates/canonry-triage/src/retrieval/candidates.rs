//! `candidates`: stores each item's nearest neighbours.

use canonry_boxed::boxed;
use std::collections::{BTreeMap, BTreeSet};

use canonry_domain::{ItemNumber, ItemState, ItemType, Similarity};
use canonry_retrieval::{Hit, RetrievalMode};
use canonry_store::{CandidateMember, IndexRow, NewCandidateSet, Repo, Representation, Store};
use jiff::Timestamp;

use crate::judge::known_duplicates::KnownDuplicates;
use crate::retrieval::neighbourhood::{NeighbourQuery, Neighbourhood, RetrievalError};

#[derive(Debug, Clone, PartialEq)]
pub struct CandidateOptions {
    pub wanted: NeighbourQuery,
    /// The state of the items whose neighbours are searched; `None` for any.
    pub source_state: Option<ItemState>,
    /// Only these items, and only neighbours outside their own cluster; `None` for all items.
    pub joining: Option<BTreeSet<ItemNumber>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct WrittenSet {
    pub item_type: ItemType,
    pub number: ItemNumber,
    pub representation: Representation,
    pub members: Vec<Hit>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct CandidatesReport {
    /// Items whose neighbours were requested.
    pub discovered: u64,
    /// Items without a vector for their current text.
    pub skipped_missing_embedding: u64,
    /// Items that were compared by their text, because they have no vector of the wanted source.
    pub fell_back: u64,
    /// Items whose text changed meanwhile: their set was not written.
    pub skipped_changed: u64,
    pub sets: Vec<WrittenSet>,
}

/// Finds the neighbours of every item of a neighbourhood and stores them. A set is written even if it is empty:
/// "nothing is near" is an answer too.
///
/// An item without a vector there (its card failed, or is for an older text) is compared in `by_text`, if given, and
/// its set says so.
#[boxed]
pub async fn candidates(
    store: &Store,
    repo: &Repo,
    neighbourhood: &Neighbourhood,
    by_text: Option<&Neighbourhood>,
    options: &CandidateOptions,
    now: Timestamp,
    progress: &mut (dyn FnMut(u64, u64) + Send),
) -> Result<CandidatesReport, RetrievalError> {
    let mut sources: Vec<ItemNumber> = neighbourhood
        .rows()
        .values()
        .filter(|row| options.source_state.is_none_or(|state| row.state == state))
        .filter(|row| options.joining.as_ref().is_none_or(|joining| joining.contains(&row.number)))
        .map(|row| row.number)
        .collect();
    sources.sort_unstable();
    let known = KnownDuplicates::load(store, repo, neighbourhood.item_type(), neighbourhood.representation()).await?;
    let stand_ins = known.stand_ins(|number| {
        let row = neighbourhood.rows().get(&number);
        row.is_some_and(|row| row.embedded && options.wanted.state.is_none_or(|state| row.state == state))
            && neighbourhood.has_content(number)
    });
    let mut report = CandidatesReport { discovered: sources.len() as u64, ..CandidatesReport::default() };
    let compared = BatchContext { representation: neighbourhood.representation(), stand_ins, options };
    let mut done = 0;
    for batch in sources.chunks(BATCH) {
        let by_cards = write_sets(store, repo, neighbourhood, &compared, batch, now).await?;
        let by_text = match by_text {
            Some(by_text) if !by_cards.without_vector.is_empty() => {
                Some(write_sets(store, repo, by_text, &compared, &by_cards.without_vector, now).await?)
            }
            _ => None,
        };
        report.skipped_changed += by_cards.changed;
        report.sets.extend(by_cards.sets);
        match by_text {
            Some(by_text) => {
                report.fell_back += by_text.sets.len() as u64;
                report.skipped_changed += by_text.changed;
                report.skipped_missing_embedding += by_text.without_vector.len() as u64;
                report.sets.extend(by_text.sets);
            }
            None => report.skipped_missing_embedding += by_cards.without_vector.len() as u64,
        }
        done += batch.len() as u64;
        progress(done, report.discovered);
    }
    report.sets.sort_by_key(|set| set.number);
    Ok(report)
}

/// Items that are compared and stored together: enough to keep every core busy, few enough that a kill costs nothing.
const BATCH: usize = 64;

/// The result of a batch.
#[derive(Default)]
struct BatchSets {
    sets: Vec<WrittenSet>,
    without_vector: Vec<ItemNumber>,
    changed: u64,
}

/// What all batches share.
struct BatchContext<'a> {
    /// The representation under which the sets are stored: an item that is compared by its text because it has no
    /// card belongs to the same sets.
    representation: Representation,
    /// For each member of a known cluster the item that may be named for it.
    stand_ins: BTreeMap<ItemNumber, ItemNumber>,
    options: &'a CandidateOptions,
}

async fn write_sets(
    store: &Store,
    repo: &Repo,
    neighbourhood: &Neighbourhood,
    compared: &BatchContext<'_>,
    numbers: &[ItemNumber],
    now: Timestamp,
) -> Result<BatchSets, RetrievalError> {
    let (item_type, wanted) = (neighbourhood.item_type(), compared.options.wanted);
    let mut entries = neighbourhood.entries(numbers).await?;
    let mut written = BatchSets { changed: (numbers.len() - entries.len()) as u64, ..BatchSets::default() };
    if wanted.mode != RetrievalMode::Lexical {
        entries.retain(|entry| {
            if entry.vector.is_none() {
                written.without_vector.push(entry.number);
            }
            entry.vector.is_some()
        });
    }
    // A known cluster takes one slot: its canonical's.
    let stands_for_itself = |source: ItemNumber, row: &IndexRow| match compared.stand_ins.get(&row.number) {
        None => true,
        stand_in => {
            let own = compared.options.joining.is_some() && stand_in == compared.stand_ins.get(&source);
            stand_in == Some(&row.number) && !own
        }
    };
    let found = neighbourhood.neighbours_of_all(&entries, wanted, &stands_for_itself).await?;
    let mut sets = Vec::with_capacity(entries.len());
    let mut hits_of = Vec::with_capacity(entries.len());
    for (entry, hits) in entries.iter().zip(found) {
        let Some(row) = neighbourhood.rows().get(&entry.number) else { continue };
        let near: Vec<ItemNumber> = hits.iter().map(|hit| hit.number).collect();
        let pairs = neighbourhood.pair_scores(&near, wanted.mode).await?;
        sets.push(NewCandidateSet {
            item_type,
            number: entry.number,
            representation: compared.representation,
            content_version: row.content_version,
            model: neighbourhood.index().model().to_owned(),
            members: hits.iter().map(member).collect(),
            pairs: pairs.into_iter().map(|(one, other, score)| (one, other, score.get())).collect(),
        });
        hits_of.push(hits);
    }
    // The store does not write a set whose item has another text by now.
    let kept = store.duplicates().write_candidate_sets(repo.id, &sets, now).await?;
    for ((set, members), kept) in sets.into_iter().zip(hits_of).zip(kept) {
        if kept {
            let (number, representation) = (set.number, neighbourhood.representation());
            written.sets.push(WrittenSet { item_type, number, representation, members });
        } else {
            written.changed += 1;
        }
    }
    Ok(written)
}

fn member(hit: &Hit) -> CandidateMember {
    let parts: BTreeMap<String, f64> = hit.parts.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    CandidateMember { number: hit.number, score: Similarity::get(hit.score), parts }
}
