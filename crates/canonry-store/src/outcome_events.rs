//! The log of what people did with issues; only ever added to.

use canonry_domain::{ItemNumber, ItemType, OutcomeEvent, OutcomeKind};
use jiff::Timestamp;

use crate::open::Store;
use crate::repos::RepoId;
use crate::row_values::{micros, moment, number, optional_word, word};
use crate::transaction::{StoreError, Transaction, on_pool, on_tx};

#[derive(sqlx::FromRow)]
struct EventRow {
    delivery_id: String,
    number: i64,
    kind: String,
    state_reason: Option<String>,
    actor: Option<String>,
    duplicate_of: Option<i64>,
    occurred_at: i64,
}

impl EventRow {
    fn read(self) -> Result<OutcomeEvent, StoreError> {
        Ok(OutcomeEvent {
            delivery_id: self.delivery_id,
            number: ItemNumber::new(self.number).map_err(StoreError::damaged)?,
            kind: word(&self.kind)?,
            state_reason: optional_word(self.state_reason.as_deref())?,
            actor: optional_word(self.actor.as_deref())?,
            duplicate_of: self.duplicate_of.map(ItemNumber::new).transpose().map_err(StoreError::damaged)?,
            occurred_at: moment(self.occurred_at)?,
        })
    }
}

impl Store {
    /// Adds events of known issues; one whose delivery id is known already changes nothing.
    pub async fn record_outcome_events(&self, repo: RepoId, events: &[OutcomeEvent]) -> Result<(), StoreError> {
        let mut tx = self.pool.begin().await?;
        write_events(&mut tx, repo, events).await?;
        tx.commit().await
    }

    /// The events of one issue, in the order they happened.
    pub async fn outcome_events(&self, repo: RepoId, number: ItemNumber) -> Result<Vec<OutcomeEvent>, StoreError> {
        let query = "SELECT e.delivery_id, i.number, e.kind, e.state_reason, e.actor, e.duplicate_of, e.occurred_at
            FROM outcome_events e JOIN items i ON i.id = e.item_id
            WHERE i.repo_id = $1 AND i.type = $2 AND i.number = $3 ORDER BY e.occurred_at, e.id";
        let rows: Vec<EventRow> = on_pool!(&self.pool, |db| {
            let query = sqlx::query_as(query).bind(repo.0).bind(ItemType::Issue.as_str()).bind(number.get());
            query.fetch_all(db).await?
        });
        rows.into_iter().map(EventRow::read).collect()
    }

    /// The issues that were ever opened again, by number, each with the last time.
    pub async fn reopened_numbers(&self, repo: RepoId) -> Result<Vec<(ItemNumber, Timestamp)>, StoreError> {
        let query = "SELECT i.number, max(e.occurred_at) FROM outcome_events e JOIN items i ON i.id = e.item_id
            WHERE i.repo_id = $1 AND e.kind = $2 GROUP BY i.number ORDER BY i.number";
        let rows: Vec<(i64, i64)> = on_pool!(&self.pool, |db| {
            sqlx::query_as(query).bind(repo.0).bind(OutcomeKind::Reopened.as_str()).fetch_all(db).await?
        });
        rows.into_iter().map(|(of, at)| Ok((number(of)?, moment(at)?))).collect()
    }
}

/// Adds events. What a sync discovers is void when another event already tells the same change of the
/// same issue at the same time: a webhook was quicker, and knows who did it.
pub(crate) async fn write_events(
    tx: &mut Transaction,
    repo: RepoId,
    events: &[OutcomeEvent],
) -> Result<(), StoreError> {
    let insert =
        "INSERT INTO outcome_events (item_id, delivery_id, kind, state_reason, actor, duplicate_of, occurred_at)
        SELECT i.id, $3, $4, $5, $6, $7, $8 FROM items i
        WHERE i.repo_id = $1 AND i.type = 'issue' AND i.number = $2
        AND NOT ($9 AND EXISTS (SELECT 1 FROM outcome_events e
            WHERE e.item_id = i.id AND e.kind = $4 AND e.occurred_at = $8))
        ON CONFLICT (delivery_id) DO NOTHING";
    for event in events {
        on_tx!(&mut *tx, |db| {
            sqlx::query(insert)
                .bind(repo.0)
                .bind(event.number.get())
                .bind(event.delivery_id.as_str())
                .bind(event.kind.as_str())
                .bind(event.state_reason.map(|reason| reason.as_str()))
                .bind(event.actor.as_ref().map(|login| login.as_str()))
                .bind(event.duplicate_of.map(|number| number.get()))
                .bind(micros(event.occurred_at))
                .bind(event.delivery_id.starts_with("sync:"))
                .execute(db)
                .await?;
        });
    }
    Ok(())
}
