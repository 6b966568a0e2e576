//! Statistics about a repository's reviews. A finding counts once: for the first review that contains it.

use canonry_boxed::boxed;
use std::collections::BTreeMap;

use canonry_domain::review::{RepoPath, Severity};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};

use crate::corpus::repos::RepoId;
use crate::engine::facets::ReviewStore;
use crate::engine::row_values::{count, micros, word};
use crate::engine::rows::from_row;
use crate::engine::transaction::{StoreError, on_tx};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SeverityCounts {
    pub shown: u64,
    pub suppressed: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileCount {
    /// Where the findings were last seen.
    pub path: RepoPath,
    pub findings: u64,
}

from_row!(FileCount { path, findings });

/// Statistics about the reviews of a period.
#[derive(Debug, Clone, PartialEq)]
pub struct ReviewStatistics {
    pub reviews: u64,
    /// The reviewed pull requests and branches.
    pub subjects: u64,
    /// Findings that first appear in these reviews.
    pub findings: u64,
    pub shown: u64,
    pub suppressed: u64,
    pub fixed: u64,
    /// Every severity, with the current severities of the findings.
    pub by_severity: BTreeMap<Severity, SeverityCounts>,
    /// `None` without a review.
    pub avg_findings_per_review: Option<f64>,
    /// The mean confidence at first appearance; `None` without a finding.
    pub avg_confidence: Option<f64>,
    /// The share of shown findings that are fixed by now; `None` without a shown one.
    pub fixed_rate: Option<f64>,
    /// The ten files with the most shown findings, most first.
    pub top_files: Vec<FileCount>,
}

/// Statistics about the reviews of one day.
#[derive(Debug, Clone, PartialEq)]
pub struct ReviewDay {
    pub date: Date,
    pub reviews: u64,
    /// Findings that first appear in these reviews.
    pub findings: u64,
    pub suppressed: u64,
    pub fixed: u64,
    /// The mean confidence of the new findings; `None` without a finding.
    pub avg_confidence: Option<f64>,
}

#[boxed]
impl ReviewStore<'_> {
    /// Returns statistics about the reviews of a repository that were completed since then, or ever.
    pub async fn statistics(self, repo: RepoId, since: Option<Timestamp>) -> Result<ReviewStatistics, StoreError> {
        let reviews = "SELECT count(*), count(DISTINCT r.subject) FROM reviews v JOIN review_runs r ON r.id = v.run_id
            WHERE v.repo_id = $1 AND v.completed_at >= $2";
        let findings = "SELECT f.severity, f.first_shown, count(*), CAST(sum(CASE WHEN f.fixed THEN 1 ELSE 0 END) AS BIGINT), CAST(sum(f.first_confidence) AS BIGINT)
            FROM reviews v JOIN findings f ON f.first_run = v.run_id
            WHERE v.repo_id = $1 AND v.completed_at >= $2 GROUP BY f.severity, f.first_shown";
        // For equal counts the file with the earliest finding comes first: both engines agree on that, but not on the
        // order of texts.
        let files = "SELECT f.path, count(*) AS findings FROM reviews v JOIN findings f ON f.first_run = v.run_id
            WHERE v.repo_id = $1 AND v.completed_at >= $2 AND f.first_shown
            GROUP BY f.path ORDER BY count(*) DESC, min(f.id) LIMIT 10";
        let since = since.map_or(i64::MIN, micros);
        let mut tx = self.pool.begin_reading().await?;
        let (reviews, subjects): (i64, i64) =
            on_tx!(&mut tx, |db| sqlx::query_as(reviews).bind(repo.0).bind(since).fetch_one(db).await?);
        let rows: Vec<CountRow> =
            on_tx!(&mut tx, |db| sqlx::query_as(findings).bind(repo.0).bind(since).fetch_all(db).await?);
        let top_files = on_tx!(&mut tx, |db| sqlx::query_as(files).bind(repo.0).bind(since).fetch_all(db).await?);
        tx.commit().await?;
        let mut by_severity: BTreeMap<Severity, SeverityCounts> =
            Severity::ALL.iter().map(|severity| (*severity, SeverityCounts::default())).collect();
        let (mut shown, mut suppressed, mut fixed, mut confidence) = (0, 0, 0, 0);
        for (severity, is_shown, findings, fixed_of_them, points) in rows {
            let counts = by_severity.entry(word(&severity)?).or_default();
            confidence += count(points)?;
            if is_shown {
                counts.shown += count(findings)?;
                shown += count(findings)?;
                fixed += count(fixed_of_them)?;
            } else {
                counts.suppressed += count(findings)?;
                suppressed += count(findings)?;
            }
        }
        let (reviews, findings) = (count(reviews)?, shown + suppressed);
        Ok(ReviewStatistics {
            reviews,
            subjects: count(subjects)?,
            findings,
            shown,
            suppressed,
            fixed,
            by_severity,
            avg_findings_per_review: ratio(findings, reviews),
            avg_confidence: ratio(confidence, findings),
            fixed_rate: ratio(fixed, shown),
            top_files,
        })
    }

    /// Returns statistics for each of `days` days in UTC, also for days without a review, in order.
    pub async fn days(self, repo: RepoId, from: Date, days: u32) -> Result<Vec<ReviewDay>, StoreError> {
        let reviews = "SELECT completed_at / 86400000000, count(*), CAST(sum(fixed) AS BIGINT) FROM reviews
            WHERE repo_id = $1 AND completed_at >= $2 AND completed_at < $3 GROUP BY 1";
        let findings = "SELECT v.completed_at / 86400000000, count(*), CAST(sum(CASE WHEN f.first_shown THEN 0 ELSE 1 END) AS BIGINT), CAST(sum(f.first_confidence) AS BIGINT)
            FROM reviews v JOIN findings f ON f.first_run = v.run_id
            WHERE v.repo_id = $1 AND v.completed_at >= $2 AND v.completed_at < $3 GROUP BY 1";
        let dates: Vec<Date> = (0..days)
            .map(|day| from.checked_add(Span::new().days(i64::from(day))))
            .collect::<Result<_, _>>()
            .map_err(StoreError::damaged)?;
        let Some(last) = dates.last() else { return Ok(Vec::new()) };
        let (begin, end) = (day_of(from)? * DAY, (day_of(*last)? + 1) * DAY);
        let mut tx = self.pool.begin_reading().await?;
        let reviews: Vec<(i64, i64, i64)> =
            on_tx!(&mut tx, |db| sqlx::query_as(reviews).bind(repo.0).bind(begin).bind(end).fetch_all(db).await?);
        let findings: Vec<(i64, i64, i64, i64)> =
            on_tx!(&mut tx, |db| sqlx::query_as(findings).bind(repo.0).bind(begin).bind(end).fetch_all(db).await?);
        tx.commit().await?;
        let reviews: BTreeMap<i64, (i64, i64)> =
            reviews.into_iter().map(|(day, all, fixed)| (day, (all, fixed))).collect();
        let findings: BTreeMap<i64, (i64, i64, i64)> =
            findings.into_iter().map(|(day, all, suppressed, points)| (day, (all, suppressed, points))).collect();
        let day = |date: Date| {
            let day = day_of(date)?;
            let (completed, fixed) = reviews.get(&day).copied().unwrap_or_default();
            let (all, suppressed, points) = findings.get(&day).copied().unwrap_or_default();
            Ok(ReviewDay {
                date,
                reviews: count(completed)?,
                findings: count(all)?,
                suppressed: count(suppressed)?,
                fixed: count(fixed)?,
                avg_confidence: ratio(count(points)?, count(all)?),
            })
        };
        dates.into_iter().map(day).collect()
    }
}

/// A severity, whether the findings were shown, their number, how many of them are fixed, and the sum of their
/// confidence.
type CountRow = (String, bool, i64, i64, i64);

const DAY: i64 = 86_400_000_000;

/// Days since 1970.
fn day_of(date: Date) -> Result<i64, StoreError> {
    let midnight = date.to_zoned(TimeZone::UTC).map_err(StoreError::damaged)?;
    Ok(midnight.timestamp().as_microsecond().div_euclid(DAY))
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
