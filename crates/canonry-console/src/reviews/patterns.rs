//! Patterns: people's reactions to them, the findings that this hides, and clearing the reactions.

use std::collections::HashMap;
use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::Query;
use axum::routing::{get, post};
use canonry_domain::review::{Fingerprint, HiddenBy};
use canonry_domain::{GithubId, Login};
use canonry_review::{FeedbackReport, RatedPattern};
use canonry_store::{FeedbackClear, FindingId, PatternEntry, ReviewId, SuppressedFinding};
use jiff::Timestamp;

use crate::admin::repo_settings::settings_of;
use crate::console::Console;
use crate::layout::errors::{PageError, PageResult};
use crate::layout::filters;
use crate::layout::form::{Form, QueryFields};
use crate::layout::formatting::{Badge, TimeLabel, by, counted, hidden_by_in_words, when};
use crate::layout::page::{NavSection, PageFrame, back_to, html, repo_path};
use crate::layout::paging::{PAGE, Pager, contains_words, cut_page, filter_rows, link, number, word};
use crate::sign_in::visit::{MaintainerOf, ReaderOf, RepoVisit};

/// Clearings per page.
const CLEARS: u32 = 10;
/// Hidden findings per page.
const SUPPRESSIONS: u32 = 20;
/// Patterns that one page of a search reads: each needs several queries.
const PATTERNS_LOOKED_AT: u32 = 200;
/// Hidden findings that one page of a search reads.
const HIDDEN_LOOKED_AT: u32 = 5_000;
/// The author of a clearing with the admin token; no account on GitHub can have this name.
const OPERATOR: &str = "(operator)";

pub(crate) fn routes() -> Router<Arc<Console>> {
    Router::new()
        .route("/r/{owner}/{name}/patterns", get(show))
        .route("/r/{owner}/{name}/patterns/clear", post(clear))
        .route("/r/{owner}/{name}/patterns/restore", post(restore))
}

struct PatternLine {
    newest: GithubId,
    title: String,
    fingerprint: String,
    key: String,
    href: String,
    up: u32,
    down: u32,
    reactors: u32,
    pulls: u32,
    findings: u64,
    hidden: u64,
    state: Badge,
    reacted_at: TimeLabel,
}

struct ClearLine {
    /// The id that undoes it, while it is in force.
    id: Option<i64>,
    undone: Option<(String, TimeLabel)>,
    what: String,
    by: String,
    at: TimeLabel,
}

struct HiddenLine {
    title: String,
    href: String,
    review: ReviewId,
    review_href: String,
    why: String,
    at: TimeLabel,
}

#[derive(Template)]
#[template(path = "reviews/patterns.html")]
struct PatternsPage {
    page: PageFrame,
    path: String,
    rule: String,
    can_clear: bool,
    phrase: String,
    asked: PatternQuery,
    patterns: Vec<PatternLine>,
    pager: Pager,
    clears: Vec<ClearLine>,
    clear_pager: Pager,
    hidden: Vec<HiddenLine>,
    hidden_pager: Pager,
}

struct PatternQuery {
    /// The searched words of a pattern's title, and its state.
    title: String,
    state: String,
    /// The searched words of a hidden finding's title, and what hid it.
    hidden_title: String,
    why: String,
}

impl PatternQuery {
    fn of(query: &HashMap<String, String>) -> Self {
        let word = |name: &str| word(query, name).to_owned();
        Self { title: word("title"), state: word("state"), hidden_title: word("hidden_title"), why: word("why") }
    }

    fn is_filtered(&self) -> bool {
        !self.title.is_empty() || !self.state.is_empty()
    }

    fn hides_some(&self) -> bool {
        !self.hidden_title.is_empty() || !self.why.is_empty()
    }

    fn fits(&self, line: &PatternLine) -> bool {
        let words = format!("{} {} {}", line.title, line.fingerprint, line.key);
        contains_words(&words, &self.title) && (self.state.is_empty() || line.state.words == self.state)
    }

    fn fits_hidden(&self, one: &SuppressedFinding) -> bool {
        contains_words(&one.title, &self.hidden_title)
            && (self.why.is_empty() || one.hidden_by.as_ref().is_some_and(|by| kind_of(by) == self.why))
    }
}

/// What hides findings, as a value in the address and as text on the page.
const REASONS: [(&str, &str); 7] = [
    ("dismissal", "dismissed by a person"),
    ("feedback", "people reject its pattern"),
    ("pattern", "review.suppressions"),
    ("area", "its category"),
    ("severity", "its severity"),
    ("scope", "the scope of the review"),
    ("second-reading", "a second reading"),
];

const fn kind_of(by: &HiddenBy) -> &'static str {
    match by {
        HiddenBy::Dismissal => "dismissal",
        HiddenBy::Feedback => "feedback",
        HiddenBy::Pattern(_) => "pattern",
        HiddenBy::Area => "area",
        HiddenBy::Severity => "severity",
        HiddenBy::Scope => "scope",
        HiddenBy::SecondReading => "second-reading",
    }
}

async fn show(ReaderOf(at): ReaderOf, Query(query): QueryFields) -> PageResult {
    let (store, now, asked) = (&at.console.store, at.console.now(), PatternQuery::of(&query));
    let base = repo_path(&at.repo);
    let path = format!("{base}/patterns");
    let auto_suppress = settings_of(&at.console, at.repo.id).await?.config.feedback.auto_suppress;

    let after = number(&query, "after").map(GithubId);
    let looked_at = if asked.is_filtered() { PATTERNS_LOOKED_AT } else { PAGE };
    let entries = store.findings().pattern_pages(at.repo.id, after, looked_at + 1).await?;
    let report = FeedbackReport::rated(&auto_suppress, entries.iter().map(|entry| entry.pattern.clone()).collect());
    let lines = entries.iter().zip(&report.patterns).map(|(entry, rated)| line(entry, rated, &base, now)).collect();
    let patterns = filter_rows(lines, looked_at, PAGE, |line| asked.fits(line), |line| line.newest.0.to_string());
    // Paging one list keeps the position of the others.
    let others = |own: &str| -> Vec<(&str, &str)> {
        let all = ["title", "state", "after", "cleared", "hidden_title", "why", "hidden"];
        all.into_iter().filter(|name| *name != own).map(|name| (name, word(&query, name))).collect()
    };
    let kept = others("after");
    let next = patterns.next.map(|newest| ("after", newest));
    let pager = Pager::new("Pages of patterns", &path, &kept, after.is_none(), next).stopped(patterns.stopped_after);

    let before = number(&query, "cleared");
    let mut clears = store.findings().feedback_clears(at.repo.id, before, CLEARS + 1).await?;
    let next = cut_page(&mut clears, CLEARS, |one| ("cleared", one.id.to_string()));
    let clear_pager =
        Pager::new("Pages of clearings", &path, &others("cleared"), before.is_none(), next).of_section("cleared");

    let before = word(&query, "hidden").split_once('-');
    let before = before.and_then(|(review, finding)| Some((review.parse().ok()?, finding.parse().ok()?)));
    let before = before.map(|(review, finding)| (ReviewId::new(review), FindingId::new(finding)));
    let looked_at = if asked.hides_some() { HIDDEN_LOOKED_AT } else { SUPPRESSIONS };
    let hidden = store.findings().suppressions(at.repo.id, before, looked_at + 1).await?;
    let place = |one: &SuppressedFinding| format!("{}-{}", one.review, one.finding);
    let hidden = filter_rows(hidden, looked_at, SUPPRESSIONS, |one| asked.fits_hidden(one), place);
    let kept = others("hidden");
    let next = hidden.next.map(|place| ("hidden", place));
    let hidden_pager = Pager::new("Pages of what was hidden", &path, &kept, before.is_none(), next)
        .of_section("hidden")
        .stopped(hidden.stopped_after);

    let page = at.page("Patterns", NavSection::Patterns).cli(format!("canonry feedback list --repo {}", at.repo.name));
    html(&PatternsPage {
        page,
        rule: report.rule_in_words().replace('`', ""),
        can_clear: at.can_maintain(),
        phrase: clear_phrase(&at),
        asked,
        patterns: patterns.rows,
        pager,
        clears: clears.into_iter().map(|one| clear_line(one, now)).collect(),
        clear_pager,
        hidden: hidden.rows.into_iter().map(|one| hidden_line(one, &base, now)).collect(),
        hidden_pager,
        path,
    })
}

/// Stops counting the reactions so far, for one pattern or for all.
async fn clear(MaintainerOf(at): MaintainerOf, form: Form) -> PageResult {
    let pattern: Option<Fingerprint> = match (form.one("fingerprint"), form.one("all")) {
        (Some(text), _) => {
            Some(text.parse().map_err(|error| PageError::BadForm(format!("no pattern was named: {error}")))?)
        }
        (None, Some("1")) => None,
        (None, _) => return Err(PageError::BadForm("name the pattern to clear, or all of them".to_owned())),
    };
    let phrase = clear_phrase(&at);
    if pattern.is_none() && form.one("confirm") != Some(phrase.as_str()) {
        return Err(PageError::BadForm(format!("nothing was cleared. To clear all patterns, type “{phrase}”")));
    }
    let now = at.console.now();
    let subject = pattern.as_ref().map_or("all patterns", Fingerprint::as_str);
    let by = who(&at);
    at.record("clear reactions", subject).await?;
    let cleared = at.console.store.findings().clear_feedback(at.repo.id, pattern.as_ref(), &by, now).await?;
    let words = match cleared {
        0 => "There were no reactions to clear.".to_owned(),
        count => {
            format!(
                "Cleared the reactions to {}. Later reactions count. You can undo this below.",
                counted(count, "pattern")
            )
        }
    };
    Ok(back_to(&format!("{}/patterns", repo_path(&at.repo)), &words))
}

async fn restore(MaintainerOf(at): MaintainerOf, form: Form) -> PageResult {
    let id = form.needed("id")?;
    let id: i64 = id.parse().map_err(|_| PageError::BadForm("no clear was named".to_owned()))?;
    let now = at.console.now();
    at.record("undo a clear of reactions", &id.to_string()).await?;
    let undone = at.console.store.findings().undo_feedback_clear(at.repo.id, Some(id), &who(&at), now, now).await?;
    let words = match undone {
        None => "Already undone.".to_owned(),
        Some(undone) => format!("Undone: the reactions to {} count again.", counted(undone.patterns, "pattern")),
    };
    Ok(back_to(&format!("{}/patterns", repo_path(&at.repo)), &words))
}

fn clear_phrase(at: &RepoVisit) -> String {
    format!("clear all in {}", at.repo.name)
}

fn who(at: &RepoVisit) -> Login {
    at.visit.login().cloned().unwrap_or_else(|| OPERATOR.parse().expect("invariant: a name without spaces"))
}

fn line(entry: &PatternEntry, rated: &RatedPattern, base: &str, now: Timestamp) -> PatternLine {
    let pattern = &entry.pattern;
    let state = match (pattern.protected, rated.hidden) {
        (true, _) => Badge::new("info", "protected"),
        (false, true) => Badge::new("warn", "hidden"),
        (false, false) => Badge::new("", "shown"),
    };
    PatternLine {
        newest: entry.newest,
        title: pattern.title.clone(),
        fingerprint: pattern.fingerprint.to_string(),
        key: if pattern.key.as_str() == pattern.fingerprint.as_str() { String::new() } else { pattern.key.to_string() },
        href: link(&format!("{base}/findings"), &[("pattern", pattern.fingerprint.as_str())]),
        up: pattern.feedback.thumbs_up,
        down: pattern.feedback.thumbs_down,
        reactors: pattern.feedback.reactors,
        pulls: pattern.feedback.pull_requests,
        findings: entry.findings,
        hidden: entry.hidden,
        state,
        reacted_at: when(entry.reacted_at, now),
    }
}

fn clear_line(one: FeedbackClear, now: Timestamp) -> ClearLine {
    let what = match (&one.pattern, one.title) {
        (None, _) => "all patterns".to_owned(),
        (Some(_), Some(title)) => format!("“{title}”"),
        (Some(key), None) => key.to_string(),
    };
    let login = Some(&one.by).filter(|login| login.as_str() != OPERATOR);
    let undone = one.undone_at.map(|at| {
        let login = one.undone_by.as_ref().filter(|login| login.as_str() != OPERATOR);
        (by(login), when(at, now))
    });
    ClearLine { id: undone.is_none().then_some(one.id), undone, what, by: by(login), at: when(one.at, now) }
}

fn hidden_line(one: SuppressedFinding, base: &str, now: Timestamp) -> HiddenLine {
    HiddenLine {
        title: one.title,
        href: format!("{base}/findings/{}", one.finding),
        review: one.review,
        review_href: format!("{base}/reviews/{}", one.review),
        why: one.hidden_by.as_ref().map(hidden_by_in_words).unwrap_or_default(),
        at: when(one.at, now),
    }
}
