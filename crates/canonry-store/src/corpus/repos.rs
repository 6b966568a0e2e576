//! Repositories, identified by name, and by GitHub's id once that is known.

use canonry_boxed::boxed;
use canonry_domain::{GithubId, RepoName};
use jiff::Timestamp;

use crate::engine::facets::RepoStore;
use crate::engine::ids::store_id;
use crate::engine::row_values::{micros, storable};
use crate::engine::rows::from_row;
use crate::engine::transaction::{StoreError, on_pool};
use crate::learning::rule_changes::LEARNING_RULES;

store_id! {
    /// The store's own key of a repository.
    RepoId
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repo {
    pub id: RepoId,
    /// GitHub's id, which survives renames; `None` until GitHub returned it.
    pub github_id: Option<GithubId>,
    /// The name as first entered, or as GitHub writes it.
    pub name: RepoName,
}

from_row!(Repo { id: "repo_id", github_id, name });

#[boxed]
impl RepoStore<'_> {
    /// Returns the repository with this name, and creates it if it is unknown.
    pub async fn ensure(self, name: &RepoName, now: Timestamp) -> Result<Repo, StoreError> {
        if let Some(repo) = self.find(name).await? {
            return Ok(repo);
        }
        let insert = "INSERT INTO repos (name, name_key, created_at, learned_by) VALUES ($1, $2, $3, $4) ON CONFLICT (name_key) DO NOTHING";
        on_pool!(self.pool, |db| {
            let insert = sqlx::query(insert).bind(name.to_string()).bind(name.key()).bind(micros(now));
            insert.bind(LEARNING_RULES).execute(db).await?;
        });
        let repo = self.find(name).await?;
        repo.ok_or_else(|| StoreError::damaged(format!("the repository {name} vanished while it was created")))
    }

    /// Finds a repository by name, ignoring case.
    pub async fn find(self, name: &RepoName) -> Result<Option<Repo>, StoreError> {
        let query = "SELECT id AS repo_id, github_id, name FROM repos WHERE name_key = $1";
        Ok(on_pool!(self.pool, |db| sqlx::query_as(query).bind(name.key()).fetch_optional(db).await?))
    }

    pub async fn list(self) -> Result<Vec<Repo>, StoreError> {
        let query = "SELECT id AS repo_id, github_id, name FROM repos ORDER BY name_key";
        Ok(on_pool!(self.pool, |db| sqlx::query_as(query).fetch_all(db).await?))
    }

    /// Stores the id and the current name that GitHub returned for a repository.
    ///
    /// `Ok(None)` means that another known repository already has that id or name and nothing was changed: two
    /// corpora must never be mixed silently.
    pub async fn identify(
        self,
        repo: RepoId,
        github_id: GithubId,
        name: &RepoName,
    ) -> Result<Option<Repo>, StoreError> {
        let mut tx = self.pool.begin().await?;
        let taken = "SELECT count(*) FROM repos WHERE id <> $1 AND (github_id = $2 OR name_key = $3)";
        let update = "UPDATE repos SET github_id = $2, name = $3, name_key = $4 WHERE id = $1
            AND (github_id IS NULL OR github_id = $2) RETURNING id AS repo_id, github_id, name";
        let row: Option<Repo> = crate::engine::transaction::on_tx!(&mut tx, |db| {
            let taken: i64 =
                sqlx::query_scalar(taken).bind(repo.0).bind(github_id.0).bind(name.key()).fetch_one(&mut *db).await?;
            if taken > 0 {
                return Ok(None);
            }
            let query = sqlx::query_as(update).bind(repo.0).bind(github_id.0).bind(name.to_string()).bind(name.key());
            query.fetch_optional(db).await?
        });
        tx.commit().await?;
        Ok(row)
    }

    /// Returns the repository's default branch, if it is known.
    pub async fn default_branch(self, repo: RepoId) -> Result<Option<String>, StoreError> {
        let query = "SELECT default_branch FROM repos WHERE id = $1";
        let found: Option<Option<String>> =
            on_pool!(self.pool, |db| sqlx::query_scalar(query).bind(repo.0).fetch_optional(db).await?);
        Ok(found.flatten())
    }

    /// Stores the default branch that GitHub named. An empty name says nothing.
    pub async fn set_default_branch(self, repo: RepoId, branch: &str) -> Result<(), StoreError> {
        if branch.is_empty() {
            return Ok(());
        }
        let update = "UPDATE repos SET default_branch = $2
            WHERE id = $1 AND (default_branch IS NULL OR default_branch <> $2)";
        on_pool!(self.pool, |db| {
            sqlx::query(update).bind(repo.0).bind(storable(branch)).execute(db).await?;
        });
        Ok(())
    }

    pub async fn by_github_id(self, github_id: GithubId) -> Result<Option<Repo>, StoreError> {
        let query = "SELECT id AS repo_id, github_id, name FROM repos WHERE github_id = $1";
        Ok(on_pool!(self.pool, |db| sqlx::query_as(query).bind(github_id.0).fetch_optional(db).await?))
    }
}
