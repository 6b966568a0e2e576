//! Writes to GitHub: stored before they are sent, processed by one process at a time.

use canonry_boxed::boxed;
use canonry_domain::{ItemNumber, ItemType, WriteKey, WriteKind, WriteOrigin, WriteSource, text_enum};
use jiff::Timestamp;
use serde_json::Value;
use sqlx::types::Json;

use crate::corpus::repos::{Repo, RepoId};
use crate::engine::facets::OutboxStore;
use crate::engine::ids::store_id;
use crate::engine::row_values::{micros, moment};
use crate::engine::rows::{from_row, read_row};
use crate::engine::transaction::{StoreError, Transaction, on_pool, on_tx};

store_id! {
    /// The store's own key of an entry.
    OutboxId
}

text_enum! {
    pub enum OutboxState: "a state of a write" {
        Pending = "pending",
        Sent = "sent",
        /// A rule, a check or GitHub refused it.
        Refused = "refused",
        Failed = "failed",
    }
}

text_enum! {
    /// Which writes are sent first.
    pub enum WritePriority: "a priority of a write" {
        /// It reopens an item, retracts something that was posted, or answers the person who asked for that.
        Correction = "correction",
        Ordinary = "ordinary",
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct NewOutboxEntry<'a> {
    pub repo: RepoId,
    pub number: ItemNumber,
    pub kind: WriteKind,
    /// The idempotency key: two writes with the same key are one write.
    pub key: &'a WriteKey,
    pub payload: &'a Value,
    /// Why the write is refused without an attempt; it is stored anyway, so that people see it.
    pub refused: Option<&'a str>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct OutboxEntry {
    /// Entries of one item are sent in the order of this key.
    pub id: OutboxId,
    /// The target repository, with its current name.
    pub repo: Repo,
    pub number: ItemNumber,
    pub kind: WriteKind,
    pub key: String,
    pub source: WriteSource,
    pub payload: Value,
    pub priority: WritePriority,
    pub state: OutboxState,
    pub attempts: i64,
    /// Where a worker resumes; `None` before the first step.
    pub step: Option<Value>,
    /// The earliest time of the next attempt.
    pub not_before: Timestamp,
    /// GitHub's answer, such as the comment's id.
    pub answer: Option<Value>,
    /// Why the write was refused or failed, or what it waits for.
    pub reason: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl OutboxEntry {
    pub fn write_key(&self) -> WriteKey {
        WriteKey { text: self.key.clone(), source: self.source.clone() }
    }

    pub fn is_sent_or_pending(&self) -> bool {
        matches!(self.state, OutboxState::Sent | OutboxState::Pending)
    }
}

/// Which entries a worker asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutboxScope {
    All,
    Item(RepoId, ItemNumber),
    /// Writes that may be sent without supervision: those of triage and reviews, answers to people, and notices of
    /// the breaker. Closes and reopenings are never among them. A pending close or reopening of an item delays the
    /// writes of triage and reviews about that item.
    Unattended,
}

/// The right to work on one entry, until the entry ends or another worker takes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutboxLease<'a> {
    pub id: OutboxId,
    pub owner: &'a str,
    /// No other worker may take the entry before this time.
    pub until: Timestamp,
}

/// The answer to a request to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reservation {
    /// The step is stored and the write is counted: send now.
    Go,
    /// The rate limit allows the write at this time; nothing was stored.
    Later(Timestamp),
    /// Another worker has taken over; nothing was stored.
    LeaseLost,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OutboxEnd<'a> {
    Sent(&'a Value),
    Refused(&'a str),
    Failed(&'a str),
}

/// Any number that nothing else on the server uses as an advisory lock. The lock makes senders count one at a time.
const PACE_LOCK: i64 = 0x0043_414e_4f4e_5250;

macro_rules! entries {
    ($rest:literal) => {
        concat!(
            "SELECT o.id, o.repo_id, r.github_id, r.name, o.number, o.kind, o.idempotency_key, o.origin,
                o.item_type, o.origin_record, o.origin_commit, o.payload, o.priority, o.state, o.attempts,
                o.step, o.not_before, o.answer, o.reason, o.created_at, o.updated_at
            FROM outbox o JOIN repos r ON r.id = o.repo_id ",
            $rest
        )
    };
}

/// Answers to people and notices of the breaker.
macro_rules! answer_origins {
    () => {
        "'mention_answer', 'dismissal_answer', 'ruling_answer', 'breaker_notice'"
    };
}

/// Writes that may be sent without supervision.
macro_rules! unattended_origins {
    () => {
        concat!(
            "'triage_comment', 'triage_edit', 'triage_label', 'triage_unlabel', 'grace_cancelled', 'ruling_edit',
            'ruling_unlabel', 'review_post', 'review_summary', 'review_summary_edit', 'review_check', 'review_check_left',
            'review_resolve', 'review_settle', ",
            answer_origins!()
        )
    };
}

/// The SQL condition for a pending entry `o` of a scope that can be the next one. The parameters are the repository,
/// the number, and whether only unattended writes count. Answers to people and notices of the breaker wait for
/// nothing: an entry that waits for the end of a pause would otherwise delay the answer to the person who ended it.
macro_rules! next_in_scope {
    ($repo:literal, $number:literal, $unattended:literal) => {
        concat!(
            "o.state = 'pending' AND (",
            $repo,
            " IS NULL OR o.repo_id = ",
            $repo,
            ") AND (",
            $number,
            " IS NULL OR o.number = ",
            $number,
            ") AND (NOT ",
            $unattended,
            " OR o.origin IN (",
            unattended_origins!(),
            ")) AND (o.origin IN (",
            answer_origins!(),
            ") OR NOT EXISTS (SELECT 1 FROM outbox e WHERE e.repo_id = o.repo_id AND e.number = o.number
                    AND e.state = 'pending' AND e.id < o.id))"
        )
    };
}

#[boxed]
impl OutboxStore<'_> {
    /// Stores a write, or returns the write already stored under its key.
    pub async fn enqueue(self, new: &NewOutboxEntry<'_>, now: Timestamp) -> Result<OutboxEntry, StoreError> {
        self.enqueue_as(new, WritePriority::Ordinary, now).await
    }

    /// Like `enqueue`, with a priority.
    pub async fn enqueue_as(
        self,
        new: &NewOutboxEntry<'_>,
        priority: WritePriority,
        now: Timestamp,
    ) -> Result<OutboxEntry, StoreError> {
        let mut tx = self.pool.begin().await?;
        let entry = enqueue(&mut tx, new, priority, now).await?;
        tx.commit().await?;
        Ok(entry)
    }

    /// Leases the next due entry until `until`, corrections first. Of each item only the first pending entry can be
    /// leased: later entries wait for it, except answers to people and notices of the breaker.
    pub async fn claim(
        self,
        scope: OutboxScope,
        owner: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Option<OutboxEntry>, StoreError> {
        let (repo, number, unattended) = scope.parts();
        let find = concat!(
            "SELECT o.id FROM outbox o WHERE o.not_before <= $1 AND (o.lease_until IS NULL OR o.lease_until <= $1) AND ",
            next_in_scope!("$2", "$3", "$4"),
            " ORDER BY CASE o.priority WHEN 'correction' THEN 0 ELSE 1 END, o.not_before, o.id LIMIT 1"
        );
        let take = "UPDATE outbox SET lease_owner = $3, lease_until = $4, updated_at = $2
            WHERE id = $1 AND state = 'pending' AND (lease_until IS NULL OR lease_until <= $2)";
        loop {
            let found: Option<i64> = on_pool!(self.pool, |db| {
                let find = sqlx::query_scalar(find).bind(micros(now)).bind(repo).bind(number);
                find.bind(unattended).fetch_optional(db).await?
            });
            let Some(id) = found else { return Ok(None) };
            let taken = on_pool!(self.pool, |db| {
                let take = sqlx::query(take).bind(id).bind(micros(now)).bind(owner).bind(micros(until));
                take.execute(db).await?.rows_affected()
            });
            // Another worker may have been faster. In each round some worker gets an entry, so the loop ends.
            if taken == 1 {
                return self.get(OutboxId(id)).await;
            }
        }
    }

    /// Returns when the next entry can be leased, with the leases of other workers; `None` if no entry is pending.
    pub async fn next_moment(self, scope: OutboxScope) -> Result<Option<Timestamp>, StoreError> {
        let (repo, number, unattended) = scope.parts();
        let query = concat!(
            "SELECT min(CASE WHEN o.lease_until > o.not_before THEN o.lease_until ELSE o.not_before END)
            FROM outbox o WHERE ",
            next_in_scope!("$1", "$2", "$3")
        );
        let next: Option<i64> = on_pool!(self.pool, |db| sqlx::query_scalar(query)
            .bind(repo)
            .bind(number)
            .bind(unattended)
            .fetch_one(db)
            .await?);
        next.map(moment).transpose()
    }

    /// Whether another worker is sending the next entry now.
    pub async fn is_sending(self, scope: OutboxScope, now: Timestamp) -> Result<bool, StoreError> {
        let (repo, number, unattended) = scope.parts();
        let query = concat!(
            "SELECT EXISTS (SELECT 1 FROM outbox o WHERE o.lease_until > $4 AND ",
            next_in_scope!("$1", "$2", "$3"),
            ")"
        );
        Ok(on_pool!(self.pool, |db| {
            let query = sqlx::query_scalar(query).bind(repo).bind(number).bind(unattended);
            query.bind(micros(now)).fetch_one(db).await?
        }))
    }

    /// Returns the owners of current leases, each once.
    pub async fn lease_owners(self, now: Timestamp) -> Result<Vec<String>, StoreError> {
        let query = "SELECT DISTINCT lease_owner FROM outbox
            WHERE state = 'pending' AND lease_owner IS NOT NULL AND lease_until > $1";
        Ok(on_pool!(self.pool, |db| sqlx::query_scalar(query).bind(micros(now)).fetch_all(db).await?))
    }

    /// Ends the leases of a process that has ended. Its entries keep their steps.
    pub async fn release_leases(self, owner: &str) -> Result<u64, StoreError> {
        let update = "UPDATE outbox SET lease_owner = NULL, lease_until = NULL
            WHERE state = 'pending' AND lease_owner = $1";
        Ok(on_pool!(self.pool, |db| sqlx::query(update).bind(owner).execute(db).await?.rows_affected()))
    }

    /// Ends every outbox and close lease whose owner contains the mark of a process that is about to end.
    pub async fn release_leases_with_mark(self, mark: &str) -> Result<(), StoreError> {
        let (within, begins) = (format!("%{mark}%"), format!("{mark}%"));
        let closing = "DELETE FROM close_leases WHERE owner LIKE $1";
        let writing = "UPDATE outbox SET lease_owner = NULL, lease_until = NULL
            WHERE state = 'pending' AND lease_owner LIKE $1";
        on_pool!(self.pool, |db| {
            sqlx::query(closing).bind(within).execute(db).await?;
            sqlx::query(writing).bind(begins).execute(db).await?;
        });
        Ok(())
    }

    /// Stores a step and extends the lease; `false` if another worker has taken over and nothing was stored.
    pub async fn record_step(self, lease: OutboxLease<'_>, step: &Value, now: Timestamp) -> Result<bool, StoreError> {
        let update = "UPDATE outbox SET step = $4, lease_until = $3, updated_at = $5
            WHERE id = $1 AND lease_owner = $2 AND state = 'pending'";
        let changed = on_pool!(self.pool, |db| {
            let update = sqlx::query(update).bind(lease.id.0).bind(lease.owner).bind(micros(lease.until));
            update.bind(Json(step)).bind(micros(now)).execute(db).await?.rows_affected()
        });
        Ok(changed == 1)
    }

    /// Stores the step before a send and counts the send, if the rate limit allows it now.
    ///
    /// `pace` gets the times of the sends since `window` and returns when the next send is allowed. Counting and
    /// asking are one transaction, so that several processes share one rate limit.
    pub async fn reserve_send(
        self,
        lease: OutboxLease<'_>,
        step: &Value,
        now: Timestamp,
        window: Timestamp,
        pace: impl FnOnce(&[Timestamp]) -> Timestamp + Send,
    ) -> Result<Reservation, StoreError> {
        let mut tx = self.pool.begin().await?;
        if let Transaction::Postgres(transaction) = &mut tx {
            sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(PACE_LOCK).execute(&mut **transaction).await?;
        }
        let recent = "SELECT sent_at FROM content_writes WHERE sent_at >= $1";
        let update = "UPDATE outbox SET step = $4, lease_until = $3, attempts = attempts + 1, updated_at = $5
            WHERE id = $1 AND lease_owner = $2 AND state = 'pending'";
        let count = "INSERT INTO content_writes (sent_at) VALUES ($1)";
        let forget = "DELETE FROM content_writes WHERE sent_at < $1";
        on_tx!(&mut tx, |db| {
            let recent: Vec<i64> = sqlx::query_scalar(recent).bind(micros(window)).fetch_all(&mut *db).await?;
            let recent: Vec<Timestamp> = recent.into_iter().map(moment).collect::<Result<_, _>>()?;
            let allowed = pace(&recent);
            if allowed > now {
                return Ok(Reservation::Later(allowed));
            }
            let update = sqlx::query(update).bind(lease.id.0).bind(lease.owner).bind(micros(lease.until));
            let changed = update.bind(Json(step)).bind(micros(now)).execute(&mut *db).await?.rows_affected();
            if changed != 1 {
                return Ok(Reservation::LeaseLost);
            }
            sqlx::query(count).bind(micros(now)).execute(&mut *db).await?;
            sqlx::query(forget).bind(micros(window)).execute(&mut *db).await?;
        });
        tx.commit().await?;
        Ok(Reservation::Go)
    }

    /// Counts a write that is sent together with one that was already counted and allowed, so that later writes keep
    /// the rate limit.
    pub async fn count_content_write(self, now: Timestamp) -> Result<(), StoreError> {
        on_pool!(self.pool, |db| {
            sqlx::query("INSERT INTO content_writes (sent_at) VALUES ($1)").bind(micros(now)).execute(db).await?;
        });
        Ok(())
    }

    /// Stores a step and its reason to wait, and releases the lease until `not_before`; `false` if another worker has
    /// taken over and nothing was stored.
    pub async fn postpone(
        self,
        lease: OutboxLease<'_>,
        step: &Value,
        not_before: Timestamp,
        reason: Option<&str>,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let update =
            "UPDATE outbox SET step = $3, not_before = $4, reason = $5, lease_owner = NULL, lease_until = NULL,
            updated_at = $6 WHERE id = $1 AND lease_owner = $2 AND state = 'pending'";
        let changed = on_pool!(self.pool, |db| {
            let update = sqlx::query(update).bind(lease.id.0).bind(lease.owner).bind(Json(step));
            let update = update.bind(micros(not_before)).bind(reason).bind(micros(now));
            update.execute(db).await?.rows_affected()
        });
        Ok(changed == 1)
    }

    /// Ends an entry for good; `false` if another worker has taken over and nothing was stored.
    pub async fn finish(self, lease: OutboxLease<'_>, end: OutboxEnd<'_>, now: Timestamp) -> Result<bool, StoreError> {
        let (state, answer, reason) = match end {
            OutboxEnd::Sent(answer) => (OutboxState::Sent, Some(Json(answer)), None),
            OutboxEnd::Refused(reason) => (OutboxState::Refused, None, Some(reason)),
            OutboxEnd::Failed(reason) => (OutboxState::Failed, None, Some(reason)),
        };
        let update = "UPDATE outbox SET state = $3, answer = $4, reason = $5, step = NULL, lease_owner = NULL,
            lease_until = NULL, updated_at = $6 WHERE id = $1 AND lease_owner = $2 AND state = 'pending'";
        let changed = on_pool!(self.pool, |db| {
            let update = sqlx::query(update).bind(lease.id.0).bind(lease.owner).bind(state.as_str());
            update.bind(answer).bind(reason).bind(micros(now)).execute(db).await?.rows_affected()
        });
        Ok(changed == 1)
    }

    pub async fn get(self, id: OutboxId) -> Result<Option<OutboxEntry>, StoreError> {
        let query = entries!("WHERE o.id = $1");
        Ok(on_pool!(self.pool, |db| sqlx::query_as(query).bind(id.0).fetch_optional(db).await?))
    }

    pub async fn of_key(self, key: &str) -> Result<Option<OutboxEntry>, StoreError> {
        let query = entries!("WHERE o.idempotency_key = $1");
        Ok(on_pool!(self.pool, |db| sqlx::query_as(query).bind(key).fetch_optional(db).await?))
    }

    /// Returns all entries of an item, in sending order.
    pub async fn of_item(self, repo: RepoId, number: ItemNumber) -> Result<Vec<OutboxEntry>, StoreError> {
        let query = entries!("WHERE o.repo_id = $1 AND o.number = $2 ORDER BY o.id");
        Ok(on_pool!(self.pool, |db| sqlx::query_as(query).bind(repo.0).bind(number.get()).fetch_all(db).await?))
    }

    /// Counts the pending writes of one origin and record.
    pub async fn count_pending(self, repo: RepoId, origin: WriteOrigin, record: i64) -> Result<usize, StoreError> {
        let query = "SELECT count(*) FROM outbox
            WHERE repo_id = $1 AND state = 'pending' AND origin = $2 AND origin_record = $3";
        let count: i64 = on_pool!(self.pool, |db| {
            sqlx::query_scalar(query).bind(repo.0).bind(origin.as_str()).bind(record).fetch_one(db).await?
        });
        usize::try_from(count).map_err(StoreError::damaged)
    }
}

/// Stores a write inside the transaction that stores its reason.
pub(crate) async fn enqueue(
    tx: &mut Transaction,
    new: &NewOutboxEntry<'_>,
    priority: WritePriority,
    now: Timestamp,
) -> Result<OutboxEntry, StoreError> {
    let insert =
        "INSERT INTO outbox (repo_id, number, kind, idempotency_key, payload, state, attempts, not_before, reason,
            created_at, updated_at, priority, origin, item_type, origin_record, origin_commit)
        VALUES ($1, $2, $3, $4, $5, $6, 0, $7, $8, $7, $7, $9, $10, $11, $12, $13) ON CONFLICT (idempotency_key) DO NOTHING";
    let source = &new.key.source;
    let state = if new.refused.is_some() { OutboxState::Refused } else { OutboxState::Pending };
    let entry = on_tx!(tx, |db| {
        sqlx::query(insert)
            .bind(new.repo.0)
            .bind(new.number.get())
            .bind(new.kind.as_str())
            .bind(&new.key.text)
            .bind(Json(new.payload))
            .bind(state.as_str())
            .bind(micros(now))
            .bind(new.refused)
            .bind(priority.as_str())
            .bind(source.origin.as_str())
            .bind(source.item_type.map(ItemType::as_str))
            .bind(source.record)
            .bind(&source.commit)
            .execute(&mut *db)
            .await?;
        sqlx::query_as(entries!("WHERE o.idempotency_key = $1")).bind(&new.key.text).fetch_one(db).await?
    });
    Ok(entry)
}

impl OutboxScope {
    /// The repository, the item, and whether only unattended writes are meant.
    fn parts(self) -> (Option<i64>, Option<i64>, bool) {
        match self {
            Self::All => (None, None, false),
            Self::Item(repo, number) => (Some(repo.0), Some(number.get()), false),
            Self::Unattended => (None, None, true),
        }
    }
}

read_row!(WriteSource { origin, item_type, record: "origin_record", commit: "origin_commit" });
from_row! {
    OutboxEntry {
        id, repo: flatten, number, kind, key: "idempotency_key", source: flatten, payload, priority, state, attempts, step, not_before,
        answer, reason, created_at, updated_at,
    }
}

#[cfg(test)]
mod tests {
    use canonry_domain::{WriteArea, WriteOrigin};

    #[test]
    fn the_lists_in_sql_are_the_areas_of_the_origins() {
        let listed = |list: &str, origin: WriteOrigin| list.contains(&format!("'{origin}'"));
        for &origin in WriteOrigin::ALL {
            let (area, unattended) = (origin.area(), listed(unattended_origins!(), origin));
            assert_eq!(unattended, !matches!(area, WriteArea::Closing | WriteArea::Other), "{origin}");
            let answers = matches!(area, WriteArea::Mention | WriteArea::Breaker);
            assert_eq!(listed(answer_origins!(), origin), answers, "{origin}");
        }
    }
}
