//! What people did about a repository in the console, and who.

use std::collections::HashMap;
use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::{Query, State};
use axum::response::Response;
use axum::routing::get;
use canonry_store::{ConsoleAction, RepoId};
use jiff::Timestamp;

use crate::console::Console;
use crate::errors::PageError;
use crate::filters;
use crate::page::{Page, Section, html, repo_path};
use crate::paging::{PAGE, Pager, holds, number, sift, word};
use crate::visit::ReaderOf;
use crate::words::{self, When, when};

/// Deeds that one page of a search looks at.
const LOOKED_AT: u32 = 5_000;

pub(crate) fn routes() -> Router<Arc<Console>> {
    Router::new().route("/r/{owner}/{name}/deeds", get(show))
}

#[derive(Template)]
#[template(path = "deeds.html")]
struct DeedsPage {
    page: Page,
    path: String,
    by: String,
    text: String,
    deeds: Vec<DeedLine>,
    pager: Pager,
}

/// Something that somebody did.
pub(crate) struct DeedLine {
    pub(crate) who: String,
    pub(crate) action: String,
    pub(crate) subject: String,
    pub(crate) at: When,
}

impl DeedsPage {
    fn is_filtered(&self) -> bool {
        !self.by.is_empty() || !self.text.is_empty()
    }
}

/// The latest deeds, for a page that has more to tell.
pub(crate) async fn latest(console: &Console, repo: RepoId, count: u32) -> Result<Vec<DeedLine>, PageError> {
    let deeds = console.store.console_actions(repo, count).await?;
    Ok(deeds.into_iter().map(|deed| line(deed, console.now())).collect())
}

async fn show(
    State(console): State<Arc<Console>>,
    ReaderOf(at): ReaderOf,
    Query(query): Query<HashMap<String, String>>,
) -> Result<Response, PageError> {
    let (by, text) = (word(&query, "by").trim_start_matches('@'), word(&query, "text"));
    let before = number(&query, "before");
    let looked_at = if by.is_empty() && text.is_empty() { PAGE } else { LOOKED_AT };
    let deeds = console.store.console_action_pages(at.repo.id, before, looked_at + 1).await?;
    let fits = |deed: &ConsoleAction| {
        (by.is_empty() || is_by(deed, by)) && holds(&format!("{} {}", deed.action, deed.subject), text)
    };
    let found = sift(deeds, looked_at, PAGE, fits, |deed| deed.id);
    let path = format!("{}/deeds", repo_path(&at.repo));
    let next = found.next.map(|id| ("before", id.to_string()));
    html(&DeedsPage {
        page: at.page(&console, "Done in the console", Section::Settings),
        pager: Pager::new("Pages of deeds", &path, &[("by", by), ("text", text)], before.is_none(), next)
            .stopped(found.stopped_after),
        by: by.to_owned(),
        text: text.to_owned(),
        deeds: found.rows.into_iter().map(|deed| line(deed, console.now())).collect(),
        path,
    })
}

fn line(deed: ConsoleAction, now: Timestamp) -> DeedLine {
    DeedLine { who: words::by(deed.by.as_ref()), at: when(deed.at, now), action: deed.action, subject: deed.subject }
}

fn is_by(deed: &ConsoleAction, asked: &str) -> bool {
    match &deed.by {
        Some(by) => by.as_str().eq_ignore_ascii_case(asked.trim_start_matches('@')),
        None => ["operator", "the operator"].iter().any(|word| word.eq_ignore_ascii_case(asked)),
    }
}
