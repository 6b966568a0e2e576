//! Checks a draft before it is filed: for people who can read the repository, and for everybody where the operator allows
//! it. Nothing is stored.

use std::net::SocketAddr;
use std::sync::Arc;

use askama::Template;
use axum::extract::{ConnectInfo, Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;
use axum::{Extension, Router};
use canonry_domain::{DraftAnswer, ItemNumber, ItemState, ItemType, RepoName};
use canonry_store::Repo;
use canonry_triage::{Draft, DraftReport};
use jiff::Timestamp;

use crate::console::Console;
use crate::layout::errors::{PageError, PageResult};
use crate::layout::filters;
use crate::layout::form::{Form, OpenForm, PathFields};
use crate::layout::formatting::{Badge, counted, item_path, when};
use crate::layout::markdown::markdown;
use crate::layout::marked_text::MarkedText;
use crate::layout::page::{NavSection, PageFrame, html, html_with, repo_path};
use crate::layout::theme::Theme;
use crate::reviews::review_page::web;
use crate::sign_in::cookies::theme_of;
use crate::sign_in::visit::ReaderOf;

/// Similar items on the page.
const SIMILAR: usize = 5;

pub(crate) fn routes() -> Router<Arc<Console>> {
    Router::new()
        .route("/r/{owner}/{name}/check", get(ask).post(answer))
        .route("/check/{owner}/{name}", get(ask_stranger).post(answer_stranger))
}

#[derive(Template)]
#[template(path = "items/check_page.html")]
struct CheckPage {
    page: PageFrame,
    repo: String,
    title: String,
    body: String,
    problem: Option<&'static str>,
    result: Option<CheckResult>,
    /// Where an issue is filed on GitHub, with the draft's title.
    issue_form: Option<String>,
}

struct CheckResult {
    headline: String,
    class: &'static str,
    item: Option<FoundItem>,
    fix: Option<FoundItem>,
    explanation: Option<MarkedText>,
    similar: Vec<FoundItem>,
    /// What the draft was compared with, and what is missing.
    notes: Vec<String>,
    /// Whether the draft is new or a regression, and enough is known to say so.
    may_be_filed: bool,
}

struct FoundItem {
    href: String,
    number: String,
    title: String,
    state: Badge,
}

async fn ask(ReaderOf(at): ReaderOf) -> PageResult {
    html(&CheckPage::new(at.page("Check a draft", NavSection::Items), &at.repo.name))
}

async fn answer(ReaderOf(at): ReaderOf, form: Form) -> PageResult {
    let page = CheckPage::new(at.page("Check a draft", NavSection::Items), &at.repo.name);
    let draft = draft_of(form.one("title"), form.one("body"));
    page.answered(&at.console, &at.repo, draft, &|number| item_path(&repo_path(&at.repo), number.0, number.1)).await
}

async fn ask_stranger(State(console): State<Arc<Console>>, headers: HeaderMap, Path(path): PathFields) -> PageResult {
    let repo = open_repo(&console, &path).await?;
    html(&CheckPage::new(stranger_page(&console, &headers), &repo.name))
}

async fn answer_stranger(
    State(console): State<Arc<Console>>,
    peer: Option<Extension<ConnectInfo<SocketAddr>>>,
    headers: HeaderMap,
    Path(path): PathFields,
    form: OpenForm,
) -> PageResult {
    let repo = open_repo(&console, &path).await?;
    let mut page = CheckPage::new(stranger_page(&console, &headers), &repo.name);
    let draft = draft_of(form.one("title"), form.one("body"));
    let (peer, now) = (peer.map(|Extension(ConnectInfo(peer))| peer.ip()), console.now());
    if !console.strangers_drafts.may_try(peer, now) {
        page.problem = Some("Too many drafts from your address. Wait a minute, then check again.");
        (page.title, page.body) = (draft.title, draft.body);
        return html_with(StatusCode::TOO_MANY_REQUESTS, &page).map_err(PageError::Render);
    }
    console.strangers_drafts.note(peer, now);
    let address = web(&console).map(|web| web.as_str().trim_end_matches('/').to_owned());
    let github = address.unwrap_or_else(|| "https://github.com".to_owned());
    let name = repo.name.clone();
    // GitHub forwards an issue's address to the pull request of that number.
    page.answered(&console, &repo, draft, &|(_, number)| format!("{github}/{name}/issues/{number}")).await
}

/// A repository that the operator opened; others do not exist for strangers.
async fn open_repo(console: &Console, path: &std::collections::HashMap<String, String>) -> Result<Repo, PageError> {
    let part = |name: &str| path.get(name).map(String::as_str).unwrap_or_default();
    let name: RepoName = format!("{}/{}", part("owner"), part("name")).parse().map_err(|_| PageError::NotFound)?;
    if console.lookup.is_none() || !console.public_checks.includes(&name) {
        return Err(PageError::NotFound);
    }
    let repo = console.store.repos().find(&name).await?.ok_or(PageError::NotFound)?;
    match console.public_checks.is_public(console.github.as_ref(), &repo, console.now()).await {
        true => Ok(repo),
        false => Err(PageError::NotFound),
    }
}

fn stranger_page(console: &Console, headers: &HeaderMap) -> PageFrame {
    PageFrame {
        theme: Theme::of(theme_of(headers).as_deref()),
        version: console.version,
        ..PageFrame::bare("Check a draft")
    }
}

fn draft_of(title: Option<&str>, body: Option<&str>) -> Draft {
    let text = |field: Option<&str>| field.unwrap_or_default().to_owned();
    Draft { title: text(title), body: text(body), author: None, changes: None }
}

type ItemKey = (ItemType, ItemNumber);

impl CheckPage {
    fn new(page: PageFrame, repo: &RepoName) -> Self {
        let (title, body) = (String::new(), String::new());
        Self { page, repo: repo.to_string(), title, body, problem: None, result: None, issue_form: None }
    }

    async fn answered(
        mut self,
        console: &Console,
        repo: &Repo,
        draft: Draft,
        href: &(dyn Fn(ItemKey) -> String + Sync),
    ) -> PageResult {
        let Some(lookup) = &console.lookup else { return Err(PageError::NotFound) };
        if draft.is_empty() {
            self.problem = Some("Write a title first.");
            return html_with(StatusCode::BAD_REQUEST, &self).map_err(PageError::Render);
        }
        let checked = match lookup.check(repo, &draft, SIMILAR).await {
            Ok(checked) => checked,
            Err(error) => {
                tracing::warn!(?error, repo = %repo.name, "a draft could not be checked");
                self.problem = Some("The draft could not be checked. Try again in a minute.");
                (self.title, self.body) = (draft.title, draft.body);
                return html_with(StatusCode::SERVICE_UNAVAILABLE, &self).map_err(PageError::Render);
            }
        };
        self.result = Some(CheckResult::new(&checked, console, href));
        self.issue_form = web(console).and_then(|mut address| {
            address.path_segments_mut().ok()?.pop_if_empty().extend([
                repo.name.owner(),
                repo.name.name(),
                "issues",
                "new",
            ]);
            address.query_pairs_mut().append_pair("title", &draft.title);
            Some(address.to_string())
        });
        (self.title, self.body) = (draft.title, draft.body);
        html(&self)
    }
}

impl CheckResult {
    fn new(checked: &DraftReport, console: &Console, href: &(dyn Fn(ItemKey) -> String + Sync)) -> Self {
        let now = console.now();
        let badge = |state: ItemState, merged: bool| match (state, merged) {
            (_, true) => Badge::new("info", "merged"),
            (ItemState::Open, _) => Badge::new("good", "open"),
            (ItemState::Closed, _) => Badge::new("mute", "closed"),
        };
        let issue = ItemType::Issue;
        let is_new = checked.answer == DraftAnswer::New;
        let gap = checked.data_gap("issue").filter(|_| is_new);
        let may_be_filed = gap.is_none() && (is_new || checked.answer == DraftAnswer::PossibleRegression);
        Self {
            // Strangers are shown no percentages.
            headline: DraftReport { confidence: None, ..checked.clone() }.headline(&|at| when(at, now).in_words()),
            class: match checked.answer {
                DraftAnswer::New if gap.is_none() => "good",
                DraftAnswer::New | DraftAnswer::PossibleRegression => "warn",
                DraftAnswer::Reported | DraftAnswer::InProgress | DraftAnswer::Fixed => "info",
            },
            item: checked.item.as_ref().map(|item| FoundItem {
                href: href((item.item_type, item.number)),
                number: item.number.to_string(),
                title: item.title.clone(),
                state: badge(item.state, item.merged),
            }),
            fix: checked.fix.as_ref().map(|fix| FoundItem {
                href: href((ItemType::Pr, fix.number)),
                number: fix.number.to_string(),
                title: fix.title.clone(),
                state: badge(fix.state, fix.merged),
            }),
            explanation: checked.explanation.as_deref().map(markdown),
            similar: checked
                .similar
                .iter()
                .filter(|one| checked.item.as_ref().is_none_or(|item| item.number != one.number))
                .map(|one| FoundItem {
                    href: href((issue, one.number)),
                    number: one.number.to_string(),
                    title: one.title.clone(),
                    state: badge(one.state, false),
                })
                .collect(),
            notes: checked.branch_gap().into_iter().chain(gap).chain([compared_with(checked, now)]).collect(),
            may_be_filed,
        }
    }
}

/// How many issues, how old they are, and how many of them are only found by their words.
fn compared_with(checked: &DraftReport, now: Timestamp) -> String {
    let stats = checked.stats;
    let synced = match checked.synced_at {
        Some(at) => format!("synced {}", when(at, now).in_words()),
        None => "never synced".to_owned(),
    };
    let mut compared = format!("Compared with {}, {synced}.", counted(stats.compared as u64, "issue"));
    let missing = stats.compared.saturating_sub(stats.embedded) as u64;
    if missing > 0 {
        compared += &format!(" {} without a current vector, found only by the same words.", counted(missing, "issue"));
    }
    compared
}
