//! Model calls: their purpose, cost and duration.

use canonry_boxed::boxed;
use std::time::Duration;

use jiff::Timestamp;
use sqlx::QueryBuilder;

use crate::corpus::repos::RepoId;
use crate::engine::facets::ModelStore;
use crate::engine::row_values::{micros, storable};
use crate::engine::rows::{StoreRow, from_row};
use crate::engine::transaction::{StoreError, on_pool, on_tx};

#[derive(Debug, Clone, PartialEq)]
pub struct NewLlmCall {
    /// `judge`, `audit`, `detect` or `review`.
    pub purpose: &'static str,
    pub provider: &'static str,
    pub model: String,
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    /// The cost in US dollars, if the price is known.
    pub cost_usd: Option<f64>,
    /// From the first attempt to the end, with waiting.
    pub latency: Duration,
    /// Why there is no answer; `None` if there is one.
    pub error: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct LlmCall {
    pub repo: Option<RepoId>,
    pub purpose: String,
    pub provider: String,
    pub model: String,
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub cost_usd: Option<f64>,
    /// From the first attempt to the end, in whole milliseconds.
    pub latency: Duration,
    pub error: Option<String>,
    pub created_at: Timestamp,
}

#[boxed]
impl ModelStore<'_> {
    /// Records the calls of a run, all or none.
    pub async fn record_calls(
        self,
        repo: Option<RepoId>,
        run_id: &str,
        calls: &[NewLlmCall],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut tx = self.pool.begin().await?;
        for batch in calls.chunks(ROWS_PER_STATEMENT) {
            on_tx!(&mut tx, |db| {
                let mut query = QueryBuilder::new(
                    "INSERT INTO llm_calls (repo_id, run_id, purpose, provider, model, input_tokens, output_tokens, \
                    cost_usd, latency_ms, outcome, error, created_at) ",
                );
                query.push_values(batch, |mut row, call| {
                    row.push_bind(repo.map(|repo| repo.0))
                        .push_bind(run_id)
                        .push_bind(call.purpose)
                        .push_bind(call.provider)
                        .push_bind(call.model.as_str())
                        .push_bind(call.input_tokens.map(count))
                        .push_bind(call.output_tokens.map(count))
                        .push_bind(call.cost_usd)
                        .push_bind(i64::try_from(call.latency.as_millis()).unwrap_or(i64::MAX))
                        .push_bind(if call.error.is_none() { "answered" } else { "failed" })
                        .push_bind(call.error.as_deref().map(storable))
                        .push_bind(micros(now));
                });
                query.build().execute(db).await?;
            });
        }
        tx.commit().await
    }

    /// Returns the calls of a run in the order they were recorded.
    pub async fn calls_of_run(self, run_id: &str) -> Result<Vec<LlmCall>, StoreError> {
        let query = "SELECT repo_id, purpose, provider, model, input_tokens, output_tokens, cost_usd, latency_ms, error, created_at
            FROM llm_calls WHERE run_id = $1 ORDER BY id";
        Ok(on_pool!(self.pool, |db| sqlx::query_as(query).bind(run_id).fetch_all(db).await?))
    }
}

/// 12 columns a row; SQLite accepts at most 32,766 values in a statement.
const ROWS_PER_STATEMENT: usize = 1_000;

/// A count that does not fit is stored as the maximum.
fn count(tokens: u64) -> i64 {
    i64::try_from(tokens).unwrap_or(i64::MAX)
}

from_row! {
    LlmCall {
        repo: "repo_id", purpose, provider, model, input_tokens, output_tokens, cost_usd, latency: (read_latency),
        error, created_at,
    }
}

fn read_latency(row: &impl StoreRow) -> Result<Duration, sqlx::Error> {
    row.column("latency_ms").map(Duration::from_millis)
}
