//! The ledger of a subject: every finding that any completed review of it told of, with what people said against it.

use std::collections::HashMap;

use canonry_domain::review::{Dismissal, Finding, FindingStatus, ReviewSubject, TrackedFinding};
use sqlx::types::Json;

use crate::corpus::repos::RepoId;
use crate::engine::facets::ReviewStore;
use crate::engine::row_values::word;
use crate::engine::transaction::{StoreError, on_tx};
use crate::review::finding_dismissals::DismissalRow;
use crate::review::runs::FindingId;

/// A finding of a subject as its last completed review left it.
#[derive(Debug, Clone, PartialEq)]
pub struct LedgerFinding {
    pub id: FindingId,
    /// The finding, whether it is fixed, and the dismissals that nobody took back.
    pub earlier: TrackedFinding,
    /// Whether a comment at its line says it.
    pub said_inline: bool,
    /// What became of it last.
    pub status: FindingStatus,
    /// Whether the review that first told of it showed it; only such a finding counts in its pattern's history.
    pub first_shown: bool,
}

impl ReviewStore<'_> {
    /// Every finding of any completed review of a subject, fixed ones too, by number. What failed or was superseded
    /// added nothing.
    pub async fn ledger(self, repo: RepoId, subject: &ReviewSubject) -> Result<Vec<LedgerFinding>, StoreError> {
        let findings = "SELECT id, latest, fixed, said_inline, status, first_shown FROM findings
            WHERE repo_id = $1 AND subject = $2 ORDER BY id";
        let dismissals =
            "SELECT d.finding_id, d.kind, d.dismisser, d.by_login, d.code, d.severity, d.category, d.at, d.withdrawn_at
            FROM findings f JOIN dismissals d ON d.finding_id = f.id
            WHERE f.repo_id = $1 AND f.subject = $2 AND d.withdrawn_at IS NULL ORDER BY d.id";
        let subject = subject.to_string();
        let mut tx = self.pool.begin_reading().await?;
        type Row = (i64, Json<Finding>, bool, bool, String, bool);
        let rows: Vec<Row> =
            on_tx!(&mut tx, |db| sqlx::query_as(findings).bind(repo.0).bind(&subject).fetch_all(db).await?);
        let said: Vec<DismissalRow> =
            on_tx!(&mut tx, |db| sqlx::query_as(dismissals).bind(repo.0).bind(&subject).fetch_all(db).await?);
        tx.commit().await?;
        let mut dismissals: HashMap<i64, Vec<Dismissal>> = HashMap::new();
        for row in said {
            dismissals.entry(row.finding_id).or_default().push(row.read()?.dismissal);
        }
        let read = |(id, Json(finding), fixed, said_inline, status, first_shown): Row| {
            let dismissals = dismissals.remove(&id).unwrap_or_default();
            let earlier = TrackedFinding { finding, fixed, dismissals };
            Ok(LedgerFinding { id: FindingId(id), earlier, said_inline, status: word(&status)?, first_shown })
        };
        rows.into_iter().map(read).collect()
    }
}
