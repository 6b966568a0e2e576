//! An item's page: the verdict with its actions, the comparison with the best candidate, the checks and the history.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::{Path, Query};
use axum::routing::{get, post};
use canonry_domain::printable::one_line;
use canonry_domain::{DecisionOrigin, DecisionStatus, Item, ItemNumber, ItemState, ItemType, Override};
use canonry_store::{BrakeKind, ItemClose, Representation, StoredDecision};
use canonry_triage::ItemHistory;

use crate::admin::repo_settings::settings_of;
use crate::clusters::map::cluster_link;
use crate::console::Console;
use crate::items::pull_findings::{PullFindings, pull_findings};
use crate::items::rulings;
use crate::items::state::Sentence;
use crate::items::timeline::{TimelineEvent, outcome_sentences, timeline};
use crate::items::triage_run::{TriageRunContext, TriageRunView, view_decision, view_record};
use crate::items::verdict::{ItemFacts, verdict};
use crate::items::verdict_actions::VerdictActions;
use crate::layout::errors::{PageError, PageResult};
use crate::layout::filters;
use crate::layout::form::{PathFields, QueryFields};
use crate::layout::formatting::{TimeLabel, item_path, when};
use crate::layout::page::{NavSection, PageFrame, html, repo_path};
use crate::layout::paging::{cut, part_in, word};
use crate::plans::pair_comparison::{ComparedItem, PairComparison, pair_comparison};
use crate::reviews::review_page::web;
use crate::sign_in::visit::{ReaderOf, RepoVisit};

/// The most rows of each list: more than one item ever has, unless something is broken.
pub(crate) const MOST_CLOSES: u32 = 40;
const MOST_RUNS: usize = 30;
const MEMBERS_SHOWN: u32 = 13;

pub(crate) fn routes() -> Router<Arc<Console>> {
    Router::new()
        .route("/r/{owner}/{name}/issues/{number}", get(issue))
        .route("/r/{owner}/{name}/pulls/{number}", get(pull))
        .route("/r/{owner}/{name}/items/{type}/{number}/rule", post(rulings::rule))
        .route("/r/{owner}/{name}/rulings/{id}/remove", post(rulings::remove))
        .route("/r/{owner}/{name}/graces/{id}/cancel", post(rulings::cancel_grace))
}

#[derive(Template)]
#[template(path = "items/item_page.html")]
struct ItemPageView {
    page: PageFrame,
    path: String,
    kind: &'static str,
    type_word: &'static str,
    number: ItemNumber,
    title: String,
    state: &'static str,
    state_class: &'static str,
    author: Option<String>,
    opened: Option<TimeLabel>,
    comments: u64,
    labels: Vec<String>,
    url: Option<String>,
    is_paused: bool,
    verdict: Sentence,
    target_href: String,
    actions: VerdictActions,
    /// Only for a pull request.
    review: Option<PullFindings>,
    comparison: PairComparison,
    /// The link to the other view of the comparison: line by line or side by side.
    other_view: String,
    main: Vec<TriageRunView>,
    earlier: Vec<TriageRunView>,
    cluster: Option<ClusterBox>,
    events: Vec<TimelineEvent>,
    had_more_events: bool,
    had_more_runs: bool,
    outcome: Option<(String, String)>,
    can_maintain: bool,
}

struct ClusterBox {
    href: String,
    canonical: ItemNumber,
    is_canonical: bool,
    is_open: bool,
    members: u64,
    shown: Vec<ClusterMemberLink>,
    left_out: u64,
}

struct ClusterMemberLink {
    number: ItemNumber,
    href: String,
    title: String,
    is_open: bool,
    is_canonical: bool,
}

async fn issue(ReaderOf(at): ReaderOf, Path(path): PathFields, Query(query): QueryFields) -> PageResult {
    show(&at, &path, &query, ItemType::Issue).await
}

async fn pull(ReaderOf(at): ReaderOf, Path(path): PathFields, Query(query): QueryFields) -> PageResult {
    show(&at, &path, &query, ItemType::Pr).await
}

/// An item's history, with data that only the page shows.
struct ItemPageData {
    history: ItemHistory,
    closes: Vec<ItemClose>,
    had_closes: bool,
    cluster: Option<(Representation, ItemNumber, u64)>,
}

async fn show(
    at: &RepoVisit,
    path: &HashMap<String, String>,
    query: &HashMap<String, String>,
    item_type: ItemType,
) -> PageResult {
    let number: ItemNumber = part_in(path, "number")?;
    let data = load(at, item_type, number).await?;
    let (store, repo, now, path) = (&at.console.store, at.repo.id, at.console.now(), repo_path(&at.repo));
    let others = others(at, &data).await?;
    let config = settings_of(&at.console, repo).await?.config;
    let context = TriageRunContext {
        path: &path,
        item_type,
        others: &others,
        tells_of_gone: at.can_maintain(),
        min_edge: config.close.min_edge,
        now,
    };
    let (main, earlier) = triage_runs(&data, &context);
    let in_force: Vec<Override> =
        data.history.rulings.iter().filter(|(_, removed)| removed.is_none()).map(|(ruled, _)| ruled.clone()).collect();
    let (state, state_class) = state_of(&data.history.item);
    let verdict = verdict(&ItemFacts {
        item: &data.history.item,
        state,
        others: &others,
        events: &data.history.outcome_events,
        rulings: &in_force,
        closes: &data.closes,
        graces: &data.history.graces,
        decisions: &data.history.decisions,
        records: &data.history.triage_records,
        cluster: data.cluster.map(|(_, canonical, members)| (canonical, members)),
        now,
    });
    let item = &data.history.item;
    let best = best_candidate(&data, &verdict).and_then(|best| others.get(&best));
    let by_line = word(query, "view") == "lines";
    let source = ComparedItem { item, role: "this item", is_edited: false };
    let target = best.map(|item| ComparedItem { item, role: "best candidate", is_edited: false });
    let comparison = pair_comparison(at, source, target, by_line).await?;
    let (events, had_more_events) = timeline(&data.history, &data.closes, now);
    let here = item_path(&path, item_type, number);
    let command = format!("canonry show {number} --type {item_type} --repo {}", at.repo.name);
    html(&ItemPageView {
        page: at.page(&format!("#{number} {}", one_line(&item.title)), NavSection::Items).cli(command),
        kind: item_type.in_words(),
        type_word: item_type.as_str(),
        number,
        title: item.title.clone(),
        state,
        state_class,
        author: item.author.as_ref().map(ToString::to_string),
        opened: item.created_at.map(|at| when(at, now)),
        comments: u64::from(item.comments) + u64::from(item.review_comments),
        labels: item.labels.clone(),
        url: item
            .url
            .clone()
            .filter(|url| web(&at.console).is_some() && (url.starts_with("https://") || url.starts_with("http://"))),
        is_paused: store.close().brake_in_force(repo, BrakeKind::Pause).await?.is_some(),
        target_href: verdict.target.map(|target| item_path(&path, item_type, target)).unwrap_or_default(),
        actions: VerdictActions::new(&data.history, &data.closes, &in_force, best.map(|best| best.number), &path),
        review: match item_type {
            ItemType::Pr => Some(pull_findings(at, number).await?),
            ItemType::Issue => None,
        },
        comparison,
        other_view: if by_line { here } else { format!("{here}?view=lines") },
        verdict,
        main,
        earlier,
        cluster: cluster_box(at, &data).await?,
        events,
        had_more_events: had_more_events || data.had_closes,
        had_more_runs: data.history.triage_records.len() > MOST_RUNS || data.history.decisions.len() > MOST_RUNS,
        outcome: data.history.outcome.as_ref().map(outcome_sentences),
        can_maintain: at.can_maintain(),
        path,
    })
}

/// The item of the comparison: the verdict's target, or else the closest item that a run found.
fn best_candidate(data: &ItemPageData, verdict: &Sentence) -> Option<ItemNumber> {
    let record = data.history.triage_records.first().map(|stored| &stored.record);
    let decision = data.history.decisions.first();
    let targets = [verdict.target, record.and_then(|record| record.target), decision.and_then(|one| one.target)];
    let closest = record
        .and_then(|record| record.candidates.first().map(|one| one.number))
        .or_else(|| decision.and_then(|one| one.candidates.first().map(|one| one.number)));
    targets.into_iter().flatten().next().or(closest)
}

async fn load(at: &RepoVisit, item_type: ItemType, number: ItemNumber) -> Result<ItemPageData, PageError> {
    let (store, repo) = (&at.console.store, at.repo.id);
    let item = store
        .corpus()
        .item(repo, item_type, number)
        .await?
        .filter(|item| !at.hides(item))
        .ok_or(PageError::NotFound)?;
    let mut cluster = None;
    for representation in [Representation::Raw, Representation::Intent] {
        let of = store.duplicates().canonicals_of(repo, item_type, representation, &[number]).await?;
        if let Some(canonical) = of.get(&number) {
            let row = store.duplicates().cluster_row(repo, item_type, representation, *canonical).await?;
            cluster = Some((representation, *canonical, row.map_or(0, |row| row.members)));
            break;
        }
    }
    let mut closes = store.close().closes_of_item(repo, item_type, number, MOST_CLOSES + 1).await?;
    let had_closes = cut(&mut closes, MOST_CLOSES);
    Ok(ItemPageData { history: ItemHistory::load(store, repo, item).await?, closes, had_closes, cluster })
}

/// The items that the page names, as they are now.
async fn others(at: &RepoVisit, data: &ItemPageData) -> Result<BTreeMap<ItemNumber, Item>, PageError> {
    let records = data.history.triage_records.iter().take(MOST_RUNS);
    let decisions = data.history.decisions.iter().take(MOST_RUNS);
    let shown = |decision: &StoredDecision| {
        data.history.candidate_sets.iter().find(|set| decision.candidate_set == Some(set.id))
    };
    let mut numbers: Vec<ItemNumber> = records
        .flat_map(|stored| stored.record.candidates.iter().map(|one| one.number).chain(stored.record.target))
        .chain(decisions.clone().flat_map(|one| one.candidates.iter().map(|one| one.number).chain(one.target)))
        .chain(data.history.decisions.iter().filter(|one| is_edge(one)).filter_map(|one| one.target))
        .chain(decisions.filter_map(shown).flat_map(|set| set.members.iter().map(|member| member.number)))
        .chain(data.history.graces.iter().map(|grace| grace.target))
        .chain(data.closes.iter().filter_map(|close| close.row.target))
        .chain(data.history.rulings.iter().flat_map(|(ruled, _)| std::iter::once(ruled.item).chain(ruled.other)))
        .chain(data.cluster.map(|(_, canonical, _)| canonical))
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    let items = at.items(data.history.item.item_type, &numbers).await?;
    Ok(items.into_iter().map(|item| (item.number, item)).collect())
}

/// The runs that count, the oldest first, and the others, newest first. An accepted edge counts more than later runs;
/// an edge of a grace is shown together with the run that announced the close.
fn triage_runs(data: &ItemPageData, context: &TriageRunContext<'_>) -> (Vec<TriageRunView>, Vec<TriageRunView>) {
    let edge = data.history.decisions.iter().find(|one| is_edge(one));
    let newest = data.history.triage_records.first().map(|stored| stored.id);
    let announced = newest.filter(|_| edge.is_some_and(|edge| edge.origin == DecisionOrigin::Online));
    let first = data.history.triage_records.len().saturating_sub(1);
    let records = data.history.triage_records.iter().enumerate().take(MOST_RUNS);
    let records = records.map(|(at, stored)| (Some(stored.id) == announced, view_record(stored, at == first, context)));
    let decisions = data.history.decisions.iter().take(MOST_RUNS);
    let decisions = decisions.map(|one| {
        (edge.is_some_and(|edge| edge.id == one.id), view_decision(one, &data.history.candidate_sets, context))
    });
    let mut all: Vec<(bool, TriageRunView)> = records.chain(decisions).collect();
    all.sort_by_key(|(_, run)| std::cmp::Reverse(run.at));
    if edge.is_none()
        && let Some((counts, _)) = all.first_mut()
    {
        *counts = true;
    }
    let (mut main, earlier): (Vec<_>, Vec<_>) = all.into_iter().partition(|(counts, _)| *counts);
    main.reverse();
    let triage_runs = |all: Vec<(bool, TriageRunView)>| all.into_iter().map(|(_, run)| run).collect();
    (triage_runs(main), triage_runs(earlier))
}

fn is_edge(decision: &StoredDecision) -> bool {
    decision.status == DecisionStatus::Accepted && decision.superseded_at.is_none()
}

async fn cluster_box(at: &RepoVisit, data: &ItemPageData) -> Result<Option<ClusterBox>, PageError> {
    let Some((representation, canonical, members)) = data.cluster else { return Ok(None) };
    let (store, repo, path) = (&at.console.store, at.repo.id, repo_path(&at.repo));
    let item_type = data.history.item.item_type;
    let first =
        store.duplicates().cluster_members(repo, item_type, representation, canonical, None, MEMBERS_SHOWN).await?;
    let numbers: Vec<ItemNumber> =
        first.into_iter().map(|(number, _)| number).filter(|number| *number != data.history.item.number).collect();
    let items = at.items(item_type, &numbers).await?;
    let shown: Vec<ClusterMemberLink> = items
        .into_iter()
        .map(|item| ClusterMemberLink {
            number: item.number,
            href: item_path(&path, item_type, item.number),
            title: item.title,
            is_open: item.state == ItemState::Open,
            is_canonical: item.number == canonical,
        })
        .collect();
    Ok(Some(ClusterBox {
        href: cluster_link(&path, item_type, canonical, representation),
        canonical,
        is_canonical: canonical == data.history.item.number,
        is_open: data.history.item.state == ItemState::Open,
        members,
        left_out: members.saturating_sub(1 + shown.len() as u64),
        shown,
    }))
}

pub(crate) fn state_of(item: &Item) -> (&'static str, &'static str) {
    match (item.gone, item.state) {
        (Some(gone), _) => (gone.as_str(), "bad"),
        (None, _) if item.merged => ("merged", "info"),
        (None, ItemState::Open) if item.draft => ("draft", "mute"),
        (None, ItemState::Open) => ("open", "good"),
        (None, ItemState::Closed) => match item.state_reason {
            Some(canonry_domain::StateReason::Duplicate) => ("closed as a duplicate", "mute"),
            Some(canonry_domain::StateReason::Completed) => ("closed as completed", "mute"),
            Some(canonry_domain::StateReason::NotPlanned) => ("closed as not planned", "mute"),
            _ => ("closed", "mute"),
        },
    }
}
