//! Which repository a caller may read.

use axum::http::request::Parts;
use canonry_domain::PullChanges;
use canonry_store::Repo;
use futures_util::future::BoxFuture;

/// Who calls a tool.
#[derive(Debug, Clone, Copy)]
pub enum Caller<'a> {
    /// The user who started the program.
    Local,
    /// The sender of an HTTP request.
    Remote(&'a Parts),
}

/// Finds repositories for callers.
pub trait RepoAccess: Send + Sync {
    /// The repository of this name, or the one that is meant without a name; else what the caller should do.
    fn repo<'a>(&'a self, name: Option<&'a str>, caller: Caller<'a>) -> BoxFuture<'a, Result<Repo, String>>;

    /// The change between two commits of the clone in which the program was started: its messages, and what changed.
    fn change_in<'a>(&'a self, range: &'a str) -> BoxFuture<'a, Result<(String, PullChanges), String>> {
        let _ = range;
        Box::pin(async { Err("this server has no clone; give the change as `diff`".to_owned()) })
    }
}
