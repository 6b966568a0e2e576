//! What does jobs, behind one trait.

use canonry_store::{Delivery, Job};
use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};

#[derive(Debug, Clone, PartialEq)]
pub struct LeasedJob {
    pub job: Job,
    /// The webhook and its body as it came; none for work that nothing outside asked for.
    pub delivery: Option<(Delivery, String)>,
}

/// Why a job did not go through. The words are stored and shown: they hold no body and no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// There was nothing to do, or a rule forbids it: the job is done, and shows this reason.
    #[error("{0}")]
    Ignored(String),
    #[error("{0}")]
    Retry(String),
    /// It will never go well.
    #[error("{0}")]
    Hopeless(String),
    /// What it needs does not answer for now, such as GitHub in an outage: it waits without being tried in vain, for
    /// days if need be.
    #[error("{0}")]
    Unavailable(String),
    /// It has to wait for something, through no fault of its own: this try does not count.
    #[error("{reason}")]
    Postpone { reason: String, until: Timestamp },
}

impl JobError {
    /// There was nothing to do, which is no failure.
    pub(crate) fn if_failed(self) -> Result<(), Self> {
        if let Self::Ignored(_) = self { Ok(()) } else { Err(self) }
    }

    pub(crate) fn ignored(reason: impl Into<String>) -> Self {
        Self::Ignored(reason.into())
    }
}

/// Does the work of jobs. It may be asked to do the same job twice, after a kill.
pub trait JobHandler: Send + Sync {
    fn handle<'a>(&'a self, leased: &'a LeasedJob) -> BoxFuture<'a, Result<(), JobError>>;

    /// Tells whoever waits for a job that it failed, and why. It may be asked to do so twice, after a kill.
    fn on_dead<'a>(&'a self, _job: &'a Job, _why: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }

    /// The longest that a try at a job may take. Whatever hangs for longer hangs for ever, and holds up its key.
    fn longest(&self, _job: &Job) -> SignedDuration {
        SignedDuration::from_mins(15)
    }
}
