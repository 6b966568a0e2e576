//! Stores completed reviews: written once, with all findings, all or nothing.

use canonry_boxed::boxed;
use std::borrow::Cow;
use std::collections::HashSet;

use canonry_domain::review::{
    CodeExcerpt, Confidence, Finding, FindingStatus, HiddenBy, ReviewMode, ShownAs, is_protected,
};
use jiff::Timestamp;
use serde_json::Value;
use sqlx::QueryBuilder;
use sqlx::types::Json;

use crate::corpus::items::NUMBERS_PER_STATEMENT;
use crate::corpus::repos::RepoId;
use crate::engine::facets::ReviewStore;
use crate::engine::lists::PushList as _;
use crate::engine::row_values::{micros, storable, storable_json};
use crate::engine::transaction::{StoreError, Transaction, on_tx};
use crate::review::runs::{FindingId, ReviewId};

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReviewRecord<'a> {
    pub run: ReviewId,
    pub owner: &'a str,
    pub mode: ReviewMode,
    pub reason: &'a str,
    pub files_read: u64,
    pub lines_read: u64,
    /// What could not be done, and other remarks.
    pub notes: &'a [String],
    /// The reviewers, and other data of the report.
    pub reviewers: &'a Value,
    pub model: Option<&'a str>,
    pub cost_usd: f64,
    /// All findings that are open or were fixed, in the report's order.
    pub findings: &'a [FindingRecord<'a>],
}

/// The result of a review for one finding.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FindingRecord<'a> {
    /// The earlier finding with the same identity; `None` for a new one.
    pub earlier: Option<FindingId>,
    pub finding: &'a Finding,
    /// The flagged code; `None` for a fixed finding, or if there is none.
    pub excerpt: Option<&'a CodeExcerpt>,
    pub status: FindingStatus,
    pub shown: ShownAs,
    pub hidden_by: Option<&'a HiddenBy>,
    pub confidence: Confidence,
    pub grounded: bool,
    /// Whether a comment at its line contains it.
    pub said_inline: bool,
    pub reported: bool,
    pub code_unchanged: bool,
}

impl FindingRecord<'_> {
    fn is_fixed(&self) -> bool {
        self.status == FindingStatus::Fixed
    }

    fn is_suppressed(&self) -> bool {
        !self.is_fixed() && self.shown == ShownAs::Suppressed
    }
}

#[boxed]
impl ReviewStore<'_> {
    /// Stores a review and ends its run. Returns the findings' numbers in their order, also if the same call is
    /// repeated because the answer was lost.
    ///
    /// `None` if the run no longer belongs to the caller, because it was superseded, taken over or ended: then
    /// nothing is written.
    pub async fn complete(
        self,
        record: &ReviewRecord<'_>,
        now: Timestamp,
    ) -> Result<Option<Vec<FindingId>>, StoreError> {
        let about = "SELECT repo_id, subject FROM review_runs WHERE id = $1";
        let held = "SELECT state FROM review_runs WHERE id = $1 AND lease_owner = $2";
        let mut tx = self.pool.begin().await?;
        let about: Option<(i64, String)> =
            on_tx!(&mut tx, |db| sqlx::query_as(about).bind(record.run.0).fetch_optional(db).await?);
        let Some((repo, subject)) = about else { return Ok(None) };
        tx.lock_items_of(RepoId(repo)).await?;
        let state: Option<String> = on_tx!(&mut tx, |db| {
            sqlx::query_scalar(held).bind(record.run.0).bind(record.owner).fetch_optional(db).await?
        });
        let ids = match state.as_deref() {
            Some("running") => write_review(&mut tx, RepoId(repo), &subject, record, now).await?,
            Some("completed") => recorded(&mut tx, record.run).await?,
            _ => return Ok(None),
        };
        tx.commit().await?;
        Ok(Some(ids))
    }
}

/// Rows per statement: each has up to 19 values, and SQLite accepts at most 32,766 in a statement.
const ROWS_PER_STATEMENT: usize = 500;

struct FindingRow<'a> {
    id: i64,
    record: &'a FindingRecord<'a>,
    key: Cow<'a, str>,
    title: Cow<'a, str>,
    hidden_by: Option<String>,
    json: Value,
    excerpt: Option<Value>,
}

async fn write_review(
    tx: &mut Transaction,
    repo: RepoId,
    subject: &str,
    record: &ReviewRecord<'_>,
    now: Timestamp,
) -> Result<Vec<FindingId>, StoreError> {
    let mut rows = Vec::with_capacity(record.findings.len());
    for one in record.findings {
        rows.push(FindingRow {
            id: one.earlier.map_or(0, FindingId::get),
            record: one,
            key: storable(one.finding.key().as_str()),
            title: storable(&one.finding.title),
            hidden_by: one.hidden_by.map(|by| storable(&by.as_text()).into_owned()),
            json: storable_json(one.finding)?,
            excerpt: one.excerpt.map(storable_json).transpose()?,
        });
    }
    check_earlier(tx, repo, subject, &rows).await?;
    write_findings(tx, repo, subject, record.run, &mut rows).await?;
    write_sightings(tx, record.run, &rows, now).await?;
    write_row(tx, repo, record, now).await?;
    Ok(rows.iter().map(|row| FindingId(row.id)).collect())
}

/// A number of another subject's finding would change that finding's history.
async fn check_earlier(
    tx: &mut Transaction,
    repo: RepoId,
    subject: &str,
    rows: &[FindingRow<'_>],
) -> Result<(), StoreError> {
    let earlier: Vec<i64> = rows.iter().filter(|row| row.record.earlier.is_some()).map(|row| row.id).collect();
    let mut known = HashSet::with_capacity(earlier.len());
    for batch in earlier.chunks(NUMBERS_PER_STATEMENT) {
        let found: Vec<i64> = on_tx!(&mut *tx, |db| {
            let mut query = QueryBuilder::new("SELECT id FROM findings WHERE repo_id = ");
            query.push_bind(repo.0).push(" AND subject = ").push_bind(subject).push(" AND id IN (");
            query.push_list(batch.iter().copied());
            query.build_query_scalar().fetch_all(db).await?
        });
        known.extend(found);
    }
    match earlier.iter().find(|id| !known.contains(id)) {
        Some(stranger) => Err(StoreError::Damaged(format!("{subject} has no finding {stranger}"))),
        None => Ok(()),
    }
}

/// Inserts new findings, which get their numbers, and updates earlier ones.
async fn write_findings(
    tx: &mut Transaction,
    repo: RepoId,
    subject: &str,
    run: ReviewId,
    rows: &mut [FindingRow<'_>],
) -> Result<(), StoreError> {
    macro_rules! values {
        ($query:expr, $rows:expr, with_id: $with_id:expr) => {
            $query.push_values($rows, |mut values, row| {
                let (record, finding) = (row.record, row.record.finding);
                if $with_id {
                    values.push_bind(row.id);
                }
                values
                    .push_bind(repo.0)
                    .push_bind(subject)
                    .push_bind(&*row.key)
                    .push_bind(finding.fingerprint.as_str())
                    .push_bind(finding.path.as_str())
                    .push_bind(finding.lines.map(|lines| i64::from(lines.first)))
                    .push_bind(finding.severity.as_str())
                    .push_bind(finding.category.as_str())
                    .push_bind(record.status.as_str())
                    .push_bind(record.shown.as_str())
                    .push_bind(record.said_inline)
                    .push_bind(record.is_fixed())
                    .push_bind(is_protected(finding.severity, finding.category))
                    .push_bind(Json(&row.json))
                    .push_bind(run.0)
                    .push_bind(run.0)
                    .push_bind(record.shown != ShownAs::Suppressed)
                    .push_bind(i64::from(record.confidence.get()));
            });
        };
    }
    let mut ids: Vec<i64> = Vec::new();
    let new: Vec<&FindingRow<'_>> = rows.iter().filter(|row| row.record.earlier.is_none()).collect();
    for batch in new.chunks(ROWS_PER_STATEMENT) {
        let inserted: Vec<i64> = on_tx!(&mut *tx, |db| {
            let mut query = QueryBuilder::new(
                "INSERT INTO findings (repo_id, subject, key, fingerprint, path, line, severity, category, status, shown_as, \
                said_inline, fixed, protected, latest, first_run, last_run, first_shown, first_confidence) ",
            );
            values!(query, batch, with_id: false);
            query.push(" RETURNING id");
            query.build_query_scalar().fetch_all(db).await?
        });
        ids.extend(inserted);
    }
    let earlier: Vec<&FindingRow<'_>> = rows.iter().filter(|row| row.record.earlier.is_some()).collect();
    for batch in earlier.chunks(ROWS_PER_STATEMENT) {
        on_tx!(&mut *tx, |db| {
            let mut query = QueryBuilder::new(
                "INSERT INTO findings (id, repo_id, subject, key, fingerprint, path, line, severity, category, status, shown_as, \
                said_inline, fixed, protected, latest, first_run, last_run, first_shown, first_confidence) ",
            );
            values!(query, batch, with_id: true);
            query.push(
                " ON CONFLICT (id) DO UPDATE SET key = excluded.key, fingerprint = excluded.fingerprint, \
                path = excluded.path, line = excluded.line, severity = excluded.severity, category = excluded.category, \
                status = excluded.status, shown_as = excluded.shown_as, said_inline = excluded.said_inline, \
                fixed = excluded.fixed, protected = (findings.protected OR excluded.protected), \
                latest = excluded.latest, last_run = excluded.last_run",
            );
            query.build().execute(db).await?;
        });
    }
    // Both engines number the rows of a statement in order, but may return them in another order.
    ids.sort_unstable();
    for (row, id) in rows.iter_mut().filter(|row| row.record.earlier.is_none()).zip(ids) {
        row.id = id;
    }
    Ok(())
}

async fn write_sightings(
    tx: &mut Transaction,
    run: ReviewId,
    rows: &[FindingRow<'_>],
    now: Timestamp,
) -> Result<(), StoreError> {
    let placed: Vec<(i64, &FindingRow<'_>)> = (0..).zip(rows).collect();
    for batch in placed.chunks(ROWS_PER_STATEMENT) {
        on_tx!(&mut *tx, |db| {
            let mut query = QueryBuilder::new(
                "INSERT INTO finding_sightings (finding_id, run_id, place, status, shown_as, hidden_by, confidence, grounded, \
                said_inline, reported, code_unchanged, finding, excerpt) ",
            );
            query.push_values(batch, |mut values, (place, row)| {
                values
                    .push_bind(row.id)
                    .push_bind(run.0)
                    .push_bind(*place)
                    .push_bind(row.record.status.as_str())
                    .push_bind(row.record.shown.as_str())
                    .push_bind(row.hidden_by.as_deref())
                    .push_bind(i64::from(row.record.confidence.get()))
                    .push_bind(row.record.grounded)
                    .push_bind(row.record.said_inline)
                    .push_bind(row.record.reported)
                    .push_bind(row.record.code_unchanged)
                    .push_bind(Json(&row.json))
                    .push_bind(row.excerpt.as_ref().map(Json));
            });
            query.build().execute(db).await?;
        });
    }
    let hidden: Vec<&FindingRow<'_>> = rows.iter().filter(|row| row.record.is_suppressed()).collect();
    for batch in hidden.chunks(ROWS_PER_STATEMENT) {
        on_tx!(&mut *tx, |db| {
            let mut query = QueryBuilder::new(
                "INSERT INTO suppression_log (run_id, finding_id, fingerprint, title, hidden_by, at) ",
            );
            query.push_values(batch, |mut values, row| {
                values
                    .push_bind(run.0)
                    .push_bind(row.id)
                    .push_bind(row.record.finding.fingerprint.as_str())
                    .push_bind(&*row.title)
                    .push_bind(row.hidden_by.as_deref().unwrap_or_default())
                    .push_bind(micros(now));
            });
            query.build().execute(db).await?;
        });
    }
    Ok(())
}

async fn write_row(
    tx: &mut Transaction,
    repo: RepoId,
    record: &ReviewRecord<'_>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let insert = "INSERT INTO reviews (run_id, repo_id, mode, reason, files_read, lines_read, shown, suppressed, fixed, notes, reviewers, model, cost_usd, completed_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)";
    let complete = "UPDATE review_runs SET state = 'completed', finished_at = $2 WHERE id = $1";
    let fixed = record.findings.iter().filter(|one| one.is_fixed()).count();
    let suppressed = record.findings.iter().filter(|one| one.is_suppressed()).count();
    let shown = record.findings.len() - fixed - suppressed;
    let rows = |rows: usize| i64::try_from(rows).map_err(StoreError::damaged);
    let number = |number: u64| i64::try_from(number).map_err(StoreError::damaged);
    let (notes, reviewers) = (storable_json(record.notes)?, storable_json(record.reviewers)?);
    on_tx!(tx, |db| {
        sqlx::query(insert)
            .bind(record.run.0)
            .bind(repo.0)
            .bind(record.mode.as_str())
            .bind(storable(record.reason))
            .bind(number(record.files_read)?)
            .bind(number(record.lines_read)?)
            .bind(rows(shown)?)
            .bind(rows(suppressed)?)
            .bind(rows(fixed)?)
            .bind(Json(&notes))
            .bind(Json(&reviewers))
            .bind(record.model)
            .bind(record.cost_usd)
            .bind(micros(now))
            .execute(&mut *db)
            .await?;
        sqlx::query(complete).bind(record.run.0).bind(micros(now)).execute(db).await?;
    });
    Ok(())
}

/// Returns the findings of a completed run, in order.
async fn recorded(tx: &mut Transaction, run: ReviewId) -> Result<Vec<FindingId>, StoreError> {
    let query = "SELECT finding_id FROM finding_sightings WHERE run_id = $1 ORDER BY place";
    let ids: Vec<i64> = on_tx!(tx, |db| sqlx::query_scalar(query).bind(run.0).fetch_all(db).await?);
    Ok(ids.into_iter().map(FindingId).collect())
}
