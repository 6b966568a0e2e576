//! What is done about a job, behind one trait.

use canonry_store::{Delivery, Job};
use futures_util::future::BoxFuture;

/// A job and the webhook that caused it.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    /// The job.
    pub job: Job,
    /// The webhook and its body as it came; none for work that nothing outside asked for.
    pub delivery: Option<(Delivery, String)>,
}

/// How a job went well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Handled {
    /// It is done.
    Done,
    /// There was nothing to do, for this reason.
    Ignored(String),
}

/// How a job went wrong. The words are stored and shown: they hold no body and no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// It may go well another time.
    #[error("{0}")]
    Retry(String),
    /// It will never go well.
    #[error("{0}")]
    Hopeless(String),
}

/// Does the work of jobs. It may be asked to do the same job twice, after a kill.
pub trait JobHandler: Send + Sync {
    /// Does one job.
    fn handle<'a>(&'a self, work: &'a Work) -> BoxFuture<'a, Result<Handled, JobError>>;
}

/// Has no handler for anything, and says so.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHandlers;

impl JobHandler for NoHandlers {
    fn handle<'a>(&'a self, work: &'a Work) -> BoxFuture<'a, Result<Handled, JobError>> {
        let what = match &work.delivery {
            Some((delivery, _)) => format!("the event {}", delivery.event),
            None => format!("the kind {}", work.job.kind),
        };
        Box::pin(async move { Ok(Handled::Ignored(format!("this version has no handler for {what}"))) })
    }
}
