//! What was reviewed and what became of each finding, read back.

use canonry_domain::review::{
    CommitSha, Confidence, Finding, FindingStatus, HiddenBy, RepoPath, ReviewMode, ReviewSubject, ShownAs,
};
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde_json::Value;
use sqlx::types::Json;

use crate::open::Store;
use crate::repos::RepoId;
use crate::review_runs::{FindingId, ReviewId};
use crate::row_values::{beginning, count, moment, word};
use crate::transaction::{StoreError, on_pool};

/// A completed review.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredReview {
    /// Its number.
    pub id: ReviewId,
    /// What it is about.
    pub subject: ReviewSubject,
    /// What the head was compared with.
    pub base: CommitSha,
    /// The commit that was reviewed.
    pub head: CommitSha,
    /// Whether everything was read.
    pub mode: ReviewMode,
    /// Why.
    pub reason: String,
    /// Files that were read.
    pub files_read: u64,
    /// Changed lines in them.
    pub lines_read: u64,
    /// Findings that stand and are shown somewhere.
    pub shown: u64,
    /// Findings that stand and are hidden.
    pub suppressed: u64,
    /// Earlier findings that it found fixed.
    pub fixed: u64,
    /// What could not be done, and other things worth telling.
    pub notes: Vec<String>,
    /// Who reviewed, and whatever else belonged to the report.
    pub reviewers: Value,
    /// The model that was asked.
    pub model: Option<String>,
    /// What it cost.
    pub cost_usd: f64,
    /// When it was stored.
    pub completed_at: Timestamp,
}

/// What a completed review said about a finding.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredSighting {
    /// The review.
    pub review: ReviewId,
    /// The finding's number.
    pub id: FindingId,
    /// The finding as it was then.
    pub finding: Finding,
    /// What had become of it.
    pub status: FindingStatus,
    /// Where it was shown.
    pub shown: ShownAs,
    /// What spoke for hiding it.
    pub hidden_by: Option<HiddenBy>,
    /// How sure Canonry was.
    pub confidence: Confidence,
    /// Whether its line was in the diff.
    pub grounded: bool,
    /// Whether a comment at its line said it.
    pub said_inline: bool,
    /// Whether somebody reported it.
    pub reported: bool,
    /// Whether the flagged code was what it had been.
    pub code_unchanged: bool,
    /// When the review was stored.
    pub at: Timestamp,
}

/// A finding as it was last seen.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredFinding {
    /// Its number.
    pub id: FindingId,
    /// What it was found in.
    pub subject: ReviewSubject,
    /// The finding.
    pub finding: Finding,
    /// What became of it last.
    pub status: FindingStatus,
    /// Where it was last shown.
    pub shown: ShownAs,
    /// Whether it is fixed.
    pub fixed: bool,
    /// When the first review that told of it was stored.
    pub first_seen: Timestamp,
    /// When the last one was.
    pub last_seen: Timestamp,
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

macro_rules! sightings {
    ($rest:literal) => {
        concat!(
            "SELECT s.run_id, s.finding_id, s.finding, s.status, s.shown_as, s.hidden_by, s.confidence, s.grounded, s.said_inline,
                s.reported, s.code_unchanged, v.completed_at
            FROM finding_sightings s JOIN reviews v ON v.run_id = s.run_id ",
            $rest
        )
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

impl Store {
    /// A completed review by its number.
    pub async fn review(&self, review: ReviewId) -> Result<Option<StoredReview>, StoreError> {
        let query = reviews!("WHERE v.run_id = $1");
        let row: Option<ReviewRow> =
            on_pool!(&self.pool, |db| sqlx::query_as(query).bind(review.0).fetch_optional(db).await?);
        row.map(ReviewRow::read).transpose()
    }

    /// The completed reviews of a repository, or of one subject, the newest first.
    pub async fn reviews(
        &self,
        repo: RepoId,
        subject: Option<&ReviewSubject>,
        limit: u32,
    ) -> Result<Vec<StoredReview>, StoreError> {
        let of_repo = reviews!("WHERE v.repo_id = $1 ORDER BY v.completed_at DESC, v.run_id DESC LIMIT $2");
        let of_subject =
            reviews!("WHERE r.repo_id = $1 AND r.subject = $3 AND r.state = 'completed' ORDER BY r.id DESC LIMIT $2");
        let rows: Vec<ReviewRow> = on_pool!(&self.pool, |db| {
            match subject {
                None => sqlx::query_as(of_repo).bind(repo.0).bind(i64::from(limit)).fetch_all(db).await?,
                Some(subject) => {
                    let query = sqlx::query_as(of_subject).bind(repo.0).bind(i64::from(limit));
                    query.bind(subject.to_string()).fetch_all(db).await?
                }
            }
        });
        rows.into_iter().map(ReviewRow::read).collect()
    }

    /// What a completed review said about each finding, in its order.
    pub async fn review_sightings(&self, review: ReviewId) -> Result<Vec<StoredSighting>, StoreError> {
        let query = sightings!("WHERE s.run_id = $1 ORDER BY s.place");
        let rows: Vec<SightingRow> =
            on_pool!(&self.pool, |db| sqlx::query_as(query).bind(review.0).fetch_all(db).await?);
        rows.into_iter().map(SightingRow::read).collect()
    }

    /// What every completed review said about a finding, the oldest first.
    pub async fn finding_story(&self, finding: FindingId) -> Result<Vec<StoredSighting>, StoreError> {
        let query = sightings!("WHERE s.finding_id = $1 ORDER BY s.run_id");
        let rows: Vec<SightingRow> =
            on_pool!(&self.pool, |db| sqlx::query_as(query).bind(finding.0).fetch_all(db).await?);
        rows.into_iter().map(SightingRow::read).collect()
    }

    /// A finding as it was last seen; `None` when the repository has none of that number.
    pub async fn finding(&self, repo: RepoId, finding: FindingId) -> Result<Option<StoredFinding>, StoreError> {
        let query = findings!("WHERE f.id = $1 AND f.repo_id = $2");
        let row: Option<FindingRow> =
            on_pool!(&self.pool, |db| sqlx::query_as(query).bind(finding.0).bind(repo.0).fetch_optional(db).await?);
        row.map(FindingRow::read).transpose()
    }

    /// The findings that were last seen in a file, of whatever subject, the newest first.
    pub async fn findings_in_file(
        &self,
        repo: RepoId,
        path: &RepoPath,
        limit: u32,
    ) -> Result<Vec<StoredFinding>, StoreError> {
        let query = findings!(
            "WHERE f.repo_id = $1 AND substr(f.path, 1, 200) = $4 AND f.path || '' = $2 ORDER BY f.id DESC LIMIT $3"
        );
        let rows: Vec<FindingRow> = on_pool!(&self.pool, |db| {
            let query = sqlx::query_as(query).bind(repo.0).bind(path.as_str()).bind(i64::from(limit));
            query.bind(beginning(path.as_str())).fetch_all(db).await?
        });
        rows.into_iter().map(FindingRow::read).collect()
    }
}

#[derive(sqlx::FromRow)]
struct ReviewRow {
    id: i64,
    subject: String,
    base_sha: String,
    head_sha: String,
    mode: String,
    reason: String,
    files_read: i64,
    lines_read: i64,
    shown: i64,
    suppressed: i64,
    fixed: i64,
    notes: Json<Vec<String>>,
    reviewers: Json<Value>,
    model: Option<String>,
    cost_usd: f64,
    completed_at: i64,
}

impl ReviewRow {
    fn read(self) -> Result<StoredReview, StoreError> {
        Ok(StoredReview {
            id: ReviewId(self.id),
            subject: word(&self.subject)?,
            base: word(&self.base_sha)?,
            head: word(&self.head_sha)?,
            mode: word(&self.mode)?,
            reason: self.reason,
            files_read: count(self.files_read)?,
            lines_read: count(self.lines_read)?,
            shown: count(self.shown)?,
            suppressed: count(self.suppressed)?,
            fixed: count(self.fixed)?,
            notes: self.notes.0,
            reviewers: self.reviewers.0,
            model: self.model,
            cost_usd: self.cost_usd,
            completed_at: moment(self.completed_at)?,
        })
    }
}

#[derive(sqlx::FromRow)]
struct SightingRow {
    run_id: i64,
    finding_id: i64,
    finding: Json<Finding>,
    status: String,
    shown_as: String,
    hidden_by: Option<String>,
    confidence: i64,
    grounded: bool,
    said_inline: bool,
    reported: bool,
    code_unchanged: bool,
    completed_at: i64,
}

impl SightingRow {
    fn read(self) -> Result<StoredSighting, StoreError> {
        Ok(StoredSighting {
            review: ReviewId(self.run_id),
            id: FindingId(self.finding_id),
            finding: self.finding.0,
            status: word(&self.status)?,
            shown: word(&self.shown_as)?,
            hidden_by: self.hidden_by.as_deref().map(hidden_by).transpose()?,
            confidence: confidence(self.confidence)?,
            grounded: self.grounded,
            said_inline: self.said_inline,
            reported: self.reported,
            code_unchanged: self.code_unchanged,
            at: moment(self.completed_at)?,
        })
    }
}

fn hidden_by(text: &str) -> Result<HiddenBy, StoreError> {
    let others = [HiddenBy::Dismissal, HiddenBy::Feedback, HiddenBy::Area, HiddenBy::Severity];
    match text.strip_prefix("pattern:") {
        Some(pattern) => Ok(HiddenBy::Pattern(pattern.to_owned())),
        None => {
            let known = others.into_iter().find(|by| by.as_text() == text);
            known.ok_or_else(|| StoreError::Damaged(format!("{text:?} hides nothing")))
        }
    }
}

fn confidence(points: i64) -> Result<Confidence, StoreError> {
    let points = u8::try_from(points).map_err(StoreError::damaged)?;
    Confidence::deserialize(IntoDeserializer::<serde::de::value::Error>::into_deserializer(points))
        .map_err(StoreError::damaged)
}

#[derive(sqlx::FromRow)]
struct FindingRow {
    id: i64,
    subject: String,
    latest: Json<Finding>,
    status: String,
    shown_as: String,
    fixed: bool,
    first_seen: i64,
    last_seen: i64,
}

impl FindingRow {
    fn read(self) -> Result<StoredFinding, StoreError> {
        Ok(StoredFinding {
            id: FindingId(self.id),
            subject: word(&self.subject)?,
            finding: self.latest.0,
            status: word(&self.status)?,
            shown: word(&self.shown_as)?,
            fixed: self.fixed,
            first_seen: moment(self.first_seen)?,
            last_seen: moment(self.last_seen)?,
        })
    }
}
