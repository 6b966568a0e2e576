//! Caches the ETags of earlier answers.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use futures_util::future::BoxFuture;

/// The ETag of one URL's answer.
///
/// The caller gets it and passes it to an [`EtagCache`] once the answer itself is stored: if an ETag were stored before
/// its answer, GitHub would say "not modified" about something never seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Etag {
    pub url: String,
    pub value: String,
}

/// Stores ETags by URL. The store has a cache that outlives the process; [`MemoryEtags`] is for a process that asks the
/// same thing again and again.
///
/// A cache that fails returns `None`: the only cost is a full answer.
pub trait EtagCache: Send + Sync {
    fn get<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Option<String>>;

    /// Replaces the URL's earlier ETag.
    fn put<'a>(&'a self, etag: &'a Etag) -> BoxFuture<'a, ()>;
}

#[derive(Debug, Default)]
pub struct MemoryEtags {
    tags: Mutex<HashMap<String, String>>,
}

impl EtagCache for MemoryEtags {
    fn get<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Option<String>> {
        let tags = self.tags.lock().unwrap_or_else(PoisonError::into_inner);
        let found = tags.get(url).cloned();
        Box::pin(std::future::ready(found))
    }

    fn put<'a>(&'a self, etag: &'a Etag) -> BoxFuture<'a, ()> {
        let mut tags = self.tags.lock().unwrap_or_else(PoisonError::into_inner);
        tags.insert(etag.url.clone(), etag.value.clone());
        Box::pin(std::future::ready(()))
    }
}
