//! Whether Canonry may work on a repository, and which installation of the App reaches it.

use canonry_boxed::boxed;
use canonry_domain::{GithubId, text_enum};
use jiff::Timestamp;

use crate::corpus::repos::{Repo, RepoId};
use crate::engine::facets::RepoStore;
use crate::engine::row_values::{micros, word};
use crate::engine::transaction::{StoreError, on_pool};

text_enum! {
    pub enum RepoAccess: "an access to a repository" {
        Active = "active",
        /// The App was uninstalled from it, or the token can no longer reach it.
        Removed = "removed",
        Suspended = "suspended",
        /// Archived: readable, but not writable.
        Archived = "archived",
        Deleted = "deleted",
    }
}

#[boxed]
impl RepoStore<'_> {
    pub async fn set_access(self, repo: RepoId, access: RepoAccess, now: Timestamp) -> Result<(), StoreError> {
        let update = "UPDATE repos SET access = $2, access_since = $3 WHERE id = $1 AND access <> $2";
        on_pool!(self.pool, |db| {
            sqlx::query(update).bind(repo.0).bind(access.as_str()).bind(micros(now)).execute(db).await?;
        });
        Ok(())
    }

    pub async fn access(self, repo: RepoId) -> Result<RepoAccess, StoreError> {
        let query = "SELECT access FROM repos WHERE id = $1";
        let access: String = on_pool!(self.pool, |db| sqlx::query_scalar(query).bind(repo.0).fetch_one(db).await?);
        word(&access)
    }

    /// Returns the repositories that Canonry may work on, ordered by name.
    pub async fn active(self) -> Result<Vec<Repo>, StoreError> {
        let query = "SELECT id AS repo_id, github_id, name FROM repos WHERE access = 'active' ORDER BY name_key";
        Ok(on_pool!(self.pool, |db| sqlx::query_as(query).fetch_all(db).await?))
    }

    /// Records which installation of the App reaches a repository.
    pub async fn set_installation(self, repo: RepoId, installation: Option<GithubId>) -> Result<(), StoreError> {
        let update = "UPDATE repos SET installation_id = $2 WHERE id = $1";
        on_pool!(self.pool, |db| {
            sqlx::query(update).bind(repo.0).bind(installation.map(|id| id.0)).execute(db).await?;
        });
        Ok(())
    }

    /// Returns the repositories that an installation of the App reaches, ordered by name.
    pub async fn of_installation(self, installation: GithubId) -> Result<Vec<Repo>, StoreError> {
        let query = "SELECT id AS repo_id, github_id, name FROM repos WHERE installation_id = $1 ORDER BY name_key";
        Ok(on_pool!(self.pool, |db| sqlx::query_as(query).bind(installation.0).fetch_all(db).await?))
    }

    /// Returns the installation of the App that reaches a repository; `None` if unknown.
    pub async fn installation(self, repo: RepoId) -> Result<Option<GithubId>, StoreError> {
        let query = "SELECT installation_id FROM repos WHERE id = $1";
        let found: Option<Option<i64>> =
            on_pool!(self.pool, |db| sqlx::query_scalar(query).bind(repo.0).fetch_optional(db).await?);
        Ok(found.flatten().map(GithubId))
    }
}
