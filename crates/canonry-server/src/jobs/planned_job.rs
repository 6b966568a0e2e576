//! A job in the making, with everything it is made of.

use canonry_domain::RepoName;
use canonry_store::NewJob;
use serde_json::Value;

/// A job that is about to be queued.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PlannedJob {
    pub(crate) key: String,
    pub(crate) repo: Option<RepoName>,
    pub(crate) kind: &'static str,
    pub(crate) payload: Value,
}

impl PlannedJob {
    pub(crate) fn job(&self) -> NewJob<'_> {
        NewJob { key: &self.key, repo: self.repo.as_ref(), kind: self.kind, payload: &self.payload }
    }
}
