//! The ledger of a subject: all findings of its completed reviews, with their dismissals.

use canonry_boxed::boxed;
use std::collections::HashMap;

use canonry_domain::review::{Dismissal, FindingStatus, ReviewSubject, TrackedFinding};

use crate::corpus::repos::RepoId;
use crate::engine::facets::ReviewStore;
use crate::engine::rows::{Keyed, from_row, read_row};
use crate::engine::transaction::{StoreError, on_tx};
use crate::review::runs::FindingId;

/// A finding of a subject after its last completed review.
#[derive(Debug, Clone, PartialEq)]
pub struct LedgerFinding {
    pub id: FindingId,
    /// The finding, whether it is fixed, and the dismissals in force.
    pub earlier: TrackedFinding,
    /// Whether a comment at its line contains it.
    pub said_inline: bool,
    /// The latest status.
    pub status: FindingStatus,
    /// Whether the first review that contains it showed it; only such a finding counts in its pattern's history.
    pub first_shown: bool,
}

from_row!(LedgerFinding { id, earlier: flatten, said_inline, status, first_shown });
read_row!(TrackedFinding { finding: "latest", fixed, dismissals: default });

#[boxed]
impl ReviewStore<'_> {
    /// Returns all findings of a subject's completed reviews, with fixed ones, ordered by number. Failed and
    /// superseded runs add nothing.
    pub async fn ledger(self, repo: RepoId, subject: &ReviewSubject) -> Result<Vec<LedgerFinding>, StoreError> {
        let findings = "SELECT id, latest, fixed, said_inline, status, first_shown FROM findings
            WHERE repo_id = $1 AND subject = $2 ORDER BY id";
        let dismissals = "SELECT d.finding_id AS key, d.kind, d.dismisser, d.code, d.severity, d.category, d.at
            FROM findings f JOIN dismissals d ON d.finding_id = f.id
            WHERE f.repo_id = $1 AND f.subject = $2 AND d.withdrawn_at IS NULL ORDER BY d.id";
        let subject = subject.to_string();
        let mut tx = self.pool.begin_reading().await?;
        let mut ledger: Vec<LedgerFinding> =
            on_tx!(&mut tx, |db| sqlx::query_as(findings).bind(repo.0).bind(&subject).fetch_all(db).await?);
        let said: Vec<Keyed<FindingId, Dismissal>> =
            on_tx!(&mut tx, |db| sqlx::query_as(dismissals).bind(repo.0).bind(&subject).fetch_all(db).await?);
        tx.commit().await?;
        let mut dismissals: HashMap<FindingId, Vec<Dismissal>> = HashMap::new();
        for Keyed(finding, dismissal) in said {
            dismissals.entry(finding).or_default().push(dismissal);
        }
        for one in &mut ledger {
            one.earlier.dismissals = dismissals.remove(&one.id).unwrap_or_default();
        }
        Ok(ledger)
    }
}
