//! The findings of a repository, filtered, the newest first.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::Query;
use axum::routing::get;
use canonry_domain::review::{Category, FindingStatus, Fingerprint, ReviewSubject, Severity, ShownAs};
use canonry_store::{FindingEntry, FindingFilter, FindingId};
use jiff::Timestamp;

use crate::console::Console;
use crate::layout::errors::{PageError, PageResult};
use crate::layout::filters;
use crate::layout::form::QueryFields;
use crate::layout::formatting::{
    Badge, TimeLabel, finding_status_in_words, hidden_by_in_words, severity_badge, shown_in_words, status_badge,
    subject_in_words, when,
};
use crate::layout::page::{NavSection, PageFrame, html, repo_path};
use crate::layout::paging::{PAGE, Pager, cut_page, number, word};
use crate::reviews::finding_page;
use crate::reviews::list::{FilterMistake, subject, subject_value};
use crate::reviews::review_page::place;
use crate::sign_in::visit::{ReaderOf, RepoVisit};

pub(crate) fn routes() -> Router<Arc<Console>> {
    Router::new()
        .route("/r/{owner}/{name}/findings", get(show))
        .route("/r/{owner}/{name}/findings/{id}", get(finding_page::show))
}

#[derive(Default)]
struct FindingQuery {
    subject: Option<ReviewSubject>,
    severity: Option<Severity>,
    category: Option<Category>,
    status: Option<FindingStatus>,
    shown: Option<ShownAs>,
    path: String,
    pattern: Option<Fingerprint>,
    before: Option<FindingId>,
}

pub(crate) struct FilterChoice {
    pub(crate) value: &'static str,
    pub(crate) words: &'static str,
    pub(crate) is_chosen: bool,
}

struct FindingLine {
    href: String,
    title: String,
    place: String,
    subject: String,
    severity: Badge,
    category: &'static str,
    status: Badge,
    shown: String,
    confidence: String,
    last_seen: TimeLabel,
}

struct FindingRows {
    path: String,
    findings: Vec<FindingLine>,
    is_filtered: bool,
    pager: Pager,
}

#[derive(Template)]
#[template(path = "reviews/findings.html")]
struct FindingsPage {
    page: PageFrame,
    asked: FindingQuery,
    pull: String,
    pattern: String,
    severities: Vec<FilterChoice>,
    categories: Vec<FilterChoice>,
    statuses: Vec<FilterChoice>,
    places: Vec<FilterChoice>,
    rows: FindingRows,
}

#[derive(Template)]
#[template(path = "reviews/finding_rows.html")]
struct FindingRowsPart {
    rows: FindingRows,
}

async fn show(ReaderOf(at): ReaderOf, Query(query): QueryFields) -> PageResult {
    let asked = match asked(&query) {
        Err(PageError::BadForm(words)) if at.visit.is_htmx => return html(&FilterMistake { words }),
        asked => asked?,
    };
    let rows = rows(&at, &asked).await?;
    if at.visit.is_htmx {
        return html(&FindingRowsPart { rows });
    }
    let page = at.page("Findings", NavSection::Findings).cli(format!("canonry why PATH:LINE --repo {}", at.repo.name));
    html(&FindingsPage {
        page,
        pull: subject_value(asked.subject.as_ref()),
        pattern: asked.pattern.as_ref().map(Fingerprint::to_string).unwrap_or_default(),
        severities: choices(Severity::ALL, asked.severity, |one| (one.as_str(), one.as_str())),
        categories: choices(Category::ALL, asked.category, |one| (one.as_str(), one.as_str())),
        statuses: choices(FindingStatus::ALL, asked.status, |one| (one.as_str(), finding_status_in_words(one))),
        places: choices(ShownAs::ALL, asked.shown, |one| (one.as_str(), shown_in_words(one))),
        rows,
        asked,
    })
}

fn asked(query: &HashMap<String, String>) -> Result<FindingQuery, PageError> {
    Ok(FindingQuery {
        subject: subject(query)?,
        severity: chosen(query, "severity")?,
        category: chosen(query, "category")?,
        status: chosen(query, "status")?,
        shown: chosen(query, "shown")?,
        path: word(query, "path").to_owned(),
        pattern: chosen(query, "pattern")?,
        before: number(query, "before").map(FindingId::new),
    })
}

/// The value of a filter, or what is wrong with it.
fn chosen<T: FromStr<Err: std::fmt::Display>>(
    query: &HashMap<String, String>,
    name: &str,
) -> Result<Option<T>, PageError> {
    let text = word(query, name);
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|error: T::Err| PageError::BadForm(error.to_string()))
}

/// The options of a filter, and the selected one.
pub(crate) fn choices<T: Copy + PartialEq>(
    all: &[T],
    chosen: Option<T>,
    told: fn(T) -> (&'static str, &'static str),
) -> Vec<FilterChoice> {
    let choice = |one: &T| {
        let (value, words) = told(*one);
        FilterChoice { value, words, is_chosen: chosen == Some(*one) }
    };
    all.iter().map(choice).collect()
}

impl FindingQuery {
    fn filter(&self) -> FindingFilter<'_> {
        FindingFilter {
            subject: self.subject.as_ref(),
            severity: self.severity,
            category: self.category,
            status: self.status,
            shown: self.shown,
            path_prefix: Some(self.path.as_str()).filter(|path| !path.is_empty()),
            pattern: self.pattern.as_ref(),
        }
    }

    fn pager(&self, path: &str, next: Option<FindingId>) -> Pager {
        let pull = subject_value(self.subject.as_ref());
        let kept = [
            ("severity", self.severity.map_or("", Severity::as_str)),
            ("category", self.category.map_or("", Category::as_str)),
            ("status", self.status.map_or("", FindingStatus::as_str)),
            ("shown", self.shown.map_or("", ShownAs::as_str)),
            ("path", &self.path),
            ("pattern", self.pattern.as_ref().map_or("", Fingerprint::as_str)),
            ("pull", &pull),
        ];
        let next = next.map(|last| ("before", last.to_string()));
        Pager::new("Pages of findings", path, &kept, self.before.is_none(), next)
    }
}

async fn rows(at: &RepoVisit, asked: &FindingQuery) -> Result<FindingRows, PageError> {
    let mut found = at.console.store.findings().pages(at.repo.id, asked.filter(), asked.before, PAGE + 1).await?;
    let next = cut_page(&mut found, PAGE, |entry| entry.found.id);
    let base = repo_path(&at.repo);
    let path = format!("{base}/findings");
    let now = at.console.now();
    Ok(FindingRows {
        pager: asked.pager(&path, next),
        findings: found.into_iter().map(|entry| line(&entry, &base, now)).collect(),
        is_filtered: asked.filter() != FindingFilter::default(),
        path,
    })
}

fn line(entry: &FindingEntry, base: &str, now: Timestamp) -> FindingLine {
    let found = &entry.found;
    let hides = entry.hidden_by.as_ref().filter(|_| found.shown == ShownAs::Suppressed);
    let shown = match hides {
        _ if found.fixed => "fixed".to_owned(),
        Some(by) => format!("hidden: {}", hidden_by_in_words(by)),
        None => shown_in_words(found.shown).to_owned(),
    };
    FindingLine {
        href: format!("{base}/findings/{}", found.id),
        title: found.finding.title.clone(),
        place: place(&found.finding),
        subject: subject_in_words(&found.subject),
        severity: severity_badge(found.finding.severity),
        category: found.finding.category.as_str(),
        status: status_badge(found.status),
        shown,
        confidence: entry.confidence.to_string(),
        last_seen: when(found.last_seen, now),
    }
}
