//! One repository: what needs a person, what Canonry did, its health, the latest activity, and pausing.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::routing::{get, post};
use canonry_domain::TriageMode;
use canonry_domain::{ItemNumber, ItemType, Verdict};
use canonry_server::queue_sync;
use canonry_store::{BrakeKind, ItemPageFilter, RepoScope};

use crate::admin::activity;
use crate::admin::activity::ActivityLine;
use crate::console::Console;
use crate::home::activity_figures::{ActivityFigure, activity_figures};
use crate::home::health::{Health, health};
use crate::home::needs::{AttendedRepo, NeedLine, Needs, needs, plans_since};
use crate::layout::badge;
use crate::layout::errors::{PageError, PageResult};
use crate::layout::filters;
use crate::layout::form::Form;
use crate::layout::formatting::{Badge, TimeLabel, counted, item_path, score, when};
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
    is_shadow: bool,
    threshold: String,
    threshold_reason: String,
    open_issues: String,
    open_prs: String,
    synced: Option<TimeLabel>,
    brakes: Vec<BrakeLine>,
    is_paused: bool,
    needs: Needs,
    figures: Vec<ActivityFigure>,
    health: Health,
    suggestions: Vec<SuggestionLine>,
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
    shown: String,
    fixed: u64,
    at: TimeLabel,
}

async fn show(ReaderOf(at): ReaderOf) -> PageResult {
    let (store, repo, now) = (&at.console.store, at.repo.id, at.console.now());
    let overview = store.console().repo_overview(repo).await?;
    let settings = canonry_config::parse(overview.settings.as_deref().unwrap_or_default());
    let threshold = store.learning().thresholds(repo).await?.repository;
    let path = repo_path(&at.repo);
    let (ids, attention) = ([repo], store.console().repo_attention(repo, plans_since(now)).await?);
    let scope = RepoScope::Of(&ids);
    let of = [AttendedRepo { attention, can_maintain: at.can_maintain() }];
    let mut needs = needs(&at.visit, scope, &of, false).await?;
    let mistakes = settings.problems.len() as u64;
    if mistakes > 0 {
        let words = format!("{} in .canonry.yml", counted(mistakes, "mistake"));
        needs.lines.push(NeedLine::new(words, None, Some((format!("{path}/settings"), "Show"))));
    }
    html(&RepositoryPage {
        health: health(&[&of[0].attention], None, now),
        figures: activity_figures(&at.console, scope).await?,
        needs,
        suggestions: suggestions(&at).await?,
        reviews: reviews(&at).await?,
        activity: activity::latest(&at.console, repo, FEW).await?,
        can_maintain: at.can_maintain(),
        access: badge::access(overview.access),
        mode: badge::mode(settings.config.triage.mode),
        mode_words: mode_words(settings.config.triage.mode),
        is_shadow: settings.config.triage.mode == TriageMode::Shadow,
        threshold: badge::threshold(threshold.current, threshold.source),
        threshold_reason: threshold.reason.to_string(),
        open_issues: counted(overview.open_issues, "open issue"),
        open_prs: counted(overview.open_prs, "open pull request"),
        synced: overview.synced_at.map(|at| when(at, now)),
        is_paused: overview.paused,
        brakes: brakes(&at).await?,
        page: at.page("Overview", NavSection::Repository),
        path,
    })
}

/// Pauses everything that Canonry writes there.
async fn pause(MaintainerOf(at): MaintainerOf, form: Form) -> PageResult {
    let now = at.console.now();
    let why = form.one("reason").unwrap_or("paused in the console");
    at.record("pause", why).await?;
    let paused = at.console.store.close().set_brake(at.repo.id, BrakeKind::Pause, at.visit.login(), why, now).await?;
    let answer = match paused {
        true => format!("Paused. Canonry writes nothing to {} until somebody resumes it.", at.repo.name),
        false => format!("{} is already paused.", at.repo.name),
    };
    Ok(back_to(&repo_path(&at.repo), &answer))
}

/// Lifts the pause and the breaker, as the command does.
async fn resume(MaintainerOf(at): MaintainerOf, _: Form) -> PageResult {
    let now = at.console.now();
    at.record("resume", &at.repo.name.to_string()).await?;
    let lifted = at.console.store.close().lift_brakes(at.repo.id, at.visit.login(), now).await?;
    at.console.wake_publisher.notify_one();
    let answer = match lifted {
        true => format!("Resumed. Canonry writes to {} again.", at.repo.name),
        false => format!("{} was not paused.", at.repo.name),
    };
    Ok(back_to(&repo_path(&at.repo), &answer))
}

async fn sync(MaintainerOf(at): MaintainerOf, _: Form) -> PageResult {
    if at.repo.github_id.is_none() {
        return Err(PageError::BadForm(format!(
            "this repository was only imported; run `canonry sync --repo {}` once with credentials",
            at.repo.name
        )));
    }
    at.record("sync", &at.repo.name.to_string()).await?;
    let queued = queue_sync(&at.console.store, &at.repo, at.console.now()).await?;
    at.console.wake_worker.notify_one();
    let answer = match queued {
        Some(_) => "Sync queued. Changes on GitHub appear here in a moment.",
        None => "A sync is already queued.",
    };
    Ok(back_to(&repo_path(&at.repo), answer))
}

async fn brakes(at: &RepoVisit) -> Result<Vec<BrakeLine>, PageError> {
    let mut lines = Vec::new();
    for &kind in BrakeKind::ALL {
        let Some(brake) = at.console.store.close().brake_in_force(at.repo.id, kind).await? else { continue };
        let (heading, consequence) = match kind {
            BrakeKind::Pause => ("Paused", "Canonry writes nothing; what it finds is recorded."),
            BrakeKind::Breaker => {
                ("Automatic closes stopped", "Canonry closes nothing by itself until a maintainer allows it again.")
            }
        };
        let by = brake.set_by.map_or_else(|| "Canonry or an operator".to_owned(), |login| format!("@{login}"));
        lines.push(BrakeLine { heading, consequence, by, why: brake.why, since: when(brake.set_at, at.console.now()) });
    }
    Ok(lines)
}

/// The issues that were last found to be certain or possible duplicates: Canonry comments on both.
async fn suggestions(at: &RepoVisit) -> Result<Vec<SuggestionLine>, PageError> {
    let (store, path) = (&at.console.store, repo_path(&at.repo));
    let mut lines = Vec::new();
    for verdict in [Verdict::Duplicate, Verdict::MaybeDuplicate] {
        let filter =
            ItemPageFilter { item_type: Some(ItemType::Issue), verdict: Some(verdict), ..ItemPageFilter::default() };
        lines.extend(store.console().item_pages(at.repo.id, filter, None, FEW).await?.lines);
    }
    let numbers: Vec<ItemNumber> = lines.iter().map(|line| line.number).collect();
    let mut triage = store.duplicates().latest_triage(at.repo.id, ItemType::Issue, &numbers).await?;
    let mut found: Vec<_> =
        lines.into_iter().filter_map(|line| triage.remove(&line.number).map(|record| (line, record))).collect();
    found.sort_by_key(|(_, record)| std::cmp::Reverse(record.id));
    found.truncate(FEW as usize);
    let suggestions = found.into_iter().map(|(line, record)| SuggestionLine {
        number: line.number,
        href: item_path(&path, line.item_type, line.number),
        title: line.title,
        target: record.target.map(|target| (target, item_path(&path, line.item_type, target))),
        verdict: badge::verdict(record.verdict),
        score: record.target_score.map(|similar| score(similar.get())).unwrap_or_default(),
        at: when(record.created_at, at.console.now()),
    });
    Ok(suggestions.collect())
}

async fn reviews(at: &RepoVisit) -> Result<Vec<RecentReviewLine>, PageError> {
    let path = repo_path(&at.repo);
    let reviews = at.console.store.review().list(at.repo.id, None, FEW).await?;
    let line = |review: canonry_store::StoredReview| RecentReviewLine {
        subject: match review.subject.pull() {
            Some(number) => format!("Pull request #{number}"),
            None => review.subject.to_string(),
        },
        href: format!("{path}/reviews/{}", review.id),
        shown: counted(review.shown, "finding"),
        fixed: review.fixed,
        at: when(review.completed_at, at.console.now()),
    };
    Ok(reviews.into_iter().map(line).collect())
}

const fn mode_words(mode: TriageMode) -> &'static str {
    match mode {
        TriageMode::Off => "New items are not compared.",
        TriageMode::Shadow => "Verdicts are recorded; nothing is posted.",
        TriageMode::Suggest => "Likely duplicates get a comment and a label.",
        TriageMode::Grace => "Likely duplicates are announced, then closed unless anybody objects.",
    }
}
