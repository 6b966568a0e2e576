//! Writes decisions: all are kept, and each item has at most one accepted edge in force per representation.

use canonry_boxed::boxed;
use std::collections::HashMap;

use canonry_domain::{ContentVersion, DecisionStatus, GateReason, Probability};
use jiff::Timestamp;
use sqlx::QueryBuilder;
use sqlx::types::Json;

use crate::corpus::items::{ItemKeys, NUMBERS_PER_STATEMENT};
use crate::corpus::repos::RepoId;
use crate::duplicates::candidate_sets::Representation;
use crate::duplicates::judge_decisions::{DecisionId, NewDecision};
use crate::engine::facets::JudgeStore;
use crate::engine::lists::PushList as _;
use crate::engine::row_values::{micros, storable, word};
use crate::engine::transaction::{StoreError, Transaction, on_tx};

/// The stored length of an answer. A judge is asked for a tenth of this.
pub const ANSWER_LIMIT: usize = 8_000;

#[boxed]
impl JudgeStore<'_> {
    /// Writes decisions, all or none, as if one after the other; the keys are returned in their order.
    ///
    /// An accepted decision replaces the accepted one of the same source and representation. A decision that accepts
    /// nothing also ends it if it [`replaces`](NewDecision::replaces) it, or if the source's or the target's text has
    /// changed since the edge was judged; a skip because of an existing edge never does. A decision about an older
    /// source text than that of the edge in force changes nothing: it came late.
    pub async fn write_decisions(
        self,
        repo: RepoId,
        decisions: &[NewDecision],
        now: Timestamp,
    ) -> Result<Vec<DecisionId>, StoreError> {
        let mut tx = self.pool.begin().await?;
        tx.lock_items_of(repo).await?;
        let named = decisions.iter().flat_map(|new| std::iter::once(new.number).chain(new.target));
        let keys = ItemKeys::read(&mut tx, repo, named).await?;
        let mut rows = Vec::with_capacity(decisions.len());
        for new in decisions {
            let source = keys.id(new.item_type, new.number)?;
            rows.push(NewRow { source, target: keys.optional_id(new.item_type, new.target)?, new, superseded: false });
        }
        let in_force = edges_in_force(&mut tx, &rows).await?;
        let ended = supersede(in_force, &mut rows);
        end_decisions(&mut tx, &ended, now).await?;
        let mut ids = Vec::with_capacity(rows.len());
        for batch in rows.chunks(ROWS_PER_STATEMENT) {
            ids.extend(insert(&mut tx, repo, batch, now).await?);
        }
        tx.commit().await?;
        Ok(ids)
    }
}

/// 24 columns a row; SQLite accepts at most 32,766 values in a statement.
const ROWS_PER_STATEMENT: usize = 500;

struct NewRow<'a> {
    source: i64,
    target: Option<i64>,
    new: &'a NewDecision,
    superseded: bool,
}

/// The accepted edge of a source and representation at one point of the writing.
struct InForce {
    place: Place,
    source_version: i64,
    /// Whether the target's text is still the judged one.
    target_fresh: bool,
}

enum Place {
    Stored(i64),
    New(usize),
}

type EdgesInForce = HashMap<(i64, Representation), InForce>;

async fn edges_in_force(tx: &mut Transaction, rows: &[NewRow<'_>]) -> Result<EdgesInForce, StoreError> {
    let mut sources: Vec<i64> = rows.iter().map(|row| row.source).collect();
    sources.sort_unstable();
    sources.dedup();
    let mut edges = EdgesInForce::new();
    for batch in sources.chunks(NUMBERS_PER_STATEMENT) {
        let found: Vec<(i64, i64, String, i64, bool)> = on_tx!(&mut *tx, |db| {
            let mut query = QueryBuilder::new(
                "SELECT d.id, d.item_id, d.representation, d.source_version, d.target_version = t.content_version \
                FROM judge_decisions d JOIN items t ON t.id = d.target_item_id \
                WHERE d.status = 'accepted' AND d.superseded_at IS NULL AND d.item_id IN (",
            );
            query.push_list(batch.iter().copied());
            query.build_query_as().fetch_all(db).await?
        });
        for (id, source, representation, source_version, target_fresh) in found {
            let edge = InForce { place: Place::Stored(id), source_version, target_fresh };
            edges.insert((source, word(&representation)?), edge);
        }
    }
    Ok(edges)
}

/// Applies the rows one after the other. Returns the stored decisions that end, and marks the rows that end each
/// other.
fn supersede(mut in_force: EdgesInForce, rows: &mut [NewRow<'_>]) -> Vec<i64> {
    let mut ended = Vec::new();
    for at in 0..rows.len() {
        let new = rows[at].new;
        let version = new.source_version.get();
        let place = (rows[at].source, new.representation);
        let accepted = new.status == DecisionStatus::Accepted;
        if let Some(edge) = in_force.get(&place) {
            let late = version < edge.source_version;
            let stale = version > edge.source_version || !edge.target_fresh;
            let leaves =
                new.status == DecisionStatus::Skipped && GateReason::ExistingEdge.is_stored_as(new.reason.as_deref());
            if late || (!accepted && (leaves || !(new.replaces || stale))) {
                rows[at].superseded = accepted;
                continue;
            }
            match edge.place {
                Place::Stored(id) => ended.push(id),
                Place::New(earlier) => rows[earlier].superseded = true,
            }
            in_force.remove(&place);
        }
        if accepted {
            // A row that is written now counts as fresh: its judge read the target just before.
            in_force.insert(place, InForce { place: Place::New(at), source_version: version, target_fresh: true });
        }
    }
    ended
}

async fn end_decisions(tx: &mut Transaction, ids: &[i64], now: Timestamp) -> Result<(), StoreError> {
    for batch in ids.chunks(NUMBERS_PER_STATEMENT) {
        on_tx!(&mut *tx, |db| {
            let mut query = QueryBuilder::new("UPDATE judge_decisions SET superseded_at = ");
            query.push_bind(micros(now)).push(" WHERE id IN (");
            query.push_list(batch.iter().copied());
            query.build().execute(db).await?;
        });
    }
    Ok(())
}

async fn insert(
    tx: &mut Transaction,
    repo: RepoId,
    rows: &[NewRow<'_>],
    now: Timestamp,
) -> Result<Vec<DecisionId>, StoreError> {
    let mut ids: Vec<i64> = on_tx!(tx, |db| {
        let mut query = QueryBuilder::new(
            "INSERT INTO judge_decisions (repo_id, item_id, target_item_id, representation, candidate_set_id, origin, status, \
            superseded_at, model_is_duplicate, confidence, reasoning, structure, reason, answer, provider, model, \
            prompt_version, config_hash, input_hash, source_version, target_version, candidates, created_at, run_id) ",
        );
        query.push_values(rows, |mut row, NewRow { source, target, new, superseded }| {
            row.push_bind(repo.0)
                .push_bind(*source)
                .push_bind(*target)
                .push_bind(new.representation.as_str())
                .push_bind(new.candidate_set)
                .push_bind(new.origin.as_str())
                .push_bind(new.status.as_str())
                .push_bind(superseded.then_some(micros(now)))
                .push_bind(new.model_is_duplicate)
                .push_bind(new.confidence.map(Probability::get))
                .push_bind(new.reasoning.as_deref().map(storable))
                .push_bind(new.structure.map(Json))
                .push_bind(new.reason.as_deref().map(storable))
                .push_bind(new.answer.as_deref().map(|answer| cut(&storable(answer))))
                .push_bind(new.provider.as_str())
                .push_bind(new.model.as_str())
                .push_bind(new.prompt_version)
                .push_bind(new.config_hash.as_str())
                .push_bind(new.input_hash.as_str())
                .push_bind(new.source_version.get())
                .push_bind(new.target_version.map(ContentVersion::get))
                .push_bind(Json(&new.candidates))
                .push_bind(micros(now))
                .push_bind(new.run_id.as_str());
        });
        query.push(" RETURNING id");
        query.build_query_scalar().fetch_all(db).await?
    });
    // On both engines the keys grow with the rows of a statement, but the order in which they are returned is not
    // guaranteed.
    ids.sort_unstable();
    Ok(ids.into_iter().map(DecisionId).collect())
}

fn cut(answer: &str) -> String {
    answer.chars().take(ANSWER_LIMIT).collect()
}
