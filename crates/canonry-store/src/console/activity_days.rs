//! Canonry's activity day by day, and the reactions of people.

use std::collections::BTreeMap;

use canonry_boxed::boxed;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use sqlx::QueryBuilder;

use crate::console::attention::RepoScope;
use crate::engine::facets::ConsoleStore;
use crate::engine::lists::PushList as _;
use crate::engine::row_values::count;
use crate::engine::transaction::{StoreError, on_pool};

/// Counts of one day in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActivityDay {
    pub date: Date,
    /// Comments that named a possible duplicate.
    pub suggestions: u64,
    /// Suggestions of that day that people confirmed since.
    pub confirmed: u64,
    /// Suggestions of that day that people rejected since.
    pub rejected: u64,
    pub closes: u64,
    /// Closes that were undone, or whose items people reopened.
    pub undone: u64,
    pub reviews: u64,
    /// Findings that a review of that day found fixed.
    pub fixed: u64,
}

const DAY: i64 = 86_400_000_000;

/// The number of a day since 1970 and its counts.
type DayRow = (i64, i64, i64, i64);

#[boxed]
impl ConsoleStore<'_> {
    /// Returns `days` days up to the day of `until`, oldest first, with empty days.
    pub async fn activity_days(
        self,
        scope: RepoScope<'_>,
        until: Timestamp,
        days: u16,
    ) -> Result<Vec<ActivityDay>, StoreError> {
        let last = until.as_microsecond().div_euclid(DAY);
        let first = last + 1 - i64::from(days);
        let (mut counted, since) = (BTreeMap::new(), first * DAY);
        for day in first..=last {
            counted.insert(day, empty_day(day)?);
        }
        for (day, suggestions, confirmed, rejected) in self.counts(SUGGESTIONS, scope, since).await? {
            if let Some(day) = counted.get_mut(&day) {
                (day.suggestions, day.confirmed, day.rejected) =
                    (count(suggestions)?, count(confirmed)?, count(rejected)?);
            }
        }
        for (day, closes, undone, _) in self.counts(CLOSES, scope, since).await? {
            if let Some(day) = counted.get_mut(&day) {
                (day.closes, day.undone) = (count(closes)?, count(undone)?);
            }
        }
        for (day, reopened, _, _) in self.counts(REOPENED, scope, since).await? {
            if let Some(day) = counted.get_mut(&day) {
                day.undone += count(reopened)?;
            }
        }
        for (day, reviews, fixed, _) in self.counts(REVIEWS, scope, since).await? {
            if let Some(day) = counted.get_mut(&day) {
                (day.reviews, day.fixed) = (count(reviews)?, count(fixed)?);
            }
        }
        Ok(counted.into_values().collect())
    }

    async fn counts(self, what: DayCounts, scope: RepoScope<'_>, since: i64) -> Result<Vec<DayRow>, StoreError> {
        Ok(on_pool!(self.pool, |db| {
            let mut query = QueryBuilder::new(what.select);
            query.push_bind(since);
            if let Some(repos) = scope.keys() {
                query.push(" AND ").push(what.repo).push(" IN (").push_list(repos);
            }
            query.push(" GROUP BY 1").build_query_as().fetch_all(db).await?
        }))
    }
}

/// A query for counts by day, up to the bind of its start time, and the column with the repository. SQLite runs a cross
/// join from left to right: the events since that time come first.
#[derive(Clone, Copy)]
struct DayCounts {
    select: &'static str,
    repo: &'static str,
}

const SUGGESTIONS: DayCounts = DayCounts {
    select: "SELECT a.created_at / 86400000000, count(*), count(*) FILTER (WHERE o.lesson_kind = 'confirmed'),
            count(*) FILTER (WHERE o.lesson_kind = 'false_positive')
        FROM triage_actions a CROSS JOIN triage_records d LEFT JOIN issue_outcomes o ON o.item_id = d.item_id
        WHERE d.id = a.triage_id AND a.action = 'commented' AND a.created_at >= ",
    repo: "d.repo_id",
};

const CLOSES: DayCounts = DayCounts {
    select: "SELECT c.result_at / 86400000000, count(*) FILTER (WHERE r.mode = 'apply'), count(*) FILTER (WHERE r.mode = 'undo'),
            CAST(0 AS BIGINT)
        FROM close_run_items c CROSS JOIN close_runs r WHERE r.id = c.run_id AND c.result = 'applied' AND c.result_at >= ",
    repo: "r.repo_id",
};

/// Undos are not included: they are Canonry's own runs and are counted with the closes.
const REOPENED: DayCounts = DayCounts {
    select: "SELECT o.at / 86400000000, count(*), CAST(0 AS BIGINT), CAST(0 AS BIGINT)
        FROM repos r JOIN objections o ON o.repo_id = r.id WHERE o.kind = 'reopened' AND o.at >= ",
    repo: "r.id",
};

const REVIEWS: DayCounts = DayCounts {
    select: "SELECT v.completed_at / 86400000000, count(*), CAST(sum(v.fixed) AS BIGINT), CAST(0 AS BIGINT)
        FROM repos r JOIN reviews v ON v.repo_id = r.id WHERE v.completed_at >= ",
    repo: "r.id",
};

fn empty_day(day: i64) -> Result<ActivityDay, StoreError> {
    let begins = Timestamp::from_microsecond(day * DAY).map_err(StoreError::damaged)?;
    let date = begins.to_zoned(TimeZone::UTC).date();
    Ok(ActivityDay { date, suggestions: 0, confirmed: 0, rejected: 0, closes: 0, undone: 0, reviews: 0, fixed: 0 })
}
