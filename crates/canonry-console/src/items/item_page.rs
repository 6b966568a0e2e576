//! An item's page: what Canonry found, why, what it did, and what people made of it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::routing::{get, post};
use canonry_domain::printable::one_line;
use canonry_domain::{DecisionOrigin, DecisionStatus, Item, ItemNumber, ItemState, ItemType, Override, redact};
use canonry_store::{BrakeKind, ItemClose, Representation, StoredDecision};
use canonry_triage::{ItemHistory, evidence_text, shared_evidence, stored_boilerplate};

use crate::admin::repo_settings::settings_of;
use crate::clusters::map::cluster_link;
use crate::console::Console;
use crate::items::rulings;
use crate::items::state::Sentence;
use crate::items::timeline::{self as timeline, CloseLine, GraceEventLine, RulingEventLine, TimelineEvent, WriteLine};
use crate::items::triage_run::{TriageRunContext, TriageRunView, view_decision, view_record};
use crate::items::verdict::{ItemFacts, verdict};
use crate::layout::errors::{PageError, PageResult};
use crate::layout::filters;
use crate::layout::form::PathFields;
use crate::layout::formatting::{TimeLabel, capital, item_path, when};
use crate::layout::page::{NavSection, PageFrame, html, repo_path};
use crate::layout::paging::cut;
use crate::reviews::review_page::web;
use crate::sign_in::visit::{ReaderOf, RepoVisit};

/// A text with more lines, or more characters, begins folded up.
const LONG_LINES: usize = 40;
const LONG_TEXT: usize = 3_000;
/// How much of each list is shown: more than ever happens to one item, unless something goes wrong.
const MOST_CLOSES: u32 = 40;
const MOST_RUNS: usize = 30;
const MOST_WRITES: usize = 60;
const MEMBERS_SHOWN: u32 = 13;
/// Facts that both texts share: a person reads a few.
const FACTS: usize = 6;

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
    body: String,
    is_long: bool,
    is_paused: bool,
    verdict: Sentence,
    target_href: String,
    target_title: String,
    facts: Vec<String>,
    main: Vec<TriageRunView>,
    earlier: Vec<TriageRunView>,
    cluster: Option<ClusterBox>,
    said: Vec<TimelineEvent>,
    graces: Vec<GraceEventLine>,
    closes: Vec<CloseLine>,
    had_closes: bool,
    writes: Vec<WriteLine>,
    had_writes: bool,
    had_more_runs: bool,
    events: Vec<TimelineEvent>,
    outcome: Option<(String, String)>,
    rulings: Vec<RulingEventLine>,
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

async fn issue(ReaderOf(at): ReaderOf, path: PathFields) -> PageResult {
    show(&at, &path, ItemType::Issue).await
}

async fn pull(ReaderOf(at): ReaderOf, path: PathFields) -> PageResult {
    show(&at, &path, ItemType::Pr).await
}

/// An item's history, with what only the page shows.
struct ItemPageData {
    history: ItemHistory,
    closes: Vec<ItemClose>,
    had_closes: bool,
    cluster: Option<(Representation, ItemNumber, u64)>,
}

async fn show(at: &RepoVisit, path: &HashMap<String, String>, item_type: ItemType) -> PageResult {
    let number = path.get("number").and_then(|number| number.parse::<ItemNumber>().ok()).ok_or(PageError::NotFound)?;
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
    let target = verdict.target.and_then(|target| others.get(&target));
    let boilerplate = stored_boilerplate(store, &at.repo, item_type).await?;
    let own = |item: &Item| evidence_text(&boilerplate.own(item));
    let facts = target.map(|target| shared_evidence(&at.repo.name, &own(&data.history.item), &own(target)));
    let item = &data.history.item;
    let command = format!("canonry show --repo {} --type {item_type} --number {number}", at.repo.name);
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
        is_long: item.body.lines().count() > LONG_LINES || item.body.chars().count() > LONG_TEXT,
        body: item.body.clone(),
        is_paused: store.close().brake_in_force(repo, BrakeKind::Pause).await?.is_some(),
        target_href: verdict.target.map(|target| item_path(&path, item_type, target)).unwrap_or_default(),
        target_title: target.map(|target| target.title.clone()).unwrap_or_default(),
        facts: facts.iter().flatten().take(FACTS).map(|fact| capital(&redact(&fact.to_string()))).collect(),
        verdict,
        main,
        earlier,
        cluster: cluster_box(at, &data).await?,
        said: data.history.triage_actions.iter().map(|action| timeline::action_event(action, now)).collect(),
        graces: data.history.graces.iter().map(|grace| timeline::grace_event(grace, now)).collect(),
        closes: data.closes.iter().map(|close| timeline::close_event(close, now)).collect(),
        had_closes: data.had_closes,
        writes: data
            .history
            .writes
            .iter()
            .rev()
            .take(MOST_WRITES)
            .map(|entry| timeline::write_line(entry, now))
            .collect(),
        had_writes: data.history.writes.len() > MOST_WRITES,
        had_more_runs: data.history.triage_records.len() > MOST_RUNS || data.history.decisions.len() > MOST_RUNS,
        events: timeline::people_events(&data.history.outcome_events, now),
        outcome: data.history.outcome.as_ref().map(timeline::outcome_sentences),
        rulings: data.history.rulings.iter().rev().map(|ruled| timeline::ruling_event(ruled, number, now)).collect(),
        can_maintain: at.can_maintain(),
        path,
    })
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

/// The looks that count, in the order of time, and the others, newest first. An edge in force counts more than what was
/// looked at since; one that a grace led to is told together with what announced it.
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

fn state_of(item: &Item) -> (&'static str, &'static str) {
    match (item.gone, item.state) {
        (Some(gone), _) => (gone.as_str(), "bad"),
        (None, _) if item.merged => ("merged", "info"),
        (None, ItemState::Open) if item.draft => ("draft", "mute"),
        (None, ItemState::Open) => ("open", "good"),
        (None, ItemState::Closed) => match item.state_reason {
            Some(canonry_domain::StateReason::Duplicate) => ("closed as a duplicate", "mute"),
            Some(canonry_domain::StateReason::Completed) => ("closed as done", "mute"),
            Some(canonry_domain::StateReason::NotPlanned) => ("closed as not planned", "mute"),
            _ => ("closed", "mute"),
        },
    }
}
