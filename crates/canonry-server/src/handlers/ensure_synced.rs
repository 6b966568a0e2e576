//! Whether a repository's corpus is there: without it a new item has nothing to be compared with.

use canonry_store::{JobState, Repo};
use jiff::{SignedDuration, Timestamp};

use crate::handlers::find_repo::queue_sync;
use crate::jobs::job_handler::JobError;
use crate::jobs::kinds::SYNC;
use crate::jobs::sync_job::sync_key;
use crate::service::Service;

/// How often a new item looks whether the corpus has arrived.
const LOOK_AGAIN: SignedDuration = SignedDuration::from_secs(30);
/// For how long a sync that failed is not begun again by the next new item.
const REST: SignedDuration = SignedDuration::from_hours(1);

/// Whether new items can be compared with what is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Corpus {
    Ready,
    /// It is on its way, and may be there at that moment.
    Syncing(Timestamp),
    /// It could not be fetched, for this reason, and will be tried again.
    Failed(String),
    Unreadable(String),
}

/// Looks whether the corpus is there, and begins to fetch it when nobody has.
pub(crate) async fn corpus(service: &Service, repo: &Repo) -> Result<Corpus, JobError> {
    // Without GitHub what was imported is all there will ever be.
    if service.github().is_none() || service.store().corpus().sync_progress(repo.id).await?.finished_at.is_some() {
        return Ok(Corpus::Ready);
    }
    let (now, soon) = (service.now(), service.now() + LOOK_AGAIN);
    let last = service.store().jobs().last_of(&sync_key(repo), SYNC).await?;
    let Some(last) = last else {
        queue_sync(service, repo).await?;
        return Ok(Corpus::Syncing(soon));
    };
    match last.state {
        // It only waits for its turn among the others of this night, and somebody waits for it here.
        JobState::Queued if last.error.is_none() && last.run_after > now => {
            service.store().jobs().requeue(last.id, now).await?;
            return Ok(Corpus::Syncing(soon));
        }
        JobState::Queued => return Ok(Corpus::Syncing(soon.max(last.run_after))),
        JobState::Running => return Ok(Corpus::Syncing(soon)),
        JobState::Done | JobState::Dead => {}
    }
    if last.finished_at.is_none_or(|ended| now.duration_since(ended) >= REST) {
        queue_sync(service, repo).await?;
        return Ok(Corpus::Syncing(soon));
    }
    let because = last.error.map(|error| format!(" ({error})")).unwrap_or_default();
    let reason = format!("the items of {} could not be fetched{because}", repo.name);
    Ok(if last.state == JobState::Dead { Corpus::Failed(reason) } else { Corpus::Unreadable(reason) })
}
