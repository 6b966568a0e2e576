//! The history of lessons: counts per period, and the newest lessons one by one.

use canonry_boxed::boxed;
use std::collections::HashMap;

use canonry_domain::{
    Component, CountedLessons, EventBy, IssueOutcome, ItemNumber, Lesson, LessonKind, LessonPeriod, Login,
    OutcomeEvidence,
};
use jiff::Timestamp;
use sqlx::QueryBuilder;
use sqlx::types::Json;

use crate::corpus::repos::RepoId;
use crate::engine::facets::LearningStore;
use crate::engine::lists::PushList as _;
use crate::engine::row_values::{count, micros, moment, number, optional_word, word};
use crate::engine::transaction::{StoreError, on_pool};

/// The most periods of a log: as many as a chart can show side by side.
const MOST_PERIODS: i64 = 60;

const SECOND: i64 = 1_000_000;
const DAY: i64 = 24 * 3_600 * SECOND;
/// The possible lengths of a period in microseconds: lengths with common names.
const LENGTHS: [(i64, LogStep); 7] = [
    (3_600 * SECOND, LogStep::Hour),
    (6 * 3_600 * SECOND, LogStep::SixHours),
    (DAY, LogStep::Day),
    (7 * DAY, LogStep::Week),
    (28 * DAY, LogStep::FourWeeks),
    (91 * DAY, LogStep::Quarter),
    (364 * DAY, LogStep::Year),
];
/// A Monday at midnight, so that weeks begin on Mondays.
const MONDAY: i64 = -3 * DAY;

/// The length of a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogStep {
    Hour,
    SixHours,
    Day,
    Week,
    FourWeeks,
    Quarter,
    Year,
}

/// The lessons of a repository by period.
#[derive(Debug, Clone, PartialEq)]
pub struct LessonLog {
    pub step: LogStep,
    /// The periods from the first outcome to the last, without gaps, at most 60; empty if nothing was learned.
    pub periods: Vec<LessonPeriod>,
}

/// Selects outcomes; `None` means any.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LessonFilter<'a> {
    pub component: Option<&'a Component>,
    pub kind: Option<LessonKind>,
}

/// One outcome, its lesson, and who decided it.
#[derive(Debug, Clone, PartialEq)]
pub struct LearnedOutcome {
    /// The store's key of the issue; a list continues from the time and this key.
    pub id: i64,
    pub number: ItemNumber,
    pub title: String,
    pub outcome: IssueOutcome,
    pub lesson: Lesson,
    /// Who decided, if known.
    pub by: Option<Login>,
    /// The decider's role in the repository; `None` if the lesson comes from reactions to a comment.
    pub by_whom: Option<EventBy>,
    /// When it was learned.
    pub at: Timestamp,
}

#[boxed]
impl LearningStore<'_> {
    /// Counts the lessons of a repository by period.
    ///
    /// Lessons of `component` have its name and all others have none: thresholds of a component depend on how much is
    /// known about the whole repository. Each outcome counts at the time of its last change.
    pub async fn lesson_log(self, repo: RepoId, component: Option<&Component>) -> Result<LessonLog, StoreError> {
        // Each end separately: SQLite finds one in the index, but reads the whole index for both at once.
        let span = "SELECT
            (SELECT min(updated_at) FROM issue_outcomes WHERE repo_id = $1 AND lesson_kind <> 'unknown'),
            (SELECT max(updated_at) FROM issue_outcomes WHERE repo_id = $1 AND lesson_kind <> 'unknown')";
        let (first, last): (Option<i64>, Option<i64>) =
            on_pool!(self.pool, |db| sqlx::query_as(span).bind(repo.0).fetch_one(db).await?);
        let (Some(first), Some(last)) = (first, last) else {
            return Ok(LessonLog { step: LogStep::Day, periods: Vec::new() });
        };
        let cut = Cut::of(first, last);
        let counted = "SELECT (updated_at - $2) / $3, lesson_kind, level,
                CAST(CASE WHEN component = $4 THEN 1 ELSE 0 END AS BIGINT), count(*)
            FROM issue_outcomes WHERE repo_id = $1 AND lesson_kind <> 'unknown' AND updated_at <= $5 GROUP BY 1, 2, 3, 4";
        let rows: Vec<(i64, String, Option<i64>, i64, i64)> = on_pool!(self.pool, |db| {
            sqlx::query_as(counted)
                .bind(repo.0)
                .bind(cut.start)
                .bind(cut.length)
                .bind(component.map(Component::as_str))
                .bind(last)
                .fetch_all(db)
                .await?
        });
        let mut periods = Vec::with_capacity(cut.periods);
        for index in 0..cut.periods as i64 {
            let (from, until) = (cut.start + index * cut.length, cut.start + (index + 1) * cut.length);
            periods.push(LessonPeriod { from: moment(from)?, until: moment(until)?, lessons: Vec::new() });
        }
        for (period, kind, level, inside, times) in rows {
            // Outcomes that were decided after the span was read belong to the first or the last period.
            let period = usize::try_from(period).unwrap_or(0).min(cut.periods - 1);
            periods[period].lessons.push(CountedLessons {
                kind: word(&kind)?,
                level: level.map(u8::try_from).transpose().map_err(StoreError::damaged)?,
                component: component.filter(|_| inside == 1).cloned(),
                times: count(times)?,
            });
        }
        Ok(LessonLog { step: cut.step, periods })
    }

    /// Returns the outcomes with a lesson, latest first; `before` is the time and key of the last one of the previous
    /// page.
    pub async fn latest_lessons(
        self,
        repo: RepoId,
        filter: LessonFilter<'_>,
        before: Option<(Timestamp, i64)>,
        limit: u32,
    ) -> Result<Vec<LearnedOutcome>, StoreError> {
        let rows: Vec<LearnedRow> = on_pool!(self.pool, |db| {
            // The page first, then its titles: the first sync stores all outcomes at one time, and they are all sorted.
            let mut query = QueryBuilder::new(
                "SELECT o.item_id, i.number, i.title, o.outcome, o.lesson, o.updated_at
                FROM (SELECT o.item_id FROM issue_outcomes o WHERE o.lesson_kind <> 'unknown' AND o.repo_id = ",
            );
            query.push_bind(repo.0);
            if let Some(component) = filter.component {
                query.push(" AND o.component = ").push_bind(component.as_str());
            }
            if let Some(kind) = filter.kind {
                query.push(" AND o.lesson_kind = ").push_bind(kind.as_str());
            }
            if let Some((at, item)) = before {
                // Only the time uses the index.
                query.push(" AND o.updated_at <= ").push_bind(micros(at));
                query
                    .push(" AND (o.updated_at, o.item_id) < (")
                    .push_bind(micros(at))
                    .push(", ")
                    .push_bind(item)
                    .push(")");
            }
            let latest_first = " ORDER BY o.updated_at DESC, o.item_id DESC";
            query.push(latest_first).push(" LIMIT ").push_bind(i64::from(limit));
            query.push(") page JOIN issue_outcomes o ON o.item_id = page.item_id JOIN items i ON i.id = o.item_id");
            query.push(latest_first);
            query.build_query_as().fetch_all(db).await?
        });
        let deciders = self.deciders_of(&rows).await?;
        rows.into_iter()
            .map(|(item, issue, title, Json(outcome), Json(lesson), at)| {
                let decider = outcome.decided_by.as_ref().and_then(|delivery| deciders.get(&(item, delivery.clone())));
                let reactions = outcome.evidence == OutcomeEvidence::Nothing;
                Ok(LearnedOutcome {
                    id: item,
                    number: number(issue)?,
                    title,
                    by: decider.and_then(|(actor, _)| actor.clone()),
                    by_whom: decider.map(|(_, by)| *by).or((!reactions).then_some(EventBy::Unknown)),
                    outcome,
                    lesson,
                    at: moment(at)?,
                })
            })
            .collect()
    }

    /// Returns who caused the events that decided these outcomes, by issue and delivery.
    async fn deciders_of(self, rows: &[LearnedRow]) -> Result<Deciders, StoreError> {
        if rows.is_empty() {
            return Ok(Deciders::default());
        }
        let found: Vec<(i64, String, Option<String>, String)> = on_pool!(self.pool, |db| {
            let mut query =
                QueryBuilder::new("SELECT item_id, delivery_id, actor, by_whom FROM outcome_events WHERE item_id IN (");
            query.push_list(rows.iter().map(|(item, ..)| *item));
            query.build_query_as().fetch_all(db).await?
        });
        found
            .into_iter()
            .map(|(item, delivery, actor, by)| Ok(((item, delivery), (optional_word(actor.as_deref())?, word(&by)?))))
            .collect()
    }
}

type LearnedRow = (i64, i64, String, Json<IssueOutcome>, Json<Lesson>, i64);
type Deciders = HashMap<(i64, String), (Option<Login>, EventBy)>;

/// How a time span is divided into periods.
struct Cut {
    start: i64,
    length: i64,
    periods: usize,
    step: LogStep,
}

impl Cut {
    /// Chooses the shortest periods that a chart can show completely.
    fn of(first: i64, last: i64) -> Self {
        let mut cut = None;
        for (length, step) in LENGTHS {
            let start = MONDAY + (first - MONDAY).div_euclid(length) * length;
            let periods = (last - start).div_euclid(length) + 1;
            let of_these = Self { start, length, periods: periods.clamp(1, MOST_PERIODS) as usize, step };
            if periods <= MOST_PERIODS {
                return of_these;
            }
            cut = Some(of_these);
        }
        cut.expect("invariant: there is a length")
    }
}

#[cfg(test)]
mod tests {
    use super::{Cut, DAY, LogStep, SECOND};

    #[test]
    fn a_log_is_cut_into_stretches_that_people_have_words_for() {
        // A Thursday.
        let first = 1_800_000_000 * SECOND;
        for (days, step, periods) in [
            (0, LogStep::Hour, 1),
            (1, LogStep::Hour, 25),
            (7, LogStep::SixHours, 29),
            (30, LogStep::Day, 31),
            (365, LogStep::Week, 53),
            (365 * 3, LogStep::FourWeeks, 40),
            (365 * 10, LogStep::Quarter, 42),
            (365 * 30, LogStep::Year, 31),
            (365 * 200, LogStep::Year, 60),
        ] {
            let cut = Cut::of(first, first + days * DAY);
            assert_eq!((cut.step, cut.periods), (step, periods), "{days} days");
            assert!(cut.start <= first && first < cut.start + cut.length);
        }
        let week = Cut::of(first, first + 365 * DAY);
        assert_eq!((week.start / DAY + 3) % 7, 0, "a Monday");
    }
}
