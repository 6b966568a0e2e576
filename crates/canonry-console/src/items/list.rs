//! Issues and pull requests, newest first, each with its verdict.

use std::collections::BTreeMap;
use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::Query;
use axum::response::{IntoResponse as _, Redirect};
use axum::routing::get;
use canonry_domain::{IssueResolution, ItemNumber, ItemState, ItemType, Lesson, Verdict};
use canonry_store::{ItemLine, ItemPageFilter, ItemPlace, LatestTriage, Representation, StoredOutcome};

use crate::clusters::map::cluster_link;
use crate::console::Console;
use crate::layout::badge;
use crate::layout::errors::{PageError, PageResult};
use crate::layout::filters;
use crate::layout::form::QueryFields;
use crate::layout::formatting::{Badge, TimeLabel, item_path, score, when};
use crate::layout::page::{NavSection, PageFrame, html, repo_path};
use crate::layout::paging::{PAGE, Pager, word};
use crate::sign_in::visit::{ReaderOf, RepoVisit};

pub(crate) fn routes() -> Router<Arc<Console>> {
    Router::new().route("/r/{owner}/{name}/items", get(show))
}

#[derive(Template)]
#[template(path = "items/list.html")]
struct ItemsPage<'a> {
    page: PageFrame,
    path: String,
    filter: ItemPageFilter<'a>,
    /// The searched number, if it is not an item.
    missing: Option<String>,
    rows: Vec<ItemRow>,
    pager: Pager,
}

struct ItemRow {
    number: ItemNumber,
    title: String,
    href: String,
    kind: &'static str,
    state: Badge,
    author: String,
    labels: Vec<String>,
    verdict: Option<Badge>,
    score: String,
    target: Option<(ItemNumber, String)>,
    cluster: Option<(ItemNumber, String)>,
    outcome: Option<&'static str>,
    updated: Option<TimeLabel>,
}

impl ItemsPage<'_> {
    fn is_filtered(&self) -> bool {
        self.filter != ItemPageFilter::default()
    }

    fn has_type(&self, word: &str) -> bool {
        self.filter.item_type.is_some_and(|kind| kind.as_str() == word)
    }

    fn has_state(&self, word: &str) -> bool {
        self.filter.state.is_some_and(|state| state.as_str() == word)
    }

    fn has_verdict(&self, word: &str) -> bool {
        self.filter.verdict.is_some_and(|verdict| verdict.as_str() == word)
    }

    fn has_cluster(&self, word: &str) -> bool {
        self.filter.clustered == Some(word == "yes") && (word == "yes" || word == "no")
    }
}

async fn show(ReaderOf(at): ReaderOf, Query(query): QueryFields) -> PageResult {
    let path = repo_path(&at.repo);
    let number = Some(word(&query, "number").trim_start_matches('#')).filter(|told| !told.is_empty());
    if let Some(told) = number
        && let Some(found) = find(&at, told).await?
    {
        return Ok(Redirect::to(&found).into_response());
    }
    // An unknown filter value is ignored, so that an old link still opens a list.
    let word = |name: &str| word(&query, name);
    let filter = ItemPageFilter {
        item_type: word("type").parse::<ItemType>().ok(),
        state: word("state").parse::<ItemState>().ok(),
        verdict: word("verdict").parse::<Verdict>().ok(),
        clustered: match word("cluster") {
            "yes" => Some(true),
            "no" => Some(false),
            _ => None,
        },
        title: word("title"),
        label: word("label"),
        author: word("author").trim_start_matches('@'),
    };
    let before: Option<ItemPlace> = word("before").parse().ok();
    let found = at.console.store.console().item_pages(at.repo.id, filter, before, PAGE).await?;
    let kept = ["type", "state", "verdict", "cluster", "title", "label", "author"].map(|name| (name, word(name)));
    let next = found.next.map(|place| ("before", place.to_string()));
    html(&ItemsPage {
        rows: rows(&at, found.lines).await?,
        missing: number.map(str::to_owned),
        filter,
        pager: Pager::new("Pages of items", &format!("{path}/items"), &kept, before.is_none(), next)
            .stopped(found.stopped_after),
        page: at.page("Items", NavSection::Items).cli(command(&at, filter)),
        path,
    })
}

/// The command that prints the same items, as far as it has the filters.
fn command(at: &RepoVisit, filter: ItemPageFilter<'_>) -> String {
    let option = |name: &str, word: Option<&str>| word.map(|word| format!(" --{name} {word}")).unwrap_or_default();
    let item_type = option("type", filter.item_type.map(ItemType::as_str));
    let state = option("state", filter.state.map(ItemState::as_str));
    format!("canonry export --repo {}{item_type}{state}", at.repo.name)
}

async fn find(at: &RepoVisit, told: &str) -> Result<Option<String>, PageError> {
    let Ok(number) = told.parse::<ItemNumber>() else { return Ok(None) };
    for item_type in [ItemType::Issue, ItemType::Pr] {
        if at.console.store.corpus().item(at.repo.id, item_type, number).await?.is_some_and(|item| !at.hides(&item)) {
            return Ok(Some(item_path(&repo_path(&at.repo), item_type, number)));
        }
    }
    Ok(None)
}

#[derive(Default)]
struct LineContext {
    triage: BTreeMap<ItemNumber, LatestTriage>,
    canonicals: BTreeMap<ItemNumber, ItemNumber>,
    outcomes: BTreeMap<ItemNumber, StoredOutcome>,
}

async fn rows(at: &RepoVisit, lines: Vec<ItemLine>) -> Result<Vec<ItemRow>, PageError> {
    let (issues, pulls) = (known(at, ItemType::Issue, &lines).await?, known(at, ItemType::Pr, &lines).await?);
    let path = repo_path(&at.repo);
    let row = |line: ItemLine| {
        let known = if line.item_type == ItemType::Issue { &issues } else { &pulls };
        let said = known.triage.get(&line.number);
        let item_link = |number: ItemNumber| (number, item_path(&path, line.item_type, number));
        ItemRow {
            href: item_link(line.number).1,
            kind: if line.item_type == ItemType::Issue { "issue" } else { "pull request" },
            state: badge::item(&line),
            author: line.author.as_ref().map(|login| format!("@{login}")).unwrap_or_default(),
            verdict: said.map(|said| badge::verdict(said.verdict)),
            score: said.and_then(|said| said.target_score).map(|similar| score(similar.get())).unwrap_or_default(),
            target: said.and_then(|said| said.target).map(item_link),
            cluster: known
                .canonicals
                .get(&line.number)
                .map(|canonical| (*canonical, cluster_link(&path, line.item_type, *canonical, Representation::Raw))),
            outcome: known.outcomes.get(&line.number).and_then(outcome_words),
            updated: line.updated_at.or(line.created_at).map(|updated| when(updated, at.console.now())),
            number: line.number,
            title: line.title,
            labels: line.labels,
        }
    };
    Ok(lines.into_iter().map(row).collect())
}

async fn known(at: &RepoVisit, item_type: ItemType, lines: &[ItemLine]) -> Result<LineContext, PageError> {
    let of_type = lines.iter().filter(|line| line.item_type == item_type);
    let numbers: Vec<ItemNumber> = of_type.map(|line| line.number).collect();
    if numbers.is_empty() {
        return Ok(LineContext::default());
    }
    let (store, repo) = (&at.console.store, at.repo.id);
    Ok(LineContext {
        triage: store.duplicates().latest_triage(repo, item_type, &numbers).await?,
        canonicals: store.duplicates().canonicals_of(repo, item_type, Representation::Raw, &numbers).await?,
        outcomes: match item_type {
            ItemType::Issue => store.duplicates().outcomes_of(repo, &numbers).await?,
            ItemType::Pr => BTreeMap::new(),
        },
    })
}

/// What people did with an issue, and whether Canonry was right.
fn outcome_words(stored: &StoredOutcome) -> Option<&'static str> {
    Some(match (&stored.lesson, &stored.outcome.outcome) {
        (Lesson::Confirmed { .. }, _) => "confirmed",
        (Lesson::FalsePositive { .. }, _) => "rejected",
        (Lesson::Missed { .. }, _) => "missed duplicate",
        (_, IssueResolution::Duplicate { .. }) => "closed as a duplicate",
        (Lesson::TrueNegative, _) => "no duplicate, as predicted",
        _ => return None,
    })
}
