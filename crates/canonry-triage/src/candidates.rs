//! `candidates`: stores each item's nearest neighbours.

use std::collections::BTreeMap;

use canonry_domain::{ContentVersion, ItemNumber, ItemState, ItemType, Similarity};
use canonry_retrieval::{Hit, RetrievalMode};
use canonry_store::{CandidateMember, NewCandidateSet, Repo, Representation, Store, StoreError};
use jiff::Timestamp;

use crate::neighbourhood::{Neighbourhood, RetrievalError, Wanted};

/// Which sets to make.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CandidateOptions {
    /// How neighbours are looked for.
    pub wanted: Wanted,
    /// In which state the items must be whose neighbours are looked for; `None` for any.
    pub source_state: Option<ItemState>,
}

/// A stored set.
#[derive(Debug, Clone, PartialEq)]
pub struct WrittenSet {
    /// Issue or pull request.
    pub item_type: ItemType,
    /// The item.
    pub number: ItemNumber,
    /// What was compared.
    pub representation: Representation,
    /// Its neighbours.
    pub members: Vec<Hit>,
}

/// What was done.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CandidatesReport {
    /// Items whose neighbours were to be looked for.
    pub discovered: u64,
    /// Those without a vector of their present text.
    pub skipped_missing_embedding: u64,
    /// Those that were compared by their text, because they have no vector of what was to be compared.
    pub fell_back: u64,
    /// Those whose text changed meanwhile: their set was not written.
    pub skipped_changed: u64,
    /// The sets that were written.
    pub sets: Vec<WrittenSet>,
}

/// Looks for the neighbours of every item of a neighbourhood and stores them. A set is written even when
/// it is empty: "nothing is near" is an answer too.
///
/// An item without a vector there (its card failed, or is of an older text) is compared in `by_text`, where
/// that is given, and its set says so.
pub async fn candidates(
    store: &Store,
    repo: &Repo,
    neighbourhood: &Neighbourhood,
    by_text: Option<&Neighbourhood>,
    options: CandidateOptions,
    now: Timestamp,
    progress: &mut (dyn FnMut(u64, u64) + Send),
) -> Result<CandidatesReport, RetrievalError> {
    let mut sources: Vec<ItemNumber> = neighbourhood
        .rows()
        .values()
        .filter(|row| options.source_state.is_none_or(|state| row.state == state))
        .map(|row| row.number)
        .collect();
    sources.sort_unstable();
    let mut report = CandidatesReport { discovered: sources.len() as u64, ..CandidatesReport::default() };
    for (done, number) in (1..).zip(&sources) {
        let written = match write_set(store, repo, neighbourhood, options.wanted, *number, now).await? {
            Written::NoVector => match by_text {
                Some(by_text) => {
                    let written = write_set(store, repo, by_text, options.wanted, *number, now).await?;
                    report.fell_back += u64::from(matches!(written, Written::Set(_)));
                    written
                }
                None => Written::NoVector,
            },
            written => written,
        };
        match written {
            Written::Set(set) => report.sets.push(set),
            Written::NoVector => report.skipped_missing_embedding += 1,
            Written::Changed => report.skipped_changed += 1,
        }
        progress(done, report.discovered);
    }
    Ok(report)
}

/// What became of one item.
enum Written {
    Set(WrittenSet),
    NoVector,
    Changed,
}

async fn write_set(
    store: &Store,
    repo: &Repo,
    neighbourhood: &Neighbourhood,
    wanted: Wanted,
    number: ItemNumber,
    now: Timestamp,
) -> Result<Written, RetrievalError> {
    let item_type = neighbourhood.item_type();
    let Some(version) = version_of(store, repo, neighbourhood, number).await? else {
        return Ok(Written::Changed);
    };
    let Some(entry) = neighbourhood.entry(number).await? else {
        return Ok(Written::Changed);
    };
    if entry.vector.is_none() && wanted.mode != RetrievalMode::Lexical {
        return Ok(Written::NoVector);
    }
    let query = Neighbourhood::query_of(&entry);
    let hits = neighbourhood.neighbours(&query, entry.vector.as_deref(), wanted, &|_| true).await?;
    let representation = neighbourhood.representation();
    let set = NewCandidateSet {
        item_type,
        number,
        representation,
        content_version: version,
        model: neighbourhood.index().model().to_owned(),
        members: hits.iter().map(member).collect(),
    };
    if store.write_candidate_set(repo.id, &set, now).await? {
        Ok(Written::Set(WrittenSet { item_type, number, representation, members: hits }))
    } else {
        Ok(Written::Changed)
    }
}

/// The version of the text that the neighbourhood knows; `None` when the item has another text by now.
async fn version_of(
    store: &Store,
    repo: &Repo,
    neighbourhood: &Neighbourhood,
    number: ItemNumber,
) -> Result<Option<ContentVersion>, StoreError> {
    let item = store.item(repo.id, neighbourhood.item_type(), number).await?;
    let known = neighbourhood.rows().get(&number).map(|row| &row.content_hash);
    Ok(item.filter(|item| Some(&item.content_hash) == known).map(|item| item.content_version))
}

fn member(hit: &Hit) -> CandidateMember {
    let parts: BTreeMap<String, f64> = hit.parts.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    CandidateMember { number: hit.number, score: Similarity::get(hit.score), parts }
}
