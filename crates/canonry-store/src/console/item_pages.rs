//! Lists items without their texts, newest first, with the filters of a page.

use canonry_boxed::boxed;
use canonry_domain::{ItemNumber, ItemState, ItemType, Login, StateReason, Verdict};
use jiff::Timestamp;
use sqlx::QueryBuilder;

use crate::corpus::repos::RepoId;
use crate::engine::facets::ConsoleStore;
use crate::engine::like_patterns::{pattern, patterns};
use crate::engine::row_values::storable;
use crate::engine::rows::from_row;
use crate::engine::transaction::{StoreError, on_pool};

/// Selects items of a repository; `None` and an empty text mean any. Gone items are never listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ItemPageFilter<'a> {
    pub item_type: Option<ItemType>,
    pub state: Option<ItemState>,
    /// Items whose newest triage record has this verdict, ordered by newest record. Without it, items are ordered by
    /// highest number.
    pub verdict: Option<Verdict>,
    /// Whether the items are in a cluster by their raw texts.
    pub clustered: Option<bool>,
    /// Items with each of these words in the title, ignoring case.
    pub title: &'a str,
    pub label: &'a str,
    /// Items by this author, ignoring case.
    pub author: &'a str,
}

impl ItemPageFilter<'_> {
    /// Whether items must be checked one by one: their texts have no index.
    const fn searches(&self) -> bool {
        !self.title.is_empty() || !self.label.is_empty() || !self.author.is_empty()
    }
}

/// Where a page ended, written as `12-issue`: the number of its last item, or the key of the record by which it is
/// listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemPlace {
    key: i64,
    item_type: ItemType,
}

impl std::fmt::Display for ItemPlace {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}-{}", self.key, self.item_type.as_str())
    }
}

impl std::str::FromStr for ItemPlace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || format!("{text:?} is no place in a list of items");
        let (key, item_type) = text.split_once('-').ok_or_else(wrong)?;
        Ok(Self { key: key.parse().map_err(|_| wrong())?, item_type: item_type.parse().map_err(|_| wrong())? })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemLine {
    /// The next page starts after this place, if this is the last item.
    pub place: ItemPlace,
    pub item_type: ItemType,
    pub number: ItemNumber,
    pub title: String,
    pub state: ItemState,
    pub state_reason: Option<StateReason>,
    pub merged: bool,
    pub draft: bool,
    pub author: Option<Login>,
    pub labels: Vec<String>,
    pub created_at: Option<Timestamp>,
    pub updated_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemPage {
    /// Fewer items than requested, or none, do not mean the end: a rare filter is checked on a limited number of
    /// items per page.
    pub lines: Vec<ItemLine>,
    /// The next page starts after this place; `None` at the end.
    pub next: Option<ItemPlace>,
    /// How many items were checked, if the page stopped before it was full. Later items are not checked yet.
    pub stopped_after: Option<u32>,
}

/// The number of records that a page by verdict checks: with 100,000 items a query over all of them took 0.7 s, over
/// 2,000 of them 50 ms.
const RECORDS_PER_PAGE: u32 = if cfg!(test) { 3 } else { 2_000 };
/// The number of items whose texts a page checks, each with its row: 20,000 of 100,000 took SQLite 30 ms at best, and
/// several times that on a busy machine. It is larger than the number of items with the same number (two), so that
/// every page advances.
const ITEMS_PER_PAGE: u32 = if cfg!(test) { 4 } else { 10_000 };

const COLUMNS: &str = "i.type, i.number, i.title, i.state, i.state_reason, i.merged, i.draft, i.author, i.labels, \
    i.created_at, i.updated_at";

/// Pushes the conditions on title, label and author.
macro_rules! push_words {
    ($query:ident, $words:ident) => {
        for word in &$words.title {
            $query.push(" AND lower(i.title) LIKE lower(").push_bind(word).push(") ESCAPE '\\'");
        }
        if let Some(label) = &$words.label {
            $query.push(" AND lower(CAST(i.labels AS TEXT)) LIKE lower(").push_bind(label).push(") ESCAPE '\\'");
        }
        if !$words.author.is_empty() {
            $query.push(" AND lower(i.author) = lower(").push_bind(storable($words.author)).push(")");
        }
    };
}

#[boxed]
impl ConsoleStore<'_> {
    /// Returns items of a repository after `before`, which must come from the same filter.
    pub async fn item_pages(
        self,
        repo: RepoId,
        filter: ItemPageFilter<'_>,
        before: Option<ItemPlace>,
        limit: u32,
    ) -> Result<ItemPage, StoreError> {
        let unseen = match filter.verdict {
            None if filter.searches() => self.first_unseen(repo, filter.item_type, before).await?,
            _ => None,
        };
        let mut lines = match filter.verdict {
            Some(verdict) => self.by_record(repo, filter, verdict, before, limit + 1).await?,
            None => {
                // One query for each type: in every index the type comes before the number.
                let mut rows = Vec::new();
                for item_type in [ItemType::Pr, ItemType::Issue] {
                    if filter.item_type.is_none_or(|wanted| wanted == item_type) {
                        rows.extend(self.by_number(repo, filter, item_type, before, unseen, limit + 1).await?);
                    }
                }
                rows.sort_by_key(|line: &ItemLine| std::cmp::Reverse((line.place.key, line.item_type.as_str())));
                rows
            }
        };
        let more = lines.len() > limit as usize;
        lines.truncate(limit as usize);
        let (next, looked_at) = match (more, filter.verdict) {
            (true, _) => (lines.last().map(|last| last.place), None),
            (false, Some(verdict)) => (self.last_looked_at(repo, verdict, before).await?, Some(RECORDS_PER_PAGE)),
            // The next page starts after the number above it, for both types.
            (false, None) => {
                let next = unseen.map(|number| ItemPlace { key: number + 1, item_type: ItemType::Issue });
                (next, Some(ITEMS_PER_PAGE))
            }
        };
        Ok(ItemPage { lines, next, stopped_after: looked_at.filter(|_| next.is_some()) })
    }

    /// Returns the items that changed last, newest change first. No index has this order, so the rows of the repository are
    /// sorted; their texts are not read.
    pub async fn recently_updated(self, repo: RepoId, limit: u32) -> Result<Vec<ItemLine>, StoreError> {
        Ok(on_pool!(self.pool, |db| {
            let mut query = QueryBuilder::new("SELECT i.number AS key, ");
            query.push(COLUMNS).push(" FROM items i WHERE i.repo_id = ").push_bind(repo.0);
            query.push(" AND i.gone IS NULL ORDER BY coalesce(i.updated_at, i.created_at, 0) DESC, i.number DESC, i.type LIMIT ");
            query.push_bind(i64::from(limit)).build_query_as().fetch_all(db).await?
        }))
    }

    /// Returns the number of the first item that a page with a text filter does not check; `None` if it checks all
    /// that are left.
    async fn first_unseen(
        self,
        repo: RepoId,
        item_type: Option<ItemType>,
        before: Option<ItemPlace>,
    ) -> Result<Option<i64>, StoreError> {
        Ok(on_pool!(self.pool, |db| {
            let mut query = QueryBuilder::new("SELECT number FROM items WHERE repo_id = ");
            query.push_bind(repo.0);
            if let Some(item_type) = item_type {
                query.push(" AND type = ").push_bind(item_type.as_str());
            }
            if let Some(before) = before {
                // For equal numbers the issue comes last.
                let at = if before.item_type == ItemType::Issue { " AND number < " } else { " AND number <= " };
                query.push(at).push_bind(before.key);
            }
            query.push(" ORDER BY number DESC LIMIT 1 OFFSET ").push_bind(i64::from(ITEMS_PER_PAGE));
            query.build_query_scalar().fetch_optional(db).await?
        }))
    }

    /// Returns the record at which a page by verdict stopped checking, unless it was the last one.
    async fn last_looked_at(
        self,
        repo: RepoId,
        verdict: Verdict,
        before: Option<ItemPlace>,
    ) -> Result<Option<ItemPlace>, StoreError> {
        let query = "SELECT min(id), count(*) FROM (SELECT id FROM triage_records
            WHERE repo_id = $1 AND verdict = $2 AND id < $3 ORDER BY id DESC LIMIT $4) looked_at";
        let before = before.map_or(i64::MAX, |before| before.key);
        let (last, looked_at): (Option<i64>, i64) = on_pool!(self.pool, |db| {
            let query = sqlx::query_as(query).bind(repo.0).bind(verdict.as_str()).bind(before);
            query.bind(i64::from(RECORDS_PER_PAGE)).fetch_one(db).await?
        });
        let last = last.filter(|_| looked_at == i64::from(RECORDS_PER_PAGE));
        Ok(last.map(|key| ItemPlace { key, item_type: ItemType::Issue }))
    }

    async fn by_number(
        self,
        repo: RepoId,
        filter: ItemPageFilter<'_>,
        item_type: ItemType,
        before: Option<ItemPlace>,
        unseen: Option<i64>,
        limit: u32,
    ) -> Result<Vec<ItemLine>, StoreError> {
        let words = Words::of(filter);
        Ok(on_pool!(self.pool, |db| {
            let mut query = QueryBuilder::new("SELECT i.number AS key, ");
            query.push(COLUMNS);
            if filter.clustered == Some(true) {
                // There are far fewer members than items. SQLite runs a cross join from left to right.
                query.push(" FROM canonicals c CROSS JOIN items i WHERE c.repo_id = ").push_bind(repo.0);
                query.push(" AND c.representation = 'raw' AND c.type = ").push_bind(item_type.as_str());
                query.push(" AND i.number = c.item_number AND ");
            } else {
                query.push(" FROM items i WHERE ");
            }
            query.push("i.repo_id = ").push_bind(repo.0).push(" AND i.gone IS NULL AND i.type = ");
            query.push_bind(item_type.as_str());
            if let Some(state) = filter.state {
                query.push(" AND i.state = ").push_bind(state.as_str());
            }
            push_words!(query, words);
            if filter.clustered == Some(false) {
                query.push(" AND NOT ").push(IN_A_CLUSTER);
            }
            let number = if filter.clustered == Some(true) { "c.item_number" } else { "i.number" };
            if let Some(before) = before {
                // For equal numbers the pull request comes before the issue.
                let includes = item_type.as_str() < before.item_type.as_str();
                query.push(" AND ").push(number).push(if includes { " <= " } else { " < " }).push_bind(before.key);
            }
            if let Some(unseen) = unseen {
                query.push(" AND ").push(number).push(" > ").push_bind(unseen);
            }
            query.push(" ORDER BY ").push(number).push(" DESC LIMIT ").push_bind(i64::from(limit));
            query.build_query_as().fetch_all(db).await?
        }))
    }

    async fn by_record(
        self,
        repo: RepoId,
        filter: ItemPageFilter<'_>,
        verdict: Verdict,
        before: Option<ItemPlace>,
        limit: u32,
    ) -> Result<Vec<ItemLine>, StoreError> {
        let words = Words::of(filter);
        Ok(on_pool!(self.pool, |db| {
            let mut query = QueryBuilder::new("SELECT d.id AS key, ");
            query
                .push(COLUMNS)
                .push(" FROM (SELECT id, item_id FROM triage_records WHERE repo_id = ")
                .push_bind(repo.0);
            query.push(" AND verdict = ").push_bind(verdict.as_str()).push(" AND id < ");
            query.push_bind(before.map_or(i64::MAX, |before| before.key));
            query.push(" ORDER BY id DESC LIMIT ").push_bind(i64::from(RECORDS_PER_PAGE)).push(
                ") d CROSS JOIN items i WHERE i.id = d.item_id AND i.gone IS NULL \
                AND NOT EXISTS (SELECT 1 FROM triage_records n WHERE n.item_id = d.item_id AND n.id > d.id)",
            );
            if let Some(item_type) = filter.item_type {
                query.push(" AND i.type = ").push_bind(item_type.as_str());
            }
            if let Some(state) = filter.state {
                query.push(" AND i.state = ").push_bind(state.as_str());
            }
            push_words!(query, words);
            if let Some(clustered) = filter.clustered {
                query.push(if clustered { " AND " } else { " AND NOT " }).push(IN_A_CLUSTER);
            }
            query.push(" ORDER BY d.id DESC LIMIT ").push_bind(i64::from(limit));
            query.build_query_as().fetch_all(db).await?
        }))
    }
}

/// The text filters, as patterns.
struct Words<'a> {
    title: Vec<String>,
    label: Option<String>,
    author: &'a str,
}

impl<'a> Words<'a> {
    fn of(filter: ItemPageFilter<'a>) -> Self {
        // Labels are stored as JSON: with its quotes a label does not match a part of another one.
        let quoted = |label: &str| pattern(&serde_json::Value::from(label).to_string());
        Self {
            title: patterns(filter.title),
            label: (!filter.label.is_empty()).then(|| quoted(filter.label)),
            author: filter.author,
        }
    }
}

const IN_A_CLUSTER: &str = "EXISTS (SELECT 1 FROM canonicals c WHERE c.repo_id = i.repo_id AND c.type = i.type \
    AND c.representation = 'raw' AND c.item_number = i.number)";

from_row!(ItemPlace { key, item_type: "type" });
from_row! {
    ItemLine {
        place: flatten, item_type: "type", number, title, state, state_reason, merged, draft, author, labels,
        created_at, updated_at,
    }
}

#[cfg(test)]
mod tests {
    use canonry_domain::{ContentVersion, ItemNumber, ItemRecord, ItemState, ItemType, Verdict};
    use canonry_testkit::database::TestDatabase;
    use canonry_testkit::on_both_engines;
    use jiff::Timestamp;

    use super::ItemPageFilter;
    use crate::{NewTriageRecord, Representation, Store};

    on_both_engines! {
        async fn a_filter_that_hardly_anything_passes_is_tried_a_part_at_a_time(database: TestDatabase) {
            let now = Timestamp::from_second(1_800_000_000).expect("in range");
            let store = Store::open(&database.url().parse().expect("a URL"), now).await.expect("opens");
            let repo = store.repos().ensure(&"tide/pool".parse().expect("a name"), now).await.expect("stored");
            let number = |of| ItemNumber::new(of).expect("a number");
            for of in 1..=7 {
                let state = Some(if of == 1 { ItemState::Open } else { ItemState::Closed });
                let item = ItemRecord { state, ..ItemRecord::new(ItemType::Issue, number(of), "Issue") };
                store.corpus().upsert_items(&repo, vec![item], now).await.expect("taken in");
                let record = NewTriageRecord {
                    item_type: ItemType::Issue,
                    number: number(of),
                    verdict: Verdict::NotDuplicate,
                    target: None,
                    target_score: None,
                    is_duplicate: false,
                    confidence: None,
                    reason: "no_candidates".to_owned(),
                    reasoning: String::new(),
                    effective_source: Representation::Raw,
                    source_fallback_reason: None,
                    provider: "local".to_owned(),
                    model: "evidence".to_owned(),
                    prompt_version: 1,
                    config_hash: "c".to_owned(),
                    content_version: ContentVersion::FIRST,
                    embed_model: "local".to_owned(),
                    run_id: "run".to_owned(),
                    candidates: Vec::new(),
                    fix: None,
                };
                store.duplicates().write_triage_record(repo.id, &record, now).await.expect("written");
            }
            let open = ItemPageFilter { verdict: Some(Verdict::NotDuplicate), state: Some(ItemState::Open), ..ItemPageFilter::default() };
            let (mut before, mut found) = (None, Vec::new());
            for _ in 0..3 {
                let page = store.console().item_pages(repo.id, open, before, 2).await.expect("reads");
                found.push(page.lines.iter().map(|line| line.number.get()).collect::<Vec<_>>());
                before = page.next;
            }
            assert_eq!((found, before), (vec![vec![], vec![], vec![1]], None), "seven records, three at a time");
            store.disconnect().await;
        }

        async fn words_are_looked_for_in_so_many_items_at_a_time_and_what_is_left_is_said(database: TestDatabase) {
            let now = Timestamp::from_second(1_800_000_000).expect("in range");
            let store = Store::open(&database.url().parse().expect("a URL"), now).await.expect("opens");
            let repo = store.repos().ensure(&"tide/pool".parse().expect("a name"), now).await.expect("stored");
            let number = |of| ItemNumber::new(of).expect("a number");
            // Each number belongs to an issue and a pull request; only the oldest issue has the searched title.
            let mut items = Vec::new();
            for of in 1..=6 {
                let title = if of == 1 { "The Tide" } else { "Foam" };
                items.push(ItemRecord::new(ItemType::Issue, number(of), title));
                items.push(ItemRecord::new(ItemType::Pr, number(of), "Foam"));
            }
            store.corpus().upsert_items(&repo, items, now).await.expect("taken in");
            let tide = ItemPageFilter { title: "tide", ..ItemPageFilter::default() };
            for (filter, looks) in [(tide, 3), (ItemPageFilter { item_type: Some(ItemType::Issue), ..tide }, 2)] {
                let (mut before, mut found) = (None, Vec::new());
                for _ in 0..looks {
                    let page = store.console().item_pages(repo.id, filter, before, 2).await.expect("reads");
                    assert_eq!(page.stopped_after, page.next.map(|_| 4));
                    found.extend(page.lines.iter().map(|line| line.number.get()));
                    before = page.next;
                }
                assert_eq!((found, before), (vec![1], None), "{looks} pages");
            }
            // A full page did not stop early.
            let foam = ItemPageFilter { title: "foam", ..ItemPageFilter::default() };
            let full = store.console().item_pages(repo.id, foam, None, 2).await.expect("reads");
            assert_eq!((full.lines.len(), full.next.map(|place| place.to_string()), full.stopped_after), (2, Some("6-issue".to_owned()), None));
            store.disconnect().await;
        }
    }
}
