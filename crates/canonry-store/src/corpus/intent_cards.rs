//! Stores intent cards: one current card for each item and extractor, valid while the item's text does not change.

use canonry_boxed::boxed;
use std::collections::HashMap;

use canonry_domain::{
    CARD_PROMPT_VERSION, CARD_RENDER_VERSION, CARD_SCHEMA_VERSION, ContentHash, ContentVersion, Extractor, IntentCard,
    Item, ItemNumber, ItemType,
};
use jiff::Timestamp;
use sqlx::QueryBuilder;
use sqlx::types::Json;

use crate::corpus::embeddings::cards_suffix;
use crate::corpus::index_changes::{IndexChange, note_index_change};
use crate::corpus::repos::RepoId;
use crate::engine::facets::CorpusStore;
use crate::engine::lists::PushList as _;
use crate::engine::row_values::{micros, moment, word};
use crate::engine::transaction::{StoreError, Transaction, on_pool, on_tx};

/// The extractor and model of a card. Only cards of this program's schema and prompt versions are written and count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardMaker {
    pub extractor: Extractor,
    pub model: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CardOutcome {
    Ready(Box<IntentCard>),
    Failed(String),
}

impl CardOutcome {
    pub const fn status(&self) -> &'static str {
        match self {
            Self::Ready(_) => "ready",
            Self::Failed(_) => "failed",
        }
    }
}

/// The latest result of one extractor for an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCard {
    pub maker: CardMaker,
    pub outcome: CardOutcome,
    /// The version of the item's text that the card was made from.
    pub source_version: ContentVersion,
    /// Whether the card counts: it succeeded, this program knows its schema, and the item's text did not change
    /// since.
    pub fresh: bool,
    pub created_at: Timestamp,
}

#[derive(sqlx::FromRow)]
struct CardRow {
    extractor: String,
    model: String,
    schema_version: i64,
    source_version: i64,
    same_text: bool,
    card: Option<Json<serde_json::Value>>,
    failure: Option<String>,
    created_at: i64,
}

impl CardRow {
    /// A card of an unknown schema version cannot be read, so it is returned as failed.
    fn read(self) -> Result<StoredCard, StoreError> {
        let known = self.schema_version == i64::from(CARD_SCHEMA_VERSION);
        let outcome = match (self.card, self.failure) {
            (Some(Json(card)), _) if known => {
                CardOutcome::Ready(serde_json::from_value(card).map_err(StoreError::damaged)?)
            }
            (Some(_), _) => CardOutcome::Failed(format!("the card is of schema {}", self.schema_version)),
            (None, failure) => CardOutcome::Failed(failure.unwrap_or_default()),
        };
        Ok(StoredCard {
            maker: CardMaker { extractor: word(&self.extractor)?, model: self.model },
            fresh: self.same_text && matches!(outcome, CardOutcome::Ready(_)),
            outcome,
            source_version: ContentVersion::stored(self.source_version),
            created_at: moment(self.created_at)?,
        })
    }
}

#[boxed]
impl CorpusStore<'_> {
    /// Writes a maker's results for items in one transaction and replaces its earlier ones.
    ///
    /// Each item is passed as it was read. `false` at an item's position means that nothing was written: the item no
    /// longer exists, its text has changed, or a failure would replace a card that the same maker made from the same
    /// text (a paid result is kept).
    pub async fn write_intent_cards(
        self,
        repo: RepoId,
        maker: &CardMaker,
        cards: &[(Item, CardOutcome)],
        now: Timestamp,
    ) -> Result<Vec<bool>, StoreError> {
        let mut tx = self.pool.begin().await?;
        let mut written = Vec::with_capacity(cards.len());
        for (item, outcome) in cards {
            written.push(write(&mut tx, repo, maker, item, outcome, micros(now)).await?);
        }
        let items: Vec<_> = cards.iter().map(|(item, _)| (item.item_type, item.number)).collect();
        note_index_change(&mut tx, repo, IndexChange::Items(&items)).await?;
        tx.commit().await?;
        Ok(written)
    }

    /// Returns an item's card by one extractor if it was made from the item's current text.
    pub async fn fresh_intent_card(
        self,
        repo: RepoId,
        item_type: ItemType,
        number: ItemNumber,
        extractor: Extractor,
    ) -> Result<Option<IntentCard>, StoreError> {
        let mut cards = self.intent_cards(repo, item_type, number).await?;
        cards.retain(|card| card.fresh && card.maker.extractor == extractor);
        Ok(cards.pop().and_then(|card| match card.outcome {
            CardOutcome::Ready(card) => Some(*card),
            CardOutcome::Failed(_) => None,
        }))
    }

    /// Returns the latest result of every extractor for an item, for display.
    pub async fn intent_cards(
        self,
        repo: RepoId,
        item_type: ItemType,
        number: ItemNumber,
    ) -> Result<Vec<StoredCard>, StoreError> {
        let query = "SELECT c.extractor, c.model, c.schema_version, c.source_version, c.source_hash = i.content_hash AS same_text, \
            c.card, c.failure, c.created_at FROM intent_cards c JOIN items i ON i.id = c.item_id \
            WHERE i.repo_id = $1 AND i.type = $2 AND i.number = $3 ORDER BY c.extractor";
        let rows: Vec<CardRow> = on_pool!(self.pool, |db| {
            sqlx::query_as(query).bind(repo.0).bind(item_type.as_str()).bind(number.get()).fetch_all(db).await?
        });
        rows.into_iter().map(CardRow::read).collect()
    }

    /// Returns, for each of these items that has a card by exactly this maker, the hash of the text it was made from.
    /// A card by another model or with another prompt is skipped.
    pub async fn intent_card_sources(
        self,
        repo: RepoId,
        maker: &CardMaker,
        items: &[Item],
    ) -> Result<HashMap<(ItemType, ItemNumber), ContentHash>, StoreError> {
        let mut sources = HashMap::with_capacity(items.len());
        for batch in items.chunks(NUMBERS_PER_STATEMENT) {
            let rows: Vec<(String, i64, String)> = on_pool!(self.pool, |db| {
                let mut query = QueryBuilder::new(
                    "SELECT i.type, i.number, c.source_hash FROM intent_cards c JOIN items i ON i.id = c.item_id \
                    WHERE c.status = 'ready' AND c.extractor = ",
                );
                query.push_bind(maker.extractor.as_str()).push(" AND c.model = ").push_bind(maker.model.as_str());
                query.push(" AND c.schema_version = ").push_bind(i64::from(CARD_SCHEMA_VERSION));
                query.push(" AND c.prompt_version = ").push_bind(i64::from(CARD_PROMPT_VERSION));
                query.push(" AND i.repo_id = ").push_bind(repo.0).push(" AND i.number IN (");
                query.push_list(batch.iter().map(|item| item.number.get()));
                query.build_query_as().fetch_all(db).await?
            });
            for (item_type, number, hash) in rows {
                let number = ItemNumber::new(number).map_err(StoreError::damaged)?;
                sources.insert((word(&item_type)?, number), ContentHash::stored(hash));
            }
        }
        Ok(sources)
    }
}

/// SQLite accepts at most 32,766 values in a statement.
const NUMBERS_PER_STATEMENT: usize = 5_000;

async fn write(
    tx: &mut Transaction,
    repo: RepoId,
    maker: &CardMaker,
    item: &Item,
    outcome: &CardOutcome,
    now: i64,
) -> Result<bool, StoreError> {
    let write = "INSERT INTO intent_cards (item_id, extractor, model, schema_version, prompt_version, render_version, \
        source_hash, source_version, status, card, failure, created_at) \
        SELECT id, $5, $6, $7, $8, $9, content_hash, content_version, $10, $11, $12, $13 FROM items \
        WHERE repo_id = $1 AND type = $2 AND number = $3 AND content_hash = $4 \
        ON CONFLICT (item_id, extractor) DO UPDATE SET model = excluded.model, schema_version = excluded.schema_version, \
        prompt_version = excluded.prompt_version, render_version = excluded.render_version, \
        source_hash = excluded.source_hash, source_version = excluded.source_version, status = excluded.status, \
        card = excluded.card, failure = excluded.failure, created_at = excluded.created_at \
        WHERE NOT (excluded.status = 'failed' AND intent_cards.status = 'ready' AND intent_cards.model = excluded.model \
        AND intent_cards.source_hash = excluded.source_hash AND intent_cards.schema_version = excluded.schema_version \
        AND intent_cards.prompt_version = excluded.prompt_version)";
    let (card, failure) = match outcome {
        CardOutcome::Ready(card) => (Some(Json(card)), None),
        CardOutcome::Failed(reason) => (None, Some(reason.as_str())),
    };
    let written = on_tx!(tx, |db| {
        sqlx::query(write)
            .bind(repo.0)
            .bind(item.item_type.as_str())
            .bind(item.number.get())
            .bind(item.content_hash.as_str())
            .bind(maker.extractor.as_str())
            .bind(maker.model.as_str())
            .bind(i64::from(CARD_SCHEMA_VERSION))
            .bind(i64::from(CARD_PROMPT_VERSION))
            .bind(i64::from(CARD_RENDER_VERSION))
            .bind(outcome.status())
            .bind(card)
            .bind(failure)
            .bind(now)
            .execute(db)
            .await?
            .rows_affected()
    });
    if written > 0 {
        forget_vectors(tx, repo, maker, item).await?;
    }
    Ok(written > 0)
}

/// Deletes the vectors of the card that this maker's new card of an item replaces.
async fn forget_vectors(tx: &mut Transaction, repo: RepoId, maker: &CardMaker, item: &Item) -> Result<(), StoreError> {
    let forget = "DELETE FROM embeddings WHERE representation = 'intent' AND model LIKE $4 AND item_id = \
        (SELECT id FROM items WHERE repo_id = $1 AND type = $2 AND number = $3)";
    on_tx!(tx, |db| {
        let query = sqlx::query(forget).bind(repo.0).bind(item.item_type.as_str()).bind(item.number.get());
        query.bind(format!("%{}", cards_suffix(maker.extractor))).execute(db).await?;
    });
    Ok(())
}
