//! Who maintains a repository: a list that a person set, or the list from GitHub.

use canonry_boxed::boxed;
use canonry_domain::{Login, text_enum};
use jiff::Timestamp;
use sqlx::types::Json;

use crate::corpus::repos::RepoId;
use crate::engine::facets::RepoStore;
use crate::engine::row_values::{micros, moment};
use crate::engine::transaction::{StoreError, on_pool};

text_enum! {
    pub enum MaintainerSource: "a source of maintainers" {
        /// A person set the list; it replaces the list from GitHub.
        Set = "set",
        /// GitHub's collaborators with push access or more.
        Github = "github",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaintainerList {
    pub source: MaintainerSource,
    /// Sorted, without repetitions.
    pub logins: Vec<Login>,
    pub written_at: Timestamp,
}

#[boxed]
impl RepoStore<'_> {
    pub async fn set_maintainers(
        self,
        repo: RepoId,
        source: MaintainerSource,
        logins: &[Login],
        now: Timestamp,
    ) -> Result<MaintainerList, StoreError> {
        let mut logins = logins.to_vec();
        logins.sort();
        logins.dedup();
        let upsert = "INSERT INTO maintainer_lists (repo_id, source, logins, written_at) VALUES ($1, $2, $3, $4)
            ON CONFLICT (repo_id) DO UPDATE SET source = excluded.source, logins = excluded.logins, written_at = excluded.written_at";
        on_pool!(self.pool, |db| {
            let query = sqlx::query(upsert).bind(repo.0).bind(source.as_str()).bind(Json(&logins)).bind(micros(now));
            query.execute(db).await?;
        });
        Ok(MaintainerList { source, logins, written_at: moment(micros(now))? })
    }

    /// Returns the list; `None` if none was ever set or fetched.
    pub async fn maintainers(self, repo: RepoId) -> Result<Option<MaintainerList>, StoreError> {
        let query = "SELECT source, logins, written_at FROM maintainer_lists WHERE repo_id = $1";
        let row: Option<(String, Json<Vec<Login>>, i64)> =
            on_pool!(self.pool, |db| sqlx::query_as(query).bind(repo.0).fetch_optional(db).await?);
        let Some((source, Json(logins), written_at)) = row else {
            return Ok(None);
        };
        let source = match source.as_str() {
            "set" => MaintainerSource::Set,
            "github" => MaintainerSource::Github,
            other => return Err(StoreError::damaged(format!("{other:?} is not a source of maintainers"))),
        };
        Ok(Some(MaintainerList { source, logins, written_at: moment(written_at)? }))
    }
}
