//! The search in the header: items by number or title, findings by title or rule, and commands. A bare number goes to
//! its item, and is searched as a word where there is none.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::Query;
use axum::response::{IntoResponse as _, Redirect};
use axum::routing::get;
use canonry_domain::mention::{DEFAULT_HANDLE, MENTIONS};
use canonry_domain::printable::one_line;
use canonry_domain::{ItemNumber, ItemState, ItemType, RepoName};
use canonry_store::{FoundFinding, MatchingItem, Repo, RepoId, RepoScope};

use crate::console::Console;
use crate::home::visible_repos::visible_repos;
use crate::layout::errors::{PageError, PageResult};
use crate::layout::filters;
use crate::layout::form::QueryFields;
use crate::layout::formatting::{Badge, counted, item_path, severity_badge, status_badge};
use crate::layout::page::{NavSection, PageFrame, html, repo_path};
use crate::layout::paging::{PAGE, contains_words, link, word};
use crate::sign_in::visit::{RepoVisit, SignedIn, Visit};

/// Hits of each kind on the page.
const MOST: u32 = 20;
/// Items whose titles one search reads, in all repositories together.
const ITEMS_READ: u32 = 10_000;
const FINDINGS_READ: u32 = 2_000;
/// At least this many are read per repository, however many repositories there are.
const READ_OF_EACH: u32 = 200;

/// The value of `from` in the links and the form of the results.
const FROM_RESULTS: &str = "results";

pub(crate) fn routes() -> Router<Arc<Console>> {
    Router::new().route("/search", get(show))
}

#[derive(Template)]
#[template(path = "home/search.html")]
struct SearchPage {
    page: PageFrame,
    /// The repository that is searched, and the address that searches all of its items.
    within: Option<(String, String)>,
    items: Vec<ItemHit>,
    findings: Vec<FindingHit>,
    commands: Vec<CommandHit>,
    /// The same search in all repositories.
    everywhere: String,
    /// `#12` is searched only as a number.
    is_only_a_number: bool,
    /// How much the search covered.
    limits: Option<String>,
}

struct ItemHit {
    href: String,
    number: ItemNumber,
    title: String,
    repo: String,
    kind: &'static str,
    state: Badge,
}

struct FindingHit {
    href: String,
    title: String,
    place: String,
    repo: String,
    severity: Badge,
    status: Badge,
}

struct CommandHit {
    command: String,
    does: String,
}

impl SearchPage {
    fn is_empty(&self) -> bool {
        self.items.is_empty() && self.findings.is_empty() && self.commands.is_empty()
    }
}

async fn show(SignedIn(visit): SignedIn, Query(query): QueryFields) -> PageResult {
    let (words, name) = (word(&query, "q"), word(&query, "repo"));
    let within = match name {
        "" => None,
        name => Some(one_repo(&visit, name).await?),
    };
    let repos = match &within {
        Some(at) => vec![at.repo.clone()],
        None => {
            let names = visit.console.store.console().repo_names("", PAGE).await?;
            visible_repos(&visit, names, |repo| repo).await?.seen.into_iter().map(|(repo, _)| repo).collect()
        }
    };
    let number = words.strip_prefix('#').unwrap_or(words).parse().ok().and_then(|number| ItemNumber::new(number).ok());
    let is_only_a_number = number.is_some() && words.starts_with('#');
    let mut items = match number {
        Some(number) => numbered(&visit, within.is_none(), &repos, number).await?,
        None => Vec::new(),
    };
    // From the results a bare number, such as an error code, is searched as a word.
    if let ([only], true) = (items.as_slice(), is_only_a_number || word(&query, "from") != FROM_RESULTS) {
        let there = item_path(&repo_path(&only.repo), only.item_type, only.number);
        return Ok(Redirect::to(&there).into_response());
    }
    let mut found = Vec::new();
    if !is_only_a_number {
        let titled = titled(&visit, &repos, words).await?;
        items.extend(titled.into_iter().filter(|item| Some(item.number) != number));
        found = findings(&visit, &repos, words).await?;
    }
    let page = match &within {
        Some(at) => at.page("Search", NavSection::None),
        None => visit.page("Search", NavSection::None),
    };
    html(&SearchPage {
        page: PageFrame { search: one_line(words), ..page },
        within: within.map(|at| {
            let all = link(&format!("{}/items", repo_path(&at.repo)), &[("title", words)]);
            (at.repo.name.to_string(), all)
        }),
        items: items.into_iter().map(item_hit).collect(),
        findings: found.into_iter().map(finding_hit).collect(),
        commands: commands(&visit.console, words),
        everywhere: link("/search", &[("q", words), ("from", FROM_RESULTS)]),
        is_only_a_number,
        limits: (!is_only_a_number && !words.is_empty()).then(|| limits(repos.len())),
    })
}

/// The repository of this name, if this person may see it.
async fn one_repo(visit: &Visit, name: &str) -> Result<RepoVisit, PageError> {
    let name: RepoName = name.parse().map_err(|_| PageError::NotFound)?;
    let repo = visit.console.store.repos().find(&name).await?.ok_or(PageError::NotFound)?;
    let role = visit.console.roles.of(&visit.console, &visit.session, &repo, false).await?;
    RepoVisit::new(visit.clone(), repo, role).await
}

async fn numbered(
    visit: &Visit,
    is_everywhere: bool,
    repos: &[Repo],
    number: ItemNumber,
) -> Result<Vec<MatchingItem>, PageError> {
    let ids: Vec<RepoId> = repos.iter().map(|repo| repo.id).collect();
    let is_all = is_everywhere && visit.session.is_operator;
    let scope = if is_all { RepoScope::All } else { RepoScope::Of(&ids) };
    Ok(visit.console.store.console().items_numbered(scope, number, MOST).await?)
}

async fn titled(visit: &Visit, repos: &[Repo], words: &str) -> Result<Vec<MatchingItem>, PageError> {
    let mut found = Vec::new();
    for repo in repos.iter().filter(|_| !words.is_empty()) {
        let left = MOST.saturating_sub(found.len() as u32);
        if left > 0 {
            let read = read_of_each(ITEMS_READ, repos.len());
            found.extend(visit.console.store.console().items_titled(repo.id, words, read, left).await?);
        }
    }
    Ok(found)
}

async fn findings(visit: &Visit, repos: &[Repo], words: &str) -> Result<Vec<FoundFinding>, PageError> {
    let mut found = Vec::new();
    for repo in repos.iter().filter(|_| !words.is_empty()) {
        let left = MOST.saturating_sub(found.len() as u32);
        if left > 0 {
            let read = read_of_each(FINDINGS_READ, repos.len());
            found.extend(visit.console.store.console().findings_with(repo.id, words, read, left).await?);
        }
    }
    Ok(found)
}

/// The number of rows to read per repository, so that a search of all takes no longer than one of a single
/// repository.
fn read_of_each(most: u32, repos: usize) -> u32 {
    (most / u32::try_from(repos.max(1)).unwrap_or(u32::MAX)).max(READ_OF_EACH)
}

fn limits(repos: usize) -> String {
    let items = counted(u64::from(read_of_each(ITEMS_READ, repos)), "item");
    let findings = counted(u64::from(read_of_each(FINDINGS_READ, repos)), "finding");
    match repos {
        1 => format!("Searched the newest {items} and {findings}."),
        _ => format!("Searched the newest {items} and {findings} of each of {repos} repositories."),
    }
}

fn item_hit(found: MatchingItem) -> ItemHit {
    ItemHit {
        href: item_path(&repo_path(&found.repo), found.item_type, found.number),
        number: found.number,
        title: found.title,
        repo: found.repo.name.to_string(),
        kind: match found.item_type {
            ItemType::Issue => "issue",
            ItemType::Pr => "pull request",
        },
        state: match (found.state, found.merged) {
            (ItemState::Open, _) => Badge::new("good", "open"),
            (ItemState::Closed, true) => Badge::new("info", "merged"),
            (ItemState::Closed, false) => Badge::new("", "closed"),
        },
    }
}

fn finding_hit(found: FoundFinding) -> FindingHit {
    let path = found.finding.path.as_str();
    FindingHit {
        href: format!("{}/findings/{}", repo_path(&found.repo), found.id),
        place: match found.finding.lines {
            Some(lines) => format!("{path}:{}", lines.first),
            None => path.to_owned(),
        },
        repo: found.repo.name.to_string(),
        severity: severity_badge(found.finding.severity),
        status: status_badge(found.status),
        title: found.finding.title,
    }
}

/// Commands of the command line and in comments.
fn commands(console: &Console, words: &str) -> Vec<CommandHit> {
    let typed = console.commands.iter().map(|command| (command.usage.clone(), command.about.clone()));
    let mentioned = MENTIONS.iter().map(|spec| (format!("/{DEFAULT_HANDLE} {}", spec.example), spec.does.to_owned()));
    typed
        .chain(mentioned)
        .filter(|(command, does)| !words.is_empty() && contains_words(&format!("{command} {does}"), words))
        .map(|(command, does)| CommandHit { command, does })
        .collect()
}
