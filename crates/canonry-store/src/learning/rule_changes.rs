//! Derives outcomes again when a store is opened, if an older version of the rules derived them.

use jiff::Timestamp;

use crate::corpus::repos::RepoId;
use crate::engine::open::Store;
use crate::engine::postgres_limits::lift_limits;
use crate::engine::transaction::{StoreError, Transaction, on_pool, on_tx};
use crate::learning::issue_outcomes::{issues_with_events, relearn};
use crate::learning::thresholds::{log_adjustments, relearn_thresholds};

/// The version of the rules that derive outcomes and thresholds. Raised with every change of the result for the same
/// log.
pub(crate) const LEARNING_RULES: i64 = 1;

/// Derives everything again in repositories whose outcomes were derived by older rules.
pub(crate) async fn derive_outdated(store: &Store, now: Timestamp) -> Result<(), StoreError> {
    let outdated = "SELECT id FROM repos WHERE learned_by < $1 ORDER BY id";
    let note = "UPDATE repos SET learned_by = $2 WHERE id = $1 AND learned_by < $2";
    let repos: Vec<i64> =
        on_pool!(&store.pool, |db| sqlx::query_scalar(outdated).bind(LEARNING_RULES).fetch_all(db).await?);
    for repo in repos.into_iter().map(RepoId) {
        let mut tx = store.pool.begin().await?;
        if let Transaction::Postgres(transaction) = &mut tx {
            // This is part of updating a database, like migrations.
            lift_limits(transaction).await?;
        }
        tx.lock_items_of(repo).await?;
        let noted = on_tx!(&mut tx, |db| {
            sqlx::query(note).bind(repo.0).bind(LEARNING_RULES).execute(db).await?.rows_affected()
        });
        // Another process that started at the same time was faster.
        if noted == 0 {
            tx.rollback().await?;
            continue;
        }
        let items = issues_with_events(&mut tx, repo).await?;
        let mut adjusted = relearn(&mut tx, repo, &items, now).await?;
        adjusted.extend(relearn_thresholds(&mut tx, repo, now).await?);
        tx.commit().await?;
        log_adjustments(&adjusted);
    }
    Ok(())
}
