//! The version of a repository's items and the items that changed since a version, so that an in-memory index can
//! catch up.

use canonry_boxed::boxed;
use canonry_domain::{ItemNumber, ItemType};
use sqlx::{AssertSqlSafe, QueryBuilder};

use crate::corpus::repos::RepoId;
use crate::engine::facets::CorpusStore;
use crate::engine::transaction::{StoreError, Transaction, on_pool, on_tx};

/// Counts the changes to the indexed data of a repository's items.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IndexVersion {
    /// Changes when the repository was purged and its key was given to another repository.
    pub epoch: i64,
    pub version: i64,
    /// The last version with more changes than [`CorpusStore::items_changed_since`] lists.
    pub relisted: i64,
    /// The last version at which boilerplate was learned.
    pub boilerplate: i64,
}

/// A change of more items than this does not list them: imports and full runs of `embed` would write twice as many
/// rows.
const MOST_NAMED: usize = 100;
/// The same limit for items whose own text changed with new boilerplate. It is higher because without the list all
/// items must be indexed again.
const MOST_NAMED_LEARNED: usize = 10_000;
const NAMES_PER_STATEMENT: usize = 1_000;

#[boxed]
impl CorpusStore<'_> {
    /// Reads one row by its key, cheap enough to do before every use of an index.
    pub async fn index_version(self, repo: RepoId) -> Result<IndexVersion, StoreError> {
        let query = "SELECT epoch, version, relisted, boilerplate FROM index_versions WHERE repo_id = $1";
        let row: Option<(i64, i64, i64, i64)> =
            on_pool!(self.pool, |db| sqlx::query_as(query).bind(repo.0).fetch_optional(db).await?);
        let read = |(epoch, version, relisted, boilerplate)| IndexVersion { epoch, version, relisted, boilerplate };
        Ok(row.map(read).unwrap_or_default())
    }

    /// Returns the items that changed after a version. Some of them may no longer exist.
    pub async fn items_changed_since(
        self,
        repo: RepoId,
        item_type: ItemType,
        version: i64,
    ) -> Result<Vec<ItemNumber>, StoreError> {
        let query = "SELECT number FROM item_changes WHERE repo_id = $1 AND type = $2 AND version > $3";
        let rows: Vec<i64> = on_pool!(self.pool, |db| {
            sqlx::query_scalar(query).bind(repo.0).bind(item_type.as_str()).bind(version).fetch_all(db).await?
        });
        rows.into_iter().map(|number| ItemNumber::new(number).map_err(StoreError::damaged)).collect()
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum IndexChange<'a> {
    Items(&'a [(ItemType, ItemNumber)]),
    /// More items than can be listed, as in a purge.
    Everything,
    /// New boilerplate changed the own text of the items in `changed`, and perhaps of all items that changed after
    /// the version `since`.
    Boilerplate {
        item_type: ItemType,
        changed: &'a [ItemNumber],
        since: i64,
    },
}

impl IndexChange<'_> {
    fn names_all(self) -> bool {
        match self {
            Self::Items(items) => items.len() <= MOST_NAMED,
            Self::Everything => false,
            Self::Boilerplate { changed, .. } => changed.len() <= MOST_NAMED_LEARNED,
        }
    }
}

/// Raises the version. Must be the last write of a transaction: all other transactions that change items of this
/// repository wait here until it ends, which keeps the versions in commit order.
pub(crate) async fn note_index_change(
    tx: &mut Transaction,
    repo: RepoId,
    change: IndexChange<'_>,
) -> Result<(), StoreError> {
    if matches!(change, IndexChange::Items([])) {
        return Ok(());
    }
    let draw = match tx {
        Transaction::Sqlite(_) => "random()",
        Transaction::Postgres(_) => "CAST(floor(random() * 9007199254740992) AS BIGINT)",
    };
    let upsert = AssertSqlSafe(format!(
        "INSERT INTO index_versions (repo_id, epoch, version, relisted, boilerplate)
            SELECT id, {draw}, 1, 1, 1 FROM repos WHERE id = $1
        ON CONFLICT (repo_id) DO UPDATE SET version = index_versions.version + 1,
            relisted = CASE WHEN $2 THEN index_versions.version + 1 ELSE index_versions.relisted END,
            boilerplate = CASE WHEN $3 THEN index_versions.version + 1 ELSE index_versions.boilerplate END
        RETURNING version"
    ));
    let (names_all, learned) = (change.names_all(), matches!(change, IndexChange::Boilerplate { .. }));
    let version: Option<i64> = on_tx!(tx, |db| {
        sqlx::query_scalar(upsert).bind(repo.0).bind(!names_all).bind(learned).fetch_optional(db).await?
    });
    let Some(version) = version.filter(|_| names_all) else { return Ok(()) };
    match change {
        IndexChange::Items(items) => name_items(tx, repo, items, version).await,
        IndexChange::Boilerplate { item_type, changed, since } => {
            let again = "UPDATE item_changes SET version = $4 WHERE repo_id = $1 AND type = $2 AND version > $3";
            on_tx!(tx, |db| {
                let query = sqlx::query(again).bind(repo.0).bind(item_type.as_str()).bind(since);
                query.bind(version).execute(db).await?;
            });
            let changed: Vec<_> = changed.iter().map(|number| (item_type, *number)).collect();
            name_items(tx, repo, &changed, version).await
        }
        IndexChange::Everything => Ok(()),
    }
}

async fn name_items(
    tx: &mut Transaction,
    repo: RepoId,
    items: &[(ItemType, ItemNumber)],
    version: i64,
) -> Result<(), StoreError> {
    // PostgreSQL refuses a statement that contains a row twice.
    let mut items = items.to_vec();
    items.sort_unstable();
    items.dedup();
    for batch in items.chunks(NAMES_PER_STATEMENT) {
        on_tx!(tx, |db| {
            let mut query = QueryBuilder::new("INSERT INTO item_changes (repo_id, type, number, version) ");
            query.push_values(batch, |mut row, (item_type, number)| {
                row.push_bind(repo.0).push_bind(item_type.as_str()).push_bind(number.get()).push_bind(version);
            });
            query.push(" ON CONFLICT (repo_id, type, number) DO UPDATE SET version = excluded.version");
            query.build().execute(db).await?;
        });
    }
    Ok(())
}
