//! Webhooks as they came: what has become of them, and queueing them again.

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
    /// Nothing is done about it, and the reason says why.
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
    /// GitHub's id, the same when it is delivered again.
    pub id: &'a str,
    pub event: &'a str,
    /// What happened, for events that have several actions.
    pub action: Option<&'a str>,
    pub repo: Option<&'a RepoName>,
    pub number: Option<ItemNumber>,
    pub payload: &'a PackedText,
    pub fate: DeliveryAction<'a>,
}

/// What is to be done about a delivery.
#[derive(Debug, Clone, PartialEq)]
pub enum DeliveryAction<'a> {
    Job(NewJob<'a>),
    Ignored(&'a str),
}

/// What came of storing a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryReceipt {
    Queued,
    /// It is new and kept without a job.
    Ignored,
    Known(DeliveryState),
    /// It was there and given up; its job waits again.
    Requeued,
}

/// A stored delivery, without its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    pub id: String,
    pub event: String,
    pub action: Option<String>,
    /// The repository it is about, in lower case.
    pub repo: Option<RepoName>,
    pub number: Option<ItemNumber>,
    pub state: DeliveryState,
    pub reason: Option<String>,
    pub received_at: Timestamp,
    pub finished_at: Option<Timestamp>,
}

/// Which deliveries to list; `None` is any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeliveryFilter {
    pub state: Option<DeliveryState>,
    pub event: Option<String>,
    pub repo: Option<RepoName>,
    /// Received before that moment, or at it with a lesser id: the last one of the page before.
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
    /// Queues a delivery again whatever has become of it, with this job if it never had one; `false`
    /// when its job has not ended yet, and then nothing is changed.
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

    /// The body of a delivery as it came; `None` when it is not known, or so old that its body was thrown away.
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

    /// Deliveries, the latest first.
    pub async fn list(self, filter: &DeliveryFilter, limit: u32) -> Result<Vec<Delivery>, StoreError> {
        let conditions = filter.conditions();
        let leader = self.rarest(&conditions).await?;
        Ok(on_pool!(self.pool, |db| {
            // Only the conditions that there are: one that may be null keeps every index from being used. A condition on
            // `event || ''` cannot be looked up, so that the rarest one is.
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

    /// Which of the conditions the fewest deliveries meet, as far as that is counted: SQLite does not know, and reads all
    /// of another one's to find what two have in common.
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

/// As far as deliveries are counted to choose an index.
const COUNTED: i64 = 5_000;

impl DeliveryFilter {
    /// The columns that have to be equal to something. Of those that are as frequent as can be told the first leads.
    fn conditions(&self) -> Vec<(&'static str, String)> {
        let repo = self.repo.as_ref().map(|repo| ("repo", repo.key()));
        let event = self.event.as_deref().map(|event| ("event", storable(event).into_owned()));
        let state = self.state.map(|state| ("state", state.as_str().to_owned()));
        [repo, event, state].into_iter().flatten().collect()
    }
}

/// The state of a delivery, which nobody else changes until the transaction ends. SQLite has one writer
/// at a time anyway.
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
