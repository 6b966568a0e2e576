//! Deliveries that did not reach us: GitHub repeats none by itself, so they are requested again, and the gap is
//! synced.

use std::collections::{BTreeSet, HashMap, HashSet};

use canonry_domain::GithubId;
use canonry_github::api::RestDelivery;
use canonry_github::{GitHub, GitHubError, WriteError};
use canonry_store::{JobKind, JobState, Store, StoreError};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::jobs::job_handler::{JobError, LeasedJob};
use crate::jobs::service_job::{ServiceJob, queue_once};
use crate::jobs::sync_job::SyncJob;
use crate::service::Service;

/// GitHub keeps deliveries this long.
const KEPT: SignedDuration = SignedDuration::from_hours(72);
/// How far before the end of the last recovery the next one begins. Deliveries under way then have ended since, and a
/// delivery that was requested and failed again is found once more after [`PAUSE`], even if one recovery in between
/// is missed.
const OVERLAP: SignedDuration = SignedDuration::from_hours(3);
/// How long a delivery that was requested and failed again is left alone: less than the hour until the next recovery,
/// so that the next one requests it.
const PAUSE: SignedDuration = SignedDuration::from_mins(30);
/// Pages of a hundred: three days with fifty deliveries a minute. The list is read without GitHub's filter for
/// failures, which leaves out deliveries that got no answer at all.
const MOST_PAGES: u32 = 2_200;
/// Deliveries that are requested in one run, below the 80 writes a minute that GitHub accepts.
const MOST_ASKED: usize = 300;
const REST_AFTER: SignedDuration = SignedDuration::from_mins(5);
const LOOKED_UP: usize = 500;

/// Requests failed deliveries again, then queues syncs of their repositories.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RecoverJob {
    since: Option<Timestamp>,
}

impl RecoverJob {
    /// Skips what the last recovery has read.
    pub(crate) async fn next(store: &Store, now: Timestamp) -> Result<Self, StoreError> {
        let kind = JobKind::Recover;
        let last = store.jobs().last_of(kind.as_str(), kind).await?.filter(|job| job.state == JobState::Done);
        let (oldest, seen) = (now - KEPT, last.and_then(|job| job.finished_at).map(|ended| ended - OVERLAP));
        Ok(Self { since: Some(seen.map_or(oldest, |seen| seen.max(oldest))) })
    }
}

impl ServiceJob for RecoverJob {
    const KIND: JobKind = JobKind::Recover;
    const LONGEST: SignedDuration = SignedDuration::from_hours(2);

    async fn run(&self, service: &Service, _leased: &LeasedJob) -> Result<(), JobError> {
        let Some(github) = service.github().filter(|_| service.is_app()) else {
            return Err(JobError::ignored("only a GitHub App has a list of its deliveries"));
        };
        let (store, now) = (service.store(), service.now());
        let oldest = now - KEPT;
        let mut missed = failed_since(github, self.since.map_or(oldest, |since| since.max(oldest))).await?;
        forget_known(store, &mut missed).await?;
        missed.retain(|delivery| !recently_asked_for(delivery, now));
        if missed.is_empty() {
            return Ok(());
        }
        let repos: BTreeSet<i64> = missed.iter().filter_map(|delivery| delivery.repository_id).collect();
        let asked = ask_again(github, &missed).await;
        // Queued whether or not the requests succeed: the missing changes can be read from the repositories
        // themselves.
        queue_syncs(store, &repos, now).await?;
        tracing::info!(missed = missed.len(), repos = repos.len(), "failed deliveries are requested again");
        match asked {
            Ok(asked) if asked < missed.len() => Err(JobError::Postpone {
                reason: format!("requested {asked} of {} failed deliveries again; the rest follows", missed.len()),
                until: now + REST_AFTER,
            }),
            Ok(_) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// The latest attempt of each event that never succeeded, the oldest first.
async fn failed_since(github: &GitHub, since: Timestamp) -> Result<Vec<RestDelivery>, GitHubError> {
    let mut failed: HashMap<String, RestDelivery> = HashMap::new();
    let mut succeeded: HashSet<String> = HashSet::new();
    let mut pages = github.app_deliveries();
    let mut read = 0;
    while let Some(page) = pages.next().await? {
        read += 1;
        let oldest = page.items.iter().filter_map(|delivery| delivery.delivered_at).min();
        for delivery in page.items {
            if delivery.succeeded() {
                failed.remove(&delivery.guid);
                // Its earlier attempts come later in the list; the first attempt has none.
                if delivery.redelivery {
                    succeeded.insert(delivery.guid);
                }
            } else if !succeeded.contains(&delivery.guid) {
                failed.entry(delivery.guid.clone()).or_insert(delivery);
            }
        }
        if oldest.is_some_and(|oldest| oldest < since) {
            break;
        }
        if read == MOST_PAGES {
            tracing::warn!(pages = read, "the list of deliveries has more pages; the sync covers the older ones");
            break;
        }
    }
    let mut failed: Vec<RestDelivery> = failed.into_values().collect();
    failed.sort_by_key(|delivery| delivery.id);
    Ok(failed)
}

/// Removes deliveries that are stored: they arrived, and only our answer was lost.
async fn forget_known(store: &Store, missed: &mut Vec<RestDelivery>) -> Result<(), StoreError> {
    let mut known: HashSet<String> = HashSet::new();
    for some in missed.chunks(LOOKED_UP) {
        let ids: Vec<&str> = some.iter().map(|delivery| delivery.guid.as_str()).collect();
        known.extend(store.deliveries().stored_ids(&ids).await?);
    }
    missed.retain(|delivery| !known.contains(&delivery.guid));
    Ok(())
}

fn recently_asked_for(delivery: &RestDelivery, now: Timestamp) -> bool {
    delivery.redelivery && delivery.delivered_at.is_some_and(|at| now.duration_since(at) < PAUSE)
}

/// Requests as many as allowed now, and returns how many are settled.
async fn ask_again(github: &GitHub, missed: &[RestDelivery]) -> Result<usize, GitHubError> {
    let mut asked = 0;
    for delivery in missed.iter().take(MOST_ASKED) {
        match github.redeliver(delivery).await {
            Ok(()) => {}
            Err(WriteError::NotSent(error)) => return Err(error),
            // The list will show whether the delivery was repeated; it is read again soon.
            Err(WriteError::Ambiguous { detail }) => {
                tracing::warn!(guid = delivery.guid, detail, "whether GitHub redelivers a webhook is unknown");
                continue;
            }
            Err(WriteError::Refused { status, message }) => {
                tracing::warn!(
                    guid = delivery.guid,
                    status,
                    reason = message,
                    "GitHub did not redeliver a webhook; the next sync fetches the change"
                );
            }
        }
        asked += 1;
    }
    Ok(asked)
}

async fn queue_syncs(store: &Store, repos: &BTreeSet<i64>, now: Timestamp) -> Result<(), StoreError> {
    for id in repos {
        // An unknown repository is stored when its own deliveries arrive.
        let Some(repo) = store.repos().by_github_id(GithubId(*id)).await? else { continue };
        queue_once(store, &SyncJob::of(&repo), Some(&repo.name), now, now).await?;
    }
    Ok(())
}
