//! One repository: how it is, what needs a person, what happened last, and the brakes.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::routing::{get, post};
use canonry_config::ParsedSettings;
use canonry_domain::TriageMode;
use canonry_domain::{ItemNumber, ItemType, PlanAge, Verdict};
use canonry_server::queue_sync;
use canonry_store::{BrakeKind, ItemPageFilter, PlanOrigin, RepoOverview};
use canonry_triage::age_of_plan;

use crate::admin::activity;
use crate::admin::activity::ActivityLine;
use crate::console::Console;
use crate::items::announced_closes;
use crate::items::announced_closes::AnnouncedCloseLine;
use crate::layout::badge;
use crate::layout::errors::{PageError, PageResult};
use crate::layout::filters;
use crate::layout::form::Form;
use crate::layout::formatting::{Badge, TimeLabel, counted, item_path, score, thousands, when};
use crate::layout::page::{NavSection, PageFrame, back_to, html, repo_path};
use crate::sign_in::visit::{MaintainerOf, ReaderOf, RepoVisit};

/// Rows of each list on this page: it is a summary.
const FEW: u32 = 6;

pub(crate) fn routes() -> Router<Arc<Console>> {
    Router::new()
        .route("/r/{owner}/{name}", get(show))
        .route("/r/{owner}/{name}/pause", post(pause))
        .route("/r/{owner}/{name}/resume", post(resume))
        .route("/r/{owner}/{name}/sync", post(sync))
}

#[derive(Template)]
#[template(path = "home/repository.html")]
struct RepositoryPage {
    page: PageFrame,
    path: String,
    can_maintain: bool,
    access: Option<Badge>,
    mode: Badge,
    mode_words: &'static str,
    threshold: String,
    threshold_reason: String,
    open_issues: String,
    open_prs: String,
    waiting_graces: String,
    synced: Option<TimeLabel>,
    brakes: Vec<BrakeLine>,
    is_paused: bool,
    needs: Vec<AttentionLine>,
    graces: Vec<AnnouncedCloseLine>,
    told: Vec<SuggestionLine>,
    reviews: Vec<RecentReviewLine>,
    activity: Vec<ActivityLine>,
}

struct BrakeLine {
    heading: &'static str,
    consequence: &'static str,
    by: String,
    why: String,
    since: TimeLabel,
}

struct AttentionLine {
    words: String,
    href: Option<String>,
    link: &'static str,
}

struct SuggestionLine {
    number: ItemNumber,
    title: String,
    href: String,
    target: Option<(ItemNumber, String)>,
    verdict: Badge,
    score: String,
    at: TimeLabel,
}

struct RecentReviewLine {
    subject: String,
    href: String,
    shown: u64,
    fixed: u64,
    at: TimeLabel,
}

async fn show(ReaderOf(at): ReaderOf) -> PageResult {
    let (store, repo, now) = (&at.console.store, at.repo.id, at.console.now());
    let overview = store.console().repo_overview(repo).await?;
    let settings = canonry_config::parse(overview.settings.as_deref().unwrap_or_default());
    let threshold = store.learning().thresholds(repo).await?.repository;
    let path = repo_path(&at.repo);
    let brakes = brakes(&at).await?;
    html(&RepositoryPage {
        needs: needs(&at, &overview, &settings).await?,
        graces: announced_closes::first(&at, FEW).await?,
        told: told(&at).await?,
        reviews: reviews(&at).await?,
        activity: activity::latest(&at.console, repo, FEW).await?,
        can_maintain: at.can_maintain(),
        access: badge::access(overview.access),
        mode: badge::mode(settings.config.triage.mode),
        mode_words: mode_words(settings.config.triage.mode),
        threshold: badge::threshold(threshold.current, threshold.source),
        threshold_reason: threshold.reason.to_string(),
        open_issues: thousands(overview.open_issues),
        open_prs: thousands(overview.open_prs),
        waiting_graces: thousands(overview.waiting_graces),
        synced: overview.synced_at.map(|at| when(at, now)),
        is_paused: overview.paused,
        brakes,
        page: at.page("Summary", NavSection::Repository),
        path,
    })
}

/// Holds back everything that Canonry writes there.
async fn pause(MaintainerOf(at): MaintainerOf, form: Form) -> PageResult {
    let now = at.console.now();
    let why = form.one("reason").unwrap_or("asked for in the console");
    at.record("pause", why).await?;
    let paused = at.console.store.close().set_brake(at.repo.id, BrakeKind::Pause, at.visit.login(), why, now).await?;
    let told = match paused {
        true => format!("Paused. Nothing more is written to {} until somebody resumes it.", at.repo.name),
        false => format!("{} was paused already.", at.repo.name),
    };
    Ok(back_to(&repo_path(&at.repo), &told))
}

/// Lifts both brakes, as the command does.
async fn resume(MaintainerOf(at): MaintainerOf, _: Form) -> PageResult {
    let now = at.console.now();
    at.record("resume", &at.repo.name.to_string()).await?;
    let lifted = at.console.store.close().lift_brakes(at.repo.id, at.visit.login(), now).await?;
    at.console.wake_publisher.notify_one();
    let told = match lifted {
        true => format!("Canonry writes to {} again.", at.repo.name),
        false => format!("Nothing held Canonry back in {}.", at.repo.name),
    };
    Ok(back_to(&repo_path(&at.repo), &told))
}

async fn sync(MaintainerOf(at): MaintainerOf, _: Form) -> PageResult {
    if at.repo.github_id.is_none() {
        return Err(PageError::BadForm(format!(
            "the repository was only imported, so that there is nothing to read; run `canonry sync --repo {}` once with credentials",
            at.repo.name
        )));
    }
    at.record("sync", &at.repo.name.to_string()).await?;
    let queued = queue_sync(&at.console.store, &at.repo, at.console.now()).await?;
    at.console.wake_worker.notify_one();
    let told = match queued {
        Some(_) => "A sync is queued; what changed on GitHub is here in a moment.",
        None => "A sync waits already.",
    };
    Ok(back_to(&repo_path(&at.repo), told))
}

async fn brakes(at: &RepoVisit) -> Result<Vec<BrakeLine>, PageError> {
    let mut lines = Vec::new();
    for &kind in BrakeKind::ALL {
        let Some(brake) = at.console.store.close().brake_in_force(at.repo.id, kind).await? else { continue };
        let (heading, consequence) = match kind {
            BrakeKind::Pause => ("Paused", "Nothing is written; what is found meanwhile is kept."),
            BrakeKind::Breaker => ("The breaker is out", "Nothing is closed without a maintainer's word."),
        };
        let by = brake.set_by.map_or_else(|| "Canonry or an operator".to_owned(), |login| format!("@{login}"));
        lines.push(BrakeLine { heading, consequence, by, why: brake.why, since: when(brake.set_at, at.console.now()) });
    }
    Ok(lines)
}

async fn needs(
    at: &RepoVisit,
    overview: &RepoOverview,
    settings: &ParsedSettings,
) -> Result<Vec<AttentionLine>, PageError> {
    let path = repo_path(&at.repo);
    let mut needs = Vec::new();
    let mut need = |words: String, href: Option<String>, link| needs.push(AttentionLine { words, href, link });
    let mistakes = settings.problems.len() as u64;
    if mistakes > 0 {
        let words = format!("{} in .canonry.yml", counted(mistakes, "mistake"));
        need(words, Some(format!("{path}/settings")), "read them");
    }
    if overview.dead_jobs > 0 && at.can_maintain() {
        let words = format!("{} given up", counted(overview.dead_jobs, "job"));
        need(words, Some(format!("{path}/jobs?state=dead")), "look at them");
    }
    if let Some(plan) = at.console.store.plans().list(at.repo.id, PlanOrigin::Person, None, 1).await?.into_iter().next()
        && plan.apply.is_none()
        && plan.totals.undecided() > 0
    {
        let id = plan.run.id.get();
        match age_of_plan(&at.console.store, &plan.run, at.console.now()).await? {
            PlanAge::Good { .. } => {
                let words = format!("plan {id} has {} that nobody looked at", counted(plan.totals.undecided(), "row"));
                need(words, Some(format!("{path}/plans/{id}")), "review it");
            }
            PlanAge::RuledSince { .. } => {
                let words = format!("plan {id} is stale: somebody ruled about its clusters after it was made");
                need(words, Some(format!("{path}/plans")), "make a new one");
            }
            // Nobody was in a hurry, and a new plan shows what is there then.
            PlanAge::TooOld | PlanAge::Overtaken { .. } => {}
        }
    }
    if at.can_maintain() {
        let totals = at.console.store.judge().adjudication_totals(at.repo.id).await?;
        let waiting: u64 = totals.iter().filter(|answers| answers.word.is_none()).map(|answers| answers.times).sum();
        if waiting > 0 {
            let words = format!("{} drawn for a person's answer", counted(waiting, "case"));
            need(words, Some(format!("{path}/adjudicate")), "answer");
        }
    }
    if overview.synced_at.is_none() {
        need("it was never synced, so that Canonry knows only what was imported or delivered".to_owned(), None, "");
    }
    if settings.config.triage.mode == TriageMode::Shadow {
        let words = "it is in shadow mode: verdicts are recorded and nothing is said. Once they convince you, set triage.mode to suggest in .canonry.yml";
        need(words.to_owned(), Some(format!("{path}/items?verdict=duplicate")), "look at the verdicts");
    }
    Ok(needs)
}

/// The issues that were last said to be duplicates, surely or perhaps: Canonry speaks of both.
async fn told(at: &RepoVisit) -> Result<Vec<SuggestionLine>, PageError> {
    let (store, path) = (&at.console.store, repo_path(&at.repo));
    let mut lines = Vec::new();
    for verdict in [Verdict::Duplicate, Verdict::MaybeDuplicate] {
        let filter =
            ItemPageFilter { item_type: Some(ItemType::Issue), verdict: Some(verdict), ..ItemPageFilter::default() };
        lines.extend(store.console().item_pages(at.repo.id, filter, None, FEW).await?.lines);
    }
    let numbers: Vec<ItemNumber> = lines.iter().map(|line| line.number).collect();
    let mut triage = store.duplicates().latest_triage(at.repo.id, ItemType::Issue, &numbers).await?;
    let mut said: Vec<_> =
        lines.into_iter().filter_map(|line| triage.remove(&line.number).map(|said| (line, said))).collect();
    said.sort_by_key(|(_, said)| std::cmp::Reverse(said.id));
    said.truncate(FEW as usize);
    let told = said.into_iter().map(|(line, said)| SuggestionLine {
        number: line.number,
        href: item_path(&path, line.item_type, line.number),
        title: line.title,
        target: said.target.map(|target| (target, item_path(&path, line.item_type, target))),
        verdict: badge::verdict(said.verdict),
        score: said.target_score.map(|similar| score(similar.get())).unwrap_or_default(),
        at: when(said.created_at, at.console.now()),
    });
    Ok(told.collect())
}

async fn reviews(at: &RepoVisit) -> Result<Vec<RecentReviewLine>, PageError> {
    let path = repo_path(&at.repo);
    let reviews = at.console.store.review().list(at.repo.id, None, FEW).await?;
    let line = |review: canonry_store::StoredReview| RecentReviewLine {
        subject: match review.subject.pull() {
            Some(number) => format!("#{number}"),
            None => review.subject.to_string(),
        },
        href: format!("{path}/reviews/{}", review.id),
        shown: review.shown,
        fixed: review.fixed,
        at: when(review.completed_at, at.console.now()),
    };
    Ok(reviews.into_iter().map(line).collect())
}

const fn mode_words(mode: TriageMode) -> &'static str {
    match mode {
        TriageMode::Off => "new items are not looked at",
        TriageMode::Shadow => "verdicts are recorded, nothing is said",
        TriageMode::Suggest => "likely duplicates get a comment and a label",
        TriageMode::Grace => "likely duplicates are closed after a grace, unless anybody objects",
    }
}
