//! The patterns of a repository page by page: their feedback, when it was cleared, and hidden findings.

use canonry_boxed::boxed;
use canonry_domain::review::{Finding, Fingerprint, HiddenBy, PatternKey};
use canonry_domain::{GithubId, Login};
use jiff::Timestamp;
use sqlx::types::Json;

use crate::corpus::repos::RepoId;
use crate::engine::facets::FindingStore;
use crate::engine::row_values::{beginning, count, moment, optional_moment, optional_word, storable, word};
use crate::engine::rows::from_row;
use crate::engine::transaction::{StoreError, on_pool, on_tx};
use crate::review::finding_feedback::{StoredPattern, describe, pooled};
use crate::review::runs::{FindingId, ReviewId};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternEntry {
    pub pattern: StoredPattern,
    /// The newest reaction that counts; a list continues from it.
    pub newest: GithubId,
    pub reacted_at: Timestamp,
    pub findings: u64,
    /// How many of its findings their last review did not show.
    pub hidden: u64,
}

/// A maintainer's decision that earlier reactions no longer count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedbackClear {
    /// A list continues from this key.
    pub id: i64,
    /// `None` for all patterns.
    pub pattern: Option<PatternKey>,
    /// The title of the pattern's latest finding, if there is one.
    pub title: Option<String>,
    /// `(operator)`, which cannot be a login, for the operator of the service, because the table requires a name.
    pub by: Login,
    pub at: Timestamp,
    pub undone_by: Option<Login>,
    pub undone_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuppressedFinding {
    pub review: ReviewId,
    pub finding: FindingId,
    pub fingerprint: Fingerprint,
    pub title: String,
    pub hidden_by: Option<HiddenBy>,
    pub at: Timestamp,
}

/// Reactions that count and came after the last clear of their pattern or of all patterns.
const COUNTING: &str = "WITH clears AS (SELECT key, max(at) AS at FROM feedback_clears WHERE repo_id = $1 AND undone_at IS NULL GROUP BY key)
    SELECT v.key, max(v.reaction_id) AS newest, max(v.at) AS reacted_at FROM feedback_reactions v
    WHERE v.repo_id = $1 AND v.teaches AND v.removed_at IS NULL
        AND NOT EXISTS (SELECT 1 FROM clears c WHERE (c.key IS NULL OR c.key = v.key) AND c.at >= v.at)
    GROUP BY v.key HAVING max(v.reaction_id) < $2 ORDER BY newest DESC LIMIT $3";

#[boxed]
impl FindingStore<'_> {
    /// Returns the patterns with counting reactions, last reacted first; `after` is the newest reaction of the last
    /// pattern of the previous page.
    pub async fn pattern_pages(
        self,
        repo: RepoId,
        after: Option<GithubId>,
        limit: u32,
    ) -> Result<Vec<PatternEntry>, StoreError> {
        let counts = "SELECT count(*), CAST(COALESCE(sum(CASE WHEN shown_as = 'suppressed' AND NOT fixed THEN 1 ELSE 0 END), 0) AS BIGINT)
            FROM findings WHERE repo_id = $1 AND substr(key, 1, 200) = $3 AND key || '' = $2";
        let after = after.map_or(i64::MAX, |reaction| reaction.0);
        let mut tx = self.pool.begin_reading().await?;
        let rows: Vec<(String, i64, i64)> = on_tx!(&mut tx, |db| {
            sqlx::query_as(COUNTING).bind(repo.0).bind(after).bind(i64::from(limit)).fetch_all(db).await?
        });
        let keys: Vec<String> = rows.iter().map(|(key, _, _)| key.clone()).collect();
        let mut pooled = pooled(&mut tx, repo, Some(&keys)).await?;
        let mut entries = Vec::with_capacity(rows.len());
        for (key, newest, reacted_at) in rows {
            let Some(feedback) = pooled.remove(&key) else { continue };
            let described = describe(&mut tx, repo, &key).await?;
            let (findings, hidden): (i64, i64) = on_tx!(&mut tx, |db| {
                sqlx::query_as(counts).bind(repo.0).bind(&key).bind(beginning(&key)).fetch_one(db).await?
            });
            entries.push(PatternEntry {
                pattern: described.pattern(PatternKey::stored(key), feedback),
                newest: GithubId(newest),
                reacted_at: moment(reacted_at)?,
                findings: count(findings)?,
                hidden: count(hidden)?,
            });
        }
        tx.commit().await?;
        Ok(entries)
    }

    /// Returns the feedback on one pattern; `None` if no vote counts.
    pub async fn pattern(self, repo: RepoId, key: &PatternKey) -> Result<Option<StoredPattern>, StoreError> {
        let stored = storable(key.as_str()).into_owned();
        let mut tx = self.pool.begin_reading().await?;
        let Some(feedback) = pooled(&mut tx, repo, Some(std::slice::from_ref(&stored))).await?.remove(&stored) else {
            return Ok(None);
        };
        let described = describe(&mut tx, repo, &stored).await?;
        tx.commit().await?;
        Ok(Some(described.pattern(key.clone(), feedback)))
    }

    /// Returns the clears of reactions, newest first, older than the one with the key `before`.
    pub async fn feedback_clears(
        self,
        repo: RepoId,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<FeedbackClear>, StoreError> {
        let query = "SELECT id, key, by_login, at, undone_by, undone_at FROM feedback_clears
            WHERE repo_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3";
        let title = "SELECT latest FROM findings
            WHERE repo_id = $1 AND substr(key, 1, 200) = $3 AND key || '' = $2 ORDER BY id DESC LIMIT 1";
        let mut tx = self.pool.begin_reading().await?;
        type Row = (i64, Option<String>, String, i64, Option<String>, Option<i64>);
        let rows: Vec<Row> = on_tx!(&mut tx, |db| {
            let query = sqlx::query_as(query).bind(repo.0).bind(before.unwrap_or(i64::MAX));
            query.bind(i64::from(limit)).fetch_all(db).await?
        });
        let mut clears = Vec::with_capacity(rows.len());
        for (id, key, login, at, undone_by, undone_at) in rows {
            let latest: Option<Json<Finding>> = match &key {
                None => None,
                Some(key) => on_tx!(&mut tx, |db| {
                    sqlx::query_scalar(title).bind(repo.0).bind(key).bind(beginning(key)).fetch_optional(db).await?
                }),
            };
            clears.push(FeedbackClear {
                id,
                pattern: key.map(PatternKey::stored),
                title: latest.map(|Json(finding)| finding.title),
                by: word(&login)?,
                at: moment(at)?,
                undone_by: optional_word(undone_by.as_deref())?,
                undone_at: optional_moment(undone_at)?,
            });
        }
        tx.commit().await?;
        Ok(clears)
    }

    /// Returns the findings that the reviews of a repository did not show, with the reasons, newest first; `before`
    /// is the last one of the previous page.
    pub async fn suppressions(
        self,
        repo: RepoId,
        before: Option<(ReviewId, FindingId)>,
        limit: u32,
    ) -> Result<Vec<SuppressedFinding>, StoreError> {
        let completed = "SELECT completed_at FROM reviews WHERE run_id = $1 AND repo_id = $2";
        // Reviews come first, by their index; the log has no index by repository.
        let query = "SELECT s.run_id, s.finding_id, s.fingerprint, s.title, NULLIF(s.hidden_by, '') AS hidden_by, s.at
            FROM reviews v CROSS JOIN suppression_log s
            WHERE v.repo_id = $1 AND s.run_id = v.run_id AND v.completed_at <= $2
                AND (v.completed_at < $2 OR v.run_id < $3 OR (v.run_id = $3 AND s.finding_id < $4))
            ORDER BY v.completed_at DESC, v.run_id DESC, s.finding_id DESC LIMIT $5";
        let mut tx = self.pool.begin_reading().await?;
        let (at, run, finding) = match before {
            None => (i64::MAX, i64::MAX, i64::MAX),
            Some((review, finding)) => {
                let at: Option<i64> = on_tx!(&mut tx, |db| {
                    sqlx::query_scalar(completed).bind(review.0).bind(repo.0).fetch_optional(db).await?
                });
                let Some(at) = at else { return Ok(Vec::new()) };
                (at, review.0, finding.0)
            }
        };
        let rows = on_tx!(&mut tx, |db| {
            let query = sqlx::query_as(query).bind(repo.0).bind(at).bind(run).bind(finding);
            query.bind(i64::from(limit)).fetch_all(db).await?
        });
        tx.commit().await?;
        Ok(rows)
    }

    /// Returns the time of the newest clear that covers a pattern; earlier reactions do not count.
    pub async fn cleared_at(self, repo: RepoId, key: &PatternKey) -> Result<Option<Timestamp>, StoreError> {
        let query = "SELECT max(at) FROM feedback_clears WHERE repo_id = $1 AND undone_at IS NULL AND (key IS NULL OR key = $2)";
        let at: Option<i64> = on_pool!(self.pool, |db| {
            sqlx::query_scalar(query).bind(repo.0).bind(storable(key.as_str())).fetch_one(db).await?
        });
        at.map(moment).transpose()
    }
}

from_row!(SuppressedFinding { review: "run_id", finding: "finding_id", fingerprint, title, hidden_by, at });
