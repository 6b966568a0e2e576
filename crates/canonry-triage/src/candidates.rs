//! `candidates`: stores each item's nearest neighbours.

use std::collections::BTreeMap;

use canonry_domain::{ContentVersion, ItemNumber, ItemState, ItemType, Similarity};
use canonry_retrieval::{Hit, RetrievalMode};
use canonry_store::{CandidateMember, NewCandidateSet, Repo, Representation, SetStatus, Store, StoreError};
use jiff::Timestamp;

use crate::neighbourhood::{Neighbourhood, RetrievalError, Wanted};

/// Which sets to make.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CandidateOptions {
    /// How neighbours are looked for.
    pub wanted: Wanted,
    /// In which state the items must be whose neighbours are looked for; `None` for any.
    pub source_state: Option<ItemState>,
    /// What is compared.
    pub representation: Representation,
}

/// A stored set.
#[derive(Debug, Clone, PartialEq)]
pub struct WrittenSet {
    /// Issue or pull request.
    pub item_type: ItemType,
    /// The item.
    pub number: ItemNumber,
    /// Fresh, unless its text changed while its neighbours were looked for.
    pub status: SetStatus,
    /// Its neighbours.
    pub members: Vec<Hit>,
}

/// What was done.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CandidatesReport {
    /// Items whose neighbours were to be looked for.
    pub discovered: u64,
    /// Those without a vector of what is compared, at their present text.
    pub missing_embedding: Vec<ItemNumber>,
    /// Those whose text changed meanwhile: their set was not written.
    pub skipped_changed: u64,
    /// The sets that were written.
    pub sets: Vec<WrittenSet>,
}

/// Looks for the neighbours of every item of a neighbourhood (or of `only` these) and stores them. A set is written even when
/// it is empty: "nothing is near" is an answer too.
pub async fn candidates(
    store: &Store,
    repo: &Repo,
    neighbourhood: &Neighbourhood,
    options: CandidateOptions,
    only: Option<&[ItemNumber]>,
    now: Timestamp,
    progress: &mut (dyn FnMut(u64, u64) + Send),
) -> Result<CandidatesReport, RetrievalError> {
    let mut sources: Vec<ItemNumber> = neighbourhood
        .rows()
        .values()
        .filter(|row| options.source_state.is_none_or(|state| row.state == state))
        .filter(|row| only.is_none_or(|only| only.contains(&row.number)))
        .map(|row| row.number)
        .collect();
    sources.sort_unstable();
    let mut report = CandidatesReport { discovered: sources.len() as u64, ..CandidatesReport::default() };
    for (done, number) in (1..).zip(&sources) {
        write_set(store, repo, neighbourhood, options, *number, now, &mut report).await?;
        progress(done, report.discovered);
    }
    Ok(report)
}

async fn write_set(
    store: &Store,
    repo: &Repo,
    neighbourhood: &Neighbourhood,
    options: CandidateOptions,
    number: ItemNumber,
    now: Timestamp,
    report: &mut CandidatesReport,
) -> Result<(), RetrievalError> {
    let item_type = neighbourhood.item_type();
    let Some(version) = version_of(store, repo, neighbourhood, number).await? else {
        report.skipped_changed += 1;
        return Ok(());
    };
    let Some(entry) = neighbourhood.entry(number).await? else {
        report.skipped_changed += 1;
        return Ok(());
    };
    if entry.vector.is_none() && options.wanted.mode != RetrievalMode::Lexical {
        report.missing_embedding.push(number);
        return Ok(());
    }
    let query = Neighbourhood::query_of(&entry);
    let hits = neighbourhood.neighbours(&query, entry.vector.as_deref(), options.wanted, &|_| true).await?;
    let set = NewCandidateSet {
        item_type,
        number,
        representation: options.representation,
        content_version: version,
        model: neighbourhood.index().model().to_owned(),
        members: hits.iter().map(member).collect(),
    };
    if store.write_candidate_set(repo.id, &set, now).await? {
        report.sets.push(WrittenSet { item_type, number, status: SetStatus::Fresh, members: hits });
    } else {
        report.skipped_changed += 1;
    }
    Ok(())
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
