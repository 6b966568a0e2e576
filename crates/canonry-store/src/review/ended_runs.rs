//! The ended runs of a repository, with the reviews of the completed ones.

use canonry_boxed::boxed;
use std::collections::HashMap;

use canonry_domain::review::ReviewSubject;
use sqlx::QueryBuilder;

use crate::corpus::repos::RepoId;
use crate::engine::facets::ReviewStore;
use crate::engine::lists::PushList as _;
use crate::engine::transaction::{StoreError, on_pool};
use crate::review::history::{StoredReview, reviews};
use crate::review::runs::{ReviewId, ReviewState, StoredRun};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RunEnd {
    Completed,
    /// Ended without a review, for a stored reason.
    Failed,
    /// Ended without a review, because another run replaced it.
    Superseded,
}

impl RunEnd {
    pub const ALL: [Self; 3] = [Self::Completed, Self::Failed, Self::Superseded];

    pub const fn state(self) -> ReviewState {
        match self {
            Self::Completed => ReviewState::Completed,
            Self::Failed => ReviewState::Failed,
            Self::Superseded => ReviewState::Superseded,
        }
    }
}

/// Selects runs; `None` means any.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EndedRunFilter<'a> {
    pub subject: Option<&'a ReviewSubject>,
    pub end: Option<RunEnd>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct EndedRun {
    pub run: StoredRun,
    /// `None` if the run failed or was superseded.
    pub review: Option<StoredReview>,
}

#[boxed]
impl ReviewStore<'_> {
    /// Returns the ended runs of a repository that began before `before`, newest first.
    pub async fn ended_runs(
        self,
        repo: RepoId,
        filter: EndedRunFilter<'_>,
        before: Option<ReviewId>,
        limit: u32,
    ) -> Result<Vec<EndedRun>, StoreError> {
        let runs: Vec<StoredRun> = on_pool!(self.pool, |db| {
            let mut query = QueryBuilder::new(
                "SELECT id, subject, base_sha, head_sha, state, requested, full_requested, attempts, error, created_at, finished_at
                FROM review_runs WHERE repo_id = ",
            );
            query.push_bind(repo.0).push(" AND id < ").push_bind(before.map_or(i64::MAX, ReviewId::get));
            if let Some(subject) = filter.subject {
                query.push(" AND subject = ").push_bind(subject.to_string());
            }
            match filter.end {
                Some(end) => query.push(" AND state = ").push_bind(end.state().as_str()),
                None => query.push(" AND state IN ('completed', 'failed', 'superseded')"),
            };
            query.push(" ORDER BY id DESC LIMIT ").push_bind(i64::from(limit));
            query.build_query_as().fetch_all(db).await?
        });
        let completed = runs.iter().filter(|run| run.state == ReviewState::Completed).map(|run| run.id);
        let mut reviews = self.reviews_of_runs(&completed.collect::<Vec<_>>()).await?;
        Ok(runs.into_iter().map(|run| EndedRun { review: reviews.remove(&run.id), run }).collect())
    }

    async fn reviews_of_runs(self, runs: &[ReviewId]) -> Result<HashMap<ReviewId, StoredReview>, StoreError> {
        if runs.is_empty() {
            return Ok(HashMap::new());
        }
        let rows: Vec<StoredReview> = on_pool!(self.pool, |db| {
            let mut query = QueryBuilder::new(reviews!("WHERE v.run_id IN ("));
            query.push_list(runs.iter().map(|run| run.get()));
            query.build_query_as().fetch_all(db).await?
        });
        Ok(rows.into_iter().map(|review| (review.id, review)).collect())
    }
}
