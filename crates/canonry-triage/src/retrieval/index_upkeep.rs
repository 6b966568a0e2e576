//! Updates the index of a neighbourhood item by item, and keeps it on disk.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use canonry_domain::{Boilerplate, ItemNumber, ItemType, PullChanges, RepoName, has_content};
use canonry_retrieval::{Entry, IndexError, ItemIndex, read_snapshot, write_snapshot};
use canonry_store::{EmbeddingKey, IndexEntry, IndexRow, Repo, Representation};
use tokio::sync::OwnedRwLockReadGuard;

use crate::retrieval::loaded_index::{IndexSource, LoadedIndex};
use crate::retrieval::neighbourhood::{RetrievalError, is_blank};

/// How many items' texts are read at once while an index is built.
const ENTRIES: usize = 400;

/// The index of these rows, and whether it differs from the known one.
pub(crate) async fn up_to_date(
    source: IndexSource<'_>,
    known: Option<ItemIndex>,
    rows: &[IndexRow],
    boilerplate: &Arc<Boilerplate>,
) -> Result<(ItemIndex, bool), RetrievalError> {
    if let Some(index) = known {
        match bring_up_to_date(source, index, rows, boilerplate).await {
            Ok(brought) => return Ok(brought),
            // All vectors may have another length by now: the model was replaced under the same name.
            Err(RetrievalError::Index(error)) => tracing::info!(%error, "the index on disk is not used"),
            Err(error) => return Err(error),
        }
    }
    let index = ItemIndex::new(source.item_type, &source.key.model);
    let (index, _) = bring_up_to_date(source, index, rows, boilerplate).await?;
    Ok((index, true))
}

/// Reading, building or writing a large index takes seconds, and would block all other async tasks.
pub(crate) async fn off_async_threads<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.expect("invariant: an index does not panic")
}

/// Adds new and changed items and removes those that left. Returns whether anything changed.
async fn bring_up_to_date(
    source: IndexSource<'_>,
    mut index: ItemIndex,
    rows: &[IndexRow],
    boilerplate: &Arc<Boilerplate>,
) -> Result<(ItemIndex, bool), RetrievalError> {
    let present: HashSet<ItemNumber> = rows.iter().map(|row| row.number).collect();
    let gone: Vec<ItemNumber> = index.numbers().filter(|number| !present.contains(number)).collect();
    for number in &gone {
        index.remove(*number);
    }
    let shared = boilerplate.stamp();
    let stale: Vec<&IndexRow> = rows.iter().filter(|row| is_stale(source, &index, row, shared)).collect();
    index = index_anew(source, index, &stale, boilerplate).await?;
    Ok((index, !gone.is_empty() || !stale.is_empty()))
}

/// Whether the index has something else for an item than what is stored; `shared` is the stamp of the boilerplate.
pub(crate) fn is_stale(source: IndexSource<'_>, index: &ItemIndex, row: &IndexRow, shared: u64) -> bool {
    index.stamp(row.number) != Some(stamp(row, source.with_vectors(), shared))
}

/// Reads these items and replaces them in the index.
pub(crate) async fn index_anew(
    source: IndexSource<'_>,
    mut index: ItemIndex,
    stale: &[&IndexRow],
    boilerplate: &Arc<Boilerplate>,
) -> Result<ItemIndex, RetrievalError> {
    let IndexSource { store, repo, item_type, key, .. } = source;
    let (with_vectors, shared) = (source.with_vectors(), boilerplate.stamp());
    for batch in stale.chunks(ENTRIES) {
        let numbers: Vec<ItemNumber> = batch.iter().map(|row| row.number).collect();
        let entries = store.corpus().index_entries(repo.id, item_type, &numbers, with_vectors.then_some(key)).await?;
        let stamps: HashMap<ItemNumber, u64> =
            batch.iter().map(|row| (row.number, stamp(row, with_vectors, shared))).collect();
        let boilerplate = Arc::clone(boilerplate);
        index = off_async_threads(move || with_entries(index, entries, &boilerplate, &stamps)).await?;
    }
    Ok(index)
}

/// An issue without text of its own is indexed as a text without words, whatever its vector: nothing is near it.
fn keep_own_text(entry: &mut IndexEntry, boilerplate: &Boilerplate, is_issue: bool) {
    entry.title = boilerplate.own_title(&entry.title);
    entry.body = boilerplate.own_body(&entry.body);
    if is_issue && !has_content(&entry.title, &entry.body) {
        (entry.title, entry.body, entry.vector) = (String::new(), String::new(), None);
    }
}

fn with_entries(
    mut index: ItemIndex,
    entries: Vec<IndexEntry>,
    boilerplate: &Boilerplate,
    stamps: &HashMap<ItemNumber, u64>,
) -> Result<ItemIndex, IndexError> {
    let is_issue = index.item_type() == ItemType::Issue;
    for mut entry in entries {
        keep_own_text(&mut entry, boilerplate, is_issue);
        let changes: Option<&PullChanges> = entry.changes.as_ref();
        let stamp = stamps.get(&entry.number).copied().unwrap_or_default();
        let vector = entry.vector.as_deref().filter(|vector| !is_blank(vector));
        index.upsert(entry.number, Entry { title: &entry.title, body: &entry.body, vector, changes, stamp })?;
    }
    Ok(index)
}

/// Changes with an item's text, vector or changes. Hashes represent the text and the changes, and the time of
/// embedding represents the vector. A newly learned template changes the indexed text of any item, so its stamp is
/// included.
fn stamp(row: &IndexRow, with_vectors: bool, shared: u64) -> u64 {
    let vector = row.embedded_at.filter(|_| with_vectors).map_or(0, |at| at.as_microsecond().cast_unsigned());
    row.text_hash
        ^ vector.wrapping_mul(0xd6e8_feb8_6659_fd93)
        ^ row.changes_hash.wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ shared
}

pub(crate) fn snapshot_place(folder: &Path, repo: &Repo, item_type: ItemType, key: &EmbeddingKey) -> PathBuf {
    folder.join(format!("{}{}", beginning(&repo.name, item_type, key.representation), ending(&key.model)))
}

/// Removes the stored indexes of a repository from a folder, all of them or those of one model, and returns how many
/// there were. An index of a repository whose name begins like this one's may be removed too; it is built again.
pub fn remove_indexes(folder: &Path, repo: &RepoName, model: Option<&str>) -> io::Result<u64> {
    let kinds = [ItemType::Issue, ItemType::Pr];
    let beginnings: Vec<String> = kinds
        .into_iter()
        .flat_map(|kind| [Representation::Raw, Representation::Intent].map(|text| beginning(repo, kind, text)))
        .map(|beginning| beginning.to_ascii_lowercase())
        .collect();
    let mut removed = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_ascii_lowercase();
        let rest = beginnings.iter().find_map(|beginning| name.strip_prefix(beginning.as_str()));
        // A file that was being written when its process was killed has an additional ending.
        if rest.is_some_and(|rest| model.is_none_or(|model| rest.starts_with(&ending(model).to_ascii_lowercase()))) {
            fs::remove_file(entry.path())?;
            removed += 1;
        }
    }
    Ok(removed)
}

fn beginning(repo: &RepoName, item_type: ItemType, representation: Representation) -> String {
    in_a_file_name(&format!("{repo}-{item_type}-{}-", representation.as_str()))
}

fn ending(model: &str) -> String {
    in_a_file_name(&format!("{model}.index"))
}

/// Names of repositories and models contain slashes and colons, which file names must not.
fn in_a_file_name(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' || c == '-' { c } else { '_' }).collect()
}

/// The index on disk. If it is missing or unreadable, the only cost is the time to build it again.
pub(crate) fn stored_index(place: &Path, item_type: ItemType, model: &str) -> Option<ItemIndex> {
    if !place.exists() {
        return None;
    }
    read_snapshot(place, item_type, model)
        .inspect_err(|error| tracing::info!(%error, "the index on disk is not used"))
        .ok()
}

/// Writes a kept index. The lock prevents changes until then.
pub(crate) async fn save_index(index: OwnedRwLockReadGuard<Option<LoadedIndex>>, place: PathBuf) {
    off_async_threads(move || {
        if let Some(loaded) = index.as_ref()
            && let Err(error) = write_snapshot(&loaded.index, &place)
        {
            tracing::warn!(%error, "the index could not be kept on disk");
        }
    })
    .await;
}

pub(crate) fn kept_on_disk(index: ItemIndex, place: &Path) -> ItemIndex {
    if let Err(error) = write_snapshot(&index, place) {
        // Only the next start is slower.
        tracing::warn!(%error, "the index could not be kept on disk");
    }
    index
}

#[cfg(test)]
mod tests {
    use canonry_domain::ItemType;
    use canonry_store::Representation;

    use super::{beginning, ending, remove_indexes};

    #[test]
    fn the_indexes_of_a_repository_are_removed_and_no_others() {
        let folder = tempfile::tempdir().expect("a folder");
        let name = |text: &str| text.parse().expect("a name");
        let file = |repo: &str, model: &str| {
            format!("{}{}", beginning(&name(repo), ItemType::Pr, Representation::Raw), ending(model))
        };
        let partial = format!("{}.77.partial", file("tide/Pool", "local:a"));
        let ours = [file("tide/Pool", "local:a"), partial, file("tide/Pool", "openai:b")];
        let others = [file("tide/pools", "local:a"), file("tide/poo", "local:a"), "tide_pool".to_owned()];
        for name in ours.iter().chain(&others) {
            std::fs::write(folder.path().join(name), "").expect("written");
        }
        let left = || ours.iter().chain(&others).map(|name| folder.path().join(name).exists()).collect::<Vec<_>>();
        assert_eq!(remove_indexes(folder.path(), &name("tide/pool"), Some("local:a")).expect("removed"), 2);
        assert_eq!(left(), [false, false, true, true, true, true]);
        assert_eq!(remove_indexes(folder.path(), &name("tide/pool"), None).expect("removed"), 1);
        assert_eq!(left(), [false, false, false, true, true, true]);
    }
}
