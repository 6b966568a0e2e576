//! Findings that were posted as comments at their lines on GitHub, and the states of their threads.

use canonry_boxed::boxed;
use std::collections::BTreeMap;

use canonry_domain::review::{CommitSha, Finding, ReviewSubject};
use canonry_domain::{GithubId, ItemNumber, text_enum};
use jiff::Timestamp;
use sqlx::QueryBuilder;

use crate::corpus::items::NUMBERS_PER_STATEMENT;
use crate::corpus::repos::{Repo, RepoId};
use crate::engine::facets::FindingStore;
use crate::engine::lists::PushList as _;
use crate::engine::row_values::{micros, word};
use crate::engine::rows::from_row;
use crate::engine::transaction::{StoreError, Transaction, on_pool, on_tx};
use crate::review::runs::{FindingId, ReviewId};

text_enum! {
    /// The final state of a thread whose finding is fixed or was posted again in a newer comment.
    pub enum PostedThreadState: "an end of a thread" {
        Resolved = "resolved",
        /// The comment says that it is fixed; the thread could not be resolved.
        Edited = "edited",
        /// People replied in the thread, or the comment was deleted: Canonry leaves the thread to them.
        Left = "left",
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct PostedFinding {
    pub repo: Repo,
    pub number: ItemNumber,
    pub run: ReviewId,
    pub finding: FindingId,
    pub comment: GithubId,
    pub posted_at: Timestamp,
    pub said: Finding,
    /// The final state of its thread, once Canonry has nothing more to post in it.
    pub settled: Option<PostedThreadState>,
    pub settled_at: Option<Timestamp>,
}

macro_rules! posted {
    ($rest:literal) => {
        concat!(
            "SELECT p.repo_id, r.github_id, r.name, p.number, p.run_id, p.finding_id, p.comment_id, p.posted_at, s.finding,
                p.settled, p.settled_at
            FROM posted_findings p JOIN repos r ON r.id = p.repo_id
            JOIN finding_sightings s ON s.finding_id = p.finding_id AND s.run_id = p.run_id ",
            $rest
        )
    };
}

#[boxed]
impl FindingStore<'_> {
    /// Records which comments of a review contain which of its findings. A repeated call changes nothing; findings
    /// that the review does not contain are skipped.
    pub async fn record_posted(
        self,
        repo: RepoId,
        pull: ItemNumber,
        run: ReviewId,
        posted: &[(FindingId, GithubId)],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let insert = "INSERT INTO posted_findings (repo_id, number, run_id, finding_id, comment_id, posted_at)
            SELECT $1, $2, s.run_id, s.finding_id, $5, $6 FROM finding_sightings s WHERE s.run_id = $3 AND s.finding_id = $4
            ON CONFLICT (repo_id, comment_id) DO NOTHING";
        let mut tx = self.pool.begin().await?;
        tx.lock_items_of(repo).await?;
        for (finding, comment) in posted {
            on_tx!(&mut tx, |db| {
                let query = sqlx::query(insert).bind(repo.0).bind(pull.get()).bind(run.0).bind(finding.0);
                query.bind(comment.0).bind(micros(now)).execute(db).await?;
            });
        }
        let said: Vec<FindingId> = posted.iter().map(|(finding, _)| *finding).collect();
        mark_inline(&mut tx, run, &said).await?;
        tx.commit().await
    }

    /// Records that comments at their lines contain these findings as in this review. If a later review contains a
    /// finding, that review counts.
    pub async fn mark_posted_inline(self, run: ReviewId, findings: &[FindingId]) -> Result<(), StoreError> {
        let mut tx = self.pool.begin().await?;
        mark_inline(&mut tx, run, findings).await?;
        tx.commit().await
    }

    /// Returns the finding in a review comment.
    pub async fn posted_of_comment(self, repo: RepoId, comment: GithubId) -> Result<Option<PostedFinding>, StoreError> {
        let query = posted!("WHERE p.repo_id = $1 AND p.comment_id = $2");
        Ok(on_pool!(self.pool, |db| sqlx::query_as(query).bind(repo.0).bind(comment.0).fetch_optional(db).await?))
    }

    /// Returns the findings posted as comments at the lines of a pull request, oldest first.
    pub async fn posted_on_pull(self, repo: RepoId, pull: ItemNumber) -> Result<Vec<PostedFinding>, StoreError> {
        let query = posted!("WHERE p.repo_id = $1 AND p.number = $2 ORDER BY p.id");
        Ok(on_pool!(self.pool, |db| sqlx::query_as(query).bind(repo.0).bind(pull.get()).fetch_all(db).await?))
    }

    /// Returns all comments at lines that ever contained a finding, oldest first.
    pub async fn posted_of_finding(self, repo: RepoId, finding: FindingId) -> Result<Vec<PostedFinding>, StoreError> {
        let query = posted!("WHERE p.finding_id = $1 AND p.repo_id = $2 ORDER BY p.id");
        Ok(on_pool!(self.pool, |db| sqlx::query_as(query).bind(finding.0).bind(repo.0).fetch_all(db).await?))
    }

    /// Records the final state of a thread; `false` if no finding began it, or if a state was already recorded.
    pub async fn settle_posted(
        self,
        repo: RepoId,
        comment: GithubId,
        settled: PostedThreadState,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let update = "UPDATE posted_findings SET settled = $3, settled_at = $4
            WHERE repo_id = $1 AND comment_id = $2 AND settled IS NULL";
        let noted = on_pool!(self.pool, |db| {
            let query = sqlx::query(update).bind(repo.0).bind(comment.0).bind(settled.as_str()).bind(micros(now));
            query.execute(db).await?.rows_affected()
        });
        Ok(noted == 1)
    }
}

#[boxed]
impl crate::ReviewStore<'_> {
    /// Returns the head of the first review that contains each finding of a subject.
    pub async fn first_heads(
        self,
        repo: RepoId,
        subject: &ReviewSubject,
    ) -> Result<BTreeMap<FindingId, CommitSha>, StoreError> {
        let query = "SELECT f.id, r.head_sha FROM findings f JOIN review_runs r ON r.id = f.first_run
            WHERE f.repo_id = $1 AND f.subject = $2";
        let rows: Vec<(i64, String)> = on_pool!(self.pool, |db| sqlx::query_as(query)
            .bind(repo.0)
            .bind(subject.to_string())
            .fetch_all(db)
            .await?);
        rows.into_iter().map(|(id, head)| Ok((FindingId(id), word(&head)?))).collect()
    }
}

async fn mark_inline(tx: &mut Transaction, run: ReviewId, findings: &[FindingId]) -> Result<(), StoreError> {
    for batch in findings.chunks(NUMBERS_PER_STATEMENT) {
        on_tx!(&mut *tx, |db| {
            let mut query = QueryBuilder::new("UPDATE findings SET said_inline = TRUE WHERE last_run = ");
            query.push_bind(run.0).push(" AND id IN (");
            query.push_list(batch.iter().map(|finding| finding.0));
            query.build().execute(db).await?;
        });
    }
    Ok(())
}

from_row! {
    PostedFinding {
        repo: flatten, number, run: "run_id", finding: "finding_id", comment: "comment_id", posted_at, said: "finding",
        settled, settled_at,
    }
}
