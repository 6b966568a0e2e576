//! Stored webhooks: their states, and queueing them again.

use canonry_boxed::boxed;
use canonry_domain::{ItemNumber, RepoName};
use jiff::Timestamp;
use sqlx::QueryBuilder;

use crate::engine::facets::DeliveryStore;
use crate::engine::packed_text::PackedText;
use crate::engine::row_values::{count, micros, storable, word};
use crate::engine::rows::from_row;
use crate::engine::transaction::{StoreError, Transaction, on_pool, on_tx};
use crate::jobs::queue::{JobId, NewJob, insert_job};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeliveryState {
    Queued,
    Done,
    Dead,
    /// Nothing is done; the reason says why.
    Ignored,
}

impl DeliveryState {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Done => "done",
            Self::Dead => "dead",
            Self::Ignored => "ignored",
        }
    }
}

impl std::str::FromStr for DeliveryState {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let all = [Self::Queued, Self::Done, Self::Dead, Self::Ignored];
        all.into_iter()
            .find(|state| state.as_str() == text)
            .ok_or_else(|| format!("{text:?} is no state of a delivery; use queued, done, dead or ignored"))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct NewDelivery<'a> {
    /// GitHub's id, which a redelivery keeps.
    pub id: &'a str,
    pub event: &'a str,
    /// The action, for events that have several.
    pub action: Option<&'a str>,
    pub repo: Option<&'a RepoName>,
    pub number: Option<ItemNumber>,
    pub payload: &'a PackedText,
    pub fate: DeliveryAction<'a>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum DeliveryAction<'a> {
    Job(NewJob<'a>),
    Ignored(&'a str),
}

/// The result of storing a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryReceipt {
    Queued,
    /// The delivery is new and stored without a job.
    Ignored,
    Known(DeliveryState),
    /// The delivery was known and had failed; its job is queued again.
    Requeued,
}

/// A stored delivery, without its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    pub id: String,
    pub event: String,
    pub action: Option<String>,
    /// In lower case.
    pub repo: Option<RepoName>,
    pub number: Option<ItemNumber>,
    pub state: DeliveryState,
    pub reason: Option<String>,
    pub received_at: Timestamp,
    pub finished_at: Option<Timestamp>,
}

/// Selects deliveries; `None` means any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeliveryFilter {
    pub state: Option<DeliveryState>,
    pub event: Option<String>,
    pub repo: Option<RepoName>,
    /// Received before that time, or at that time with a smaller id: the last delivery of the previous page.
    pub before: Option<(Timestamp, String)>,
}

macro_rules! deliveries {
    ($rest:literal) => {
        concat!(
            "SELECT id, event, action, repo, number, state, reason, received_at, finished_at FROM deliveries ",
            $rest
        )
    };
}

#[boxed]
impl DeliveryStore<'_> {
    /// Queues a delivery again, whatever its state, with this job if it never had one; `false` if its job is
    /// unfinished, and then nothing changes.
    pub async fn replay(self, id: &str, job: &NewJob<'_>, now: Timestamp) -> Result<bool, StoreError> {
        let mut tx = self.pool.begin().await?;
        if lock_state(&mut tx, id).await? == DeliveryState::Queued {
            tx.rollback().await?;
            return Ok(false);
        }
        queue_again(&mut tx, id, job, now).await?;
        tx.commit().await?;
        Ok(true)
    }

    pub async fn get(self, id: &str) -> Result<Option<Delivery>, StoreError> {
        let query = deliveries!("WHERE id = $1");
        Ok(on_pool!(self.pool, |db| sqlx::query_as(query).bind(storable(id)).fetch_optional(db).await?))
    }

    /// Returns the body of a delivery as received; `None` if the delivery is unknown or its body was deleted because
    /// of its age.
    pub async fn payload(self, id: &str) -> Result<Option<String>, StoreError> {
        let query = "SELECT payload FROM deliveries WHERE id = $1 AND NOT emptied";
        let stored: Option<Vec<u8>> =
            on_pool!(self.pool, |db| sqlx::query_scalar(query).bind(storable(id)).fetch_optional(db).await?);
        stored.map(PackedText::unpack).transpose()
    }

    pub async fn counts(self) -> Result<Vec<(DeliveryState, u64)>, StoreError> {
        let query = "SELECT state, count(*) FROM deliveries GROUP BY state ORDER BY state";
        let rows: Vec<(String, i64)> = on_pool!(self.pool, |db| sqlx::query_as(query).fetch_all(db).await?);
        rows.into_iter().map(|(state, rows)| Ok((word(&state)?, count(rows)?))).collect()
    }

    /// Returns deliveries, latest first.
    pub async fn list(self, filter: &DeliveryFilter, limit: u32) -> Result<Vec<Delivery>, StoreError> {
        let conditions = filter.conditions();
        let leader = self.rarest(&conditions).await?;
        Ok(on_pool!(self.pool, |db| {
            // Contains only the conditions that the filter sets: a condition that may be null prevents the use of any
            // index. `event || ''` keeps a condition from using an index, so that the rarest condition uses its
            // index.
            let mut query = QueryBuilder::new(deliveries!("WHERE TRUE"));
            for (place, (column, value)) in conditions.iter().enumerate() {
                query.push(" AND ").push(column).push(if place == leader { " = " } else { " || '' = " });
                query.push_bind(value);
            }
            if let Some((moment, id)) = &filter.before {
                query
                    .push(" AND (received_at, id) < (")
                    .push_bind(micros(*moment))
                    .push(", ")
                    .push_bind(storable(id))
                    .push(")");
            }
            query.push(" ORDER BY received_at DESC, id DESC LIMIT ").push_bind(i64::from(limit));
            query.build_query_as().fetch_all(db).await?
        }))
    }

    /// Returns the position of the condition that the fewest deliveries meet, counted up to a limit. SQLite does not
    /// know it, and reads all rows of another condition to intersect the two.
    async fn rarest(self, conditions: &[(&'static str, String)]) -> Result<usize, StoreError> {
        if conditions.len() < 2 {
            return Ok(0);
        }
        let mut rarest = (i64::MAX, 0);
        for (place, (column, value)) in conditions.iter().enumerate() {
            let met: i64 = on_pool!(self.pool, |db| {
                let mut query = QueryBuilder::new("SELECT count(*) FROM (SELECT 1 FROM deliveries WHERE ");
                query.push(column).push(" = ").push_bind(value);
                query.push(" LIMIT ").push_bind(COUNTED).push(") met");
                query.build_query_scalar().fetch_one(db).await?
            });
            rarest = rarest.min((met, place));
        }
        Ok(rarest.1)
    }
}

/// The limit up to which deliveries are counted to choose an index.
const COUNTED: i64 = 5_000;

impl DeliveryFilter {
    /// The columns with a required value. The first wins if several have the same count.
    fn conditions(&self) -> Vec<(&'static str, String)> {
        let repo = self.repo.as_ref().map(|repo| ("repo", repo.key()));
        let event = self.event.as_deref().map(|event| ("event", storable(event).into_owned()));
        let state = self.state.map(|state| ("state", state.as_str().to_owned()));
        [repo, event, state].into_iter().flatten().collect()
    }
}

/// Returns the state of a delivery and locks it until the transaction ends. SQLite has one writer at a time anyway.
async fn lock_state(tx: &mut Transaction, id: &str) -> Result<DeliveryState, StoreError> {
    let state: Option<String> = match tx {
        Transaction::Sqlite(transaction) => {
            let query = sqlx::query_scalar("SELECT state FROM deliveries WHERE id = $1");
            query.bind(id).fetch_optional(&mut **transaction).await?
        }
        Transaction::Postgres(transaction) => {
            let query = sqlx::query_scalar("SELECT state FROM deliveries WHERE id = $1 FOR UPDATE");
            query.bind(id).fetch_optional(&mut **transaction).await?
        }
    };
    word(&state.ok_or_else(|| StoreError::damaged(format!("there is no delivery {id}")))?)
}

pub(crate) async fn queue_again(
    tx: &mut Transaction,
    id: &str,
    job: &NewJob<'_>,
    now: Timestamp,
) -> Result<JobId, StoreError> {
    let reopen = "UPDATE deliveries SET state = 'queued', reason = NULL, finished_at = NULL WHERE id = $1";
    let requeue = "UPDATE jobs SET state = 'queued', attempts = 0, run_after = $2, error = NULL, finished_at = NULL
        WHERE delivery_id = $1 AND state IN ('done', 'dead') RETURNING id";
    let again: Option<i64> = on_tx!(&mut *tx, |db| {
        sqlx::query(reopen).bind(id).execute(&mut *db).await?;
        sqlx::query_scalar(requeue).bind(id).bind(micros(now)).fetch_optional(db).await?
    });
    match again {
        Some(again) => {
            tx.notify_workers().await?;
            Ok(JobId(again))
        }
        None => insert_job(tx, job, Some(id), now, now).await,
    }
}

from_row!(Delivery { id, event, action, repo, number, state, reason, received_at, finished_at });
