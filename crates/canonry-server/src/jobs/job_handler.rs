//! The trait that carries out jobs, and the errors a job can end with.

use canonry_store::{Delivery, Job};
use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};

#[derive(Debug, Clone, PartialEq)]
pub struct LeasedJob {
    pub job: Job,
    /// The webhook and its body as received; `None` for jobs that no webhook caused.
    pub delivery: Option<(Delivery, String)>,
}

/// Why a job did not succeed. The texts are stored and shown, so they contain no body and no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// There was nothing to do, or a rule forbids it: the job is done and shows this reason.
    #[error("{0}")]
    Ignored(String),
    #[error("{0}")]
    Retry(String),
    /// No retry can succeed.
    #[error("{0}")]
    Hopeless(String),
    /// A service that the job needs does not answer, such as GitHub in an outage. The job waits without counting
    /// tries, for days if necessary.
    #[error("{0}")]
    Unavailable(String),
    /// The job has to wait for something else. This try does not count.
    #[error("{reason}")]
    Postpone { reason: String, until: Timestamp },
}

impl JobError {
    /// An ignored job becomes a success: nothing to do is not a failure.
    pub(crate) fn if_failed(self) -> Result<(), Self> {
        if let Self::Ignored(_) = self { Ok(()) } else { Err(self) }
    }

    pub(crate) fn ignored(reason: impl Into<String>) -> Self {
        Self::Ignored(reason.into())
    }
}

/// Carries out jobs. After a kill it may be called twice for the same job.
pub trait JobHandler: Send + Sync {
    fn handle<'a>(&'a self, leased: &'a LeasedJob) -> BoxFuture<'a, Result<(), JobError>>;

    /// Reports a failed job and the reason to the person who waits for it. After a kill it may be called twice.
    fn on_dead<'a>(&'a self, _job: &'a Job, _why: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }

    /// The longest that a try may take. A try that takes longer hangs forever and blocks its key.
    fn longest(&self, _job: &Job) -> SignedDuration {
        SignedDuration::from_mins(15)
    }
}
