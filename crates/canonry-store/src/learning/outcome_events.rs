//! The append-only log of what people did with issues.

use canonry_boxed::boxed;
use std::collections::{BTreeMap, BTreeSet};

use canonry_domain::{EventOrigin, ItemNumber, ItemType, OutcomeEvent, OutcomeKind};
use jiff::Timestamp;
use sqlx::QueryBuilder;
use sqlx::types::Json;

use crate::corpus::items::{ItemKeys, NUMBERS_PER_STATEMENT};
use crate::corpus::repos::RepoId;
use crate::engine::facets::LearningStore;
use crate::engine::lists::PushList as _;
use crate::engine::row_values::micros;
use crate::engine::rows::{Keyed, read_row, unwrap_all};
use crate::engine::transaction::{StoreError, Transaction, on_pool, on_tx};
use crate::learning::issue_outcomes::relearn;
use crate::learning::predicted_cluster::predicted_cluster;
use crate::learning::thresholds::{LearningUpdate, log_adjustments};

macro_rules! event_columns {
    () => {
        "e.item_id AS key, e.delivery_id, i.number, e.kind, e.state_reason, e.actor, e.by_whom, e.duplicate_of, e.in_body, \
         e.comment_id, e.labels, e.cluster, e.occurred_at"
    };
}

read_row! {
    OutcomeEvent {
        delivery_id, number, kind, state_reason, actor, by: "by_whom", duplicate_of, in_body, comment: "comment_id",
        labels, cluster, occurred_at,
    }
}

#[boxed]
impl LearningStore<'_> {
    /// Adds events of known issues, and learns from them in the same transaction. An event with a known delivery id,
    /// or about an issue that is not stored, changes nothing.
    ///
    /// An event without a cluster gets the current cluster of the target that was predicted for its issue.
    pub async fn record_outcome_events(
        self,
        repo: RepoId,
        events: &[OutcomeEvent],
        now: Timestamp,
    ) -> Result<LearningUpdate, StoreError> {
        let mut tx = self.pool.begin().await?;
        tx.lock_items_of(repo).await?;
        let learned = add_events(&mut tx, repo, events, now).await?;
        tx.commit().await?;
        log_adjustments(&learned.adjusted);
        Ok(learned)
    }

    /// Returns the events of one issue in the order they happened.
    pub async fn outcome_events(self, repo: RepoId, number: ItemNumber) -> Result<Vec<OutcomeEvent>, StoreError> {
        let query = concat!(
            "SELECT ",
            event_columns!(),
            " FROM outcome_events e JOIN items i ON i.id = e.item_id
            WHERE i.repo_id = $1 AND i.type = $2 AND i.number = $3 ORDER BY e.occurred_at, e.id"
        );
        Ok(unwrap_all(on_pool!(self.pool, |db| {
            let query = sqlx::query_as(query).bind(repo.0).bind(ItemType::Issue.as_str()).bind(number.get());
            query.fetch_all(db).await?
        })))
    }

    /// Returns the issues that anybody but Canonry ever reopened, ordered by number, each with the last time.
    pub async fn reopened_numbers(self, repo: RepoId) -> Result<Vec<(ItemNumber, Timestamp)>, StoreError> {
        let query = "SELECT i.number, max(e.occurred_at) FROM outcome_events e JOIN items i ON i.id = e.item_id
            WHERE i.repo_id = $1 AND e.kind = $2 AND e.by_whom <> 'canonry' GROUP BY i.number ORDER BY i.number";
        Ok(unwrap_all(on_pool!(self.pool, |db| {
            sqlx::query_as(query).bind(repo.0).bind(OutcomeKind::Reopened.as_str()).fetch_all(db).await?
        })))
    }
}

/// Adds events and learns from them, inside a transaction that has the repository's lock.
pub(crate) async fn add_events(
    tx: &mut Transaction,
    repo: RepoId,
    events: &[OutcomeEvent],
    now: Timestamp,
) -> Result<LearningUpdate, StoreError> {
    if events.is_empty() {
        return Ok(LearningUpdate::default());
    }
    let keys = ItemKeys::read(tx, repo, events.iter().map(|event| event.number)).await?;
    let (mut touched, mut new_events) = (BTreeSet::new(), 0);
    for event in events {
        let Ok(item) = keys.id(ItemType::Issue, event.number) else { continue };
        if write_event(tx, repo, item, event).await? {
            new_events += 1;
            touched.insert(item);
        }
    }
    let touched: Vec<i64> = touched.into_iter().collect();
    let adjusted = relearn(tx, repo, &touched, now).await?;
    Ok(LearningUpdate { new_events, adjusted })
}

/// Adds one event; `false` if it is known. An event that a sync discovered is dropped if another event already
/// records the same change of the same issue at the same time: a webhook was faster, and contains who did it.
async fn write_event(tx: &mut Transaction, repo: RepoId, item: i64, event: &OutcomeEvent) -> Result<bool, StoreError> {
    let cluster = match event.cluster.as_slice() {
        [] => predicted_cluster(tx, repo, item, event).await?,
        told => told.to_vec(),
    };
    let delivery_id = distinct_id(tx, event).await?;
    let insert =
        "INSERT INTO outcome_events (item_id, delivery_id, kind, state_reason, actor, by_whom, duplicate_of, in_body,
            comment_id, labels, cluster, occurred_at)
        SELECT i.id, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12 FROM items i WHERE i.id = $1
        AND NOT ($13 AND EXISTS (SELECT 1 FROM outcome_events e
            WHERE e.item_id = i.id AND e.kind = $3 AND e.occurred_at = $12))
        ON CONFLICT (delivery_id) DO NOTHING";
    let written = on_tx!(tx, |db| {
        sqlx::query(insert)
            .bind(item)
            .bind(delivery_id)
            .bind(event.kind.as_str())
            .bind(event.state_reason.map(|reason| reason.as_str()))
            .bind(event.actor.as_ref().map(|login| login.as_str()))
            .bind(event.by.as_str())
            .bind(event.duplicate_of.map(ItemNumber::get))
            .bind(event.in_body.map(ItemNumber::get))
            .bind(event.comment.map(|comment| comment.0))
            .bind(event.labels.as_ref().map(Json))
            .bind(Json(cluster.into_iter().map(ItemNumber::get).collect::<Vec<_>>()))
            .bind(micros(event.occurred_at))
            .bind(event.origin() == EventOrigin::Sync)
            .execute(db)
            .await?
            .rows_affected()
    });
    Ok(written == 1)
}

/// Returns the id of an event. The id of a sync's event contains the issue and the second, in which the issue may
/// have been both closed and reopened.
async fn distinct_id(tx: &mut Transaction, event: &OutcomeEvent) -> Result<String, StoreError> {
    let id = event.delivery_id.clone();
    if event.origin() != EventOrigin::Sync {
        return Ok(id);
    }
    let kind = "SELECT kind FROM outcome_events WHERE delivery_id = $1";
    let kind: Option<String> = on_tx!(tx, |db| sqlx::query_scalar(kind).bind(&id).fetch_optional(db).await?);
    Ok(if kind.is_some_and(|kind| kind != event.kind.as_str()) { format!("{id}:{}", event.kind) } else { id })
}

/// Returns the events of these issues, by the store's key of the issue, in storing order.
pub(crate) async fn events_of(
    tx: &mut Transaction,
    items: &[i64],
) -> Result<BTreeMap<i64, Vec<OutcomeEvent>>, StoreError> {
    let mut events: BTreeMap<i64, Vec<OutcomeEvent>> = BTreeMap::new();
    for batch in items.chunks(NUMBERS_PER_STATEMENT) {
        let rows: Vec<Keyed<i64, OutcomeEvent>> = on_tx!(&mut *tx, |db| {
            let mut query = QueryBuilder::new(concat!(
                "SELECT ",
                event_columns!(),
                " FROM outcome_events e JOIN items i ON i.id = e.item_id WHERE e.item_id IN ("
            ));
            query.push_list(batch.iter().copied()).push(" ORDER BY e.item_id, e.id");
            query.build_query_as().fetch_all(db).await?
        });
        for Keyed(item, event) in rows {
            events.entry(item).or_default().push(event);
        }
    }
    Ok(events)
}
