//! Dismissals of findings by people, bound to the dismissed code.

use canonry_boxed::boxed;
use canonry_domain::Login;
use canonry_domain::review::{CodeHash, Dismissal, DismissalKind, Dismisser, Finding, is_protected};
use jiff::Timestamp;
use sqlx::types::Json;

use crate::corpus::repos::RepoId;
use crate::engine::facets::FindingStore;
use crate::engine::row_values::{micros, word};
use crate::engine::rows::{StoreRow, from_row, read_row};
use crate::engine::transaction::{StoreError, Transaction, on_pool, on_tx};
use crate::review::runs::{FindingId, ReviewId};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDismissal {
    pub dismissal: Dismissal,
    pub login: Login,
    pub withdrawn_at: Option<Timestamp>,
}

#[boxed]
impl FindingStore<'_> {
    /// Records a person's dismissal of a finding as it was in the review that they answer, or as it is now. A
    /// repeated dismissal changes nothing; `false` if the finding does not exist or the review does not contain it.
    pub async fn dismiss(
        self,
        finding: FindingId,
        review: Option<ReviewId>,
        kind: DismissalKind,
        dismisser: Dismisser,
        by: &Login,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let standing = "SELECT by_login, code, severity, category FROM dismissals
            WHERE finding_id = $1 AND kind = $2 AND dismisser = $3 AND withdrawn_at IS NULL";
        let insert = "INSERT INTO dismissals (finding_id, kind, dismisser, by_login, code, severity, category, at)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
        let mut tx = self.pool.begin().await?;
        let Some(answered) = lock_and_read(&mut tx, finding, review).await? else { return Ok(false) };
        let code = answered.code.as_ref().map(CodeHash::as_str);
        let protected = is_protected(answered.severity, answered.category);
        let said: Vec<(String, Option<String>, String, String)> = on_tx!(&mut tx, |db| {
            let query = sqlx::query_as(standing).bind(finding.0).bind(kind.as_str()).bind(dismisser.as_str());
            query.fetch_all(db).await?
        });
        let mut is_known = false;
        for (login, about, severity, category) in &said {
            let was_protected = is_protected(word(severity)?, word(category)?);
            is_known |= login.to_lowercase() == by.key() && about.as_deref() == code && was_protected == protected;
        }
        if !is_known {
            on_tx!(&mut tx, |db| {
                let query = sqlx::query(insert).bind(finding.0).bind(kind.as_str()).bind(dismisser.as_str());
                let query = query.bind(by.as_str()).bind(code).bind(answered.severity.as_str());
                query.bind(answered.category.as_str()).bind(micros(now)).execute(db).await?;
            });
        }
        tx.commit().await?;
        Ok(true)
    }

    /// Withdraws dismissals of one kind, for example when a finding's thread is reopened: about the code in a review,
    /// or about any code; by one person, or by all. `false` if there was none in force.
    pub async fn withdraw_dismissal(
        self,
        finding: FindingId,
        review: Option<ReviewId>,
        kind: DismissalKind,
        by: Option<&Login>,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let withdraw =
            "UPDATE dismissals SET withdrawn_at = $3 WHERE finding_id = $1 AND kind = $2 AND withdrawn_at IS NULL
            AND ($4 OR code = $5 OR (code IS NULL AND $5 IS NULL)) AND ($6 OR lower(by_login) = $7)";
        let mut tx = self.pool.begin().await?;
        let Some(answered) = lock_and_read(&mut tx, finding, review).await? else { return Ok(false) };
        let code = answered.code.as_ref().map(CodeHash::as_str);
        let withdrawn = on_tx!(&mut tx, |db| {
            let query = sqlx::query(withdraw).bind(finding.0).bind(kind.as_str()).bind(micros(now));
            let query = query.bind(review.is_none()).bind(code).bind(by.is_none());
            query.bind(by.map(Login::key)).execute(db).await?.rows_affected()
        });
        tx.commit().await?;
        Ok(withdrawn > 0)
    }

    /// Returns every dismissal ever made of a finding, oldest first.
    pub async fn dismissals_of(self, finding: FindingId) -> Result<Vec<StoredDismissal>, StoreError> {
        let query = "SELECT kind, dismisser, by_login, code, severity, category, at, withdrawn_at
            FROM dismissals WHERE finding_id = $1 ORDER BY id";
        Ok(on_pool!(self.pool, |db| sqlx::query_as(query).bind(finding.0).fetch_all(db).await?))
    }
}

/// Returns a finding as it was in a review, or as it is now, locked until the transaction ends; `None` if it does not
/// exist.
async fn lock_and_read(
    tx: &mut Transaction,
    finding: FindingId,
    review: Option<ReviewId>,
) -> Result<Option<Finding>, StoreError> {
    let repo = "SELECT repo_id FROM findings WHERE id = $1";
    let latest = "SELECT latest FROM findings WHERE id = $1";
    let told = "SELECT finding FROM finding_sightings WHERE finding_id = $1 AND run_id = $2";
    let repo: Option<i64> = on_tx!(&mut *tx, |db| sqlx::query_scalar(repo).bind(finding.0).fetch_optional(db).await?);
    let Some(repo) = repo else { return Ok(None) };
    tx.lock_items_of(RepoId(repo)).await?;
    let answered: Option<Json<Finding>> = on_tx!(tx, |db| {
        match review {
            None => sqlx::query_scalar(latest).bind(finding.0).fetch_optional(db).await?,
            Some(review) => sqlx::query_scalar(told).bind(finding.0).bind(review.0).fetch_optional(db).await?,
        }
    });
    Ok(answered.map(|Json(finding)| finding))
}

from_row!(StoredDismissal { dismissal: flatten, login: "by_login", withdrawn_at });
read_row!(Dismissal { kind, by: "dismisser", code, protected: (read_protected), at });

fn read_protected(row: &impl StoreRow) -> Result<bool, sqlx::Error> {
    Ok(is_protected(row.column("severity")?, row.column("category")?))
}
