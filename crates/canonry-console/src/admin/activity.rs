//! The activity page: who changed what about a repository in the console.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::Query;
use axum::routing::get;
use canonry_store::{ConsoleAction, RepoId};
use jiff::Timestamp;

use crate::console::Console;
use crate::layout::errors::{PageError, PageResult};
use crate::layout::filters;
use crate::layout::form::QueryFields;
use crate::layout::formatting::{self, TimeLabel, when};
use crate::layout::page::{NavSection, PageFrame, html, repo_path};
use crate::layout::paging::{PAGE, Pager, contains_words, filter_rows, number, word};
use crate::sign_in::visit::ReaderOf;

/// Rows that one page of a search reads.
const LOOKED_AT: u32 = 5_000;

pub(crate) fn routes() -> Router<Arc<Console>> {
    Router::new().route("/r/{owner}/{name}/activity", get(show))
}

#[derive(Template)]
#[template(path = "admin/activity.html")]
struct ActivityPage {
    page: PageFrame,
    path: String,
    by: String,
    text: String,
    activity: Vec<ActivityLine>,
    pager: Pager,
}

pub(crate) struct ActivityLine {
    pub(crate) who: String,
    pub(crate) action: String,
    pub(crate) subject: String,
    pub(crate) at: TimeLabel,
}

impl ActivityPage {
    fn is_filtered(&self) -> bool {
        !self.by.is_empty() || !self.text.is_empty()
    }
}

/// The latest activity, for pages with other contents too.
pub(crate) async fn latest(console: &Console, repo: RepoId, count: u32) -> Result<Vec<ActivityLine>, PageError> {
    let activity = console.store.console().actions(repo, count).await?;
    Ok(activity.into_iter().map(|action| line(&action, console.now())).collect())
}

async fn show(ReaderOf(at): ReaderOf, Query(query): QueryFields) -> PageResult {
    let (by, text) = (word(&query, "by").trim_start_matches('@'), word(&query, "text"));
    let before = number(&query, "before");
    let looked_at = if by.is_empty() && text.is_empty() { PAGE } else { LOOKED_AT };
    let activity = at.console.store.console().action_pages(at.repo.id, before, looked_at + 1).await?;
    let fits = |action: &ConsoleAction| {
        let words = || format!("{} {} {}", action.action, action_words(&action.action), action.subject);
        (by.is_empty() || is_by(action, by)) && contains_words(&words(), text)
    };
    let found = filter_rows(activity, looked_at, PAGE, fits, |action| action.id);
    let path = format!("{}/activity", repo_path(&at.repo));
    let next = found.next.map(|id| ("before", id.to_string()));
    html(&ActivityPage {
        page: at.page("Activity", NavSection::Activity),
        pager: Pager::new("Pages of activity", &path, &[("by", by), ("text", text)], before.is_none(), next)
            .stopped(found.stopped_after),
        by: by.to_owned(),
        text: text.to_owned(),
        activity: found.rows.into_iter().map(|action| line(&action, at.console.now())).collect(),
        path,
    })
}

fn line(action: &ConsoleAction, now: Timestamp) -> ActivityLine {
    ActivityLine {
        who: formatting::by(action.by.as_ref()),
        at: when(action.at, now),
        action: action_words(&action.action).to_owned(),
        subject: subject_words(&action.subject),
    }
}

/// What a person did, in the past tense; actions are stored in words of their own.
fn action_words(action: &str) -> &str {
    match action {
        "adjudicate" => "answered a case",
        "cancel grace" => "cancelled an announced close",
        "canonicalize" => "recomputed clusters",
        "clear reactions" => "cleared reactions",
        "draw-sample" => "drew a sample of cases",
        "pause" => "paused Canonry",
        "plan: apply" => "applied",
        "plan: approve" => "approved",
        "plan: exclude" => "excluded",
        "plan: plan" => "started",
        "plan: reset" => "reset",
        "plan: stop" => "stopped",
        "plan: undo" => "undid",
        "plan: withdraw" => "cancelled",
        "remove ruling" => "removed a ruling",
        "replay delivery" => "replayed a delivery",
        "resume" => "resumed Canonry",
        "retry failed jobs" => "retried failed jobs",
        "retry job" => "retried a job",
        "rule" => "made a ruling",
        "sync" => "started a sync",
        "undo a clear of reactions" => "restored cleared reactions",
        other => other,
    }
}

/// `issue #12` for a stored `issue/12`.
fn subject_words(subject: &str) -> String {
    let item = |kind: &str| subject.strip_prefix(kind).and_then(|rest| rest.strip_prefix('/'));
    match (item("issue"), item("pr")) {
        (Some(rest), _) => format!("issue #{rest}"),
        (_, Some(rest)) => format!("pull request #{rest}"),
        (None, None) => subject.to_owned(),
    }
}

fn is_by(action: &ConsoleAction, asked: &str) -> bool {
    match &action.by {
        Some(by) => by.as_str().eq_ignore_ascii_case(asked.trim_start_matches('@')),
        None => ["operator", "the operator"].iter().any(|word| word.eq_ignore_ascii_case(asked)),
    }
}
