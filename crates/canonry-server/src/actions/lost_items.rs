//! Items that no run handled: their event was lost, or the database that knew about them.

use canonry_domain::{ItemNumber, ItemState, ItemType, POSSIBLE_DUPLICATE, RepoName};
use canonry_store::{ItemFilter, NewJob, Repo, Store, StoreError};
use jiff::{SignedDuration, Timestamp};

use crate::jobs::service_job::PreparedJob;
use crate::jobs::triage_job::TriageJob;

const PAGE: u32 = 500;
/// How old an item may be whose event was lost. A comment on an older one would surprise.
const MISSED_FOR: SignedDuration = SignedDuration::from_hours(72);

/// Remembers that the suggestions of an earlier database were searched for.
const LOST_SUGGESTIONS: &str = "lost_suggestions";
/// Longer than any database is used.
const ONCE: SignedDuration = SignedDuration::from_hours(24 * 365 * 1000);

/// Queues a triage for each open item that has the label of a suggestion, once in the life of a database: as soon as its
/// first sync has finished, in whatever run. If an earlier database was lost, announced closes are found by the markers of
/// their comments. Returns the number of items.
pub(crate) async fn queue_lost_suggestions(
    store: &Store,
    repo: &RepoName,
    now: Timestamp,
) -> Result<usize, StoreError> {
    let Some(repo) = store.repos().find(repo).await? else { return Ok(0) };
    if store.corpus().sync_progress(repo.id).await?.finished_at.is_none() {
        return Ok(0);
    }
    if store.jobs().has_fired(LOST_SUGGESTIONS).await? {
        return Ok(0);
    }
    let open = ItemFilter { state: Some(ItemState::Open), ..ItemFilter::default() };
    let (mut lost, mut after) = (Vec::new(), None);
    loop {
        let page = store.corpus().items_after(repo.id, open, after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after = Some((last.number, last.item_type));
        let labelled = page.iter().filter(|item| item.labels.iter().any(|label| label == POSSIBLE_DUPLICATE));
        lost.extend(labelled.filter_map(|item| triage_job(&repo, item.item_type, item.number)));
    }
    let jobs: Vec<(NewJob<'_>, Timestamp)> = lost.iter().map(|job| (job.row(), now)).collect();
    let is_first = store.jobs().fire_schedule(LOST_SUGGESTIONS, ONCE, &jobs, now).await?;
    Ok(if is_first { lost.len() } else { 0 })
}

/// Queues a triage for each new item whose event no run handled, such as that of a run that was cancelled while it
/// waited for the state. Returns the number of items.
pub(crate) async fn queue_missed_items(store: &Store, repo: &RepoName, now: Timestamp) -> Result<usize, StoreError> {
    let Some(repo) = store.repos().find(repo).await? else { return Ok(0) };
    let mut queued = 0;
    for (number, item_type) in store.duplicates().untriaged_since(repo.id, now - MISSED_FOR).await? {
        let Some(job) = triage_job(&repo, item_type, number) else { continue };
        queued += usize::from(store.jobs().enqueue_once(&job.row(), now, now).await?.is_some());
    }
    Ok(queued)
}

fn triage_job(repo: &Repo, item_type: ItemType, number: ItemNumber) -> Option<PreparedJob> {
    let job = TriageJob { github_id: repo.github_id?, item_type, number };
    Some(PreparedJob::new(&job, Some(&repo.name)))
}

#[cfg(test)]
mod tests {
    use canonry_domain::{GithubId, ItemNumber, ItemRecord, ItemState, ItemType, POSSIBLE_DUPLICATE, RepoName};
    use canonry_store::{DatabaseUrl, Store, SyncProgress};
    use jiff::Timestamp;

    use super::queue_lost_suggestions;

    async fn add_labelled(store: &Store, name: &RepoName, number: i64, now: Timestamp) {
        let repo = store.repos().find(name).await.expect("reads").expect("stored");
        let number = ItemNumber::new(number).expect("a number");
        let mut record = ItemRecord::new(ItemType::Issue, number, "It stops");
        record.state = Some(ItemState::Open);
        record.labels = Some(vec![POSSIBLE_DUPLICATE.to_owned()]);
        store.corpus().upsert_items(&repo, vec![record], now).await.expect("stored");
    }

    #[tokio::test]
    async fn suggestions_of_an_earlier_database_are_searched_for_until_that_is_done_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let now: Timestamp = "2026-03-01T00:00:00Z".parse().expect("valid");
        let url = DatabaseUrl::Sqlite(folder.path().join("canonry.db"));
        let store = Store::open(&url, now).await.expect("opens");
        let name: RepoName = "tide/pool".parse().expect("a name");
        let repo = store.repos().ensure(&name, now).await.expect("stored");
        store.repos().identify(repo.id, GithubId(7), &name).await.expect("stored").expect("its own name");
        add_labelled(&store, &name, 1, now).await;
        let search = || queue_lost_suggestions(&store, &name, now);
        assert_eq!(search().await.expect("no search"), 0, "the first sync has not finished");
        let progress = SyncProgress { finished_at: Some(now), ..SyncProgress::default() };
        store.corpus().write_sync_progress(repo.id, &progress).await.expect("stored");
        assert_eq!(search().await.expect("searches"), 1);
        add_labelled(&store, &name, 2, now).await;
        assert_eq!(search().await.expect("does not search"), 0, "this database made that suggestion itself");
        store.disconnect().await;
    }
}
