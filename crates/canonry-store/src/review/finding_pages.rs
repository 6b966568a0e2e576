//! The findings of a repository page by page, and the reactions to one of them.

use canonry_boxed::boxed;
use canonry_domain::Login;
use canonry_domain::review::{
    Category, Confidence, FindingStatus, Fingerprint, HiddenBy, ReviewSubject, Severity, ShownAs,
};
use jiff::Timestamp;
use sqlx::QueryBuilder;

use crate::corpus::repos::RepoId;
use crate::engine::facets::FindingStore;
use crate::engine::row_values::{moment, optional_moment, storable, word};
use crate::engine::rows::from_row;
use crate::engine::transaction::{StoreError, on_pool};
use crate::review::history::StoredFinding;
use crate::review::runs::FindingId;

/// Selects findings; all conditions must hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FindingFilter<'a> {
    pub subject: Option<&'a ReviewSubject>,
    pub severity: Option<Severity>,
    pub category: Option<Category>,
    /// The latest status.
    pub status: Option<FindingStatus>,
    /// Where the finding was last shown.
    pub shown: Option<ShownAs>,
    /// The beginning of the path at the last sighting.
    pub path_prefix: Option<&'a str>,
    pub pattern: Option<&'a Fingerprint>,
}

/// A finding of a list: its last sighting, and the last review's confidence.
#[derive(Debug, Clone, PartialEq)]
pub struct FindingEntry {
    pub found: StoredFinding,
    pub confidence: Confidence,
    pub hidden_by: Option<HiddenBy>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredReaction {
    pub by: Login,
    pub up: bool,
    pub at: Timestamp,
    /// Whether it counts for the pattern; an author's reaction on their own pull request does not.
    pub teaches: bool,
    pub removed_at: Option<Timestamp>,
}

#[boxed]
impl FindingStore<'_> {
    /// Returns one page of the findings of a repository that pass a filter, newest first, older than `before`.
    pub async fn pages(
        self,
        repo: RepoId,
        filter: FindingFilter<'_>,
        before: Option<FindingId>,
        limit: u32,
    ) -> Result<Vec<FindingEntry>, StoreError> {
        Ok(on_pool!(self.pool, |db| {
            // The page is selected before any join, so that neither engine starts with the reviews.
            let mut query = QueryBuilder::new(
                "SELECT f.id, f.subject, f.latest, f.status, f.shown_as, f.fixed, a.completed_at AS first_seen, \
                b.completed_at AS last_seen, s.confidence, s.hidden_by FROM (SELECT id, subject, latest, status, shown_as, fixed, \
                first_run, last_run FROM findings WHERE repo_id = ",
            );
            query.push_bind(repo.0);
            if let Some(before) = before {
                query.push(" AND id < ").push_bind(before.0);
            }
            if let Some(subject) = filter.subject {
                query.push(" AND subject = ").push_bind(subject.to_string());
            }
            if let Some(severity) = filter.severity {
                query.push(" AND severity = ").push_bind(severity.as_str());
            }
            if let Some(category) = filter.category {
                query.push(" AND category = ").push_bind(category.as_str());
            }
            if let Some(status) = filter.status {
                query.push(" AND status = ").push_bind(status.as_str());
            }
            if let Some(shown) = filter.shown {
                query.push(" AND shown_as = ").push_bind(shown.as_str());
            }
            if let Some(pattern) = filter.pattern {
                query.push(" AND fingerprint = ").push_bind(pattern.as_str());
            }
            if let Some(prefix) = filter.path_prefix {
                // Not LIKE: a path may contain its wildcards, and in SQLite it ignores case.
                let characters = i64::try_from(prefix.chars().count()).map_err(StoreError::damaged)?;
                query.push(" AND substr(path, 1, CAST(").push_bind(characters);
                query.push(" AS INTEGER)) = ").push_bind(storable(prefix));
            }
            query.push(" ORDER BY id DESC LIMIT ").push_bind(i64::from(limit));
            query.push(
                ") f JOIN reviews a ON a.run_id = f.first_run JOIN reviews b ON b.run_id = f.last_run \
                JOIN finding_sightings s ON s.finding_id = f.id AND s.run_id = f.last_run ORDER BY f.id DESC",
            );
            query.build_query_as().fetch_all(db).await?
        }))
    }

    /// Returns everybody who ever reacted to a finding, oldest first, also removed reactions and those that do not
    /// count.
    pub async fn reactions(self, repo: RepoId, finding: FindingId) -> Result<Vec<StoredReaction>, StoreError> {
        let query = "SELECT by_login, up, at, teaches, removed_at FROM feedback_reactions
            WHERE finding_id = $1 AND repo_id = $2 ORDER BY at, reaction_id";
        let rows: Vec<(String, bool, i64, bool, Option<i64>)> =
            on_pool!(self.pool, |db| sqlx::query_as(query).bind(finding.0).bind(repo.0).fetch_all(db).await?);
        let read = |(login, up, at, teaches, removed_at): (String, bool, i64, bool, Option<i64>)| {
            Ok(StoredReaction {
                by: word(&login)?,
                up,
                at: moment(at)?,
                teaches,
                removed_at: optional_moment(removed_at)?,
            })
        };
        rows.into_iter().map(read).collect()
    }
}

from_row!(FindingEntry { found: flatten, confidence, hidden_by });
