//! Makes a new item wait for the repository's corpus, because it has nothing to be compared with until then.

use canonry_store::{JobKind, JobState, Repo};
use jiff::SignedDuration;

use crate::handlers::find_repo::queue_sync;
use crate::jobs::job_handler::JobError;
use crate::jobs::job_keys::sync_key;
use crate::service::Service;

/// How often a new item rechecks whether the corpus is there.
const LOOK_AGAIN: SignedDuration = SignedDuration::from_secs(30);
/// How long a failed sync is not restarted by the next new item.
const REST: SignedDuration = SignedDuration::from_hours(1);

/// Waits for the corpus, and queues its sync if there is none.
pub(crate) async fn ensure_synced(service: &Service, repo: &Repo) -> Result<(), JobError> {
    // Without GitHub, the imported items are the whole corpus.
    if service.github().is_none() || service.store().corpus().sync_progress(repo.id).await?.finished_at.is_some() {
        return Ok(());
    }
    let (now, soon) = (service.now(), service.now() + LOOK_AGAIN);
    let fetching = |until| {
        let reason = format!("the items of {} are being fetched", repo.name);
        Err(JobError::Postpone { reason, until })
    };
    let last = service.store().jobs().last_of(&sync_key(repo.into()), JobKind::Sync).await?;
    let Some(last) = last else {
        queue_sync(service, repo).await?;
        return fetching(soon);
    };
    match last.state {
        // The sync only waits for its turn in the nightly schedule, and this item needs it now.
        JobState::Queued if last.error.is_none() && last.run_after > now => {
            service.store().jobs().requeue(last.id, now).await?;
            return fetching(soon);
        }
        JobState::Queued => return fetching(soon.max(last.run_after)),
        JobState::Running => return fetching(soon),
        JobState::Done | JobState::Dead => {}
    }
    if last.finished_at.is_none_or(|ended| now.duration_since(ended) >= REST) {
        queue_sync(service, repo).await?;
        return fetching(soon);
    }
    let because = last.error.map(|error| format!(" ({error})")).unwrap_or_default();
    let reason = format!("the items of {} could not be fetched{because}", repo.name);
    Err(if last.state == JobState::Dead { JobError::Unavailable(reason) } else { JobError::Ignored(reason) })
}
