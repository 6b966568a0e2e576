//! Reads completed reviews and the history of each finding.

use canonry_boxed::boxed;
use canonry_domain::review::{
    CodeExcerpt, CommitSha, Confidence, Finding, FindingStatus, HiddenBy, RepoPath, ReviewMode, ReviewSubject,
    Severity, ShownAs,
};
use jiff::Timestamp;
use serde_json::Value;
use sqlx::QueryBuilder;

use crate::corpus::repos::RepoId;
use crate::engine::facets::ReviewStore;
use crate::engine::lists::PushList as _;
use crate::engine::row_values::beginning;
use crate::engine::rows::from_row;
use crate::engine::transaction::{StoreError, on_pool};
use crate::review::runs::{FindingId, ReviewId};

#[derive(Debug, Clone, PartialEq)]
pub struct StoredReview {
    pub id: ReviewId,
    pub subject: ReviewSubject,
    pub base: CommitSha,
    pub head: CommitSha,
    pub mode: ReviewMode,
    pub reason: String,
    pub files_read: u64,
    pub lines_read: u64,
    pub shown: u64,
    pub suppressed: u64,
    pub fixed: u64,
    /// What could not be done, and other remarks.
    pub notes: Vec<String>,
    /// The reviewers, and other data of the report.
    pub reviewers: Value,
    pub model: Option<String>,
    pub cost_usd: f64,
    pub completed_at: Timestamp,
}

/// The result of a completed review for one finding.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredSighting {
    pub review: ReviewId,
    pub id: FindingId,
    pub finding: Finding,
    /// The flagged code at the reviewed commit, if it was stored.
    pub excerpt: Option<CodeExcerpt>,
    pub status: FindingStatus,
    pub shown: ShownAs,
    pub hidden_by: Option<HiddenBy>,
    pub confidence: Confidence,
    pub grounded: bool,
    pub said_inline: bool,
    pub reported: bool,
    pub code_unchanged: bool,
    /// When the review was stored.
    pub at: Timestamp,
}

/// A finding as it was last seen.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredFinding {
    pub id: FindingId,
    pub subject: ReviewSubject,
    pub finding: Finding,
    /// The latest status.
    pub status: FindingStatus,
    /// Where it was last shown.
    pub shown: ShownAs,
    pub fixed: bool,
    /// When the first review that contains it was stored.
    pub first_seen: Timestamp,
    /// When the last review that contains it was stored.
    pub last_seen: Timestamp,
}

/// The number of a review's findings with the same properties.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SightingCount {
    pub status: FindingStatus,
    pub severity: Severity,
    pub shown: ShownAs,
    pub hidden_by: Option<HiddenBy>,
    pub times: u64,
}

macro_rules! reviews {
    ($rest:literal) => {
        concat!(
            "SELECT r.id, r.subject, r.base_sha, r.head_sha, v.mode, v.reason, v.files_read, v.lines_read, v.shown, v.suppressed,
                v.fixed, v.notes, v.reviewers, v.model, v.cost_usd, v.completed_at
            FROM reviews v JOIN review_runs r ON r.id = v.run_id ",
            $rest
        )
    };
}

pub(crate) use reviews;

macro_rules! sightings {
    () => {
        "SELECT s.run_id, s.finding_id, s.finding, s.status, s.shown_as, s.hidden_by, s.confidence, s.grounded, s.said_inline,
            s.reported, s.code_unchanged, s.excerpt, v.completed_at "
    };
    ($rest:literal) => {
        concat!(sightings!(), "FROM finding_sightings s JOIN reviews v ON v.run_id = s.run_id ", $rest)
    };
}

/// The section of a review page that shows a finding: first those at their lines, last the fixed ones.
macro_rules! part {
    () => {
        "CASE WHEN status = 'fixed' THEN 4 WHEN shown_as = 'inline' THEN 0 WHEN shown_as = 'details' THEN 1
            WHEN shown_as = 'low_confidence' THEN 2 ELSE 3 END"
    };
}

macro_rules! findings {
    ($rest:literal) => {
        concat!(
            "SELECT f.id, f.subject, f.latest, f.status, f.shown_as, f.fixed, a.completed_at AS first_seen,
                b.completed_at AS last_seen
            FROM findings f JOIN reviews a ON a.run_id = f.first_run JOIN reviews b ON b.run_id = f.last_run ",
            $rest
        )
    };
}

#[boxed]
impl ReviewStore<'_> {
    pub async fn get(self, review: ReviewId) -> Result<Option<StoredReview>, StoreError> {
        let query = reviews!("WHERE v.run_id = $1");
        Ok(on_pool!(self.pool, |db| sqlx::query_as(query).bind(review.0).fetch_optional(db).await?))
    }

    /// Returns the completed reviews of a repository, or of one subject, newest first.
    pub async fn list(
        self,
        repo: RepoId,
        subject: Option<&ReviewSubject>,
        limit: u32,
    ) -> Result<Vec<StoredReview>, StoreError> {
        let of_repo = reviews!("WHERE v.repo_id = $1 ORDER BY v.completed_at DESC, v.run_id DESC LIMIT $2");
        let of_subject =
            reviews!("WHERE r.repo_id = $1 AND r.subject = $3 AND r.state = 'completed' ORDER BY r.id DESC LIMIT $2");
        Ok(on_pool!(self.pool, |db| {
            match subject {
                None => sqlx::query_as(of_repo).bind(repo.0).bind(i64::from(limit)).fetch_all(db).await?,
                Some(subject) => {
                    let query = sqlx::query_as(of_subject).bind(repo.0).bind(i64::from(limit));
                    query.bind(subject.to_string()).fetch_all(db).await?
                }
            }
        }))
    }

    /// Returns a completed review of a repository; `None` if the repository has no review with that number.
    pub async fn get_of_repo(self, repo: RepoId, review: ReviewId) -> Result<Option<StoredReview>, StoreError> {
        let query = reviews!("WHERE v.run_id = $1 AND v.repo_id = $2");
        Ok(on_pool!(self.pool, |db| sqlx::query_as(query).bind(review.0).bind(repo.0).fetch_optional(db).await?))
    }

    /// Returns the completed reviews of a repository, or of one subject, newest first, older than `before`.
    pub async fn list_before(
        self,
        repo: RepoId,
        subject: Option<&ReviewSubject>,
        before: Option<ReviewId>,
        limit: u32,
    ) -> Result<Vec<StoredReview>, StoreError> {
        let completed = "SELECT completed_at FROM reviews WHERE run_id = $1 AND repo_id = $2";
        let of_repo = reviews!(
            "WHERE v.repo_id = $1 AND (v.completed_at, v.run_id) < ($3, $4) ORDER BY v.completed_at DESC, v.run_id DESC LIMIT $2"
        );
        let of_subject = reviews!(
            "WHERE r.repo_id = $1 AND r.subject = $3 AND r.id < $4 AND r.state = 'completed' ORDER BY r.id DESC LIMIT $2"
        );
        let last = before.map_or(i64::MAX, |before| before.0);
        Ok(on_pool!(self.pool, |db| {
            if let Some(subject) = subject {
                let query = sqlx::query_as(of_subject).bind(repo.0).bind(i64::from(limit));
                query.bind(subject.to_string()).bind(last).fetch_all(db).await?
            } else {
                let at: Option<i64> = match before {
                    None => Some(i64::MAX),
                    Some(before) => {
                        sqlx::query_scalar(completed).bind(before.0).bind(repo.0).fetch_optional(db).await?
                    }
                };
                let Some(at) = at else { return Ok(Vec::new()) };
                let query = sqlx::query_as(of_repo).bind(repo.0).bind(i64::from(limit));
                query.bind(at).bind(last).fetch_all(db).await?
            }
        }))
    }

    /// Returns the result of a completed review for each finding, in its order.
    pub async fn sightings(self, review: ReviewId) -> Result<Vec<StoredSighting>, StoreError> {
        let query = sightings!("WHERE s.run_id = $1 ORDER BY s.place");
        Ok(on_pool!(self.pool, |db| sqlx::query_as(query).bind(review.0).fetch_all(db).await?))
    }

    /// Returns one page of a completed review's results after one finding: those at their lines, in the details,
    /// collapsed, hidden, fixed; each in the review's order.
    pub async fn sightings_page(
        self,
        review: ReviewId,
        after: Option<FindingId>,
        limit: u32,
    ) -> Result<Vec<StoredSighting>, StoreError> {
        let place = concat!("SELECT ", part!(), ", place FROM finding_sightings WHERE finding_id = $2 AND run_id = $1");
        // The page is selected before the findings themselves are read.
        let page = concat!(
            sightings!(),
            "FROM (SELECT finding_id, part, place FROM (SELECT finding_id, place, ",
            part!(),
            " AS part FROM finding_sightings WHERE run_id = $1) a
                WHERE part > $2 OR (part = $2 AND place > $3) ORDER BY part, place LIMIT $4) p
            JOIN finding_sightings s ON s.finding_id = p.finding_id AND s.run_id = $1
            JOIN reviews v ON v.run_id = s.run_id ORDER BY p.part, p.place"
        );
        Ok(on_pool!(self.pool, |db| {
            let behind: Option<(i32, i64)> = match after {
                None => Some((-1, -1)),
                Some(after) => sqlx::query_as(place).bind(review.0).bind(after.0).fetch_optional(db).await?,
            };
            let Some((part, place)) = behind else { return Ok(Vec::new()) };
            sqlx::query_as(page).bind(review.0).bind(part).bind(place).bind(i64::from(limit)).fetch_all(db).await?
        }))
    }

    /// Counts the findings of a completed review by their results.
    pub async fn sighting_counts(self, review: ReviewId) -> Result<Vec<SightingCount>, StoreError> {
        let query = "SELECT status, severity, shown_as, hidden_by, count(*) AS times FROM (
                SELECT status, finding ->> 'severity' AS severity, shown_as, hidden_by FROM finding_sightings WHERE run_id = $1) s
            GROUP BY status, severity, shown_as, hidden_by ORDER BY status, severity, shown_as, hidden_by";
        Ok(on_pool!(self.pool, |db| sqlx::query_as(query).bind(review.0).fetch_all(db).await?))
    }
}

#[boxed]
impl crate::FindingStore<'_> {
    /// Returns the results of all completed reviews for a finding, oldest first.
    pub async fn history(self, finding: FindingId) -> Result<Vec<StoredSighting>, StoreError> {
        let query = sightings!("WHERE s.finding_id = $1 ORDER BY s.run_id");
        Ok(on_pool!(self.pool, |db| sqlx::query_as(query).bind(finding.0).fetch_all(db).await?))
    }

    /// Returns the results of completed reviews from `first` on for these findings: by finding, oldest first.
    pub async fn histories_since(
        self,
        findings: &[FindingId],
        first: ReviewId,
    ) -> Result<Vec<StoredSighting>, StoreError> {
        if findings.is_empty() {
            return Ok(Vec::new());
        }
        Ok(on_pool!(self.pool, |db| {
            let mut query = QueryBuilder::new(sightings!("WHERE s.run_id >= "));
            query.push_bind(first.0).push(" AND s.finding_id IN (");
            query.push_list(findings.iter().map(|finding| finding.0)).push(" ORDER BY s.finding_id, s.run_id");
            query.build_query_as().fetch_all(db).await?
        }))
    }

    /// Returns a finding as it was last seen; `None` if the repository has no finding with that number.
    pub async fn get(self, repo: RepoId, finding: FindingId) -> Result<Option<StoredFinding>, StoreError> {
        let query = findings!("WHERE f.id = $1 AND f.repo_id = $2");
        Ok(on_pool!(self.pool, |db| sqlx::query_as(query).bind(finding.0).bind(repo.0).fetch_optional(db).await?))
    }

    /// Returns the findings last seen in a file, of any subject, newest first.
    pub async fn in_file(self, repo: RepoId, path: &RepoPath, limit: u32) -> Result<Vec<StoredFinding>, StoreError> {
        let query = findings!(
            "WHERE f.repo_id = $1 AND substr(f.path, 1, 200) = $4 AND f.path || '' = $2 ORDER BY f.id DESC LIMIT $3"
        );
        Ok(on_pool!(self.pool, |db| {
            let query = sqlx::query_as(query).bind(repo.0).bind(path.as_str()).bind(i64::from(limit));
            query.bind(beginning(path.as_str())).fetch_all(db).await?
        }))
    }
}

from_row! {
    StoredReview {
        id, subject, base: "base_sha", head: "head_sha", mode, reason, files_read, lines_read, shown, suppressed, fixed,
        notes, reviewers, model, cost_usd, completed_at,
    }
}

from_row! {
    StoredSighting {
        review: "run_id", id: "finding_id", finding, excerpt, status, shown: "shown_as", hidden_by, confidence, grounded,
        said_inline, reported, code_unchanged, at: "completed_at",
    }
}

from_row!(SightingCount { status, severity, shown: "shown_as", hidden_by, times });
from_row!(StoredFinding { id, subject, finding: "latest", status, shown: "shown_as", fixed, first_seen, last_seen });
