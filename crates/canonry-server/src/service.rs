//! The handler of all jobs: what each kind of work is done by, and with what.

use canonry_models::chat::TokenPrices;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use canonry_github::outbox::{Outbox, OutboxError};
use canonry_github::{Clock, GitHub};
use canonry_retrieval::RetrievalMode;
use canonry_store::{Job, RepoId, Store};
use canonry_triage::Detectors;
use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::{Notify, OnceCell};
use tracing::Instrument as _;

use crate::github_writes::recheck::ServiceRecheck;
use crate::jobs::job_handler::{Handled, JobError, JobHandler, Work};
use crate::jobs::review_job::{ReviewParts, review_given_up, review_pull};
use crate::{
    handlers, intake::recover_deliveries, jobs::closing_job, jobs::grace_job, jobs::kinds, jobs::planning_job,
    jobs::reactions_job, jobs::sync_job,
};

/// How often a job of a kind that this version does not know is looked at: a newer one may run beside it.
const UNKNOWN_PAUSE: SignedDuration = SignedDuration::from_mins(1);
/// For how long such a job waits for that newer version.
const UNKNOWN_FOR: SignedDuration = SignedDuration::from_hours(24);

/// Where embedder, judge and extractor come from: the operator's settings.
pub trait DetectorSource: Send + Sync {
    fn detectors(&self) -> Detectors<'_>;

    /// Whether one of them is a hosted model, which costs money.
    fn is_hosted(&self) -> bool;

    /// Whether every one of them tells how many tokens it took; a program does not, so that its cost cannot be limited.
    fn counts_tokens(&self) -> bool {
        true
    }
}

pub struct ServiceParts {
    pub store: Store,
    /// GitHub; without it everything is recorded as in the mode `shadow`, and nothing is fetched or written.
    pub github: Option<GitHub>,
    pub is_app: bool,
    pub detectors: Arc<dyn DetectorSource>,
    /// Who reviews pull requests beside Canonry's own rules.
    pub reviewers: ReviewParts,
    pub clock: Arc<dyn Clock>,
    /// What hosted models may cost one repository in a calendar month, in US dollars.
    pub monthly_cost: Option<f64>,
    pub prices: Option<TokenPrices>,
    pub retrieval: RetrievalMode,
    /// Woken when there is something to be written to GitHub.
    pub wake_publisher: Arc<Notify>,
}

/// Does the work of every job. What it needs to remember is in the store.
pub struct Service {
    parts: ServiceParts,
    outbox: OnceCell<Outbox>,
    /// When this process last looked in vain for repositories that are out of sight.
    looked: Mutex<HashMap<RepoId, Timestamp>>,
}

impl Service {
    /// The service; nothing is asked yet.
    pub fn new(parts: ServiceParts) -> Self {
        Self { parts, outbox: OnceCell::new(), looked: Mutex::default() }
    }

    pub(crate) fn parts(&self) -> &ServiceParts {
        &self.parts
    }

    pub(crate) fn store(&self) -> &Store {
        &self.parts.store
    }

    pub(crate) fn github(&self) -> Option<&GitHub> {
        self.parts.github.as_ref()
    }

    pub(crate) fn is_app(&self) -> bool {
        self.parts.is_app
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.parts.clock.now()
    }

    /// When this process last looked in vain for a repository.
    pub(crate) fn looked_at(&self, repo: RepoId) -> Option<Timestamp> {
        self.looked.lock().unwrap_or_else(PoisonError::into_inner).get(&repo).copied()
    }

    /// Notes that it has just done so.
    pub(crate) fn looked(&self, repo: RepoId) {
        let now = self.now();
        self.looked.lock().unwrap_or_else(PoisonError::into_inner).insert(repo, now);
    }

    /// Who looks at new items, and whom they ask.
    pub(crate) fn detectors(&self) -> Detectors<'_> {
        Detectors { github: self.github(), ..self.parts.detectors.detectors() }
    }

    /// The last look before anything is written.
    pub(crate) fn recheck(&self, github: &GitHub) -> ServiceRecheck {
        ServiceRecheck::new(self.store().clone(), github.clone())
    }

    pub(crate) fn wake_publisher(&self) {
        self.parts.wake_publisher.notify_one();
    }

    /// The door for writes, opened when it is first needed: GitHub may be down when the service starts.
    pub(crate) async fn outbox(&self) -> Result<&Outbox, JobError> {
        let Some(github) = self.github() else {
            return Err(JobError::Hopeless(
                "there are no credentials for GitHub, so that nothing is written".to_owned(),
            ));
        };
        let open = || async {
            let outbox = Outbox::open(self.store().clone(), github.clone(), rand::random()).await?;
            let account = outbox.own_login();
            if !account.is_bot() {
                tracing::warn!(
                    %account,
                    "whatever this account does counts as done by Canonry and teaches nothing; use a GitHub App, or an account that no person uses"
                );
            }
            Ok::<Outbox, OutboxError>(outbox)
        };
        // Whoever this fails for tries again: a key that is wrong today is put right by the operator.
        self.outbox.get_or_try_init(open).await.map_err(|error| match JobError::from(error) {
            JobError::Hopeless(reason) => JobError::Retry(reason),
            other => other,
        })
    }

    async fn work(&self, work: &Work) -> Result<Handled, JobError> {
        match (work.job.kind.as_str(), &work.delivery) {
            (kinds::WEBHOOK, Some((delivery, body))) => handlers::webhook(self, delivery, body).await,
            (kinds::WEBHOOK, None) => Err(JobError::Hopeless("its delivery is not stored any more".to_owned())),
            (kinds::SYNC, _) => sync_job::sync_repo(self, work).await,
            (kinds::REVIEW, _) => review_pull(self, &work.job).await,
            (kinds::TRIAGE, _) => handlers::triage_again(self, &work.job).await,
            (kinds::REACTIONS, _) => reactions_job::poll(self).await,
            (kinds::GRACE, _) => grace_job::sweep(self).await,
            (kinds::OBJECTIONS, _) => grace_job::hear_objections(self).await,
            (kinds::RECOVER, _) => recover_deliveries::recover(self, work).await,
            (kinds::APPLY_CLOSE, _) => closing_job::apply(self, &work.job).await,
            (kinds::UNDO_CLOSE, _) => closing_job::undo(self, &work.job).await,
            (kinds::PLAN, _) => planning_job::plan(self, &work.job).await,
            (kinds::CANONICALIZE, _) => planning_job::cluster(self, &work.job).await,
            (kinds::CANCEL_GRACE, _) => planning_job::call_off(self, &work.job).await,
            _ => Err(self.unknown(&work.job)),
        }
    }

    /// Another version queued it: it is left to that one for a day.
    fn unknown(&self, job: &Job) -> JobError {
        let (now, reason) = (self.now(), format!("this version has no handler for the kind {}", job.kind));
        if now.duration_since(job.created_at) < UNKNOWN_FOR {
            JobError::Postpone { reason, until: now + UNKNOWN_PAUSE }
        } else {
            JobError::Hopeless(reason)
        }
    }
}

impl JobHandler for Service {
    fn handle<'a>(&'a self, work: &'a Work) -> BoxFuture<'a, Result<Handled, JobError>> {
        let job = &work.job;
        let event = work.delivery.as_ref().map(|(delivery, _)| delivery.event.as_str());
        let span = tracing::info_span!("job", job = job.id.get(), kind = job.kind, delivery = job.delivery_id, event);
        Box::pin(self.work(work).instrument(span))
    }

    fn given_up<'a>(&'a self, job: &'a Job, why: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if job.kind == kinds::REVIEW {
                review_given_up(self, job, why).await;
            }
        })
    }
}
