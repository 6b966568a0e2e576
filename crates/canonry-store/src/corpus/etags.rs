//! Stores GitHub's ETags, so that a repeated request for unchanged data costs nothing.

use canonry_boxed::boxed;
use jiff::Timestamp;

use crate::corpus::repos::RepoId;
use crate::engine::facets::RepoStore;
use crate::engine::row_values::micros;
use crate::engine::transaction::{StoreError, on_pool};

#[boxed]
impl RepoStore<'_> {
    /// Returns the ETag of the last response from this URL.
    pub async fn etag(self, repo: RepoId, url: &str) -> Result<Option<String>, StoreError> {
        let query = "SELECT etag FROM etags WHERE repo_id = $1 AND url = $2";
        Ok(on_pool!(self.pool, |db| sqlx::query_scalar(query).bind(repo.0).bind(url).fetch_optional(db).await?))
    }

    /// Stores the ETag of a response whose content is already stored.
    pub async fn put_etag(self, repo: RepoId, url: &str, etag: &str, now: Timestamp) -> Result<(), StoreError> {
        let upsert = "INSERT INTO etags (repo_id, url, etag, written_at) VALUES ($1, $2, $3, $4)
            ON CONFLICT (repo_id, url) DO UPDATE SET etag = excluded.etag, written_at = excluded.written_at";
        on_pool!(self.pool, |db| {
            sqlx::query(upsert).bind(repo.0).bind(url).bind(etag).bind(micros(now)).execute(db).await?;
        });
        Ok(())
    }
}
