//! Audits: how a cheap judge compares with a strong one and with people, and what stricter gates would change.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::{Path, Query};
use axum::routing::get;
use canonry_domain::{AdjudicationSummary, AuditTally, Extractor, RepoName};
use canonry_store::{AuditFilter, AuditRun, Representation};
use jiff::Timestamp;

use crate::charts::sweep::{precision_of, recall_of};
use crate::console::Console;
use crate::layout::errors::{PageError, PageResult};
use crate::layout::filters;
use crate::layout::form::{PathFields, QueryFields};
use crate::layout::formatting::{TimeLabel, judge_in_words, score, share, when};
use crate::layout::page::{NavSection, PageFrame, html, repo_path};
use crate::layout::paging::{PAGE, Pager, cut_page, number, number_in, word};
use crate::learning::adjudication::PeoplesLane;
use crate::learning::gate_simulation::{ANY_SCORE, GateSimulationView, GateSliders, WIDEST_GAP, last_rank, simulated};
use crate::reviews::findings::{FilterChoice, choices};
use crate::sign_in::visit::ReaderOf;

pub(crate) fn routes() -> Router<Arc<Console>> {
    Router::new().route("/r/{owner}/{name}/audits", get(list)).route("/r/{owner}/{name}/audits/{id}", get(one))
}

#[derive(Template)]
#[template(path = "learning/audits.html")]
struct AuditsPage {
    page: PageFrame,
    path: String,
    repo: RepoName,
    rows: Vec<AuditRow>,
    judges: Vec<FilterChoice>,
    sources: Vec<FilterChoice>,
    is_filtered: bool,
    pager: Pager,
    people: PeoplesLane,
}

struct AuditRow {
    id: i64,
    href: String,
    made: TimeLabel,
    cheap: String,
    strong: String,
    items: u64,
    precision: String,
    recall: String,
}

async fn list(ReaderOf(at): ReaderOf, Query(query): QueryFields) -> PageResult {
    // An unknown value is ignored.
    let judge: Option<Extractor> = word(&query, "judge").parse().ok();
    let representation: Option<Representation> = word(&query, "source").parse().ok();
    let before = number(&query, "before");
    let filter = AuditFilter { judge: judge.map(Extractor::as_str), representation };
    let mut audits = at.console.store.judge().audits(at.repo.id, filter, before, PAGE + 1).await?;
    let next = cut_page(&mut audits, PAGE, |(run, _)| ("before", run.id.to_string()));
    let people = AdjudicationSummary::of(&at.console.store.judge().adjudication_totals(at.repo.id).await?);
    let path = repo_path(&at.repo);
    let here = format!("{path}/audits");
    let kept = [
        ("judge", filter.judge.unwrap_or_default()),
        ("source", representation.map(Representation::as_str).unwrap_or_default()),
    ];
    html(&AuditsPage {
        page: at.page("Audits", NavSection::Audits).cli(format!("canonry report-audit --repo {}", at.repo.name)),
        rows: audits.iter().map(|(run, tally)| audit_row(run, tally, &here, at.console.now())).collect(),
        judges: choices(Extractor::ALL, judge, |one| (one.as_str(), one.as_str())),
        sources: choices(&[Representation::Raw, Representation::Intent], representation, |one| match one {
            Representation::Raw => ("raw", "title and body"),
            Representation::Intent => ("intent", "intent cards"),
        }),
        is_filtered: filter != AuditFilter::default(),
        pager: Pager::new("Pages of audits", &here, &kept, before.is_none(), next),
        people: PeoplesLane::of(&people),
        repo: at.repo.name.clone(),
        path,
    })
}

fn audit_row(run: &AuditRun, tally: &AuditTally, here: &str, now: Timestamp) -> AuditRow {
    AuditRow {
        id: run.id,
        href: format!("{here}/{}", run.id),
        made: when(run.created_at, now),
        cheap: judge_in_words(&run.audit.cheap_provider, &run.audit.cheap_model),
        strong: judge_in_words(&run.audit.strong_provider, &run.audit.strong_model),
        items: tally.sample_size,
        precision: share(precision_of(tally), "right"),
        recall: share(recall_of(tally), "found"),
    }
}

#[derive(Template)]
#[template(path = "learning/audit.html")]
struct AuditPage {
    page: PageFrame,
    path: String,
    here: String,
    id: i64,
    made: TimeLabel,
    cheap: String,
    strong: String,
    /// What the audit proves about a judge other than the compiled-in one.
    proof: Option<String>,
    seed: i64,
    min_edge: String,
    asked_for: u32,
    last_rank: u32,
    any_score: f64,
    widest_gap: f64,
    people: PeoplesLane,
    simulation: GateSimulationView,
}

#[derive(Template)]
#[template(path = "learning/gate_simulation.html")]
struct SimulationPart {
    simulation: GateSimulationView,
}

async fn one(ReaderOf(at): ReaderOf, Path(segments): PathFields, Query(sliders): Query<GateSliders>) -> PageResult {
    let id = number_in(&segments, "id")?;
    let run = at
        .console
        .store
        .judge()
        .audit_run(id)
        .await?
        .filter(|run| run.repo == at.repo.id)
        .ok_or(PageError::NotFound)?;
    let audited = at.console.store.judge().audit_items(id).await?;
    let path = repo_path(&at.repo);
    let last_rank = last_rank(&audited);
    let simulation = simulated(&audited, &sliders, last_rank, &path, &at.repo.name, id);
    if at.visit.is_htmx {
        return html(&SimulationPart { simulation });
    }
    let people = AdjudicationSummary::of(&at.console.store.judge().adjudication_totals(at.repo.id).await?);
    html(&AuditPage {
        page: at.page(&format!("Audit {id}"), NavSection::Audits).cli(simulation.command.clone()),
        here: format!("{path}/audits/{id}"),
        id,
        made: when(run.created_at, at.console.now()),
        cheap: judge_in_words(&run.audit.cheap_provider, &run.audit.cheap_model),
        strong: judge_in_words(&run.audit.strong_provider, &run.audit.strong_model),
        proof: (run.audit.cheap_provider != Extractor::Local.as_str())
            .then(|| run.audit.proof.unwrap_or_default().in_words()),
        seed: run.audit.seed,
        min_edge: score(run.audit.min_edge.get()),
        asked_for: run.audit.sample_size,
        last_rank,
        any_score: ANY_SCORE,
        widest_gap: WIDEST_GAP,
        people: PeoplesLane::of(&people),
        simulation,
        path,
    })
}
