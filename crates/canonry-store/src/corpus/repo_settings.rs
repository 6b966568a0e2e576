//! A repository's own configuration as last fetched from its default branch.

use canonry_boxed::boxed;
use jiff::Timestamp;

use crate::corpus::repos::RepoId;
use crate::engine::facets::RepoStore;
use crate::engine::row_values::{micros, moment, storable};
use crate::engine::transaction::{StoreError, on_pool};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSettings {
    /// `None` if the repository has no configuration file.
    pub text: Option<String>,
    /// The Unix epoch once the configuration is known to be out of date.
    pub fetched_at: Timestamp,
}

#[boxed]
impl RepoStore<'_> {
    pub async fn settings(self, repo: RepoId) -> Result<Option<StoredSettings>, StoreError> {
        let query = "SELECT text, fetched_at FROM repo_settings WHERE repo_id = $1";
        let row: Option<(Option<String>, i64)> =
            on_pool!(self.pool, |db| sqlx::query_as(query).bind(repo.0).fetch_optional(db).await?);
        let Some((text, fetched_at)) = row else { return Ok(None) };
        Ok(Some(StoredSettings { text, fetched_at: moment(fetched_at)? }))
    }

    /// Stores a configuration that was just fetched.
    pub async fn write_settings(self, repo: RepoId, text: Option<&str>, now: Timestamp) -> Result<(), StoreError> {
        let upsert = "INSERT INTO repo_settings (repo_id, text, fetched_at) VALUES ($1, $2, $3)
            ON CONFLICT (repo_id) DO UPDATE SET text = excluded.text, fetched_at = excluded.fetched_at";
        on_pool!(self.pool, |db| {
            sqlx::query(upsert).bind(repo.0).bind(text.map(storable)).bind(micros(now)).execute(db).await?;
        });
        Ok(())
    }

    /// Marks the configuration as out of date. Its text stays in use until a newer one can be fetched.
    pub async fn expire_settings(self, repo: RepoId) -> Result<(), StoreError> {
        let update = "UPDATE repo_settings SET fetched_at = 0 WHERE repo_id = $1";
        on_pool!(self.pool, |db| {
            sqlx::query(update).bind(repo.0).execute(db).await?;
        });
        Ok(())
    }
}
