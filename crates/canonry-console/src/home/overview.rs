//! All repositories that somebody may see, each in a line.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::Query;
use axum::routing::get;
use canonry_domain::clock_trouble;
use canonry_github::GitHub;
use canonry_store::{QueueStatus, RepoOverview, RepoPageFilter};
use futures_util::{StreamExt as _, stream};

use crate::console::Console;
use crate::layout::badge;
use crate::layout::errors::{PageError, PageResult};
use crate::layout::filters;
use crate::layout::form::QueryFields;
use crate::layout::formatting::{Badge, TimeLabel, counted, thousands, when};
use crate::layout::page::{NavSection, PageFrame, html, repo_path};
use crate::layout::paging::{PAGE, Pager, cut_page, number, word};
use crate::sign_in::roles::Role;
use crate::sign_in::visit::{SignedIn, Visit};

/// Repositories that GitHub is asked about at a time.
const ASKED_AT_ONCE: usize = 8;

pub(crate) fn routes() -> Router<Arc<Console>> {
    Router::new().route("/", get(show))
}

#[derive(Template)]
#[template(path = "home/overview.html")]
struct OverviewPage {
    page: PageFrame,
    rows: Vec<RepositoryRow>,
    /// Of how many that this person has seen before GitHub could not be asked whether they may still.
    unknown: usize,
    /// Whether GitHub is asked no more about this person for now. The same whatever is on the page and whatever is searched
    /// for: else it would tell of repositories that are hidden from them.
    is_enough: bool,
    text: String,
    in_trouble: bool,
    pager: Pager,
    service: Option<ServiceSummary>,
    clock_trouble: Option<String>,
    is_app: bool,
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
    waiting: u64,
    dead: u64,
    /// Whether the list of jobs is theirs to see.
    can_maintain: bool,
    synced: Option<TimeLabel>,
}

impl RepositoryRow {
    fn is_fine(&self) -> bool {
        self.access.is_none() && self.brakes.is_empty() && self.dead == 0 && self.mistakes.is_none()
    }
}

struct ServiceSummary {
    queued: String,
    running: String,
    dead: String,
    oldest: Option<TimeLabel>,
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
    // The last one may be hidden from whoever asks: its name must not stand in a link.
    let next = cut_page(&mut lines, PAGE, |line| ("after", line.repo.id.get().to_string()));
    let kept = [("text", text), ("trouble", if in_trouble { "1" } else { "" })];
    let (lines, unknown) = visible(&visit, lines).await?;
    let mut rows = Vec::with_capacity(lines.len());
    for (line, role) in lines {
        rows.push(row(&visit.console, line, role).await?);
    }
    let service = match visit.session.is_operator {
        true => Some(service(&visit.console.store.jobs().status(visit.console.now()).await?, &visit.console)),
        false => None,
    };
    html(&OverviewPage {
        page: visit.page("Overview", NavSection::Overview),
        rows,
        unknown,
        is_enough: visit.console.roles.is_enough(&visit.session, visit.console.now()),
        text: text.to_owned(),
        in_trouble,
        pager: Pager::new("Pages of repositories", "/", &kept, after.is_none(), next),
        service,
        clock_trouble: visit
            .console
            .github
            .as_ref()
            .and_then(GitHub::github_time)
            .and_then(|time| clock_trouble(time.skew)),
        is_app: visit.console.github.as_ref().is_some_and(GitHub::is_app),
    })
}

/// Those that this person may see. A page looks at so many repositories at most, whoever asks: what is left is on the next.
async fn visible(visit: &Visit, lines: Vec<RepoOverview>) -> Result<(Vec<(RepoOverview, Role)>, usize), PageError> {
    if visit.session.is_operator {
        return Ok((lines.into_iter().map(|line| (line, Role::Operator)).collect(), 0));
    }
    let asked = lines.into_iter().map(|line| async move {
        let role = visit.console.roles.of(&visit.console, &visit.session, &line.repo, false).await;
        (line, role)
    });
    let answers: Vec<_> = stream::iter(asked).buffered(ASKED_AT_ONCE).collect().await;
    let (mut seen, mut unknown) = (Vec::new(), 0);
    for (line, role) in answers {
        match role {
            Ok(role) => seen.push((line, role)),
            Err(PageError::NotFound) => {}
            Err(PageError::Github(_)) => unknown += 1,
            Err(error) => return Err(error),
        }
    }
    Ok((seen, unknown))
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
        waiting: line.waiting_graces,
        dead: line.dead_jobs,
        can_maintain: role >= Role::Maintainer,
        synced: line.synced_at.map(|at| when(at, console.now())),
    })
}

fn service(queue: &QueueStatus, console: &Console) -> ServiceSummary {
    ServiceSummary {
        queued: thousands(queue.queued),
        running: thousands(queue.running),
        dead: thousands(queue.dead),
        oldest: queue.oldest_due.map(|at| when(at, console.now())),
    }
}
