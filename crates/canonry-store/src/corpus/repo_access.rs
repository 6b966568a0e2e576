//! Whether Canonry may still work on a repository, and through which installation of the App.

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
        /// The App was taken away from it, or the token does not reach it any more.
        Removed = "removed",
        Suspended = "suspended",
        /// It is archived: it can be read, and nothing can be written.
        Archived = "archived",
        Deleted = "deleted",
    }
}

#[boxed]
impl RepoStore<'_> {
    /// Notes whether Canonry may work on a repository.
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

    /// The repositories that Canonry may work on, by name.
    pub async fn active(self) -> Result<Vec<Repo>, StoreError> {
        let query = "SELECT id AS repo_id, github_id, name FROM repos WHERE access = 'active' ORDER BY name_key";
        Ok(on_pool!(self.pool, |db| sqlx::query_as(query).fetch_all(db).await?))
    }

    /// Notes through which installation of the App a repository is reached.
    pub async fn set_installation(self, repo: RepoId, installation: Option<GithubId>) -> Result<(), StoreError> {
        let update = "UPDATE repos SET installation_id = $2 WHERE id = $1";
        on_pool!(self.pool, |db| {
            sqlx::query(update).bind(repo.0).bind(installation.map(|id| id.0)).execute(db).await?;
        });
        Ok(())
    }

    /// The repositories that are reached through an installation of the App, by name.
    pub async fn of_installation(self, installation: GithubId) -> Result<Vec<Repo>, StoreError> {
        let query = "SELECT id AS repo_id, github_id, name FROM repos WHERE installation_id = $1 ORDER BY name_key";
        Ok(on_pool!(self.pool, |db| sqlx::query_as(query).bind(installation.0).fetch_all(db).await?))
    }

    /// The installation of the App through which a repository is reached, as far as anybody told.
    pub async fn installation(self, repo: RepoId) -> Result<Option<GithubId>, StoreError> {
        let query = "SELECT installation_id FROM repos WHERE id = $1";
        let found: Option<Option<i64>> =
            on_pool!(self.pool, |db| sqlx::query_scalar(query).bind(repo.0).fetch_optional(db).await?);
        Ok(found.flatten().map(GithubId))
    }
}
