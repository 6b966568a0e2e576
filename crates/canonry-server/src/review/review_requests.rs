//! Review requests, and the one job per pull request that they become.

use canonry_domain::{GithubId, ItemNumber, Login, RepoName};
use canonry_store::{Job, JobKind, JobState, Repo};
use jiff::SignedDuration;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::jobs::job_handler::{JobError, LeasedJob};
use crate::jobs::job_keys::review_key;
use crate::jobs::service_job::{PreparedJob, ServiceJob, payload_of};
use crate::review::review_job::{report_dead_review, review_pull};
use crate::service::Service;

/// Deliveries that are stored with a job. More than that come only while a job waits for very long. They are not
/// lost: they may count as new when they come again.
const MOST_DELIVERIES: usize = 50;

/// A requested review of a pull request, or several requests joined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReviewJob {
    pub(crate) github_id: GithubId,
    pub(crate) number: ItemNumber,
    /// How many of the requests want a review even if the same head was reviewed before.
    pub(crate) requests: u32,
    pub(crate) full: bool,
    pub(crate) by: Option<Login>,
    pub(crate) because: String,
    /// The id of each request, which is the same when the request comes again.
    #[serde(rename = "wishes")]
    pub(crate) deliveries: Vec<String>,
}

impl ReviewJob {
    pub(crate) fn new(
        repo: &Repo,
        number: ItemNumber,
        by: Option<Login>,
        because: &str,
        delivery: &str,
    ) -> Result<Self, JobError> {
        let Some(github_id) = repo.github_id else {
            return Err(JobError::Hopeless(format!("{} has no GitHub id, so it cannot be reviewed", repo.name)));
        };
        let (because, deliveries) = (because.to_owned(), vec![delivery.to_owned()]);
        Ok(Self { github_id, number, requests: 0, full: false, by, because, deliveries })
    }

    /// Joins two requests without losing anything that was requested.
    fn joined(self, later: Self) -> Self {
        if later.deliveries.iter().all(|delivery| self.deliveries.contains(delivery)) {
            return self;
        }
        let mut deliveries: Vec<String> = self.deliveries.into_iter().chain(later.deliveries).collect();
        deliveries.drain(..deliveries.len().saturating_sub(MOST_DELIVERIES));
        Self {
            requests: self.requests.saturating_add(later.requests),
            full: self.full || later.full,
            by: later.by.or(self.by),
            deliveries,
            ..later
        }
    }
}

impl ServiceJob for ReviewJob {
    const KIND: JobKind = JobKind::Review;
    /// Enough for a large change, a slow model, and the rate at which GitHub accepts comments.
    const LONGEST: SignedDuration = SignedDuration::from_mins(45);

    fn key(&self, _repo: Option<&RepoName>) -> String {
        review_key(self.github_id, self.number)
    }

    async fn run(&self, service: &Service, leased: &LeasedJob) -> Result<(), JobError> {
        review_pull(service, self, &leased.job).await
    }

    async fn on_dead(&self, service: &Service, job: &Job, why: &str) {
        let reported = report_dead_review(service, self, job, why).await;
        if let Err(error) = reported.or_else(JobError::if_failed) {
            tracing::warn!(job = job.id.get(), key = job.key, %error, "the failure of a review could not be posted");
        }
    }
}

/// Queues a review. A request that comes while a job is queued joins it; while a job runs, the request waits for the
/// next job. A repeated request changes nothing, unless its job failed.
pub(crate) async fn queue_review(service: &Service, repo: &Repo, job: ReviewJob) -> Result<(), JobError> {
    let (store, now) = (service.store(), service.now());
    let prepared = PreparedJob::new(&job, Some(&repo.name));
    if let Some(last) = store.jobs().last_of(&prepared.key, prepared.kind).await?
        && last.state != JobState::Dead
        && let Some(owed) = payload_of::<ReviewJob>(&last)
        && job.deliveries.iter().all(|delivery| owed.deliveries.contains(delivery))
    {
        return Ok(());
    }
    let (number, requested) = (job.number.get(), job.requests > 0);
    tracing::info!(repo = %repo.name, number, because = job.because, requested, "a review is queued");
    store.jobs().enqueue_joined(&prepared.row(), joined, now, now).await?;
    Ok(())
}

fn joined(waiting: &Value, new: &Value) -> Value {
    match (ReviewJob::deserialize(waiting), ReviewJob::deserialize(new)) {
        (Ok(waiting), Ok(new)) => json!(waiting.joined(new)),
        _ => new.clone(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
    use serde::Deserialize as _;
    use serde_json::json;

    use super::{ReviewJob, joined};

    fn job(delivery: &str, requested: bool, full: bool) -> ReviewJob {
        ReviewJob {
            github_id: canonry_domain::GithubId(9),
            number: canonry_domain::ItemNumber::new(7).expect("positive"),
            requests: u32::from(requested),
            full,
            by: requested.then(|| "ann".parse().expect("a login")),
            because: "pushed".to_owned(),
            deliveries: vec![delivery.to_owned()],
        }
    }

    #[test]
    fn the_same_delivery_again_is_no_second_request() {
        let waiting = json!(job("d1", true, false));
        assert_eq!(joined(&waiting, &json!(job("d1", true, true))), waiting);
        let both = ReviewJob::deserialize(joined(&waiting, &json!(job("d2", true, false)))).expect("a job");
        assert_eq!((both.requests, both.deliveries), (2, vec!["d1".to_owned(), "d2".to_owned()]));
        let healed = joined(&json!({"number": "seven"}), &waiting);
        assert_eq!(healed, waiting);
    }

    proptest! {
        #[test]
        fn what_anybody_asked_for_stays_asked_for(asked in proptest::collection::vec((any::<bool>(), any::<bool>()), 1..80)) {
            let jobs = asked.iter().enumerate().map(|(at, (requested, full))| json!(job(&format!("d{at}"), *requested, *full)));
            let all = jobs.reduce(|waiting, new| joined(&waiting, &new)).expect("at least one");
            let all = ReviewJob::deserialize(all).expect("a job");
            prop_assert_eq!(all.requests as usize, asked.iter().filter(|(requested, _)| *requested).count());
            prop_assert_eq!(all.full, asked.iter().any(|(_, full)| *full));
            prop_assert_eq!(all.by.is_some(), all.requests > 0);
            prop_assert!(all.deliveries.len() <= 50);
            prop_assert_eq!(all.deliveries.last(), Some(&format!("d{}", asked.len() - 1)));
        }
    }
}
