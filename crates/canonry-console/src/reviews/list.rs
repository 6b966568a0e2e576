//! The reviews of a repository: figures and a daily chart of a period, then each review.

use std::collections::HashMap;
use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::Query;
use axum::routing::get;
use canonry_domain::review::{ReviewSubject, Severity};
use canonry_domain::{ItemNumber, redact};
use canonry_store::{
    EndedRun, EndedRunFilter, FileCount, ReviewDay, ReviewId, ReviewState, ReviewStatistics, RunEnd, SeverityCounts,
    StoredReview,
};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};

use crate::charts::Svg;
use crate::charts::days::days;
use crate::console::Console;
use crate::layout::errors::{PageError, PageResult};
use crate::layout::filters;
use crate::layout::form::QueryFields;
use crate::layout::formatting::{
    Badge, TimeLabel, counted, percent, severity_badge, subject_in_words, thousands, when,
};
use crate::layout::page::{NavSection, PageFrame, html, repo_path};
use crate::layout::paging::{PAGE, Pager, cut_page, link, number, word};
use crate::reviews::review_page;
use crate::sign_in::visit::{ReaderOf, RepoVisit};

const PERIODS: [u32; 3] = [7, 30, 90];
/// The most characters of an error that are shown.
const ERROR_SHOWN: usize = 400;

pub(crate) fn routes() -> Router<Arc<Console>> {
    Router::new()
        .route("/r/{owner}/{name}/reviews", get(show))
        .route("/r/{owner}/{name}/reviews/{id}", get(review_page::show))
}

struct ReviewQuery {
    days: u32,
    subject: Option<ReviewSubject>,
    end: Option<RunEnd>,
    before: Option<ReviewId>,
}

struct RunLine {
    id: i64,
    subject: String,
    subject_href: String,
    head: String,
    without: Option<WithoutReview>,
    review: Option<ReviewLine>,
    at: TimeLabel,
}

struct WithoutReview {
    badge: Badge,
    why: String,
}

struct ReviewLine {
    href: String,
    scope: String,
    shown: u64,
    suppressed: u64,
    fixed: u64,
    cost: String,
}

struct EndChoice {
    value: &'static str,
    words: &'static str,
    is_chosen: bool,
}

struct SeverityLine {
    badge: Badge,
    href: String,
    shown: u64,
    suppressed: u64,
    share: u64,
}

struct FileFindingsLine {
    path: String,
    href: String,
    findings: u64,
    share: u64,
}

struct ReviewPeriod {
    days: u32,
    href: String,
    is_chosen: bool,
}

#[derive(Template)]
#[template(path = "reviews/list.html")]
struct ReviewsPage {
    page: PageFrame,
    periods: Vec<ReviewPeriod>,
    figures: Vec<(String, &'static str)>,
    chart: Svg,
    days: Vec<ReviewDay>,
    has_any: bool,
    severities: Vec<SeverityLine>,
    files: Vec<FileFindingsLine>,
    rows: ReviewRows,
    chosen_days: u32,
}

#[derive(Template)]
#[template(path = "reviews/list_rows.html")]
struct ReviewRowsPart {
    rows: ReviewRows,
}

struct ReviewRows {
    path: String,
    pull: String,
    end: &'static str,
    ends: Vec<EndChoice>,
    runs: Vec<RunLine>,
    pager: Pager,
}

/// What is wrong with a filter, in place of the list: htmx does not show an error page.
#[derive(Template)]
#[template(path = "layout/filter_mistake.html")]
pub(crate) struct FilterMistake {
    pub(crate) words: String,
}

async fn show(ReaderOf(at): ReaderOf, Query(query): QueryFields) -> PageResult {
    let asked = match asked(&query) {
        Err(PageError::BadForm(words)) if at.visit.is_htmx => return html(&FilterMistake { words }),
        asked => asked?,
    };
    let rows = rows(&at, &asked, &query).await?;
    if at.visit.is_htmx {
        return html(&ReviewRowsPart { rows });
    }
    let now = at.console.now();
    let today = now.to_zoned(TimeZone::UTC).date();
    let from = today.saturating_sub((i64::from(asked.days) - 1).days());
    // From the first day's midnight, so that figures and bars cover the same reviews.
    let since = from.to_zoned(TimeZone::UTC).map(|midnight| midnight.timestamp()).ok();
    let statistics = at.console.store.review().statistics(at.repo.id, since).await?;
    let each_day = at.console.store.review().days(at.repo.id, from, asked.days).await?;
    let base = repo_path(&at.repo);
    let page = at
        .page("Reviews", NavSection::Reviews)
        .cli(format!("canonry trends --repo {} --days {}", at.repo.name, asked.days));
    html(&ReviewsPage {
        page,
        periods: PERIODS
            .iter()
            .map(|days| ReviewPeriod {
                days: *days,
                href: link(&rows.path, &[("days", &days.to_string()), ("pull", &rows.pull), ("state", rows.end)]),
                is_chosen: *days == asked.days,
            })
            .collect(),
        figures: figures(&statistics),
        chart: days(&each_day),
        days: each_day,
        has_any: statistics.reviews > 0,
        severities: severities(&statistics, &base),
        files: files(&statistics, &base),
        rows,
        chosen_days: asked.days,
    })
}

fn asked(query: &HashMap<String, String>) -> Result<ReviewQuery, PageError> {
    let days = word(query, "days").parse().ok().filter(|days| PERIODS.contains(days));
    let before = number(query, "before").map(ReviewId::new);
    let end = RunEnd::ALL.into_iter().find(|end| end_value(*end) == word(query, "state"));
    Ok(ReviewQuery { days: days.unwrap_or(30), subject: subject(query)?, end, before })
}

/// The pull request or branch that a list is limited to: `12`, `#12` or `branch/NAME`.
pub(crate) fn subject(query: &HashMap<String, String>) -> Result<Option<ReviewSubject>, PageError> {
    let text = word(query, "pull");
    if text.is_empty() {
        return Ok(None);
    }
    let number = text.strip_prefix('#').unwrap_or(text).parse().ok().and_then(|number| ItemNumber::new(number).ok());
    let subject = number.map(ReviewSubject::Pull).or_else(|| text.parse().ok());
    let wrong = || PageError::BadForm("enter a pull request's number, or a branch as branch/NAME".to_owned());
    subject.map(Some).ok_or_else(wrong)
}

/// The value of a subject in the filter's field and in the address.
pub(crate) fn subject_value(subject: Option<&ReviewSubject>) -> String {
    match subject {
        None => String::new(),
        Some(ReviewSubject::Pull(number)) => number.to_string(),
        Some(branch) => branch.to_string(),
    }
}

async fn rows(at: &RepoVisit, asked: &ReviewQuery, query: &HashMap<String, String>) -> Result<ReviewRows, PageError> {
    let filter = EndedRunFilter { subject: asked.subject.as_ref(), end: asked.end };
    let mut found = at.console.store.review().ended_runs(at.repo.id, filter, asked.before, PAGE + 1).await?;
    let next = cut_page(&mut found, PAGE, |ended| ("before", ended.run.id.to_string()));
    let base = repo_path(&at.repo);
    let path = format!("{base}/reviews");
    let pull = subject_value(asked.subject.as_ref());
    let end = asked.end.map(end_value).unwrap_or_default();
    let kept = [("days", word(query, "days")), ("pull", pull.as_str()), ("state", end)];
    let pager = Pager::new("Pages of reviews", &path, &kept, asked.before.is_none(), next);
    let pager = pager.in_section("all");
    let now = at.console.now();
    let runs = found.into_iter().map(|ended| line(ended, &base, now)).collect();
    let choice = |(value, words)| EndChoice { value, words, is_chosen: value == end };
    let ends = [("", "any")].into_iter().chain(RunEnd::ALL.map(|end| (end_value(end), end_value(end))));
    Ok(ReviewRows { path, pull, end, ends: ends.map(choice).collect(), runs, pager })
}

/// The value of a review's end in the address and in the filter.
const fn end_value(end: RunEnd) -> &'static str {
    end.state().as_str()
}

/// An error that may be shown: messages of programs and services may be long and contain secrets.
fn shown(error: &str) -> String {
    redact(error).chars().take(ERROR_SHOWN).collect()
}

fn line(EndedRun { run, review }: EndedRun, base: &str, now: Timestamp) -> RunLine {
    let subject_href = link(&format!("{base}/reviews"), &[("pull", &subject_value(Some(&run.subject)))]);
    let without = match run.state {
        ReviewState::Failed => Some(WithoutReview {
            badge: Badge::new("bad", "failed"),
            why: run.error.map_or_else(|| "no reason was recorded".to_owned(), |error| shown(&error)),
        }),
        ReviewState::Superseded => Some(WithoutReview {
            badge: Badge::new("mute", "superseded"),
            why: "replaced by a newer commit or request".to_owned(),
        }),
        ReviewState::Pending | ReviewState::Running | ReviewState::Completed => None,
    };
    RunLine {
        id: run.id.get(),
        subject: subject_in_words(&run.subject),
        subject_href,
        head: run.head.short().to_owned(),
        without,
        at: when(run.finished_at.unwrap_or(run.created_at), now),
        review: review.map(|review| review_line(&review, base)),
    }
}

fn review_line(review: &StoredReview, base: &str) -> ReviewLine {
    ReviewLine {
        href: format!("{base}/reviews/{}", review.id),
        scope: scope_words(review),
        shown: review.shown,
        suppressed: review.suppressed,
        fixed: review.fixed,
        cost: dollars(review.cost_usd),
    }
}

/// The scope of a review: `full`, or `changes since 1a2b3c4`.
fn scope_words(review: &StoredReview) -> String {
    match review.reason.strip_prefix("incremental-from-") {
        Some(commit) => format!("changes since {commit}"),
        None => review.mode.as_str().to_owned(),
    }
}

/// `$0.0134`; empty for no cost.
pub(crate) fn dollars(cost: f64) -> String {
    if cost <= 0.0 { String::new() } else { format!("${cost:.4}") }
}

fn figures(statistics: &ReviewStatistics) -> Vec<(String, &'static str)> {
    let mut figures = vec![
        (thousands(statistics.reviews), "reviews"),
        (thousands(statistics.subjects), "pull requests"),
        (thousands(statistics.findings), "new findings"),
        (thousands(statistics.suppressed), "hidden"),
    ];
    figures.extend(statistics.fixed_rate.map(|rate| (percent(rate), "of shown findings fixed")));
    figures.extend(statistics.avg_confidence.map(|mean| (format!("{mean:.0} %"), "mean confidence")));
    figures
}

fn severities(statistics: &ReviewStatistics, base: &str) -> Vec<SeverityLine> {
    let most = statistics.by_severity.values().map(|counts| counts.shown + counts.suppressed).max().unwrap_or(0).max(1);
    let line = |(severity, counts): (&Severity, &SeverityCounts)| SeverityLine {
        badge: severity_badge(*severity),
        href: link(&format!("{base}/findings"), &[("severity", severity.as_str())]),
        shown: counts.shown,
        suppressed: counts.suppressed,
        share: (counts.shown + counts.suppressed) * 100 / most,
    };
    statistics.by_severity.iter().rev().map(line).collect()
}

fn files(statistics: &ReviewStatistics, base: &str) -> Vec<FileFindingsLine> {
    let most = statistics.top_files.iter().map(|file| file.findings).max().unwrap_or(0).max(1);
    let line = |file: &FileCount| FileFindingsLine {
        path: file.path.to_string(),
        href: link(&format!("{base}/findings"), &[("path", file.path.as_str())]),
        findings: file.findings,
        share: file.findings * 100 / most,
    };
    statistics.top_files.iter().map(line).collect()
}

impl ReviewLine {
    fn counts(&self) -> String {
        let mut parts = vec![counted(self.shown, "finding")];
        parts.extend((self.suppressed > 0).then(|| format!("{} hidden", self.suppressed)));
        parts.extend((self.fixed > 0).then(|| format!("{} fixed", self.fixed)));
        parts.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use canonry_store::ReviewStatistics;

    use super::figures;

    #[test]
    fn nearly_all_is_never_called_all() {
        let statistics = ReviewStatistics {
            reviews: 9,
            subjects: 3,
            findings: 400,
            shown: 400,
            suppressed: 0,
            fixed: 399,
            by_severity: BTreeMap::new(),
            avg_findings_per_review: None,
            avg_confidence: None,
            fixed_rate: Some(399.0 / 400.0),
            top_files: Vec::new(),
        };
        let fixed = figures(&statistics).into_iter().find(|(_, of)| of.ends_with("fixed"));
        assert_eq!(fixed.map(|(share, _)| share).as_deref(), Some("over 99\u{a0}%"));
    }
}
