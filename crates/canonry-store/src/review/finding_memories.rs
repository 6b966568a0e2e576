//! Memories of findings: their vectors and their known outcomes.

use canonry_boxed::boxed;
use std::collections::{BTreeMap, BTreeSet};

use canonry_domain::review::{Category, Finding, PatternKey, RepoPath, ReviewSubject, Severity};
use canonry_domain::{RepoName, text_enum};
use jiff::Timestamp;
use serde::Serialize;
use sqlx::QueryBuilder;
use sqlx::types::Json;

use crate::corpus::embeddings::{from_bytes, to_bytes};
use crate::corpus::repos::RepoId;
use crate::engine::facets::FindingStore;
use crate::engine::lists::PushList as _;
use crate::engine::row_values::{beginning, count, micros, moment, storable, word};
use crate::engine::transaction::{StoreError, on_pool, on_tx};
use crate::review::runs::FindingId;

/// A finding's vector to be stored.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NewMemory<'a> {
    pub finding: FindingId,
    pub model: &'a str,
    pub vector: &'a [f32],
}

text_enum! {
    /// The observed outcome of a finding. Having been shown is not an outcome.
    pub enum MemoryOutcome: "an outcome of a finding" {
        Fixed = "fixed",
        /// More people liked it than rejected it.
        ThumbsUp = "thumbs_up",
        /// More people rejected it than liked it.
        ThumbsDown = "thumbs_down",
        Dismissed = "dismissed",
    }
}

impl MemoryOutcome {
    pub const fn is_accepted(self) -> bool {
        matches!(self, Self::Fixed | Self::ThumbsUp)
    }
}

/// A remembered finding with a known outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredMemory {
    pub finding: FindingId,
    pub repo: RepoName,
    pub subject: ReviewSubject,
    /// The title when it was remembered.
    pub title: String,
    pub message: String,
    pub path: RepoPath,
    pub severity: Severity,
    pub category: Category,
    /// The currently known outcome.
    pub outcome: MemoryOutcome,
    pub vector: Vec<f32>,
    /// When it was remembered.
    pub at: Timestamp,
}

/// The results of a pattern's findings in a repository.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct PatternHistory {
    pub fixed: u64,
    pub total: u64,
}

#[boxed]
impl FindingStore<'_> {
    /// Stores the vectors of findings with their current texts, one per finding. Unknown findings are skipped.
    pub async fn remember(self, memories: &[NewMemory<'_>], now: Timestamp) -> Result<(), StoreError> {
        let finding = "SELECT repo_id, latest FROM findings WHERE id = $1";
        let upsert = "INSERT INTO finding_memories (finding_id, repo_id, title, message, path, severity, category, model, vector, at)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
            ON CONFLICT (finding_id) DO UPDATE SET title = excluded.title, message = excluded.message, path = excluded.path,
                severity = excluded.severity, category = excluded.category, model = excluded.model,
                vector = excluded.vector, at = excluded.at";
        let mut tx = self.pool.begin().await?;
        for memory in memories {
            on_tx!(&mut tx, |db| {
                let row: Option<(i64, Json<Finding>)> =
                    sqlx::query_as(finding).bind(memory.finding.0).fetch_optional(&mut *db).await?;
                let Some((repo, Json(finding))) = row else { continue };
                sqlx::query(upsert)
                    .bind(memory.finding.0)
                    .bind(repo)
                    .bind(storable(&finding.title))
                    .bind(storable(&finding.message))
                    .bind(finding.path.as_str())
                    .bind(finding.severity.as_str())
                    .bind(finding.category.as_str())
                    .bind(memory.model)
                    .bind(to_bytes(memory.vector))
                    .bind(micros(now))
                    .execute(db)
                    .await?;
            });
        }
        tx.commit().await
    }

    /// Returns the findings of a subject that have no vector of a model, ordered by number.
    pub async fn to_remember(
        self,
        repo: RepoId,
        subject: &ReviewSubject,
        model: &str,
    ) -> Result<Vec<(FindingId, Finding)>, StoreError> {
        let query = "SELECT f.id, f.latest FROM findings f WHERE f.repo_id = $1 AND f.subject = $2
            AND NOT EXISTS (SELECT 1 FROM finding_memories m WHERE m.finding_id = f.id AND m.model = $3) ORDER BY f.id";
        let rows: Vec<(i64, Json<Finding>)> = on_pool!(self.pool, |db| {
            sqlx::query_as(query).bind(repo.0).bind(subject.to_string()).bind(model).fetch_all(db).await?
        });
        Ok(rows.into_iter().map(|(id, Json(finding))| (FindingId(id), finding)).collect())
    }

    /// Returns the remembered findings with a known outcome, newest first: of the repository, and with `owner_shared`
    /// also of its owner's other repositories that share theirs.
    pub async fn memories(
        self,
        repo: RepoId,
        owner_shared: bool,
        model: &str,
        limit: u32,
    ) -> Result<Vec<StoredMemory>, StoreError> {
        let repos = if owner_shared { self.repos_that_share_with(repo).await? } else { vec![repo] };
        if repos.is_empty() {
            return Ok(Vec::new());
        }
        let rows: Vec<Row> = on_pool!(self.pool, |db| {
            let mut query = QueryBuilder::new(REMEMBERED);
            query.push(" WHERE m.model = ").push_bind(model).push(" AND m.repo_id IN (");
            query
                .push_list(repos.iter().map(|repo| repo.0))
                .push(HAPPENED)
                .push(" ORDER BY m.finding_id DESC LIMIT ")
                .push_bind(i64::from(limit));
            query.build_query_as().fetch_all(db).await?
        });
        let read: Result<Vec<Option<StoredMemory>>, StoreError> = rows.into_iter().map(Row::read).collect();
        Ok(read?.into_iter().flatten().collect())
    }

    /// Returns the repository, and those of its owner that share what was learned in them.
    async fn repos_that_share_with(self, repo: RepoId) -> Result<Vec<RepoId>, StoreError> {
        let query = "SELECT id, name FROM repos WHERE id = $1 OR shares_memories";
        let rows: Vec<(i64, String)> =
            on_pool!(self.pool, |db| sqlx::query_as(query).bind(repo.0).fetch_all(db).await?);
        let mut own = None;
        let mut all = Vec::with_capacity(rows.len());
        for (id, name) in rows {
            let name: RepoName = word(&name)?;
            if id == repo.0 {
                own = Some(name.owner().to_lowercase());
            }
            all.push((RepoId(id), name.owner().to_lowercase()));
        }
        let shares = |(_, owner): &(RepoId, String)| Some(owner) == own.as_ref();
        Ok(all.into_iter().filter(shares).map(|(id, _)| id).collect())
    }

    /// Returns the results of the shown findings of these patterns in a repository; a pattern without any is skipped.
    pub async fn pattern_history(
        self,
        repo: RepoId,
        keys: &BTreeSet<PatternKey>,
    ) -> Result<BTreeMap<PatternKey, PatternHistory>, StoreError> {
        let keys: Vec<_> = keys.iter().map(|key| (key, storable(key.as_str()))).collect();
        let mut history = BTreeMap::new();
        for batch in keys.chunks(KEYS_PER_STATEMENT) {
            let rows: Vec<(String, i64, i64)> = on_pool!(self.pool, |db| {
                let mut query = QueryBuilder::new(
                    "SELECT key, CAST(sum(CASE WHEN fixed THEN 1 ELSE 0 END) AS BIGINT), count(*) FROM findings WHERE repo_id = ",
                );
                query.push_bind(repo.0).push(" AND first_shown AND substr(key, 1, 200) IN (");
                query.push_list(batch.iter().map(|(_, key)| beginning(key))).push(" GROUP BY key");
                query.build_query_as().fetch_all(db).await?
            });
            let mut rows: BTreeMap<String, (i64, i64)> =
                rows.into_iter().map(|(key, fixed, total)| (key, (fixed, total))).collect();
            for (key, stored) in batch {
                let Some((fixed, total)) = rows.remove(&**stored) else { continue };
                history.insert((*key).clone(), PatternHistory { fixed: count(fixed)?, total: count(total)? });
            }
        }
        Ok(history)
    }
}

const KEYS_PER_STATEMENT: usize = 500;

/// A reaction counts if it teaches, was not removed, and was not cleared since. A fix of a finding that nobody was
/// shown is chance, and says nothing about which findings people want.
const REMEMBERED: &str = "SELECT m.finding_id, r.name, f.subject, m.title, m.message, m.path, m.severity, m.category, m.vector, m.at,
    (f.fixed AND (f.first_shown OR EXISTS (SELECT 1 FROM finding_sightings s WHERE s.finding_id = f.id AND s.status <> 'fixed' AND s.shown_as <> 'suppressed'))) AS fixed,
    EXISTS (SELECT 1 FROM dismissals d WHERE d.finding_id = m.finding_id AND d.withdrawn_at IS NULL AND d.dismisser = 'maintainer') AS dismissed,
    (SELECT count(*) FROM feedback_reactions v WHERE v.finding_id = m.finding_id AND v.teaches AND v.removed_at IS NULL AND v.up
        AND NOT EXISTS (SELECT 1 FROM feedback_clears c WHERE c.repo_id = v.repo_id AND (c.key IS NULL OR c.key = v.key) AND c.at >= v.at AND c.undone_at IS NULL)) AS up,
    (SELECT count(*) FROM feedback_reactions v WHERE v.finding_id = m.finding_id AND v.teaches AND v.removed_at IS NULL AND NOT v.up
        AND NOT EXISTS (SELECT 1 FROM feedback_clears c WHERE c.repo_id = v.repo_id AND (c.key IS NULL OR c.key = v.key) AND c.at >= v.at AND c.undone_at IS NULL)) AS down
    FROM finding_memories m JOIN findings f ON f.id = m.finding_id JOIN repos r ON r.id = m.repo_id";

/// Findings without an outcome are not read at all, so that they do not use up the limit.
const HAPPENED: &str = " AND ((f.fixed AND (f.first_shown OR EXISTS (SELECT 1 FROM finding_sightings s WHERE s.finding_id = f.id AND s.status <> 'fixed' AND s.shown_as <> 'suppressed')))
    OR EXISTS (SELECT 1 FROM dismissals d WHERE d.finding_id = m.finding_id AND d.withdrawn_at IS NULL AND d.dismisser = 'maintainer')
    OR EXISTS (SELECT 1 FROM feedback_reactions v WHERE v.finding_id = m.finding_id AND v.teaches AND v.removed_at IS NULL))";

#[derive(sqlx::FromRow)]
struct Row {
    finding_id: i64,
    name: String,
    subject: String,
    title: String,
    message: String,
    path: String,
    severity: String,
    category: String,
    vector: Vec<u8>,
    at: i64,
    fixed: bool,
    dismissed: bool,
    up: i64,
    down: i64,
}

impl Row {
    fn read(self) -> Result<Option<StoredMemory>, StoreError> {
        // A person's answer says more than a change of the code.
        let outcome = if self.dismissed {
            MemoryOutcome::Dismissed
        } else if self.down > self.up {
            MemoryOutcome::ThumbsDown
        } else if self.up > self.down {
            MemoryOutcome::ThumbsUp
        } else if self.fixed {
            MemoryOutcome::Fixed
        } else {
            return Ok(None);
        };
        Ok(Some(StoredMemory {
            finding: FindingId(self.finding_id),
            repo: word(&self.name)?,
            subject: word(&self.subject)?,
            title: self.title,
            message: self.message,
            path: RepoPath::exact(&self.path).map_err(StoreError::damaged)?,
            severity: word(&self.severity)?,
            category: word(&self.category)?,
            outcome,
            vector: from_bytes(&self.vector),
            at: moment(self.at)?,
        }))
    }
}
