//! What needs a person in each repository, and the announced closes that are due next.

use canonry_boxed::boxed;
use canonry_domain::{ItemNumber, ItemType};
use jiff::Timestamp;
use sqlx::QueryBuilder;

use crate::close::runs::CloseRunId;
use crate::corpus::repo_access::RepoAccess;
use crate::corpus::repos::{Repo, RepoId};
use crate::engine::facets::ConsoleStore;
use crate::engine::lists::PushList as _;
use crate::engine::row_values::micros;
use crate::engine::rows::from_row;
use crate::engine::transaction::{StoreError, on_pool};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepoScope<'a> {
    All,
    Of(&'a [RepoId]),
}

impl RepoScope<'_> {
    /// The keys of the repositories; `None` for all. Contains 0, which no repository has, because SQL accepts no
    /// empty list.
    pub(crate) fn keys(self) -> Option<Vec<i64>> {
        match self {
            Self::All => None,
            Self::Of(repos) => Some(std::iter::once(0).chain(repos.iter().map(|repo| repo.0)).collect()),
        }
    }
}

/// Where the count of open findings ends.
pub const MOST_COUNTED: u64 = 1_000;

/// What needs a person in a repository, and what keeps Canonry from working there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoAttention {
    pub repo: Repo,
    pub access: RepoAccess,
    pub paused: bool,
    pub breaker: bool,
    /// Announced closes whose grace runs.
    pub announced: u64,
    /// The newest plan that a person asked for, unless it is too old or was applied.
    pub plan: Option<CloseRunId>,
    /// Undecided rows of that plan.
    pub undecided: u64,
    /// Unanswered cases that were drawn for adjudication.
    pub unanswered: u64,
    pub failed_jobs: u64,
    /// Findings of open pull requests that were shown and are neither fixed nor dismissed. Every page of a repository
    /// counts them, so it ends at [`MOST_COUNTED`].
    pub open_findings: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextClose {
    /// The key of its grace.
    pub id: i64,
    pub repo: Repo,
    pub item_type: ItemType,
    pub number: ItemNumber,
    pub title: String,
    pub target: ItemNumber,
    pub due_at: Timestamp,
    /// What it waits for besides its due time.
    pub reason: Option<String>,
}

/// The query, up to the bind of the time since which a plan must have been made.
const ATTENTION: &str = "SELECT r.id AS repo_id, r.github_id, r.name, r.name_key, r.access,
        EXISTS (SELECT 1 FROM brakes b WHERE b.repo_id = r.id AND b.kind = 'pause' AND b.lifted_at IS NULL) AS paused,
        EXISTS (SELECT 1 FROM brakes b WHERE b.repo_id = r.id AND b.kind = 'breaker' AND b.lifted_at IS NULL) AS breaker,
        (SELECT count(*) FROM graces g WHERE g.repo_id = r.id AND g.state = 'waiting') AS announced,
        p.id AS plan,
        (SELECT count(*) FROM close_run_items c WHERE c.run_id = p.id AND c.action = 'close' AND c.approved IS NULL
            AND c.result IS NULL) AS undecided,
        (SELECT count(*) FROM adjudications a WHERE a.repo_id = r.id AND a.word IS NULL) AS unanswered,
        (SELECT count(*) FROM jobs j WHERE j.repo = r.name_key AND j.state = 'dead') AS failed_jobs,
        (SELECT count(*) FROM (SELECT 1 FROM items i
            JOIN findings f ON f.repo_id = i.repo_id AND f.subject = 'pull/' || i.number
            WHERE i.repo_id = r.id AND i.type = 'pr' AND i.state = 'open' AND i.gone IS NULL
            AND NOT f.fixed AND f.status <> 'dismissed' AND f.shown_as <> 'suppressed' LIMIT 1000) counted) AS open_findings
    FROM repos r LEFT JOIN close_runs p
        ON p.id = (SELECT c.id FROM close_runs c WHERE c.repo_id = r.id AND c.mode = 'plan'
            AND NOT EXISTS (SELECT 1 FROM graces g WHERE g.close_run_id = c.id) ORDER BY c.id DESC LIMIT 1)
        AND NOT EXISTS (SELECT 1 FROM close_runs a WHERE a.plan_id = p.id AND a.mode = 'apply') AND p.created_at >= ";

#[boxed]
impl ConsoleStore<'_> {
    /// Returns the repositories where something needs a person or keeps Canonry from working, ordered by name.
    pub async fn attention(
        self,
        scope: RepoScope<'_>,
        plans_since: Timestamp,
        limit: u32,
    ) -> Result<Vec<RepoAttention>, StoreError> {
        Ok(on_pool!(self.pool, |db| {
            let mut query = QueryBuilder::new("SELECT * FROM (");
            query.push(ATTENTION).push_bind(micros(plans_since));
            if let Some(repos) = scope.keys() {
                query.push(" WHERE r.id IN (").push_list(repos);
            }
            query.push(
                ") attention WHERE announced > 0 OR undecided > 0 OR unanswered > 0 OR failed_jobs > 0 OR paused
                    OR breaker OR access <> 'active' ORDER BY name_key LIMIT ",
            );
            query.push_bind(i64::from(limit)).build_query_as().fetch_all(db).await?
        }))
    }

    /// The same for one repository, whether or not something needs a person there.
    pub async fn repo_attention(self, repo: RepoId, plans_since: Timestamp) -> Result<RepoAttention, StoreError> {
        Ok(on_pool!(self.pool, |db| {
            let mut query = QueryBuilder::new(ATTENTION);
            query.push_bind(micros(plans_since)).push(" WHERE r.id = ").push_bind(repo.0);
            query.build_query_as().fetch_one(db).await?
        }))
    }

    /// Returns the announced closes that are due first.
    pub async fn next_closes(self, scope: RepoScope<'_>, limit: u32) -> Result<Vec<NextClose>, StoreError> {
        Ok(on_pool!(self.pool, |db| {
            let mut query = QueryBuilder::new(
                "SELECT g.id, g.repo_id, r.github_id, r.name, i.type, i.number, i.title, t.number AS target, g.due_at, g.reason
                FROM graces g JOIN repos r ON r.id = g.repo_id JOIN items i ON i.id = g.item_id
                JOIN items t ON t.id = g.target_item_id WHERE g.state = 'waiting'",
            );
            if let Some(repos) = scope.keys() {
                query.push(" AND g.repo_id IN (").push_list(repos);
            }
            query.push(" ORDER BY g.due_at, g.id LIMIT ").push_bind(i64::from(limit));
            query.build_query_as().fetch_all(db).await?
        }))
    }
}

from_row! {
    RepoAttention {
        repo: flatten, access, paused, breaker, announced, plan, undecided, unanswered, failed_jobs, open_findings,
    }
}
from_row!(NextClose { id, repo: flatten, item_type: "type", number, title, target, due_at, reason });
