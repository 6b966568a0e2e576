//! Counts over all repositories that share theirs; they contain neither a repository nor any text.

use canonry_boxed::boxed;
use canonry_domain::review::{Category, Fingerprint, Severity};

use crate::corpus::repos::RepoId;
use crate::engine::facets::FindingStore;
use crate::engine::rows::from_row;
use crate::engine::transaction::{StoreError, on_pool};

/// The results of a pattern's findings in all repositories that share their counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GlobalPattern {
    pub fingerprint: Fingerprint,
    pub severity: Severity,
    pub category: Category,
    pub shown: u64,
    pub fixed: u64,
    pub dismissed: u64,
    /// People in favour, by their last vote in all sharing repositories.
    pub thumbs_up: u64,
    pub thumbs_down: u64,
}

#[boxed]
impl FindingStore<'_> {
    /// Stores what of a repository may be used elsewhere: its counts in the global ones, and its memories by its
    /// owner's other repositories.
    pub async fn set_sharing(self, repo: RepoId, globally: bool, within_owner: bool) -> Result<(), StoreError> {
        // Called for each review, and other transactions lock this row: it is written only if something changes.
        let update = "UPDATE repos SET shares_patterns = $2, shares_memories = $3
            WHERE id = $1 AND (shares_patterns <> $2 OR shares_memories <> $3)";
        on_pool!(self.pool, |db| {
            sqlx::query(update).bind(repo.0).bind(globally).bind(within_owner).execute(db).await?;
        });
        Ok(())
    }

    /// Counts in the repositories that share now, most shown first. As in a repository's own counts, each person has
    /// one vote, a down vote wins over an up vote of the same time, and cleared votes do not count.
    pub async fn global_patterns(self, limit: u32) -> Result<Vec<GlobalPattern>, StoreError> {
        // Counted on every call, because reading commands must not write.
        let query = "WITH shared AS (
                SELECT f.id, f.fingerprint, f.severity, f.category, f.fixed FROM findings f JOIN repos r ON r.id = f.repo_id
                WHERE r.shares_patterns AND f.first_shown),
            words AS (
                SELECT s.fingerprint, s.severity, s.category, v.up, row_number() OVER (
                    PARTITION BY s.fingerprint, s.severity, s.category, lower(v.by_login) ORDER BY v.at DESC, v.up) AS place
                FROM shared s JOIN feedback_reactions v ON v.finding_id = s.id
                WHERE v.teaches AND v.removed_at IS NULL AND NOT EXISTS (SELECT 1 FROM feedback_clears c
                    WHERE c.repo_id = v.repo_id AND (c.key IS NULL OR c.key = v.key) AND c.at >= v.at AND c.undone_at IS NULL)),
            votes AS (
                SELECT fingerprint, severity, category, sum(CASE WHEN up THEN 1 ELSE 0 END) AS up,
                    sum(CASE WHEN up THEN 0 ELSE 1 END) AS down
                FROM words WHERE place = 1 GROUP BY fingerprint, severity, category),
            counts AS (
                SELECT s.fingerprint, s.severity, s.category, count(*) AS shown,
                    sum(CASE WHEN s.fixed THEN 1 ELSE 0 END) AS fixed, count(d.finding_id) AS dismissed
                FROM shared s LEFT JOIN (SELECT DISTINCT finding_id FROM dismissals
                    WHERE withdrawn_at IS NULL AND dismisser = 'maintainer') d ON d.finding_id = s.id
                GROUP BY s.fingerprint, s.severity, s.category)
            SELECT n.fingerprint, n.severity, n.category, n.shown, n.fixed, n.dismissed,
                COALESCE(v.up, 0) AS thumbs_up, COALESCE(v.down, 0) AS thumbs_down
            FROM counts n LEFT JOIN votes v
                ON v.fingerprint = n.fingerprint AND v.severity = n.severity AND v.category = n.category
            ORDER BY n.shown DESC, n.fingerprint, n.severity, n.category LIMIT $1";
        Ok(on_pool!(self.pool, |db| sqlx::query_as(query).bind(i64::from(limit)).fetch_all(db).await?))
    }
}

from_row!(GlobalPattern { fingerprint, severity, category, shown, fixed, dismissed, thumbs_up, thumbs_down });
