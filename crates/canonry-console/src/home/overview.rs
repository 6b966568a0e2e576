//! The first page: what needs a person, what Canonry did, its health, and all repositories.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::Query;
use axum::response::{IntoResponse as _, Redirect};
use axum::routing::get;
use canonry_domain::clock_trouble;
use canonry_github::GitHub;
use canonry_store::{RepoId, RepoOverview, RepoPageFilter, RepoScope};

use crate::console::Console;
use crate::home::activity_figures::{ActivityFigure, activity_figures};
use crate::home::health::{Health, health};
use crate::home::needs::{AttendedRepo, NeedLine, Needs, needs, plans_since};
use crate::home::visible_repos::visible_repos;
use crate::layout::badge;
use crate::layout::errors::{PageError, PageResult};
use crate::layout::filters;
use crate::layout::form::QueryFields;
use crate::layout::formatting::{Badge, TimeLabel, counted, thousands, when};
use crate::layout::page::{NavSection, PageFrame, html, repo_path};
use crate::layout::paging::{PAGE, Pager, cut_page, link, number, word};
use crate::sign_in::roles::Role;
use crate::sign_in::visit::{SignedIn, Visit};

/// Repositories that the switcher lists.
const SWITCHED_TO: u32 = 20;

pub(crate) fn routes() -> Router<Arc<Console>> {
    Router::new().route("/", get(show)).route("/repositories", get(switcher_menu))
}

#[derive(Template)]
#[template(path = "home/overview.html")]
struct OverviewPage {
    page: PageFrame,
    summary: Option<Summary>,
    rows: Vec<RepositoryRow>,
    /// The number of repositories that this person has seen before and for which GitHub could not confirm the access.
    unknown: usize,
    /// Whether the limit of permission requests for this person is reached. It does not depend on the page or the
    /// search; otherwise it would reveal hidden repositories.
    is_enough: bool,
    text: String,
    in_trouble: bool,
    pager: Pager,
    clock_trouble: Option<String>,
    is_app: bool,
}

/// The answers to three questions, on the first page of all repositories.
struct Summary {
    needs: Needs,
    figures: Vec<ActivityFigure>,
    health: Health,
    /// Whether it covers fewer repositories than there may be.
    is_of_page: bool,
}

struct RepositoryRow {
    owner: String,
    name: String,
    path: String,
    open_issues: String,
    open_prs: String,
    mode: Badge,
    threshold: String,
    access: Option<Badge>,
    brakes: Vec<Badge>,
    /// `2 mistakes`, if there are any.
    mistakes: Option<String>,
    announced: u64,
    failed: u64,
    /// Whether the reader may see the list of jobs.
    can_maintain: bool,
    synced: Option<TimeLabel>,
}

impl RepositoryRow {
    fn is_fine(&self) -> bool {
        self.access.is_none()
            && self.brakes.is_empty()
            && self.failed == 0
            && self.mistakes.is_none()
            && self.announced == 0
    }
}

impl OverviewPage {
    fn is_filtered(&self) -> bool {
        !self.text.is_empty() || self.in_trouble
    }
}

async fn show(SignedIn(visit): SignedIn, Query(query): QueryFields) -> PageResult {
    let after = number(&query, "after");
    let (text, in_trouble) = (word(&query, "text"), word(&query, "trouble") == "1");
    let filter = RepoPageFilter { text, in_trouble };
    let mut lines = visit.console.store.console().repo_pages(filter, after, PAGE + 1).await?;
    // The last repository may be hidden from the reader: its name must not be in a link.
    let next = cut_page(&mut lines, PAGE, |line| ("after", line.repo.id.get().to_string()));
    let kept = [("text", text), ("trouble", if in_trouble { "1" } else { "" })];
    let visible = visible_repos(&visit, lines, |line| &line.repo).await?;
    let is_whole = after.is_none() && text.is_empty() && !in_trouble;
    let summary = match is_whole && !visible.seen.is_empty() {
        true => Some(summary(&visit, &visible.seen, next.is_some()).await?),
        false => None,
    };
    let mut rows = Vec::with_capacity(visible.seen.len());
    for (line, role) in visible.seen {
        rows.push(row(&visit.console, line, role).await?);
    }
    html(&OverviewPage {
        page: visit.page("Home", NavSection::Home),
        summary,
        rows,
        unknown: visible.unknown,
        is_enough: visit.console.roles.is_enough(&visit.session, visit.console.now()),
        text: text.to_owned(),
        in_trouble,
        pager: Pager::new("Pages of repositories", "/", &kept, after.is_none(), next),
        clock_trouble: visit
            .console
            .github
            .as_ref()
            .and_then(GitHub::github_time)
            .and_then(|time| clock_trouble(time.skew)),
        is_app: visit.console.github.as_ref().is_some_and(GitHub::is_app),
    })
}

/// Operators see figures of all repositories, everyone else of those on the page, which they may see.
async fn summary(visit: &Visit, seen: &[(RepoOverview, Role)], has_more: bool) -> Result<Summary, PageError> {
    let (console, now) = (&visit.console, visit.console.now());
    let ids: Vec<RepoId> = seen.iter().map(|(line, _)| line.repo.id).collect();
    let scope = if visit.session.is_operator { RepoScope::All } else { RepoScope::Of(&ids) };
    let maintains = |repo: RepoId| {
        visit.session.is_operator || seen.iter().any(|(line, role)| line.repo.id == repo && *role >= Role::Maintainer)
    };
    let attention = console.store.console().attention(scope, plans_since(now), PAGE).await?;
    let attended: Vec<AttendedRepo> = attention
        .into_iter()
        .map(|attention| AttendedRepo { can_maintain: maintains(attention.repo.id), attention })
        .collect();
    let queue = match visit.session.is_operator {
        true => Some(console.store.jobs().status(now).await?),
        false => None,
    };
    let mut needs = needs(visit, scope, &attended, true).await?;
    let of_repos: u64 = attended.iter().map(|of| of.attention.failed_jobs).sum();
    if let Some(others) = queue.map(|queue| queue.dead.saturating_sub(of_repos)).filter(|others| *others > 0) {
        let words = format!("{} of no repository", counted(others, "failed job"));
        needs.lines.push(NeedLine::new(words, None, Some(("/jobs?state=dead".to_owned(), "Show"))));
    }
    for (line, _) in seen {
        let mistakes = canonry_config::parse(line.settings.as_deref().unwrap_or_default()).problems.len() as u64;
        if mistakes > 0 {
            let words = format!("{} in .canonry.yml", counted(mistakes, "mistake"));
            let action = Some((format!("{}/settings", repo_path(&line.repo)), "Show"));
            needs.lines.push(NeedLine::new(words, Some(line.repo.name.to_string()), action));
        }
    }
    let attention: Vec<_> = attended.iter().map(|of| &of.attention).collect();
    Ok(Summary {
        needs,
        figures: activity_figures(console, scope).await?,
        health: health(&attention, queue.as_ref(), now),
        is_of_page: has_more && !visit.session.is_operator,
    })
}

async fn row(console: &Console, line: RepoOverview, role: Role) -> Result<RepositoryRow, PageError> {
    let settings = canonry_config::parse(line.settings.as_deref().unwrap_or_default());
    let threshold = console.store.learning().thresholds(line.repo.id).await?.repository;
    Ok(RepositoryRow {
        owner: line.repo.name.owner().to_owned(),
        name: line.repo.name.name().to_owned(),
        path: repo_path(&line.repo),
        open_issues: thousands(line.open_issues),
        open_prs: thousands(line.open_prs),
        mode: badge::mode(settings.config.triage.mode),
        threshold: badge::threshold(threshold.current, threshold.source),
        access: badge::access(line.access),
        brakes: badge::brakes(line.paused, line.breaker),
        mistakes: (!settings.problems.is_empty()).then(|| counted(settings.problems.len() as u64, "mistake")),
        announced: line.waiting_graces,
        failed: line.dead_jobs,
        can_maintain: role >= Role::Maintainer,
        synced: line.synced_at.map(|at| when(at, console.now())),
    })
}

#[derive(Template)]
#[template(path = "home/switcher_menu.html")]
struct SwitcherMenu {
    repos: Vec<(String, String)>,
}

/// The repositories in the header's switcher; without scripts it links to the list.
async fn switcher_menu(SignedIn(visit): SignedIn, Query(query): QueryFields) -> PageResult {
    let text = word(&query, "text");
    if !visit.is_htmx {
        return Ok(Redirect::to(&link("/", &[("text", text)])).into_response());
    }
    let repos = visit.console.store.console().repo_names(text, SWITCHED_TO).await?;
    let visible = visible_repos(&visit, repos, |repo| repo).await?;
    let repos = visible.seen.iter().map(|(repo, _)| (repo.name.to_string(), repo_path(repo))).collect();
    html(&SwitcherMenu { repos })
}
