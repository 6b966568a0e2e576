//! What is done about a job, behind one trait.

use canonry_store::{Delivery, Job};
use futures_util::future::BoxFuture;
use jiff::Timestamp;

/// A job and the webhook that caused it.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    pub job: Job,
    /// The webhook and its body as it came; none for work that nothing outside asked for.
    pub delivery: Option<(Delivery, String)>,
}

/// How a job went well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Handled {
    Done,
    /// There was nothing to do, for this reason.
    Ignored(String),
}

impl Handled {
    /// There was nothing to do, for this reason.
    pub(crate) fn ignored(reason: impl Into<String>) -> Self {
        Self::Ignored(reason.into())
    }
}

/// How a job went wrong. The words are stored and shown: they hold no body and no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
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
    Postpone {
        reason: String,
        /// When to look again.
        until: Timestamp,
    },
}

/// Does the work of jobs. It may be asked to do the same job twice, after a kill.
pub trait JobHandler: Send + Sync {
    fn handle<'a>(&'a self, work: &'a Work) -> BoxFuture<'a, Result<Handled, JobError>>;

    /// Tells whoever waits for a job that it is given up, and why. It may be asked to do so twice, after a kill.
    fn given_up<'a>(&'a self, _job: &'a Job, _why: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }
}
