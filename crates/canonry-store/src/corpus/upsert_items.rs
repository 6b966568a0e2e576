//! Upserts records: merges them with the stored items, raises versions and makes candidate sets stale, in one
//! transaction.

use canonry_boxed::boxed;
use std::collections::{BTreeSet, HashMap};

use canonry_domain::{
    Item, ItemNumber, ItemRecord, ItemType, MergedItem, OutcomeEvent, PullChanges, RecordChange, RepoName,
    ThresholdAdjusted, discovered_event, merge_answer, merge_record, merge_webhook,
};
use jiff::Timestamp;
use sqlx::QueryBuilder;
use sqlx::types::Json;

use crate::corpus::index_changes::{IndexChange, note_index_change};
use crate::corpus::items::COLUMNS;
use crate::corpus::repos::{Repo, RepoId};
use crate::engine::facets::CorpusStore;
use crate::engine::lists::PushList as _;
use crate::engine::row_values::micros;
use crate::engine::rows::Read;
use crate::engine::transaction::{StoreError, Transaction, on_tx};
use crate::learning::outcome_events::add_events;
use crate::learning::thresholds::log_adjustments;

/// What each record changed, in the order of the records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UpsertSummary {
    pub changes: Vec<RecordChange>,
}

impl UpsertSummary {
    /// Returns how many records inserted, updated and did not change an item; skipped records count as unchanged.
    pub fn counts(&self) -> (u64, u64, u64) {
        let (mut inserted, mut updated, mut unchanged) = (0, 0, 0);
        for change in &self.changes {
            match change {
                RecordChange::Inserted => inserted += 1,
                RecordChange::Updated { .. } => updated += 1,
                RecordChange::Unchanged | RecordChange::Older | RecordChange::Unordered => unchanged += 1,
            }
        }
        (inserted, updated, unchanged)
    }
}

#[boxed]
impl CorpusStore<'_> {
    /// Upserts a batch of records, all or none. A later record of an item is merged with the result of an earlier
    /// one.
    pub async fn upsert_items(
        self,
        repo: &Repo,
        records: Vec<ItemRecord>,
        now: Timestamp,
    ) -> Result<UpsertSummary, StoreError> {
        let mut tx = self.pool.begin().await?;
        let (taken, adjusted) = upsert_records(&mut tx, repo, records, now).await?;
        tx.commit().await?;
        log_adjustments(&adjusted);
        Ok(taken)
    }

    /// Upserts an item from a webhook with [`merge_webhook`]. Returns the stored item and what the record changed.
    pub async fn upsert_webhook_item(
        self,
        repo: &Repo,
        record: ItemRecord,
        now: Timestamp,
    ) -> Result<(Item, RecordChange), StoreError> {
        self.upsert_item(repo, record, &merge_webhook, now).await
    }

    /// Upserts an item that was fetched from GitHub after `seen` was read from the store. The answer is skipped as
    /// [`RecordChange::Unordered`] if the stored item changed meanwhile and the order of the two is unknown.
    pub async fn upsert_fetched_item(
        self,
        repo: &Repo,
        seen: Option<&Item>,
        answer: ItemRecord,
        now: Timestamp,
    ) -> Result<(Item, RecordChange), StoreError> {
        let merge = |known: Option<&Item>, answer: ItemRecord| merge_answer(known, seen, answer);
        self.upsert_item(repo, answer, &merge, now).await
    }

    /// Stores what a pull request changes, which no webhook contains, as of the last activity of `pull`, which was read
    /// from the store before GitHub was asked. Returns the stored pull request.
    pub async fn upsert_pull_changes(
        self,
        repo: &Repo,
        pull: &Item,
        changes: PullChanges,
        now: Timestamp,
    ) -> Result<Item, StoreError> {
        let record = ItemRecord { changes: Some(changes), ..ItemRecord::new(pull.item_type, pull.number, &pull.title) };
        // Another process may have stored a new title since the pull request was read.
        let merge = |known: Option<&Item>, record: ItemRecord| {
            let title = known.map_or_else(|| record.title.clone(), |known| known.title.clone());
            merge_record(known, ItemRecord { title, ..record })
        };
        let update = "UPDATE items SET changes_as_of = $3 WHERE repo_id = $1 AND type = 'pr' AND number = $2";
        let as_of = pull.updated_at.map_or(0, micros);
        let mut tx = self.pool.begin().await?;
        // Before any row of an item, as in every merge: two transactions must not wait for each other.
        tx.lock_items_of(repo.id).await?;
        on_tx!(&mut tx, |db| {
            sqlx::query(update).bind(repo.id.0).bind(pull.number.get()).bind(as_of).execute(db).await?;
        });
        Ok(upsert_one(tx, repo, record, &merge, now).await?.0)
    }

    async fn upsert_item(
        self,
        repo: &Repo,
        record: ItemRecord,
        merge: Merge<'_>,
        now: Timestamp,
    ) -> Result<(Item, RecordChange), StoreError> {
        upsert_one(self.pool.begin().await?, repo, record, merge, now).await
    }
}

/// Upserts a record and ends the transaction.
async fn upsert_one(
    mut tx: Transaction,
    repo: &Repo,
    record: ItemRecord,
    merge: Merge<'_>,
    now: Timestamp,
) -> Result<(Item, RecordChange), StoreError> {
    let key = (record.number, record.item_type);
    let mut merged = merge_into(&mut tx, repo, vec![record], merge, now).await?;
    tx.commit().await?;
    log_adjustments(&merged.adjusted);
    let stored = merged.items.remove(&key).zip(merged.changes.first().copied());
    stored.ok_or_else(|| StoreError::Damaged(format!("#{} was stored and is not there", key.0)))
}

/// Upserts records inside a larger transaction, and returns the thresholds that moved.
///
/// A record from GitHub (one with `synced_at`) that changes an issue's state adds an outcome event. A record from a
/// file does not, because a file may be of any age.
pub(crate) async fn upsert_records(
    tx: &mut Transaction,
    repo: &Repo,
    records: Vec<ItemRecord>,
    now: Timestamp,
) -> Result<(UpsertSummary, Vec<ThresholdAdjusted>), StoreError> {
    let merged = merge_into(tx, repo, records, &merge_record, now).await?;
    Ok((UpsertSummary { changes: merged.changes }, merged.adjusted))
}

/// Merges a record with the stored item.
type Merge<'a> = &'a (dyn Fn(Option<&Item>, ItemRecord) -> MergedItem + Sync);

/// The result of merging a batch, before the commit.
struct MergedBatch {
    changes: Vec<RecordChange>,
    items: HashMap<Key, Item>,
    adjusted: Vec<ThresholdAdjusted>,
}

async fn merge_into(
    tx: &mut Transaction,
    repo: &Repo,
    records: Vec<ItemRecord>,
    merge: Merge<'_>,
    now: Timestamp,
) -> Result<MergedBatch, StoreError> {
    tx.lock_items_of(repo.id).await?;
    let mut known = read_known(tx, repo.id, &records).await?;
    let mut merging = Merging::new(&repo.name, now);
    for record in records {
        merging.take(&mut known, record, merge);
    }
    let changed: Vec<&Item> = merging.changed.iter().map(|key| &known[key]).collect();
    for batch in changed.chunks(ROWS_PER_STATEMENT) {
        write_items(tx, repo.id, batch).await?;
    }
    for (number, item_type) in &merging.edited {
        make_sets_stale(tx, repo.id, *item_type, *number).await?;
    }
    let learned = add_events(tx, repo.id, &merging.events, now).await?;
    note_index_change(tx, repo.id, IndexChange::Items(&merging.reindexed)).await?;
    Ok(MergedBatch { changes: merging.changes, items: known, adjusted: learned.adjusted })
}

type Key = (ItemNumber, ItemType);

struct Merging<'a> {
    repo: &'a RepoName,
    now: Timestamp,
    changes: Vec<RecordChange>,
    changed: BTreeSet<Key>,
    edited: BTreeSet<Key>,
    reindexed: Vec<(ItemType, ItemNumber)>,
    events: Vec<OutcomeEvent>,
}

impl<'a> Merging<'a> {
    fn new(repo: &'a RepoName, now: Timestamp) -> Self {
        Self {
            repo,
            now,
            changes: Vec::new(),
            changed: BTreeSet::new(),
            edited: BTreeSet::new(),
            reindexed: Vec::new(),
            events: Vec::new(),
        }
    }

    fn take(&mut self, known: &mut HashMap<Key, Item>, record: ItemRecord, merge: Merge<'_>) {
        let key = (record.number, record.item_type);
        let asked = record.synced_at.is_some();
        let before = known.get(&key);
        let merged = merge(before, record);
        if asked {
            self.events.extend(discovered_event(self.repo, before, &merged.item, self.now));
        }
        let write = match merged.change {
            RecordChange::Inserted | RecordChange::Updated { .. } => true,
            // If GitHub was asked, the time of the last request has changed.
            RecordChange::Unchanged => asked,
            RecordChange::Older | RecordChange::Unordered => false,
        };
        if write {
            self.changed.insert(key);
        }
        if write && before.is_none_or(|before| is_indexed_anew(before, &merged.item)) {
            self.reindexed.push((merged.item.item_type, merged.item.number));
        }
        if merged.change == (RecordChange::Updated { content: true }) {
            self.edited.insert(key);
        }
        self.changes.push(merged.change);
        known.insert(key, merged.item);
    }
}

/// Whether indexed data of an item changed.
fn is_indexed_anew(before: &Item, now: &Item) -> bool {
    let kept = |item: &Item| (item.state, item.created_at, item.duplicate_of, item.content_version, item.gone);
    kept(before) != kept(now)
        || before.author != now.author
        || before.content_hash != now.content_hash
        || before.changes != now.changes
}

/// 28 columns a row; SQLite accepts at most 32,766 values in a statement.
const ROWS_PER_STATEMENT: usize = 500;

async fn read_known(
    tx: &mut Transaction,
    repo: RepoId,
    records: &[ItemRecord],
) -> Result<HashMap<Key, Item>, StoreError> {
    let numbers: BTreeSet<ItemNumber> = records.iter().map(|record| record.number).collect();
    let numbers: Vec<ItemNumber> = numbers.into_iter().collect();
    let mut known = HashMap::with_capacity(numbers.len());
    for batch in numbers.chunks(ROWS_PER_STATEMENT) {
        let rows: Vec<Read<Item>> = on_tx!(tx, |db| {
            let mut query = QueryBuilder::new(format!("SELECT {COLUMNS} FROM items WHERE repo_id = "));
            query.push_bind(repo.0).push(" AND number IN (");
            query.push_list(batch.iter().map(|number| number.get()));
            query.build_query_as().fetch_all(db).await?
        });
        for Read(item) in rows {
            known.insert((item.number, item.item_type), item);
        }
    }
    Ok(known)
}

async fn write_items(tx: &mut Transaction, repo: RepoId, items: &[&Item]) -> Result<(), StoreError> {
    on_tx!(tx, |db| {
        let mut query = QueryBuilder::new(format!("INSERT INTO items (repo_id, {COLUMNS}) "));
        query.push_values(items, |mut row, item| {
            row.push_bind(repo.0)
                .push_bind(item.item_type.as_str())
                .push_bind(item.number.get())
                .push_bind(item.github_id.map(|id| id.0))
                .push_bind(item.title.as_str())
                .push_bind(item.body.as_str())
                .push_bind(item.state.as_str())
                .push_bind(item.state_reason.map(|reason| reason.as_str()))
                .push_bind(item.merged)
                .push_bind(item.draft)
                .push_bind(item.author.as_ref().map(|login| login.as_str()))
                .push_bind(item.assignees.as_ref().map(Json))
                .push_bind(Json(&item.labels))
                .push_bind(i64::from(item.comments))
                .push_bind(i64::from(item.review_comments))
                .push_bind(item.created_at.map(micros))
                .push_bind(item.updated_at.map(micros))
                .push_bind(item.closed_at.map(micros))
                .push_bind(item.url.as_deref())
                .push_bind(item.duplicate_of.map(|number| number.get()))
                .push_bind(item.changes.as_ref().map(Json))
                .push_bind(item.content_hash.as_str())
                .push_bind(item.content_version.get())
                .push_bind(item.last_synced_at.map(micros))
                .push_bind(item.gone.map(|gone| gone.as_str()))
                .push_bind(item.has_milestone)
                .push_bind(item.locked)
                .push_bind(item.base_branch.as_deref());
        });
        query.push(" ON CONFLICT (repo_id, type, number) DO UPDATE SET ");
        let mut set = query.separated(", ");
        for column in COLUMNS.split(", ").map(str::trim).filter(|column| !matches!(*column, "type" | "number")) {
            set.push(format!("{column} = excluded.{column}"));
        }
        query.build().execute(db).await?;
    });
    Ok(())
}

/// Marks an item's candidate sets as stale after its text changed.
async fn make_sets_stale(
    tx: &mut Transaction,
    repo: RepoId,
    item_type: ItemType,
    number: ItemNumber,
) -> Result<(), StoreError> {
    let update = "UPDATE candidate_sets SET status = 'stale' WHERE status = 'fresh' AND item_id =
        (SELECT id FROM items WHERE repo_id = $1 AND type = $2 AND number = $3)";
    on_tx!(tx, |db| {
        sqlx::query(update).bind(repo.0).bind(item_type.as_str()).bind(number.get()).execute(db).await?;
    });
    Ok(())
}
