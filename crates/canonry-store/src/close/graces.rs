//! Announced closes: items that are closed at a set time unless a person objects, and their results.

use canonry_boxed::boxed;
use canonry_domain::{ContentVersion, ItemNumber, ItemType, Login, text_enum};
use jiff::Timestamp;

use crate::close::runs::{CloseRunId, NewPlan, NewPlanRow, insert_plan};
use crate::corpus::items::ItemKeys;
use crate::corpus::repos::{Repo, RepoId};
use crate::engine::facets::CloseStore;
use crate::engine::row_values::{micros, storable};
use crate::engine::rows::from_row;
use crate::engine::transaction::{StoreError, on_pool, on_tx};

text_enum! {
    pub enum GraceState: "a state of a grace" {
        /// The grace runs, or it is over and the close is still to come.
        Waiting = "waiting",
        /// A person or a check ended it, and the item stays open.
        Cancelled = "cancelled",
        Closed = "closed",
        /// A rule kept the item open at the end of the grace.
        Refused = "refused",
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewGrace<'a> {
    /// The target has the same type.
    pub item_type: ItemType,
    pub number: ItemNumber,
    pub target: ItemNumber,
    /// The triage record that announced the close; `None` for a maintainer's ruling.
    pub triage_id: Option<i64>,
    pub comment_key: Option<&'a str>,
    pub approved_by: Option<&'a Login>,
    /// The version of the item's text that the grace is about.
    pub content_version: ContentVersion,
    pub began_at: Timestamp,
    pub due_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grace {
    /// A later grace has a greater key.
    pub id: i64,
    pub repo: Repo,
    pub item_type: ItemType,
    pub number: ItemNumber,
    pub target: ItemNumber,
    pub triage_id: Option<i64>,
    pub comment_key: Option<String>,
    pub approved_by: Option<Login>,
    /// The version of the item's text that the grace is about.
    pub content_version: ContentVersion,
    pub began_at: Timestamp,
    pub due_at: Timestamp,
    pub state: GraceState,
    /// Why the grace was cancelled or refused; for an overdue one, what it waits for.
    pub reason: Option<String>,
    pub plan: Option<CloseRunId>,
    pub ended_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnouncedClose {
    pub repo: Repo,
    pub item_type: ItemType,
    pub number: ItemNumber,
}

macro_rules! graces {
    ($rest:literal) => {
        concat!(
            "SELECT g.id, g.repo_id, r.github_id, r.name, i.type, i.number, t.number AS target, g.triage_id, g.comment_key,
                g.approved_by, g.content_version, g.began_at, g.due_at, g.state, g.reason, g.close_run_id, g.ended_at
            FROM graces g JOIN repos r ON r.id = g.repo_id JOIN items i ON i.id = g.item_id
            JOIN items t ON t.id = g.target_item_id ",
            $rest
        )
    };
}

#[boxed]
impl CloseStore<'_> {
    /// Begins a grace. `false` if nothing was written: the item has a waiting grace, or both this grace and an
    /// earlier one are announced, and an item gets only one announced grace.
    pub async fn begin_grace(self, repo: RepoId, new: &NewGrace<'_>) -> Result<bool, StoreError> {
        let mut tx = self.pool.begin().await?;
        tx.lock_items_of(repo).await?;
        let keys = ItemKeys::read(&mut tx, repo, [new.number, new.target]).await?;
        let (item, target) = (keys.id(new.item_type, new.number)?, keys.id(new.item_type, new.target)?);
        let insert = "INSERT INTO graces (repo_id, item_id, target_item_id, triage_id, comment_key, approved_by,
                content_version, began_at, due_at, state)
            SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, 'waiting' FROM repos p WHERE p.id = $1
            AND NOT ($4 IS NOT NULL AND EXISTS (SELECT 1 FROM graces o WHERE o.item_id = $2 AND o.triage_id IS NOT NULL))
            ON CONFLICT DO NOTHING";
        let begun = on_tx!(&mut tx, |db| {
            sqlx::query(insert)
                .bind(repo.0)
                .bind(item)
                .bind(target)
                .bind(new.triage_id)
                .bind(new.comment_key)
                .bind(new.approved_by.map(Login::as_str))
                .bind(new.content_version.get())
                .bind(micros(new.began_at))
                .bind(micros(new.due_at))
                .execute(db)
                .await?
                .rows_affected()
        });
        tx.commit().await?;
        Ok(begun == 1)
    }

    /// Ends a waiting grace; `false` if it has already ended, and then the first result stays.
    pub async fn end_grace(
        self,
        id: i64,
        state: GraceState,
        reason: Option<&str>,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let update = "UPDATE graces SET state = $2, reason = $3, ended_at = $4 WHERE id = $1 AND state = 'waiting'";
        let ended = on_pool!(self.pool, |db| {
            let query = sqlx::query(update).bind(id).bind(state.as_str()).bind(reason.map(storable));
            query.bind(micros(now)).execute(db).await?.rows_affected()
        });
        Ok(ended == 1)
    }

    /// Records what an overdue grace waits for; `None` if it waits for nothing any more.
    pub async fn note_grace(self, id: i64, waits_for: Option<&str>) -> Result<(), StoreError> {
        let update = "UPDATE graces SET reason = $2 WHERE id = $1 AND state = 'waiting'";
        on_pool!(self.pool, |db| {
            sqlx::query(update).bind(id).bind(waits_for.map(storable)).execute(db).await?;
        });
        Ok(())
    }

    /// Writes the plan that closes the item of a grace and links the two; `None` if the grace has ended or already
    /// has a plan, and then nothing is written.
    pub async fn plan_grace(
        self,
        id: i64,
        repo: RepoId,
        plan: &NewPlan<'_>,
        row: &NewPlanRow,
        now: Timestamp,
    ) -> Result<Option<CloseRunId>, StoreError> {
        let mut tx = self.pool.begin().await?;
        tx.lock_items_of(repo).await?;
        let waits = "SELECT count(*) FROM graces WHERE id = $1 AND state = 'waiting' AND close_run_id IS NULL";
        let waits: i64 = on_tx!(&mut tx, |db| sqlx::query_scalar(waits).bind(id).fetch_one(db).await?);
        if waits == 0 {
            tx.rollback().await?;
            return Ok(None);
        }
        let run = insert_plan(&mut tx, repo, plan, std::slice::from_ref(row), now).await?;
        on_tx!(&mut tx, |db| {
            let update = sqlx::query("UPDATE graces SET close_run_id = $2 WHERE id = $1").bind(id).bind(run.get());
            update.execute(db).await?;
        });
        tx.commit().await?;
        Ok(Some(run))
    }

    /// Unlinks the plan from a waiting grace, so that a new one can be made.
    pub async fn drop_grace_plan(self, id: i64, plan: CloseRunId) -> Result<(), StoreError> {
        let update = "UPDATE graces SET close_run_id = NULL WHERE id = $1 AND state = 'waiting' AND close_run_id = $2";
        on_pool!(self.pool, |db| {
            sqlx::query(update).bind(id).bind(plan.get()).execute(db).await?;
        });
        Ok(())
    }

    pub async fn grace(self, id: i64) -> Result<Option<Grace>, StoreError> {
        let query = graces!("WHERE g.id = $1");
        Ok(on_pool!(self.pool, |db| sqlx::query_as(query).bind(id).fetch_optional(db).await?))
    }

    pub async fn grace_of_plan(self, plan: CloseRunId) -> Result<Option<Grace>, StoreError> {
        let query = graces!("WHERE g.close_run_id = $1 ORDER BY g.id DESC LIMIT 1");
        Ok(on_pool!(self.pool, |db| sqlx::query_as(query).bind(plan.get()).fetch_optional(db).await?))
    }

    /// Returns all graces of an item, newest first.
    pub async fn graces_of_item(
        self,
        repo: RepoId,
        item_type: ItemType,
        number: ItemNumber,
    ) -> Result<Vec<Grace>, StoreError> {
        let query = graces!("WHERE i.repo_id = $1 AND i.type = $2 AND i.number = $3 ORDER BY g.id DESC");
        Ok(on_pool!(self.pool, |db| {
            sqlx::query_as(query).bind(repo.0).bind(item_type.as_str()).bind(number.get()).fetch_all(db).await?
        }))
    }

    pub async fn waiting_grace(
        self,
        repo: RepoId,
        item_type: ItemType,
        number: ItemNumber,
    ) -> Result<Option<Grace>, StoreError> {
        let graces = self.graces_of_item(repo, item_type, number).await?;
        Ok(graces.into_iter().find(|grace| grace.state == GraceState::Waiting))
    }

    /// Returns all waiting graces of one repository or of all: first those that maintainers ruled, then by due time.
    pub async fn waiting_graces(self, repo: Option<RepoId>) -> Result<Vec<Grace>, StoreError> {
        let query = graces!(
            "WHERE g.state = 'waiting' AND ($1 IS NULL OR g.repo_id = $1)
            ORDER BY CASE WHEN g.approved_by IS NULL THEN 1 ELSE 0 END, g.due_at, g.id"
        );
        Ok(on_pool!(self.pool, |db| sqlx::query_as(query).bind(repo.map(|repo| repo.0)).fetch_all(db).await?))
    }

    /// Returns the waiting graces of a repository, ordered by due time; `after` is the due time and key of the last
    /// one of the previous page.
    pub async fn next_graces(
        self,
        repo: RepoId,
        after: Option<(Timestamp, i64)>,
        limit: u32,
    ) -> Result<Vec<Grace>, StoreError> {
        let query = graces!(
            "WHERE g.repo_id = $1 AND g.state = 'waiting' AND (g.due_at, g.id) > ($2, $3) ORDER BY g.due_at, g.id LIMIT $4"
        );
        let (due, id) = after.map_or((i64::MIN, i64::MIN), |(due, id)| (micros(due), id));
        Ok(on_pool!(self.pool, |db| {
            sqlx::query_as(query).bind(repo.0).bind(due).bind(id).bind(i64::from(limit)).fetch_all(db).await?
        }))
    }

    /// Returns the graces that ended without a close since then.
    pub async fn graces_ended_since(self, since: Timestamp) -> Result<Vec<Grace>, StoreError> {
        let query = graces!("WHERE g.state IN ('cancelled', 'refused') AND g.ended_at >= $1 ORDER BY g.id");
        Ok(on_pool!(self.pool, |db| sqlx::query_as(query).bind(micros(since)).fetch_all(db).await?))
    }

    /// Returns the last grace of each item of a type.
    pub async fn last_graces(self, repo: RepoId, item_type: ItemType) -> Result<Vec<Grace>, StoreError> {
        let query = graces!(
            "WHERE g.repo_id = $1 AND i.type = $2
            AND NOT EXISTS (SELECT 1 FROM graces o WHERE o.item_id = g.item_id AND o.id > g.id) ORDER BY g.id"
        );
        Ok(on_pool!(self.pool, |db| {
            sqlx::query_as(query).bind(repo.0).bind(item_type.as_str()).fetch_all(db).await?
        }))
    }

    /// Returns the items whose suggestion announced a close since then and that have no grace.
    pub async fn announced_without_grace(self, since: Timestamp) -> Result<Vec<AnnouncedClose>, StoreError> {
        let query = "SELECT DISTINCT r.id AS repo_id, r.github_id, r.name, i.type, i.number FROM triage_actions a
            JOIN triage_records d ON d.id = a.triage_id JOIN items i ON i.id = d.item_id JOIN repos r ON r.id = i.repo_id
            WHERE a.reason LIKE 'grace:%' AND a.created_at >= $1
            AND NOT EXISTS (SELECT 1 FROM graces g WHERE g.item_id = i.id) ORDER BY r.id, i.number, i.type";
        Ok(on_pool!(self.pool, |db| sqlx::query_as(query).bind(micros(since)).fetch_all(db).await?))
    }
}

from_row!(AnnouncedClose { repo: flatten, item_type: "type", number });
from_row! {
    Grace {
        id, repo: flatten, item_type: "type", number, target, triage_id, comment_key, approved_by, content_version,
        began_at, due_at, state, reason, plan: "close_run_id", ended_at,
    }
}
