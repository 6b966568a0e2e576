//! A job in the making, with everything it is made of.

use canonry_domain::RepoName;
use canonry_store::NewJob;
use serde_json::Value;

/// A job that is about to be queued.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PlannedJob {
    /// What it is about.
    pub(crate) key: String,
    /// The repository whose cap it counts under.
    pub(crate) repo: Option<RepoName>,
    /// What kind of work it is.
    pub(crate) kind: &'static str,
    /// What the work needs to know.
    pub(crate) payload: Value,
}

impl PlannedJob {
    /// It, as the store takes it.
    pub(crate) fn job(&self) -> NewJob<'_> {
        NewJob { key: &self.key, repo: self.repo.as_ref(), kind: self.kind, payload: &self.payload }
    }
}
