//! Closes that were announced and wait for the end of their grace.

use std::collections::BTreeMap;
use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::Query;
use axum::routing::get;
use canonry_domain::{ItemNumber, ItemType};
use canonry_store::Grace;
use jiff::Timestamp;

use crate::console::Console;
use crate::layout::errors::{PageError, PageResult};
use crate::layout::filters;
use crate::layout::form::QueryFields;
use crate::layout::formatting::{TimeLabel, item_path, when};
use crate::layout::page::{NavSection, PageFrame, html, repo_path};
use crate::layout::paging::{PAGE, Pager, filter_rows, place, place_in, word};
use crate::sign_in::visit::{ReaderOf, RepoVisit};

/// Announced closes that one page of a search looks at.
const LOOKED_AT: u32 = 2_000;

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

pub(crate) struct AnnouncedCloseLine {
    pub(crate) id: i64,
    pub(crate) number: ItemNumber,
    pub(crate) title: String,
    pub(crate) href: String,
    pub(crate) target: ItemNumber,
    pub(crate) target_href: String,
    pub(crate) due: TimeLabel,
    pub(crate) reason: Option<String>,
}

impl AnnouncedClosesPage {
    fn is_filtered(&self) -> bool {
        !self.kind.is_empty() || self.only_late
    }
}

/// The first that are due, for a page that has more to tell.
pub(crate) async fn first(at: &RepoVisit, count: u32) -> Result<Vec<AnnouncedCloseLine>, PageError> {
    lines(at, at.console.store.close().next_graces(at.repo.id, None, count).await?).await
}

async fn show(ReaderOf(at): ReaderOf, Query(query): QueryFields) -> PageResult {
    let kind: Option<ItemType> = word(&query, "type").parse().ok();
    let only_late = word(&query, "late") == "1";
    let after: Option<(Timestamp, i64)> = place_in(word(&query, "after"));
    let looked_at = if kind.is_none() && !only_late { PAGE } else { LOOKED_AT };
    let graces = at.console.store.close().next_graces(at.repo.id, after, looked_at + 1).await?;
    let fits =
        |grace: &Grace| kind.is_none_or(|kind| grace.item_type == kind) && (!only_late || grace.reason.is_some());
    let found = filter_rows(graces, looked_at, PAGE, fits, |grace| place(grace.due_at, grace.id));
    let path = repo_path(&at.repo);
    let here = format!("{path}/announced");
    let kind = kind.map(ItemType::as_str).unwrap_or_default();
    let kept = [("type", kind), ("late", if only_late { "1" } else { "" })];
    let next = found.next.map(|place| ("after", place));
    html(&AnnouncedClosesPage {
        page: at.page("Announced closes", NavSection::Repository),
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
    let line = |grace: Grace| AnnouncedCloseLine {
        id: grace.id,
        number: grace.number,
        title: titles.remove(&(grace.item_type, grace.number)).unwrap_or_default(),
        href: item_path(&path, grace.item_type, grace.number),
        target: grace.target,
        target_href: item_path(&path, grace.item_type, grace.target),
        due: when(grace.due_at, at.console.now()),
        reason: grace.reason,
    };
    Ok(graces.into_iter().map(line).collect())
}
