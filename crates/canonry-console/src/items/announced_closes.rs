//! Announced closes with the time left to object.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::Query;
use axum::routing::get;
use canonry_domain::{ItemNumber, ItemType, RepoName};
use canonry_server::ConsoleOrder;
use canonry_store::{Grace, JobFilter, JobKind, JobState};
use jiff::Timestamp;

use crate::console::Console;
use crate::layout::errors::{PageError, PageResult};
use crate::layout::filters;
use crate::layout::form::QueryFields;
use crate::layout::formatting::{item_path, length};
use crate::layout::page::{NavSection, PageFrame, html, repo_path};
use crate::layout::paging::{PAGE, Pager, filter_rows, place, place_in, word};
use crate::sign_in::visit::{ReaderOf, RepoVisit};

/// Announced closes that one filtered page reads.
const READ: u32 = 2_000;

pub(crate) fn routes() -> Router<Arc<Console>> {
    Router::new().route("/r/{owner}/{name}/announced", get(show))
}

#[derive(Template)]
#[template(path = "items/announced_closes.html")]
struct AnnouncedClosesPage {
    page: PageFrame,
    path: String,
    here: String,
    kind: String,
    only_late: bool,
    can_maintain: bool,
    graces: Vec<AnnouncedCloseLine>,
    pager: Pager,
}

struct AnnouncedCloseLine {
    id: i64,
    number: ItemNumber,
    title: String,
    href: String,
    target: ItemNumber,
    target_href: String,
    /// `3 hours left`.
    left: String,
    /// `18 Nov, 20:00 UTC`.
    due: String,
    /// Why the item is not closed although its time is over.
    reason: Option<String>,
    /// Whether a cancellation is queued.
    is_cancelled: bool,
}

impl AnnouncedClosesPage {
    fn is_filtered(&self) -> bool {
        !self.kind.is_empty() || self.only_late
    }
}

async fn show(ReaderOf(at): ReaderOf, Query(query): QueryFields) -> PageResult {
    let kind: Option<ItemType> = word(&query, "type").parse().ok();
    let only_late = word(&query, "late") == "1";
    let after: Option<(Timestamp, i64)> = place_in(word(&query, "after"));
    let limit = if kind.is_none() && !only_late { PAGE } else { READ };
    let graces = at.console.store.close().next_graces(at.repo.id, after, limit + 1).await?;
    let fits =
        |grace: &Grace| kind.is_none_or(|kind| grace.item_type == kind) && (!only_late || grace.reason.is_some());
    let found = filter_rows(graces, limit, PAGE, fits, |grace| place(grace.due_at, grace.id));
    let path = repo_path(&at.repo);
    let here = format!("{path}/announced");
    let kind = kind.map(ItemType::as_str).unwrap_or_default();
    let kept = [("type", kind), ("late", if only_late { "1" } else { "" })];
    let next = found.next.map(|place| ("after", place));
    html(&AnnouncedClosesPage {
        page: at.page("Announced closes", NavSection::Announced),
        pager: Pager::new("Pages of announced closes", &here, &kept, after.is_none(), next)
            .stopped(found.stopped_after),
        graces: lines(&at, found.rows).await?,
        can_maintain: at.can_maintain(),
        kind: kind.to_owned(),
        only_late,
        here,
        path,
    })
}

async fn lines(at: &RepoVisit, graces: Vec<Grace>) -> Result<Vec<AnnouncedCloseLine>, PageError> {
    let (mut titles, path) = (BTreeMap::new(), repo_path(&at.repo));
    for item_type in [ItemType::Issue, ItemType::Pr] {
        let of_type = graces.iter().filter(|grace| grace.item_type == item_type);
        let numbers: Vec<ItemNumber> = of_type.map(|grace| grace.number).collect();
        if !numbers.is_empty() {
            let items = at.items(item_type, &numbers).await?;
            titles.extend(items.into_iter().map(|item| ((item_type, item.number), item.title)));
        }
    }
    let cancelled =
        if graces.is_empty() { BTreeSet::new() } else { being_cancelled(&at.console, &at.repo.name).await? };
    let now = at.console.now();
    let line = |grace: Grace| AnnouncedCloseLine {
        id: grace.id,
        number: grace.number,
        title: titles.remove(&(grace.item_type, grace.number)).unwrap_or_default(),
        href: item_path(&path, grace.item_type, grace.number),
        target: grace.target,
        target_href: item_path(&path, grace.item_type, grace.target),
        left: match length(now.duration_until(grace.due_at)) {
            length if grace.due_at > now && !length.is_empty() => format!("{length} left"),
            _ => "due now".to_owned(),
        },
        due: grace.due_at.strftime("%-d %b, %H:%M UTC").to_string(),
        is_cancelled: cancelled.contains(&(grace.item_type, grace.number)),
        reason: grace.reason,
    };
    Ok(graces.into_iter().map(line).collect())
}

/// Items whose announced close is being cancelled: the job that corrects the comment has not finished.
pub(crate) async fn being_cancelled(
    console: &Console,
    repo: &RepoName,
) -> Result<BTreeSet<(ItemType, ItemNumber)>, PageError> {
    let mut items = BTreeSet::new();
    for state in [JobState::Queued, JobState::Running] {
        let filter = JobFilter {
            state: Some(state),
            repo: Some(repo.clone()),
            kind: Some(JobKind::CancelGrace.as_str().to_owned()),
            ..JobFilter::default()
        };
        for job in console.store.jobs().list(&filter, READ).await? {
            if let Some(ConsoleOrder::CancelGrace(order)) = ConsoleOrder::of(&job) {
                items.insert((order.item_type, order.number));
            }
        }
    }
    Ok(items)
}
