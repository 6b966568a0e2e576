//! Stores ETags, so that they outlive the process.

use canonry_github::{Etag, EtagCache};
use canonry_store::{RepoId, Store};
use futures_util::future::BoxFuture;
use jiff::Timestamp;

/// The stored ETags of one repository. If the store fails, the only cost is a full response.
pub(crate) struct StoredEtags<'a> {
    pub(crate) store: &'a Store,
    pub(crate) repo: RepoId,
    pub(crate) now: Timestamp,
}

impl EtagCache for StoredEtags<'_> {
    fn get<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move {
            self.store.repos().etag(self.repo, url).await.unwrap_or_else(|error| {
                tracing::warn!(%error, "could not read an ETag");
                None
            })
        })
    }

    fn put<'a>(&'a self, etag: &'a Etag) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Err(error) = self.store.repos().put_etag(self.repo, &etag.url, &etag.value, self.now).await {
                tracing::warn!(%error, "could not store an ETag");
            }
        })
    }
}
