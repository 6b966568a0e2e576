//! Stores people's reactions to triage comments, and lists the comments whose reactions to fetch.

use canonry_boxed::boxed;
use std::collections::{BTreeMap, HashMap};

use canonry_domain::{CommentReactions, Component, GithubId, ItemNumber, ItemType};
use jiff::Timestamp;
use serde::Deserialize;
use sqlx::QueryBuilder;
use sqlx::types::Json;

use crate::corpus::items::{ItemKeys, NUMBERS_PER_STATEMENT};
use crate::corpus::repos::{Repo, RepoId};
use crate::engine::facets::LearningStore;
use crate::engine::lists::PushList as _;
use crate::engine::row_values::{micros, moment, number, optional_component, optional_moment, word};
use crate::engine::transaction::{StoreError, Transaction, on_pool, on_tx};
use crate::learning::issue_outcomes::relearn;
use crate::learning::thresholds::{LearningUpdate, log_adjustments};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriageComment {
    pub repo: Repo,
    pub item_type: ItemType,
    pub number: ItemNumber,
    pub comment: GithubId,
    pub said_at: Timestamp,
    /// When the current text was posted or last edited. Earlier reactions are about another text.
    pub worded_at: Timestamp,
    pub synced_at: Option<Timestamp>,
}

#[boxed]
impl LearningStore<'_> {
    /// Records the reactions to a triage comment, and learns from them while the issue has no outcome. Removed
    /// reactions are not counted any more. If the item is not a stored issue, such as a pull request, there is
    /// nothing to learn, and nothing is recorded.
    pub async fn record_comment_reactions(
        self,
        repo: RepoId,
        number: ItemNumber,
        comment: GithubId,
        counts: CommentReactions,
        now: Timestamp,
    ) -> Result<LearningUpdate, StoreError> {
        let labels = "SELECT labels FROM items WHERE id = $1";
        // The component stays the one at the first reaction: later labels must not move the lesson.
        let upsert = "INSERT INTO triage_comment_reactions (item_id, comment_id, up, down, mixed, component, synced_at)
            VALUES ($1, $2, $3, $4, $5, $6, $7)
            ON CONFLICT (item_id, comment_id) DO UPDATE SET up = excluded.up, down = excluded.down, mixed = excluded.mixed,
                component = CASE WHEN triage_comment_reactions.up + triage_comment_reactions.down
                    + triage_comment_reactions.mixed = 0 THEN excluded.component ELSE triage_comment_reactions.component END,
                synced_at = excluded.synced_at";
        let mut tx = self.pool.begin().await?;
        tx.lock_items_of(repo).await?;
        let Ok(item) = ItemKeys::read(&mut tx, repo, [number]).await?.id(ItemType::Issue, number) else {
            tx.rollback().await?;
            return Ok(LearningUpdate::default());
        };
        on_tx!(&mut tx, |db| {
            let Json(labels): Json<Vec<String>> = sqlx::query_scalar(labels).bind(item).fetch_one(&mut *db).await?;
            let component = Component::of_labels(labels.iter().map(String::as_str));
            sqlx::query(upsert)
                .bind(item)
                .bind(comment.0)
                .bind(i64::from(counts.up))
                .bind(i64::from(counts.down))
                .bind(i64::from(counts.mixed))
                .bind(component.as_ref().map(Component::as_str))
                .bind(micros(now))
                .execute(db)
                .await?;
        });
        let adjusted = relearn(&mut tx, repo, &[item], now).await?;
        tx.commit().await?;
        log_adjustments(&adjusted);
        Ok(LearningUpdate { new_events: 0, adjusted })
    }

    /// Returns the triage comments in the outbox that were posted since then: first those whose reactions were never
    /// recorded, then by the oldest recording.
    pub async fn triage_comments_since(self, since: Timestamp) -> Result<Vec<TriageComment>, StoreError> {
        let query = "SELECT o.repo_id, r.github_id, r.name, o.number, o.item_type, o.answer, o.updated_at,
                (SELECT max(e.updated_at) FROM outbox e WHERE e.repo_id = o.repo_id AND e.number = o.number AND e.id > o.id
                    AND e.state IN ('sent', 'pending') AND e.origin = 'triage_edit') AS edited_at
            FROM outbox o JOIN repos r ON r.id = o.repo_id
            WHERE o.state = 'sent' AND o.origin = 'triage_comment' AND o.updated_at >= $1 ORDER BY o.id";
        let rows: Vec<CommentRow> =
            on_pool!(self.pool, |db| sqlx::query_as(query).bind(micros(since)).fetch_all(db).await?);
        let synced = "SELECT i.repo_id, c.comment_id, c.synced_at FROM triage_comment_reactions c
            JOIN items i ON i.id = c.item_id WHERE c.synced_at >= $1";
        let synced: Vec<(i64, i64, i64)> =
            on_pool!(self.pool, |db| sqlx::query_as(synced).bind(micros(since)).fetch_all(db).await?);
        let synced: HashMap<(i64, i64), i64> =
            synced.into_iter().map(|(repo, comment, at)| ((repo, comment), at)).collect();
        let mut comments = Vec::with_capacity(rows.len());
        for row in rows {
            let Some(comment) = row.read()?.filter(|comment| comment.said_at >= since) else { continue };
            let synced_at = optional_moment(synced.get(&(comment.repo.id.0, comment.comment.0)).copied())?;
            comments.push(TriageComment { synced_at, ..comment });
        }
        comments.sort_by_key(|comment| comment.synced_at);
        Ok(comments)
    }
}

/// The reactions that count for an item: those to its latest triage comment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ItemReactions {
    pub(crate) counts: CommentReactions,
    pub(crate) component: Option<Component>,
}

/// Returns the reactions to these items' triage comments, by the store's key of the item.
pub(crate) async fn reactions_of(
    tx: &mut Transaction,
    items: &[i64],
) -> Result<BTreeMap<i64, ItemReactions>, StoreError> {
    let mut reactions = BTreeMap::new();
    for batch in items.chunks(NUMBERS_PER_STATEMENT) {
        let rows: Vec<(i64, i64, i64, i64, Option<String>)> = on_tx!(&mut *tx, |db| {
            let mut query = QueryBuilder::new(
                "SELECT item_id, up, down, mixed, component FROM triage_comment_reactions WHERE item_id IN (",
            );
            // GitHub's ids increase, so the last one is the latest comment.
            query.push_list(batch.iter().copied()).push(" ORDER BY item_id, comment_id");
            query.build_query_as().fetch_all(db).await?
        });
        for (item, up, down, mixed, component) in rows {
            let people = |count: i64| u32::try_from(count).map_err(StoreError::damaged);
            let counts = CommentReactions { up: people(up)?, down: people(down)?, mixed: people(mixed)? };
            reactions.insert(item, ItemReactions { counts, component: optional_component(component)? });
        }
    }
    Ok(reactions)
}

#[derive(sqlx::FromRow)]
struct CommentRow {
    repo_id: i64,
    github_id: Option<i64>,
    name: String,
    number: i64,
    item_type: Option<String>,
    answer: Option<Json<SentComment>>,
    updated_at: i64,
    edited_at: Option<i64>,
}

/// The stored answer to a comment that was sent.
#[derive(Deserialize)]
struct SentComment {
    comment: Option<WrittenComment>,
}

#[derive(Deserialize)]
struct WrittenComment {
    id: GithubId,
    created_at: Option<Timestamp>,
}

impl CommentRow {
    /// `None` for an entry without a comment.
    fn read(self) -> Result<Option<TriageComment>, StoreError> {
        let Some(item_type) = self.item_type else { return Ok(None) };
        let Some(written) = self.answer.and_then(|answer| answer.0.comment) else { return Ok(None) };
        let said_at = written.created_at.map_or_else(|| moment(self.updated_at), Ok)?;
        let edited_at = optional_moment(self.edited_at)?;
        Ok(Some(TriageComment {
            repo: Repo { id: RepoId(self.repo_id), github_id: self.github_id.map(GithubId), name: word(&self.name)? },
            item_type: word(&item_type)?,
            number: number(self.number)?,
            comment: written.id,
            said_at,
            worded_at: edited_at.map_or(said_at, |edited_at| edited_at.max(said_at)),
            synced_at: None,
        }))
    }
}
