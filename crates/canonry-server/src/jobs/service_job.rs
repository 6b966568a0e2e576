//! A kind of job: its payload, its key, and how it runs. A new kind needs only its type and its line in
//! [`with_job_type`](crate::jobs::registry).

use canonry_domain::RepoName;
use canonry_store::{Job, JobId, JobKind, NewJob, Store, StoreError};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::jobs::job_handler::{JobError, LeasedJob};
use crate::service::Service;

/// A job that is stored until it is done. The value itself is the stored payload, so payloads of earlier versions
/// must stay readable for as long as such jobs may be in the queue. Jobs that a webhook caused are leased first.
pub(crate) trait ServiceJob: Serialize + DeserializeOwned + Send + Sync {
    const KIND: JobKind;
    /// The longest that a try may take. A try that takes longer hangs forever and blocks its key.
    const LONGEST: SignedDuration = SignedDuration::from_mins(15);

    /// The job's key: jobs with the same key run in order, and a queued job is found by it. `repo` is the repository
    /// the job is stored under. A kind without a repository runs one job at a time.
    fn key(&self, _repo: Option<&RepoName>) -> String {
        Self::KIND.to_string()
    }

    fn run(&self, service: &Service, leased: &LeasedJob) -> impl Future<Output = Result<(), JobError>> + Send;

    fn on_dead(&self, _service: &Service, _job: &Job, _why: &str) -> impl Future<Output = ()> + Send {
        async {}
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PreparedJob {
    pub(crate) key: String,
    pub(crate) repo: Option<RepoName>,
    pub(crate) kind: JobKind,
    pub(crate) payload: Value,
}

impl PreparedJob {
    pub(crate) fn new<T: ServiceJob>(job: &T, repo: Option<&RepoName>) -> Self {
        Self { key: job.key(repo), repo: repo.cloned(), kind: T::KIND, payload: json!(job) }
    }

    pub(crate) fn row(&self) -> NewJob<'_> {
        NewJob { key: &self.key, repo: self.repo.as_ref(), kind: self.kind, payload: &self.payload }
    }
}

/// Queues a job. `None` if a job with its key is already queued.
pub(crate) async fn queue_once<T: ServiceJob>(
    store: &Store,
    job: &T,
    repo: Option<&RepoName>,
    run_after: Timestamp,
    now: Timestamp,
) -> Result<Option<JobId>, StoreError> {
    store.jobs().enqueue_once(&PreparedJob::new(job, repo).row(), run_after, now).await
}

/// The payload of a stored job; `None` if the job is of another kind or another version stored a form that this one
/// cannot read.
pub(crate) fn payload_of<T: ServiceJob>(job: &Job) -> Option<T> {
    (job.kind == T::KIND).then(|| read_payload(&job.payload)).flatten()
}

pub(crate) fn read_payload<T: ServiceJob>(payload: &Value) -> Option<T> {
    // The first versions stored no payload with a webhook.
    let payload = if payload.is_null() { &json!({}) } else { payload };
    T::deserialize(payload).ok()
}

pub(crate) fn unreadable(job: &Job) -> JobError {
    let (id, kind) = (job.id, &job.kind);
    JobError::Hopeless(format!(
        "this version of Canonry cannot read job {id} of kind {kind}, which another version stored"
    ))
}
