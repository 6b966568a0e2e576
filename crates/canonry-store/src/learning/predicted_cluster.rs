//! The cluster of the target that was predicted for an issue, at the time of an event of the issue.

use std::collections::BTreeSet;

use canonry_domain::{ItemNumber, OutcomeEvent, PastTriage, last_triage};
use jiff::Timestamp;
use sqlx::QueryBuilder;
use sqlx::types::Json;

use crate::corpus::repos::RepoId;
use crate::engine::row_values::number;
use crate::engine::transaction::{StoreError, Transaction, on_tx};
use crate::learning::outcome_events::events_of;
use crate::learning::past_triage::triages_of;

/// Far more than people ever close as duplicates of one issue; a chain of wrong links must not grow forever.
const MOST_MEMBERS: usize = 500;

/// Returns the cluster with the target itself, sorted; empty if nothing was predicted.
pub(crate) async fn predicted_cluster(
    tx: &mut Transaction,
    repo: RepoId,
    item: i64,
    event: &OutcomeEvent,
) -> Result<Vec<ItemNumber>, StoreError> {
    let records = triages_of(tx, &[item]).await?.remove(&item).unwrap_or_default();
    match predicted_target(&records, event.occurred_at) {
        Some(target) => cluster_of(tx, repo, target, event.number).await,
        None => Ok(Vec::new()),
    }
}

/// Freezes the clusters of an issue's events for the record that now counts for them. Triage takes time, so an event
/// may be stored before its record. A posted record counts before one that was only recorded.
pub(crate) async fn freeze_clusters(tx: &mut Transaction, repo: RepoId, item: i64) -> Result<(), StoreError> {
    let Some(events) = events_of(tx, &[item]).await?.remove(&item) else { return Ok(()) };
    let records = triages_of(tx, &[item]).await?.remove(&item).unwrap_or_default();
    for event in events {
        let Some(target) = predicted_target(&records, event.occurred_at) else { continue };
        if event.cluster.contains(&target) {
            continue;
        }
        let cluster: Vec<i64> =
            cluster_of(tx, repo, target, event.number).await?.into_iter().map(ItemNumber::get).collect();
        let freeze = "UPDATE outcome_events SET cluster = $2 WHERE delivery_id = $1";
        on_tx!(&mut *tx, |db| {
            sqlx::query(freeze).bind(&event.delivery_id).bind(Json(cluster)).execute(db).await?;
        });
    }
    Ok(())
}

/// Returns the prediction at the time of an event, or a later one if there was none before.
fn predicted_target(records: &[PastTriage], at: Timestamp) -> Option<ItemNumber> {
    let place = last_triage(records, Some(at)).or_else(|| last_triage(records, None))?;
    records[place].prediction.map(|prediction| prediction.target)
}

/// Returns the cluster of a target.
///
/// Members are joined by stored canonicals, accepted decisions (also those from overrides), and closes as duplicates
/// by people. The issue itself joins nothing: otherwise the target it was closed for would be in the cluster because
/// of it.
async fn cluster_of(
    tx: &mut Transaction,
    repo: RepoId,
    target: ItemNumber,
    issue: ItemNumber,
) -> Result<Vec<ItemNumber>, StoreError> {
    let mut members = BTreeSet::from([target]);
    let mut newest = vec![target];
    while !newest.is_empty() && members.len() < MOST_MEMBERS {
        let joined = joined_with(tx, repo, &newest).await?;
        newest = joined.into_iter().filter(|other| *other != issue && members.insert(*other)).collect();
    }
    while members.len() > MOST_MEMBERS {
        let last = members.iter().rev().find(|member| **member != target).copied();
        last.map(|last| members.remove(&last));
    }
    Ok(members.into_iter().collect())
}

/// Returns the issues that these are joined with, in both directions.
async fn joined_with(tx: &mut Transaction, repo: RepoId, of: &[ItemNumber]) -> Result<Vec<ItemNumber>, StoreError> {
    const JOINS: [&str; 6] = [
        "SELECT canonical_number FROM canonicals WHERE type = 'issue' AND repo_id = ? AND item_number IN (?)",
        "SELECT item_number FROM canonicals WHERE type = 'issue' AND repo_id = ? AND canonical_number IN (?)",
        "SELECT duplicate_of FROM items WHERE type = 'issue' AND state = 'closed' AND duplicate_of IS NOT NULL
            AND repo_id = ? AND number IN (?)",
        "SELECT number FROM items WHERE type = 'issue' AND state = 'closed' AND repo_id = ? AND duplicate_of IN (?)",
        "SELECT t.number FROM items s JOIN judge_decisions d ON d.item_id = s.id JOIN items t ON t.id = d.target_item_id
            WHERE s.type = 'issue' AND d.status = 'accepted' AND d.superseded_at IS NULL AND s.repo_id = ? AND s.number IN (?)",
        "SELECT s.number FROM items t JOIN judge_decisions d ON d.target_item_id = t.id JOIN items s ON s.id = d.item_id
            WHERE t.type = 'issue' AND d.status = 'accepted' AND d.superseded_at IS NULL AND t.repo_id = ? AND t.number IN (?)",
    ];
    let rows: Vec<i64> = on_tx!(tx, |db| {
        let mut query = QueryBuilder::new("");
        for (turn, join) in JOINS.iter().enumerate() {
            if turn > 0 {
                query.push(" UNION ");
            }
            let mut parts = join.split('?');
            query.push(parts.next().unwrap_or_default()).push_bind(repo.0);
            query.push(parts.next().unwrap_or_default());
            let mut listed = query.separated(", ");
            for number in of {
                listed.push_bind(number.get());
            }
            query.push(parts.next().unwrap_or_default());
        }
        query.build_query_scalar().fetch_all(db).await?
    });
    rows.into_iter().map(number).collect()
}
