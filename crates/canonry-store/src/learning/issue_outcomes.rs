//! The outcome and the lesson of each issue: derived from its events, records and reactions, and updated in every
//! transaction that adds one.

use canonry_boxed::boxed;
use std::collections::BTreeMap;

use canonry_domain::{
    Component, IssueOutcome, IssueResolution, ItemNumber, ItemType, Lesson, LessonKind, RepoName, ThresholdAdjusted,
    counted_triage, issue_outcome, lesson_of, lesson_of_fix, reacted_triage,
};
use jiff::Timestamp;
use sqlx::QueryBuilder;
use sqlx::types::Json;

use crate::corpus::items::NUMBERS_PER_STATEMENT;
use crate::corpus::repos::RepoId;
use crate::engine::facets::LearningStore;
use crate::engine::lists::PushList as _;
use crate::engine::row_values::{micros, optional_component};
use crate::engine::rows::{from_row, unwrap_all};
use crate::engine::transaction::{StoreError, Transaction, on_pool, on_tx};
use crate::learning::comment_reactions::reactions_of;
use crate::learning::outcome_events::events_of;
use crate::learning::own_closes::without_repeated_reports;
use crate::learning::past_triage::triages_of;
use crate::learning::thresholds::relearn_thresholds;

#[derive(Debug, Clone, PartialEq)]
pub struct StoredOutcome {
    pub outcome: IssueOutcome,
    pub lesson: Lesson,
    pub triage_id: Option<i64>,
    pub updated_at: Timestamp,
}

from_row!(StoredOutcome { outcome, lesson, triage_id, updated_at });

#[boxed]
impl LearningStore<'_> {
    /// Returns the outcome of an issue; `None` if nothing ever happened to it.
    pub async fn issue_outcome(self, repo: RepoId, number: ItemNumber) -> Result<Option<StoredOutcome>, StoreError> {
        let query = "SELECT o.outcome, o.lesson, o.triage_id, o.updated_at FROM issue_outcomes o
            JOIN items i ON i.id = o.item_id WHERE i.repo_id = $1 AND i.type = $2 AND i.number = $3";
        Ok(on_pool!(self.pool, |db| {
            let query = sqlx::query_as(query).bind(repo.0).bind(ItemType::Issue.as_str()).bind(number.get());
            query.fetch_optional(db).await?
        }))
    }

    /// Counts the triaged issues of each repository by lesson, ordered by name.
    pub async fn outcome_counts(self) -> Result<Vec<(RepoName, LessonKind, u64)>, StoreError> {
        let query = "SELECT r.name, o.lesson_kind, count(*) FROM issue_outcomes o JOIN repos r ON r.id = o.repo_id
            WHERE o.triage_id IS NOT NULL GROUP BY r.name, o.lesson_kind ORDER BY r.name, o.lesson_kind";
        Ok(unwrap_all(on_pool!(self.pool, |db| sqlx::query_as(query).fetch_all(db).await?)))
    }
}

/// The outcome of one issue, derived from the log.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Derived {
    outcome: IssueOutcome,
    triage_id: Option<i64>,
    pub(crate) lesson: Lesson,
    /// The bucket of the lesson: the issue's component at the time of its outcome or of the reactions.
    pub(crate) component: Option<Component>,
}

/// Derives the outcomes of these issues from the log, by the store's key. Issues without events and reactions are
/// skipped.
pub(crate) async fn derive(tx: &mut Transaction, items: &[i64]) -> Result<BTreeMap<i64, Derived>, StoreError> {
    let mut events = events_of(tx, items).await?;
    let triages = triages_of(tx, items).await?;
    let reactions = reactions_of(tx, items).await?;
    let mut derived = BTreeMap::new();
    for item in items {
        let (events, reactions) = (events.remove(item), reactions.get(item));
        if events.is_none() && reactions.is_none() {
            continue;
        }
        let outcome = issue_outcome(&without_repeated_reports(events.unwrap_or_default()));
        let records = triages.get(item).map(Vec::as_slice).unwrap_or_default();
        // Reactions count while there is no outcome, for the text of the comment.
        let heard = reactions.filter(|_| outcome.outcome == IssueResolution::Unknown);
        let reacted = heard.and_then(|heard| Some((records[reacted_triage(records)?], Some(heard.counts))));
        let counted = reacted.or_else(|| Some((records[counted_triage(records, &outcome)?], None)));
        let lesson = counted.map_or(Lesson::Unknown, |(record, heard)| match record.fixed {
            Some(named) => lesson_of_fix(named, heard),
            None => lesson_of(&outcome, record.prediction, heard),
        });
        let component = match outcome.outcome {
            IssueResolution::Unknown => reactions.and_then(|reactions| reactions.component.clone()),
            _ => outcome.component.clone(),
        };
        derived.insert(*item, Derived { triage_id: counted.map(|(record, _)| record.id), lesson, component, outcome });
    }
    Ok(derived)
}

/// Derives issues again inside a transaction that has the repository's lock, and relearns the thresholds if a lesson
/// has changed.
pub(crate) async fn relearn(
    tx: &mut Transaction,
    repo: RepoId,
    items: &[i64],
    now: Timestamp,
) -> Result<Vec<ThresholdAdjusted>, StoreError> {
    if items.is_empty() {
        return Ok(Vec::new());
    }
    let derived = derive(tx, items).await?;
    let stored = read_stored(tx, items).await?;
    let mut has_new_lesson = false;
    for (item, derived) in &derived {
        let stored = stored.get(item);
        if stored != Some(derived) {
            write(tx, repo, *item, derived, now).await?;
        }
        has_new_lesson |= stored.map_or(derived.lesson != Lesson::Unknown, |stored| {
            (stored.lesson, &stored.component) != (derived.lesson, &derived.component)
        });
    }
    if has_new_lesson { relearn_thresholds(tx, repo, now).await } else { Ok(Vec::new()) }
}

/// Returns the issues of a repository with events or reactions.
pub(crate) async fn issues_with_events(tx: &mut Transaction, repo: RepoId) -> Result<Vec<i64>, StoreError> {
    let query = "SELECT i.id FROM items i WHERE i.repo_id = $1 AND i.type = 'issue'
        AND (EXISTS (SELECT 1 FROM outcome_events e WHERE e.item_id = i.id)
            OR EXISTS (SELECT 1 FROM triage_comment_reactions c WHERE c.item_id = i.id)) ORDER BY i.id";
    Ok(on_tx!(tx, |db| sqlx::query_scalar(query).bind(repo.0).fetch_all(db).await?))
}

type Row = (i64, Json<IssueOutcome>, Json<Lesson>, Option<i64>, Option<String>);

async fn read_stored(tx: &mut Transaction, items: &[i64]) -> Result<BTreeMap<i64, Derived>, StoreError> {
    let mut stored = BTreeMap::new();
    for batch in items.chunks(NUMBERS_PER_STATEMENT) {
        let rows: Vec<Row> = on_tx!(&mut *tx, |db| {
            let mut query = QueryBuilder::new(
                "SELECT item_id, outcome, lesson, triage_id, component FROM issue_outcomes WHERE item_id IN (",
            );
            query.push_list(batch.iter().copied());
            query.build_query_as().fetch_all(db).await?
        });
        for (item, Json(outcome), Json(lesson), triage_id, component) in rows {
            let component = optional_component(component)?;
            stored.insert(item, Derived { outcome, triage_id, lesson, component });
        }
    }
    Ok(stored)
}

async fn write(
    tx: &mut Transaction,
    repo: RepoId,
    item: i64,
    derived: &Derived,
    now: Timestamp,
) -> Result<(), StoreError> {
    let upsert =
        "INSERT INTO issue_outcomes (item_id, repo_id, triage_id, outcome, lesson, lesson_kind, level, component, updated_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
        ON CONFLICT (item_id) DO UPDATE SET triage_id = excluded.triage_id, outcome = excluded.outcome,
            lesson = excluded.lesson, lesson_kind = excluded.lesson_kind, level = excluded.level,
            component = excluded.component, updated_at = excluded.updated_at";
    on_tx!(tx, |db| {
        sqlx::query(upsert)
            .bind(item)
            .bind(repo.0)
            .bind(derived.triage_id)
            .bind(Json(&derived.outcome))
            .bind(Json(derived.lesson))
            .bind(derived.lesson.kind().as_str())
            .bind(derived.lesson.level().map(i64::from))
            .bind(derived.component.as_ref().map(Component::as_str))
            .bind(micros(now))
            .execute(db)
            .await?;
    });
    Ok(())
}
