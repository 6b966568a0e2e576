//! What people say about the rows of a plan, and what makes a plan too old to be applied.

use canonry_domain::{ItemNumber, ItemType, Login};
use jiff::Timestamp;
use sqlx::QueryBuilder;

use crate::close_runs::{CloseRun, CloseRunId};
use crate::items::NUMBERS_PER_STATEMENT;
use crate::open::Store;
use crate::repos::RepoId;
use crate::row_values::micros;
use crate::transaction::{StoreError, Transaction, on_pool, on_tx};

impl Store {
    /// Notes a person's word on rows of a plan that close: yes, no, or none after all. How many rows it was noted on:
    /// those that were dealt with already are left as they are, and the run that applies the plan hears of it too. Who
    /// says so is noted where it is known.
    pub async fn set_approved(
        &self,
        plan: CloseRunId,
        item_type: ItemType,
        numbers: &[ItemNumber],
        approved: Option<bool>,
        by: Option<&Login>,
        now: Timestamp,
    ) -> Result<usize, StoreError> {
        let Some(run) = self.plan(plan).await? else { return Ok(0) };
        let mut tx = self.pool.begin().await?;
        tx.lock_items_of(run.repo.id).await?;
        let mut noted = 0;
        for batch in numbers.chunks(NUMBERS_PER_STATEMENT) {
            noted += note_word(&mut tx, &run, WordOn::Items(item_type, batch), approved, by, now).await?;
        }
        tx.commit().await?;
        Ok(noted)
    }

    /// The same for every row of a plan that nobody has said anything of; or, to take words back, for every row. With a
    /// type, for its rows alone.
    pub async fn set_all_approved(
        &self,
        plan: CloseRunId,
        item_type: Option<ItemType>,
        approved: Option<bool>,
        by: Option<&Login>,
        now: Timestamp,
    ) -> Result<usize, StoreError> {
        let Some(run) = self.plan(plan).await? else { return Ok(0) };
        let mut tx = self.pool.begin().await?;
        tx.lock_items_of(run.repo.id).await?;
        let on = if approved.is_some() { WordOn::Undecided(item_type) } else { WordOn::Decided(item_type) };
        let noted = note_word(&mut tx, &run, on, approved, by, now).await?;
        tx.commit().await?;
        Ok(noted)
    }

    /// What a person has said of one row of a plan, as it is right now. A row that is not there is an error, and no word.
    pub async fn word_on_row(
        &self,
        plan: CloseRunId,
        item_type: ItemType,
        number: ItemNumber,
    ) -> Result<Option<bool>, StoreError> {
        let query = "SELECT c.approved FROM close_runs p JOIN items i ON i.repo_id = p.repo_id
            JOIN close_run_items c ON c.run_id = p.id AND c.item_id = i.id
            WHERE p.id = $1 AND i.type = $2 AND i.number = $3";
        Ok(on_pool!(&self.pool, |db| {
            let query = sqlx::query_scalar(query).bind(plan.get()).bind(item_type.as_str());
            query.bind(number.get()).fetch_one(db).await?
        }))
    }

    /// What a person last said of an item in the newest plan that closes it and that somebody spoke about; `None` when
    /// nobody has.
    pub async fn last_word_on(
        &self,
        repo: RepoId,
        item_type: ItemType,
        number: ItemNumber,
    ) -> Result<Option<bool>, StoreError> {
        let query = "SELECT c.approved FROM close_run_items c JOIN close_runs p ON p.id = c.run_id
            JOIN items i ON i.id = c.item_id
            WHERE i.repo_id = $1 AND i.type = $2 AND i.number = $3 AND p.mode = 'plan' AND c.action = 'close'
            AND c.approved IS NOT NULL ORDER BY p.id DESC LIMIT 1";
        Ok(on_pool!(&self.pool, |db| {
            sqlx::query_scalar(query)
                .bind(repo.0)
                .bind(item_type.as_str())
                .bind(number.get())
                .fetch_optional(db)
                .await?
        }))
    }

    /// A newer plan that names an item which this plan closes, or closes what this plan closes others onto. Plans that
    /// graces made for one item each do not count: what they close is seen by the checks before each write.
    pub async fn newer_plan_of_items(&self, plan: CloseRunId) -> Result<Option<CloseRunId>, StoreError> {
        // Three ways to meet, each by an index and at an end with the first that is found; pages ask this too.
        let query = "SELECT n.id FROM close_runs p JOIN close_runs n ON n.repo_id = p.repo_id AND n.mode = 'plan' AND n.id > p.id
            WHERE p.id = $1 AND NOT EXISTS (SELECT 1 FROM graces g WHERE g.close_run_id = n.id) AND (
                EXISTS (SELECT 1 FROM close_run_items c JOIN close_run_items m ON m.run_id = n.id AND m.item_id = c.item_id
                    WHERE c.run_id = p.id AND c.action = 'close')
                OR EXISTS (SELECT 1 FROM close_run_items c JOIN close_run_items m ON m.run_id = n.id AND m.target_item_id = c.item_id
                    WHERE c.run_id = p.id AND c.action = 'close')
                OR EXISTS (SELECT 1 FROM close_run_items c JOIN close_run_items m ON m.run_id = n.id AND m.item_id = c.target_item_id
                    WHERE c.run_id = p.id AND c.action = 'close'))
            ORDER BY n.id DESC LIMIT 1";
        let newest: Option<i64> =
            on_pool!(&self.pool, |db| sqlx::query_scalar(query).bind(plan.get()).fetch_optional(db).await?);
        Ok(newest.map(CloseRunId::new))
    }

    /// Whether an item is to be closed as a duplicate of another one: its grace waits for that, or a plan of since then has
    /// such a row that nobody excluded and that was not carried out yet.
    pub async fn is_closing_towards(
        &self,
        repo: RepoId,
        item_type: ItemType,
        (item, target): (ItemNumber, ItemNumber),
        since: Timestamp,
    ) -> Result<bool, StoreError> {
        let query = "SELECT EXISTS (
                SELECT 1 FROM items i JOIN items t ON t.repo_id = i.repo_id AND t.type = i.type
                WHERE i.repo_id = $1 AND i.type = $2 AND i.number = $3 AND t.number = $4 AND (
                    EXISTS (SELECT 1 FROM graces g
                        WHERE g.item_id = i.id AND g.target_item_id = t.id AND g.state = 'waiting')
                    OR EXISTS (SELECT 1 FROM close_run_items c JOIN close_runs p ON p.id = c.run_id
                        WHERE c.item_id = i.id AND c.target_item_id = t.id AND c.action = 'close'
                        AND (c.approved IS NULL OR c.approved) AND p.mode = 'plan' AND p.created_at >= $5
                        AND NOT EXISTS (SELECT 1 FROM close_runs a JOIN close_run_items d ON d.run_id = a.id
                            WHERE a.plan_id = p.id AND d.item_id = i.id AND d.result IS NOT NULL))))";
        Ok(on_pool!(&self.pool, |db| {
            let query = sqlx::query_scalar(query).bind(repo.0).bind(item_type.as_str()).bind(item.get());
            query.bind(target.get()).bind(micros(since)).fetch_one(db).await?
        }))
    }

    /// An override that was given or taken back since the plan was made, and that names an item which the plan closes
    /// or closes others onto.
    pub async fn newer_override_of_items(&self, plan: CloseRunId) -> Result<Option<i64>, StoreError> {
        let query = "SELECT max(o.id) FROM close_runs p
            JOIN overrides o ON o.repo_id = p.repo_id AND (o.created_at > p.created_at OR o.removed_at > p.created_at)
            JOIN items i ON i.repo_id = o.repo_id AND i.type = o.type AND i.number IN (o.item_number, o.other_number)
            WHERE p.id = $1 AND (
                EXISTS (SELECT 1 FROM close_run_items c WHERE c.run_id = p.id AND c.item_id = i.id AND c.action = 'close')
                OR EXISTS (SELECT 1 FROM close_run_items c
                    WHERE c.run_id = p.id AND c.target_item_id = i.id AND c.action = 'close'))";
        Ok(on_pool!(&self.pool, |db| sqlx::query_scalar(query).bind(plan.get()).fetch_one(db).await?))
    }
}

/// Which rows a word is on.
#[derive(Clone, Copy)]
enum WordOn<'a> {
    /// Those of these items.
    Items(ItemType, &'a [ItemNumber]),
    /// Those without a word, of one type or of both.
    Undecided(Option<ItemType>),
    /// Those with one.
    Decided(Option<ItemType>),
}

async fn note_word(
    tx: &mut Transaction,
    plan: &CloseRun,
    on: WordOn<'_>,
    approved: Option<bool>,
    by: Option<&Login>,
    now: Timestamp,
) -> Result<usize, StoreError> {
    let runs: Vec<i64> = on_tx!(tx, |db| {
        let mut query = QueryBuilder::new("UPDATE close_run_items SET approved = ");
        query.push_bind(approved).push(", approved_at = ").push_bind(approved.map(|_| micros(now)));
        query.push(", approved_by = ").push_bind(approved.and(by).map(Login::as_str));
        query.push(" WHERE action = 'close' AND run_id IN (SELECT id FROM close_runs WHERE id = ");
        query.push_bind(plan.id.get()).push(" OR (mode = 'apply' AND plan_id = ").push_bind(plan.id.get());
        query.push(
            ")) AND NOT EXISTS (SELECT 1 FROM close_run_items a JOIN close_runs r ON r.id = a.run_id \
            WHERE r.mode = 'apply' AND a.item_id = close_run_items.item_id AND a.result IS NOT NULL \
            AND r.plan_id = ",
        );
        query.push_bind(plan.id.get()).push(")");
        match on {
            WordOn::Items(item_type, numbers) => {
                query.push(" AND item_id IN (SELECT id FROM items WHERE repo_id = ").push_bind(plan.repo.id.0);
                query.push(" AND type = ").push_bind(item_type.as_str()).push(" AND number IN (");
                let mut listed = query.separated(", ");
                for number in numbers {
                    listed.push_bind(number.get());
                }
                query.push("))");
            }
            WordOn::Undecided(item_type) | WordOn::Decided(item_type) => {
                let decided = if matches!(on, WordOn::Undecided(_)) { "IS NULL" } else { "IS NOT NULL" };
                query.push(" AND approved ").push(decided);
                if let Some(item_type) = item_type {
                    query.push(" AND item_id IN (SELECT id FROM items WHERE repo_id = ").push_bind(plan.repo.id.0);
                    query.push(" AND type = ").push_bind(item_type.as_str()).push(")");
                }
            }
        }
        query.push(" RETURNING run_id");
        query.build_query_scalar().fetch_all(db).await?
    });
    Ok(runs.into_iter().filter(|run| *run == plan.id.get()).count())
}
