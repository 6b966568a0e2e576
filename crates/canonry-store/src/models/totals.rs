//! The total cost of model calls.

use canonry_boxed::boxed;
use canonry_domain::RepoName;
use jiff::Timestamp;

use crate::corpus::repos::RepoId;
use crate::engine::facets::ModelStore;
use crate::engine::row_values::micros;
use crate::engine::rows::from_row;
use crate::engine::transaction::{StoreError, on_pool};

/// All calls to one model for one repository.
#[derive(Debug, Clone, PartialEq)]
pub struct LlmTotals {
    /// `None` for calls that are not about a repository.
    pub repo: Option<RepoName>,
    pub provider: String,
    pub model: String,
    pub calls: u64,
    /// Calls without an answer.
    pub failed: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// In US dollars; calls with an unknown price are not included.
    pub cost_usd: f64,
}

#[boxed]
impl ModelStore<'_> {
    /// Returns the cost in US dollars of a repository's calls since then; calls with an unknown price are not
    /// included.
    pub async fn spent_since(self, repo: RepoId, since: Timestamp) -> Result<f64, StoreError> {
        let query = "SELECT CAST(COALESCE(sum(cost_usd), 0) AS DOUBLE PRECISION) FROM llm_calls WHERE repo_id = $1 AND created_at >= $2";
        Ok(on_pool!(self.pool, |db| sqlx::query_scalar(query).bind(repo.0).bind(micros(since)).fetch_one(db).await?))
    }

    /// Returns the cost of all calls so far by repository, provider and model.
    pub async fn totals(self) -> Result<Vec<LlmTotals>, StoreError> {
        let query = "SELECT r.name AS repo, c.provider, c.model, count(*) AS calls,
                count(*) FILTER (WHERE c.outcome = 'failed') AS failed,
                CAST(COALESCE(sum(c.input_tokens), 0) AS BIGINT) AS input_tokens,
                CAST(COALESCE(sum(c.output_tokens), 0) AS BIGINT) AS output_tokens,
                CAST(COALESCE(sum(c.cost_usd), 0) AS DOUBLE PRECISION) AS cost_usd
            FROM llm_calls c LEFT JOIN repos r ON r.id = c.repo_id
            GROUP BY r.name, c.provider, c.model ORDER BY r.name, c.provider, c.model";
        Ok(on_pool!(self.pool, |db| sqlx::query_as(query).fetch_all(db).await?))
    }
}

from_row!(LlmTotals { repo, provider, model, calls, failed, input_tokens, output_tokens, cost_usd });
