//! Deletes all data of a repository, or the vectors of one model, a few rows in each transaction.

#[cfg(test)]
mod tests;

use canonry_domain::RepoName;
use sqlx::AssertSqlSafe;
use sqlx::types::Json;

use crate::corpus::index_changes::{IndexChange, note_index_change};
use crate::corpus::repos::RepoId;
use crate::engine::facets::MaintenanceStore;
use crate::engine::row_values::count;
use crate::engine::transaction::{StoreError, Transaction, on_pool, on_tx};

/// How the rows of a table refer to their repository.
#[derive(Debug, Clone, Copy)]
enum Of {
    /// By the repository's name, which may not be a stored one.
    Name,
    Repo,
    Item,
    Finding,
    CandidateSet,
    Triage,
}

impl Of {
    /// Returns the condition; `$1` is the name or the repository's key.
    const fn condition(self) -> &'static str {
        match self {
            Self::Name => "repo = $1",
            Self::Repo => "repo_id = $1",
            Self::Item => "item_id IN (SELECT id FROM items WHERE repo_id = $1)",
            Self::Finding => "finding_id IN (SELECT id FROM findings WHERE repo_id = $1)",
            Self::CandidateSet => {
                "set_id IN (SELECT id FROM candidate_sets WHERE item_id IN (SELECT id FROM items WHERE repo_id = $1))"
            }
            Self::Triage => {
                "triage_id IN (SELECT id FROM triage_records WHERE item_id IN (SELECT id FROM items WHERE repo_id = $1))"
            }
        }
    }
}

/// Every table with rows about repositories, except `repos`. A test compares it with the schema.
const TABLES: &[(&str, Of)] = &[
    ("items", Of::Repo),
    ("embeddings", Of::Item),
    ("token_vectors", Of::Item),
    ("intent_cards", Of::Item),
    ("boilerplate", Of::Repo),
    ("index_versions", Of::Repo),
    ("item_changes", Of::Repo),
    ("candidate_sets", Of::Item),
    ("candidate_set_members", Of::CandidateSet),
    ("judge_decisions", Of::Repo),
    ("overrides", Of::Repo),
    ("canonicals", Of::Repo),
    ("close_runs", Of::Repo),
    ("close_run_items", Of::Item),
    ("close_leases", Of::Repo),
    ("graces", Of::Repo),
    ("objections", Of::Repo),
    ("triage_records", Of::Item),
    ("triage_candidates", Of::Triage),
    ("triage_actions", Of::Triage),
    ("fix_matches", Of::Triage),
    ("triage_comment_reactions", Of::Item),
    ("outcome_events", Of::Item),
    ("issue_outcomes", Of::Repo),
    ("threshold_settings", Of::Repo),
    ("threshold_state", Of::Repo),
    ("threshold_adjustments", Of::Repo),
    ("judge_audit_runs", Of::Repo),
    ("judge_audit_run_items", Of::Item),
    ("adjudications", Of::Repo),
    ("review_runs", Of::Repo),
    ("reviews", Of::Repo),
    ("findings", Of::Repo),
    ("finding_sightings", Of::Finding),
    ("suppression_log", Of::Finding),
    ("dismissals", Of::Finding),
    ("feedback_reactions", Of::Repo),
    ("feedback_clears", Of::Repo),
    ("finding_memories", Of::Repo),
    ("posted_findings", Of::Repo),
    ("remarks", Of::Repo),
    ("llm_calls", Of::Repo),
    ("mentions", Of::Repo),
    ("brakes", Of::Repo),
    ("console_actions", Of::Repo),
    ("maintainer_lists", Of::Repo),
    ("repo_settings", Of::Repo),
    ("sync_progress", Of::Repo),
    ("etags", Of::Repo),
    ("outbox", Of::Repo),
    ("jobs", Of::Name),
    ("deliveries", Of::Name),
];

/// The steps of a purge. Tables that no step names are deleted by cascading foreign keys, which tie all of them to
/// the repository. The steps and their order only keep the transactions short.
#[derive(Debug, Clone, Copy)]
enum Part {
    /// The rows of a table that contains the repository's name.
    Named(&'static str),
    /// The rows of a table that contains the repository's key.
    Keyed(&'static str),
    /// The rows that refer to items, for a few items at a time. The items are deleted afterwards: deleting one to
    /// which a thousand others were compared would also delete all of their rows.
    OfItems,
    /// The repository, and rows that were written about it meanwhile.
    Repo,
}

const PARTS: &[Part] = &[
    // First, so that no job starts and nothing is sent any more.
    Part::Named("jobs"),
    Part::Named("deliveries"),
    Part::Keyed("outbox"),
    Part::OfItems,
    Part::Keyed("items"),
    Part::Keyed("close_runs"),
    Part::Keyed("judge_audit_runs"),
    Part::Keyed("canonicals"),
    Part::Keyed("overrides"),
    Part::Keyed("remarks"),
    Part::Keyed("findings"),
    Part::Keyed("review_runs"),
    Part::Keyed("llm_calls"),
    Part::Keyed("mentions"),
    Part::Keyed("console_actions"),
    Part::Keyed("threshold_adjustments"),
    Part::Keyed("feedback_clears"),
    Part::Keyed("etags"),
    Part::Repo,
];

/// The tables that refer to an item. A table whose rows refer to other rows in this list comes before them: its rows
/// would otherwise be updated and then deleted right afterwards.
const OF_ITEMS: &[&str] = &[
    "judge_audit_run_items",
    "judge_decisions",
    "candidate_sets",
    "issue_outcomes",
    "graces",
    "triage_records",
    "close_run_items",
    "objections",
    "outcome_events",
    "triage_comment_reactions",
    "intent_cards",
    "embeddings",
];

/// The progress of a purge. A purge that starts again without it deletes what is left.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PurgePlace {
    part: usize,
    /// The number of the last item whose referring rows are deleted.
    after: i64,
}

impl PurgePlace {
    const fn next_part(self) -> Self {
        Self { part: self.part + 1, after: 0 }
    }
}

impl MaintenanceStore<'_> {
    /// Returns the number of rows about a repository in each table, in a fixed order. There may be webhooks and jobs
    /// for a name that is not stored.
    pub async fn rows_about(self, name: &RepoName) -> Result<Vec<(&'static str, u64)>, StoreError> {
        let repo = self.pool.repos().find(name).await?;
        let mut rows = Vec::with_capacity(TABLES.len());
        for &(table, of) in TABLES {
            // Only names of Canonry's own tables are inserted into the SQL.
            let query = AssertSqlSafe(format!("SELECT count(*) FROM {table} WHERE {}", of.condition()));
            let found: i64 = match (of, &repo) {
                (Of::Name, _) => {
                    on_pool!(self.pool, |db| sqlx::query_scalar(query).bind(name.key()).fetch_one(db).await?)
                }
                (_, Some(repo)) => {
                    on_pool!(self.pool, |db| sqlx::query_scalar(query).bind(repo.id.0).fetch_one(db).await?)
                }
                (_, None) => 0,
            };
            rows.push((table, count(found)?));
        }
        Ok(rows)
    }

    /// Deletes the next few rows about a repository in one transaction and returns where to continue; `None` if
    /// nothing is left. It deletes about `most` rows and the rows that refer to them, so that no other writer waits
    /// for long.
    ///
    /// The repository itself is deleted last, so that an interrupted purge finds it and can start again. It is
    /// deleted by key, because another repository may get its name meanwhile; without a key only rows with the name
    /// are deleted.
    pub async fn purge_some(
        self,
        name: &RepoName,
        repo: Option<RepoId>,
        place: PurgePlace,
        most: u32,
    ) -> Result<Option<PurgePlace>, StoreError> {
        let Some(part) = PARTS.get(place.part) else { return Ok(None) };
        let is_done = match (part, repo) {
            (Part::Named(table), _) => self.delete_named(table, name, most).await? < u64::from(most),
            (_, None) => return Ok(None),
            (Part::Keyed(table), Some(repo)) => self.delete_keyed(table, repo, most).await? < u64::from(most),
            (Part::OfItems, Some(repo)) => match self.delete_of_items(repo, OF_ITEMS, None, place.after, most).await? {
                Some(after) => return Ok(Some(PurgePlace { after, ..place })),
                None => true,
            },
            (Part::Repo, Some(repo)) => {
                let mut tx = self.begin_purge().await?;
                on_tx!(&mut tx, |db| {
                    sqlx::query("DELETE FROM repos WHERE id = $1").bind(repo.0).execute(db).await?;
                });
                tx.commit().await?;
                true
            }
        };
        let next = if is_done { place.next_part() } else { place };
        Ok((next.part < PARTS.len()).then_some(next))
    }

    /// Deletes a model's vectors of a few items after the number `after` and returns the number after which to
    /// continue; `None` if there are no more items. `model` is the stored name.
    pub async fn purge_vectors(
        self,
        repo: RepoId,
        model: &str,
        after: i64,
        most: u32,
    ) -> Result<Option<i64>, StoreError> {
        self.delete_of_items(repo, &["embeddings"], Some(model), after, most).await
    }

    /// Begins a transaction that overwrites deleted rows in a SQLite file, which otherwise only marks their space as
    /// free.
    async fn begin_purge(self) -> Result<Transaction, StoreError> {
        let mut tx = self.pool.begin().await?;
        if let Transaction::Sqlite(transaction) = &mut tx {
            sqlx::query("PRAGMA secure_delete = ON").execute(&mut **transaction).await?;
        }
        Ok(tx)
    }

    async fn delete_named(self, table: &str, name: &RepoName, most: u32) -> Result<u64, StoreError> {
        let mut tx = self.begin_purge().await?;
        let delete = AssertSqlSafe(delete_some(&tx, table, Of::Name));
        let deleted = on_tx!(&mut tx, |db| {
            sqlx::query(delete).bind(name.key()).bind(i64::from(most)).execute(db).await?.rows_affected()
        });
        tx.commit().await?;
        Ok(deleted)
    }

    async fn delete_keyed(self, table: &str, repo: RepoId, most: u32) -> Result<u64, StoreError> {
        let mut tx = self.begin_purge().await?;
        let delete = AssertSqlSafe(delete_some(&tx, table, Of::Repo));
        let deleted = on_tx!(&mut tx, |db| {
            sqlx::query(delete).bind(repo.0).bind(i64::from(most)).execute(db).await?.rows_affected()
        });
        if table == "items" {
            note_index_change(&mut tx, repo, IndexChange::Everything).await?;
        }
        tx.commit().await?;
        Ok(deleted)
    }

    /// Deletes the rows of these tables that refer to items after the number `after`, `most` numbers at a time, and
    /// returns the last number; `None` if there are no more. With a model, deletes only that model's rows.
    async fn delete_of_items(
        self,
        repo: RepoId,
        tables: &[&str],
        model: Option<&str>,
        after: i64,
        most: u32,
    ) -> Result<Option<i64>, StoreError> {
        let last = "SELECT max(number) FROM (SELECT number FROM items WHERE repo_id = $1 AND number > $2
            ORDER BY number LIMIT $3) AS page";
        let page = "SELECT id FROM items WHERE repo_id = $1 AND number > $2 AND number <= $3";
        let mut tx = self.begin_purge().await?;
        let (last, ids): (Option<i64>, Vec<i64>) = on_tx!(&mut tx, |db| {
            let last: Option<i64> =
                sqlx::query_scalar(last).bind(repo.0).bind(after).bind(i64::from(most)).fetch_one(&mut *db).await?;
            let ids = match last {
                Some(last) => sqlx::query_scalar(page).bind(repo.0).bind(after).bind(last).fetch_all(db).await?,
                None => Vec::new(),
            };
            (last, ids)
        });
        for table in tables {
            // All keys in one value, so that both engines use the index for each key, whatever table size they
            // assume.
            let made_by = if model.is_some() { " AND model = $2" } else { "" };
            macro_rules! delete {
                ($db:expr, $among:literal, $ids:expr) => {{
                    let delete = format!("DELETE FROM {table} WHERE item_id {}{made_by}", $among);
                    let query = sqlx::query(AssertSqlSafe(delete)).bind($ids);
                    let query = match model {
                        Some(model) => query.bind(model),
                        None => query,
                    };
                    query.execute($db).await?;
                }};
            }
            match &mut tx {
                Transaction::Sqlite(db) => {
                    delete!(&mut **db, "IN (SELECT value FROM json_each($1))", Json(&ids));
                }
                Transaction::Postgres(db) => delete!(&mut **db, "= ANY ($1)", &ids),
            }
        }
        if tables.contains(&"embeddings") && !ids.is_empty() {
            note_index_change(&mut tx, repo, IndexChange::Everything).await?;
        }
        tx.commit().await?;
        Ok(last)
    }
}

/// Builds a statement that deletes at most `$2` rows of a table. Rows are addressed by their physical position, the
/// only key that all tables have.
fn delete_some(tx: &Transaction, table: &str, of: Of) -> String {
    let condition = of.condition();
    match tx {
        Transaction::Sqlite(_) => {
            format!("DELETE FROM {table} WHERE rowid IN (SELECT rowid FROM {table} WHERE {condition} LIMIT $2)")
        }
        Transaction::Postgres(_) => {
            format!("DELETE FROM {table} WHERE ctid = ANY (ARRAY(SELECT ctid FROM {table} WHERE {condition} LIMIT $2))")
        }
    }
}
