//! Stores webhooks: many in one transaction, each with the job it causes, none twice.

use canonry_boxed::boxed;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use canonry_domain::{ItemNumber, RepoName};
use jiff::Timestamp;
use sqlx::{Postgres, QueryBuilder, Sqlite};

use crate::corpus::items::NUMBERS_PER_STATEMENT;
use crate::deliveries::log::{DeliveryAction, DeliveryReceipt, DeliveryState, NewDelivery, queue_again};
use crate::engine::facets::DeliveryStore;
use crate::engine::lists::PushList as _;
use crate::engine::row_values::{micros, storable, word};
use crate::engine::transaction::{StoreError, Transaction, on_pool, on_tx};
use crate::jobs::queue::NewJob;

#[boxed]
impl DeliveryStore<'_> {
    /// Stores a delivery together with its job. A known delivery does not change, except that a failed one is queued
    /// again: a redelivery was requested on GitHub.
    pub async fn accept(self, new: &NewDelivery<'_>, now: Timestamp) -> Result<DeliveryReceipt, StoreError> {
        let accepted = self.accept_all(std::slice::from_ref(new), now).await?;
        Ok(accepted[0])
    }

    /// Stores many deliveries, all or none, and returns a receipt for each in their order. Their jobs are queued in
    /// that order. If an id occurs twice, the second one counts as known.
    ///
    /// One transaction waits for the disk once, however many deliveries it contains. Other processes are not notified
    /// of the jobs until [`JobStore::notify_workers`](crate::JobStore::notify_workers) is called: PostgreSQL commits
    /// transactions that notify one at a time, and each would wait for the disk alone.
    pub async fn accept_all(self, new: &[NewDelivery<'_>], now: Timestamp) -> Result<Vec<DeliveryReceipt>, StoreError> {
        if new.is_empty() {
            return Ok(Vec::new());
        }
        // Sorted, so that two processes with the same deliveries cannot deadlock.
        let mut first_of: Vec<&NewDelivery<'_>> = new.iter().collect();
        first_of.sort_by_key(|delivery| delivery.id);
        first_of.dedup_by_key(|delivery| delivery.id);
        let mut tx = self.pool.begin().await?;
        let mut inserted = insert_deliveries(&mut tx, &first_of, now).await?;
        let known: Vec<&str> =
            first_of.iter().map(|delivery| delivery.id).filter(|id| !inserted.contains(*id)).collect();
        let mut states = lock_states(&mut tx, &known).await?;
        let mut accepted = Vec::with_capacity(new.len());
        let mut jobs = Vec::with_capacity(new.len());
        for delivery in new {
            let is_new = inserted.remove(delivery.id);
            accepted.push(match (&delivery.fate, states.get(delivery.id)) {
                (DeliveryAction::Job(job), _) if is_new => {
                    jobs.push((delivery.id, job));
                    states.insert(delivery.id.to_owned(), DeliveryState::Queued);
                    DeliveryReceipt::Queued
                }
                (DeliveryAction::Ignored(_), _) if is_new => {
                    states.insert(delivery.id.to_owned(), DeliveryState::Ignored);
                    DeliveryReceipt::Ignored
                }
                (DeliveryAction::Job(job), Some(DeliveryState::Dead)) => {
                    queue_again(&mut tx, delivery.id, job, now).await?;
                    states.insert(delivery.id.to_owned(), DeliveryState::Queued);
                    DeliveryReceipt::Requeued
                }
                (_, Some(state)) => DeliveryReceipt::Known(*state),
                (_, None) => return Err(StoreError::damaged(format!("there is no delivery {}", delivery.id))),
            });
        }
        if !jobs.is_empty() {
            insert_jobs(&mut tx, &jobs, now).await?;
        }
        tx.commit().await?;
        Ok(accepted)
    }

    /// Returns those of these ids that are stored.
    pub async fn stored_ids(self, ids: &[&str]) -> Result<HashSet<String>, StoreError> {
        let mut known = HashSet::with_capacity(ids.len());
        for batch in ids.chunks(NUMBERS_PER_STATEMENT) {
            let found: Vec<String> = on_pool!(self.pool, |db| {
                let mut query = QueryBuilder::new("SELECT id FROM deliveries WHERE id IN (");
                query.push_list(batch.iter().copied());
                query.build_query_scalar().fetch_all(db).await?
            });
            known.extend(found);
        }
        Ok(known)
    }
}

/// Rows per statement on SQLite. There are only three lengths, so that prepared statements are reused. Longer
/// statements are no faster, and each statement is a round trip to the thread that runs it.
const ROWS: [usize; 3] = [16, 4, 1];

/// Splits a batch into statements of the longest allowed lengths.
fn in_statements<T>(mut rows: &[T]) -> impl Iterator<Item = &[T]> {
    std::iter::from_fn(move || {
        let length = ROWS.into_iter().find(|length| *length <= rows.len())?;
        let (statement, rest) = rows.split_at(length);
        rows = rest;
        Some(statement)
    })
}

/// The column values of a new delivery.
struct DeliveryRow<'a> {
    id: &'a str,
    event: Cow<'a, str>,
    action: Option<Cow<'a, str>>,
    repo: Option<String>,
    number: Option<i64>,
    payload: &'a [u8],
    state: &'static str,
    reason: Option<Cow<'a, str>>,
    finished_at: Option<i64>,
}

impl<'a> DeliveryRow<'a> {
    fn new(delivery: &NewDelivery<'a>, now: i64) -> Self {
        let (state, reason, finished_at) = match &delivery.fate {
            DeliveryAction::Job(_) => (DeliveryState::Queued, None, None),
            DeliveryAction::Ignored(reason) => (DeliveryState::Ignored, Some(storable(reason)), Some(now)),
        };
        Self {
            id: delivery.id,
            event: storable(delivery.event),
            action: delivery.action.map(storable),
            repo: delivery.repo.map(RepoName::key),
            number: delivery.number.map(ItemNumber::get),
            payload: delivery.payload.stored(),
            state: state.as_str(),
            reason,
            finished_at,
        }
    }
}

/// Stores the deliveries that are new, and returns their ids.
async fn insert_deliveries(
    tx: &mut Transaction,
    new: &[&NewDelivery<'_>],
    now: Timestamp,
) -> Result<HashSet<String>, StoreError> {
    let now = micros(now);
    let rows: Vec<DeliveryRow<'_>> = new.iter().map(|delivery| DeliveryRow::new(delivery, now)).collect();
    let mut inserted = HashSet::with_capacity(rows.len());
    match tx {
        Transaction::Sqlite(transaction) => {
            for rows in in_statements(&rows) {
                let mut query: QueryBuilder<Sqlite> = QueryBuilder::new(
                    "INSERT INTO deliveries (id, event, action, repo, number, payload, state, reason, received_at, finished_at) ",
                );
                query.push_values(rows, |mut values, row| {
                    values
                        .push_bind(row.id)
                        .push_bind(&*row.event)
                        .push_bind(row.action.as_deref())
                        .push_bind(row.repo.as_deref())
                        .push_bind(row.number)
                        .push_bind(row.payload)
                        .push_bind(row.state)
                        .push_bind(row.reason.as_deref())
                        .push_bind(now)
                        .push_bind(row.finished_at);
                });
                query.push(" ON CONFLICT (id) DO NOTHING RETURNING id");
                inserted.extend(query.build_query_scalar::<String>().fetch_all(&mut **transaction).await?);
            }
        }
        Transaction::Postgres(transaction) => {
            let insert = "INSERT INTO deliveries (id, event, action, repo, number, payload, state, reason, received_at, finished_at)
                SELECT n.id, n.event, n.action, n.repo, n.number, n.payload, n.state, n.reason, $9, n.finished_at
                FROM UNNEST($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bytea[], $7::text[], $8::text[], $10::bigint[])
                    AS n (id, event, action, repo, number, payload, state, reason, finished_at)
                ON CONFLICT (id) DO NOTHING RETURNING id";
            let found = sqlx::query_scalar::<Postgres, String>(insert)
                .bind(rows.iter().map(|row| row.id).collect::<Vec<_>>())
                .bind(rows.iter().map(|row| &*row.event).collect::<Vec<_>>())
                .bind(rows.iter().map(|row| row.action.as_deref()).collect::<Vec<_>>())
                .bind(rows.iter().map(|row| row.repo.as_deref()).collect::<Vec<_>>())
                .bind(rows.iter().map(|row| row.number).collect::<Vec<_>>())
                .bind(rows.iter().map(|row| row.payload).collect::<Vec<_>>())
                .bind(rows.iter().map(|row| row.state).collect::<Vec<_>>())
                .bind(rows.iter().map(|row| row.reason.as_deref()).collect::<Vec<_>>())
                .bind(now)
                .bind(rows.iter().map(|row| row.finished_at).collect::<Vec<_>>());
            inserted.extend(found.fetch_all(&mut **transaction).await?);
        }
    }
    Ok(inserted)
}

/// Queues the jobs of new deliveries, in this order.
async fn insert_jobs(tx: &mut Transaction, jobs: &[(&str, &NewJob<'_>)], now: Timestamp) -> Result<(), StoreError> {
    let now = micros(now);
    match tx {
        Transaction::Sqlite(transaction) => {
            for jobs in in_statements(jobs) {
                let mut query: QueryBuilder<Sqlite> = QueryBuilder::new(
                    "INSERT INTO jobs (delivery_id, key, repo, kind, payload, state, attempts, run_after, created_at) ",
                );
                query.push_values(jobs, |mut values, (delivery, job)| {
                    values.push_bind(*delivery).push_bind(storable(job.key)).push_bind(job.repo.map(RepoName::key));
                    values.push_bind(job.kind.as_str()).push_bind(job.payload.to_string()).push("'queued', 0");
                    values.push_bind(now).push_bind(now);
                });
                query.build().execute(&mut **transaction).await?;
            }
        }
        Transaction::Postgres(transaction) => {
            // Ids follow the order of the arrays, and jobs with the same key run in that order.
            let insert =
                "INSERT INTO jobs (delivery_id, key, repo, kind, payload, state, attempts, run_after, created_at)
                SELECT n.delivery_id, n.key, n.repo, n.kind, n.payload, 'queued', 0, $6, $6
                FROM UNNEST($1::text[], $2::text[], $3::text[], $4::text[], $5::text[])
                    WITH ORDINALITY AS n (delivery_id, key, repo, kind, payload, place) ORDER BY n.place";
            sqlx::query(insert)
                .bind(jobs.iter().map(|(delivery, _)| *delivery).collect::<Vec<_>>())
                .bind(jobs.iter().map(|(_, job)| storable(job.key).into_owned()).collect::<Vec<_>>())
                .bind(jobs.iter().map(|(_, job)| job.repo.map(RepoName::key)).collect::<Vec<_>>())
                .bind(jobs.iter().map(|(_, job)| job.kind.as_str()).collect::<Vec<_>>())
                .bind(jobs.iter().map(|(_, job)| job.payload.to_string()).collect::<Vec<_>>())
                .bind(now)
                .execute(&mut **transaction)
                .await?;
        }
    }
    Ok(())
}

/// Returns the states of deliveries and locks them until the transaction ends.
async fn lock_states(tx: &mut Transaction, ids: &[&str]) -> Result<HashMap<String, DeliveryState>, StoreError> {
    let mut states = HashMap::with_capacity(ids.len());
    for batch in ids.chunks(NUMBERS_PER_STATEMENT) {
        let lock = if matches!(tx, Transaction::Postgres(_)) { " ORDER BY id FOR UPDATE" } else { "" };
        let rows: Vec<(String, String)> = on_tx!(&mut *tx, |db| {
            let mut query = QueryBuilder::new("SELECT id, state FROM deliveries WHERE id IN (");
            query.push_list(batch.iter().copied()).push(lock);
            query.build_query_as().fetch_all(db).await?
        });
        for (id, state) in rows {
            states.insert(id, word(&state)?);
        }
    }
    Ok(states)
}
