//! One line per repository, for the page about all of them.

use canonry_boxed::boxed;
use jiff::Timestamp;
use sqlx::QueryBuilder;

use crate::corpus::repo_access::RepoAccess;
use crate::corpus::repos::{Repo, RepoId};
use crate::engine::facets::ConsoleStore;
use crate::engine::like_patterns::patterns;
use crate::engine::rows::from_row;
use crate::engine::transaction::{StoreError, on_pool};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoOverview {
    pub repo: Repo,
    pub access: RepoAccess,
    pub open_issues: u64,
    pub open_prs: u64,
    /// Announced closes whose grace runs.
    pub waiting_graces: u64,
    pub paused: bool,
    /// Whether the breaker stopped closes without a person's approval after too many objections.
    pub breaker: bool,
    pub dead_jobs: u64,
    pub synced_at: Option<Timestamp>,
    /// The configuration as last fetched; `None` if it has none or none was ever fetched.
    pub settings: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RepoPageFilter<'a> {
    /// Repositories with each of these words in the name; empty for any.
    pub text: &'a str,
    /// Only repositories where something blocks Canonry: no access, a brake, or failed jobs.
    pub in_trouble: bool,
}

const IN_TROUBLE: &str = " AND (r.access <> 'active'
    OR EXISTS (SELECT 1 FROM brakes b WHERE b.repo_id = r.id AND b.lifted_at IS NULL)
    OR EXISTS (SELECT 1 FROM jobs j WHERE j.repo = r.name_key AND j.state = 'dead'))";

macro_rules! overviews {
    ($rest:literal) => {
        concat!(
            "SELECT r.id AS repo_id, r.github_id, r.name, r.access,
                (SELECT count(*) FROM items i WHERE i.repo_id = r.id AND i.type = 'issue' AND i.state = 'open' AND i.gone IS NULL) AS open_issues,
                (SELECT count(*) FROM items i WHERE i.repo_id = r.id AND i.type = 'pr' AND i.state = 'open' AND i.gone IS NULL) AS open_prs,
                (SELECT count(*) FROM graces g WHERE g.repo_id = r.id AND g.state = 'waiting') AS waiting_graces,
                EXISTS (SELECT 1 FROM brakes b WHERE b.repo_id = r.id AND b.kind = 'pause' AND b.lifted_at IS NULL) AS paused,
                EXISTS (SELECT 1 FROM brakes b WHERE b.repo_id = r.id AND b.kind = 'breaker' AND b.lifted_at IS NULL) AS breaker,
                (SELECT count(*) FROM jobs j WHERE j.repo = r.name_key AND j.state = 'dead') AS dead_jobs,
                p.finished_at AS synced_at, s.text AS settings
            FROM repos r LEFT JOIN sync_progress p ON p.repo_id = r.id LEFT JOIN repo_settings s ON s.repo_id = r.id ",
            $rest
        )
    };
}

#[boxed]
impl ConsoleStore<'_> {
    /// Returns repositories ordered by name, after the one with the key `after`, whatever Canonry's access to them. A
    /// key does not reveal the repository's name to a person who may not see it.
    pub async fn repo_pages(
        self,
        filter: RepoPageFilter<'_>,
        after: Option<i64>,
        limit: u32,
    ) -> Result<Vec<RepoOverview>, StoreError> {
        let words = patterns(filter.text);
        Ok(on_pool!(self.pool, |db| {
            let mut query =
                QueryBuilder::new(overviews!("WHERE r.name_key > coalesce((SELECT name_key FROM repos WHERE id = "));
            query.push_bind(after).push("), '')");
            for word in &words {
                query.push(" AND r.name_key LIKE lower(").push_bind(word).push(") ESCAPE '\\'");
            }
            if filter.in_trouble {
                query.push(IN_TROUBLE);
            }
            query.push(" ORDER BY r.name_key LIMIT ").push_bind(i64::from(limit));
            query.build_query_as().fetch_all(db).await?
        }))
    }

    /// Returns repositories with each of these words in the name, ordered by name.
    pub async fn repo_names(self, text: &str, limit: u32) -> Result<Vec<Repo>, StoreError> {
        let words = patterns(text);
        Ok(on_pool!(self.pool, |db| {
            let mut query = QueryBuilder::new("SELECT r.id AS repo_id, r.github_id, r.name FROM repos r WHERE 1 = 1");
            for word in &words {
                query.push(" AND r.name_key LIKE lower(").push_bind(word).push(") ESCAPE '\\'");
            }
            query.push(" ORDER BY r.name_key LIMIT ").push_bind(i64::from(limit));
            query.build_query_as().fetch_all(db).await?
        }))
    }

    pub async fn repo_overview(self, repo: RepoId) -> Result<RepoOverview, StoreError> {
        let query = overviews!("WHERE r.id = $1");
        Ok(on_pool!(self.pool, |db| sqlx::query_as(query).bind(repo.0).fetch_one(db).await?))
    }
}

from_row! {
    RepoOverview {
        repo: flatten, access, open_issues, open_prs, waiting_graces, paused, breaker, dead_jobs, synced_at, settings,
    }
}
