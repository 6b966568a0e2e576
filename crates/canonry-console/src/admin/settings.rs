//! A repository's settings: its file, what each setting does, maintainers, rulings and pauses.

use std::collections::HashMap;
use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::Query;
use axum::routing::get;
use canonry_config::SETTINGS_FILE;
use canonry_domain::{BREAKER_WINDOW, ItemNumber, ItemType, Override, OverrideKind, TriageReason, month_of};
use canonry_store::{Brake, BrakeKind, MaintainerSource};
use jiff::Timestamp;

use crate::admin::activity;
use crate::admin::activity::ActivityLine;
use crate::admin::settings_keys::{
    PresetChoice, SettingChange, SettingView, SettingsSectionView, edit_file, new_file, presets, setting_change,
    settings_sections,
};
use crate::console::Console;
use crate::layout::badge;
use crate::layout::errors::PageResult;
use crate::layout::filters;
use crate::layout::form::QueryFields;
use crate::layout::formatting::{Badge, TimeLabel, dollars, item_path, when};
use crate::layout::page::{NavSection, PageFrame, html, repo_path};
use crate::layout::paging::{PAGE, Pager, cut_page, filter_rows, number, word};
use crate::reviews::review_page::web;
use crate::sign_in::visit::ReaderOf;

/// Pauses and actions on a page, newest first.
const LATEST: u32 = 12;
/// Rulings that one filtered page reads.
const RULINGS_READ: u32 = 5_000;

pub(crate) fn routes() -> Router<Arc<Console>> {
    Router::new().route("/r/{owner}/{name}/settings", get(show))
}

#[derive(Template)]
#[template(path = "admin/settings.html")]
struct SettingsPage {
    page: PageFrame,
    path: String,
    can_maintain: bool,
    file: &'static str,
    fetched: SettingsFetch,
    has_file: bool,
    lines: Vec<SettingsFileLine>,
    problems: Vec<String>,
    /// Example files, if the repository has no file.
    presets: Vec<PresetChoice>,
    edit_link: Option<String>,
    change: Option<SettingChange>,
    change_link: Option<String>,
    sections: Vec<SettingsSectionView>,
    brakes: Vec<BrakeHistoryLine>,
    brake_pager: Pager,
    rulings: Vec<RulingRow>,
    asked: RulingQuery,
    pager: Pager,
    repo: String,
    /// Shown only to people to whom GitHub shows the maintainers.
    maintainers: Option<MaintainersView>,
    objections: u64,
    spent: String,
    budget: String,
    activity: Vec<ActivityLine>,
}

impl SettingsPage {
    fn changed_settings(&self) -> Vec<&SettingView> {
        self.sections.iter().flat_map(|section| &section.keys).filter(|key| key.is_changed).collect()
    }
}

struct RulingQuery {
    kind: Option<OverrideKind>,
    by: String,
    item: String,
}

impl RulingQuery {
    fn of(query: &HashMap<String, String>) -> Self {
        Self {
            kind: word(query, "kind").parse().ok(),
            by: word(query, "by").trim_start_matches('@').to_owned(),
            item: word(query, "item").trim_start_matches('#').to_owned(),
        }
    }

    fn is_filtered(&self) -> bool {
        self.kind.is_some() || !self.by.is_empty() || !self.item.is_empty()
    }

    fn is_kind(&self, word: &str) -> bool {
        self.kind.is_some_and(|kind| kind.as_str() == word)
    }

    fn fits(&self, ruling: &Override) -> bool {
        let names = |item: ItemNumber| item.to_string() == self.item;
        self.kind.is_none_or(|kind| ruling.kind == kind)
            && (self.by.is_empty()
                || ruling.created_by.as_ref().is_some_and(|by| by.as_str().eq_ignore_ascii_case(&self.by)))
            && (self.item.is_empty() || names(ruling.item) || ruling.other.is_some_and(names))
    }
}

enum SettingsFetch {
    Never,
    Outdated,
    At(TimeLabel),
}

struct SettingsFileLine {
    number: usize,
    text: String,
    is_wrong: bool,
}

struct BrakeHistoryLine {
    kind: &'static str,
    why: String,
    set_by: String,
    set_at: TimeLabel,
    lifted: Option<(String, TimeLabel)>,
}

struct RulingRow {
    id: i64,
    words: &'static str,
    item: (ItemNumber, String),
    other: Option<(ItemNumber, String)>,
    note: Option<String>,
    by: String,
    at: TimeLabel,
}

struct MaintainersView {
    source: Badge,
    is_set: bool,
    logins: Vec<String>,
    at: TimeLabel,
}

async fn show(ReaderOf(at): ReaderOf, Query(query): QueryFields) -> PageResult {
    let (store, repo, now) = (&at.console.store, at.repo.id, at.console.now());
    let path = repo_path(&at.repo);
    let stored = store.repos().settings(repo).await?;
    let file = stored.as_ref().and_then(|stored| stored.text.as_deref());
    let (has_file, text) = (file.is_some(), file.unwrap_or_default());
    let parsed = canonry_config::parse(text);
    let here = format!("{path}/settings");
    let (web, name) = (web(&at.console), &at.repo.name);
    let mut change = setting_change(file, word(&query, "change"), word(&query, "to"));
    if let Some(change) = &mut change
        && stored.as_ref().is_some_and(|stored| stored.fetched_at == Timestamp::UNIX_EPOCH)
    {
        // The file is another one on GitHub by now: to replace it would undo that change.
        change.file = None;
    }
    let (asked, before) = (RulingQuery::of(&query), number(&query, "rulings"));
    let looked_at = if asked.is_filtered() { RULINGS_READ } else { PAGE };
    let rulings = store.duplicates().override_pages(repo, before, looked_at + 1).await?;
    let rulings = filter_rows(rulings, looked_at, PAGE, |ruling| asked.fits(ruling), |ruling| ruling.id);
    let kind = asked.kind.map(OverrideKind::as_str).unwrap_or_default();
    let kept = [("kind", kind), ("by", asked.by.as_str()), ("item", asked.item.as_str())];
    let next = rulings.next.map(|id| ("rulings", id.to_string()));
    let pager = Pager::new("Pages of rulings", &here, &kept, before.is_none(), next).in_section("rulings");
    let before = number(&query, "brakes");
    let mut brakes = store.close().brake_pages(repo, before, LATEST + 1).await?;
    let next = cut_page(&mut brakes, LATEST, |brake| ("brakes", brake.id.to_string()));
    let list = if at.can_maintain() { store.repos().maintainers(repo).await? } else { None };
    let maintainers = list.map(|list| MaintainersView {
        source: badge::maintainers(list.source),
        is_set: list.source == MaintainerSource::Set,
        logins: list.logins.iter().map(|login| format!("@{login}")).collect(),
        at: when(list.written_at, now),
    });
    html(&SettingsPage {
        page: at.page("Settings", NavSection::Settings),
        can_maintain: at.can_maintain(),
        file: SETTINGS_FILE,
        fetched: match &stored {
            None => SettingsFetch::Never,
            Some(stored) if stored.fetched_at == Timestamp::UNIX_EPOCH => SettingsFetch::Outdated,
            Some(stored) => SettingsFetch::At(when(stored.fetched_at, now)),
        },
        lines: file_lines(text, &parsed.problems),
        problems: parsed.problems.iter().map(ToString::to_string).collect(),
        presets: if has_file { Vec::new() } else { presets(web.as_ref(), name) },
        edit_link: web.as_ref().and_then(|web| edit_file(web, name)),
        change_link: match (web.as_ref(), change.as_ref().and_then(|change| change.snippet.as_deref())) {
            (Some(web), Some(snippet)) if !has_file => new_file(web, name, snippet),
            (Some(web), Some(_)) => edit_file(web, name),
            _ => None,
        },
        has_file,
        sections: settings_sections(&parsed.config, &here, change.as_ref().map(|change| change.path.as_str())),
        change,
        brakes: brakes.into_iter().map(|brake| brake_line(brake, now)).collect(),
        brake_pager: Pager::new("Pages of brakes", &here, &[], before.is_none(), next).of_section("brakes"),
        rulings: rulings.rows.into_iter().map(|ruling| ruling_line(&path, ruling, now)).collect(),
        asked,
        pager: pager.stopped(rulings.stopped_after),
        repo: at.repo.name.to_string(),
        maintainers,
        objections: store.close().objections_since(repo, now - BREAKER_WINDOW).await?,
        spent: dollars(store.models().spent_since(repo, month_of(now)).await?),
        budget: match parsed.config.budget.monthly_cost_usd {
            own if own > 0.0 => {
                let last = store.duplicates().last_triage_reason(repo).await?;
                let lacks_prices = last.is_some_and(|reason| reason == TriageReason::NoPrices);
                let unheld = "; no model is called: the service was started without --input-price and --output-price";
                format!("{}{}", dollars(own), if lacks_prices { unheld } else { "" })
            }
            _ => "none in this repository".to_owned(),
        },
        activity: activity::latest(&at.console, repo, LATEST).await?,
        path,
    })
}

fn file_lines(text: &str, problems: &[canonry_config::SettingsProblem]) -> Vec<SettingsFileLine> {
    let line = |(number, text): (usize, &str)| SettingsFileLine {
        number,
        text: text.to_owned(),
        is_wrong: problems.iter().any(|problem| problem.line == number),
    };
    (1..).zip(text.lines()).map(line).collect()
}

fn brake_line(brake: Brake, now: Timestamp) -> BrakeHistoryLine {
    let who = |by: Option<canonry_domain::Login>| {
        by.map_or_else(|| "Canonry or an operator".to_owned(), |by| format!("@{by}"))
    };
    BrakeHistoryLine {
        kind: match brake.kind {
            BrakeKind::Pause => "Pause",
            BrakeKind::Breaker => "Automatic stop",
        },
        why: brake.why,
        set_by: who(brake.set_by),
        set_at: when(brake.set_at, now),
        lifted: brake.lifted_at.map(|at| (who(brake.lifted_by), when(at, now))),
    }
}

fn ruling_line(path: &str, ruling: Override, now: Timestamp) -> RulingRow {
    let kind: ItemType = ruling.item_type;
    let linked = |number: ItemNumber| (number, item_path(path, kind, number));
    RulingRow {
        id: ruling.id,
        words: match ruling.kind {
            OverrideKind::Duplicate => "is a duplicate of",
            OverrideKind::NotDuplicate => "is not a duplicate of",
            OverrideKind::Canonical => "is the canonical of its cluster",
            OverrideKind::Excluded => "must not be closed as a duplicate of",
        },
        item: linked(ruling.item),
        other: ruling.other.map(linked),
        note: ruling.note,
        by: ruling.created_by.map(|login| format!("@{login}")).unwrap_or_default(),
        at: when(ruling.created_at, now),
    }
}
