//! Triages a new item, or one whose text changed.

use canonry_domain::{Item, ItemState, OnlineThresholds, TriageMode, month_of};
use canonry_models::chat::TokenBudget;
use canonry_store::{JobKind, Repo, TriageActionKind};
use canonry_triage::{AnswerUse, DetectOptions, triage_item};
use jiff::{SignedDuration, Timestamp};

use crate::handlers::ensure_synced::ensure_synced;
use crate::handlers::repo_settings::{LazySettings, RepoSettings};
use crate::jobs::job_handler::JobError;
use crate::jobs::job_keys::triage_key;
use crate::jobs::service_job::queue_once;
use crate::jobs::sync_job::refresh_unless_set;
use crate::jobs::triage_job::TriageJob;
use crate::service::Service;

const NEIGHBOURS: usize = 8;
/// How long an edited item waits after its last triage: an author often edits again, and each triage costs.
const PAUSE: SignedDuration = SignedDuration::from_mins(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TriageOccasion {
    Opened,
    Edited,
    /// The text changed a while ago.
    EditedBefore,
}

/// Triages an item by its repository's settings. `run_id` is the same for every try.
pub(crate) async fn triage(
    service: &Service,
    settings: &LazySettings,
    run_id: &str,
    repo: &Repo,
    item: Option<Item>,
    occasion: TriageOccasion,
) -> Result<(), JobError> {
    let Some(item) = item else {
        return Err(JobError::ignored("the item is no longer in the repository"));
    };
    if item.state != ItemState::Open {
        return Err(JobError::ignored("the item is closed"));
    }
    if occasion != TriageOccasion::Opened {
        let past = past_triage(service, run_id, repo, &item).await?;
        if past.saw_this_text {
            return Err(JobError::ignored("its text has not changed since it was triaged"));
        }
        if occasion == TriageOccasion::Edited && triage_later(service, repo, &item, past.last).await? {
            return Ok(());
        }
    }
    let settings = settings.get(service, repo).await?;
    let rules = settings.triage_rules(service, repo).await?;
    if rules.mode == TriageMode::Off {
        return Err(JobError::ignored("triage is off in this repository"));
    }
    ensure_synced(service, repo).await?;
    if rules.mode == TriageMode::Grace {
        know_maintainers(service, repo).await?;
    }
    let options = DetectOptions {
        k: NEIGHBOURS,
        thresholds: OnlineThresholds::default(),
        mode: service.parts().retrieval,
        budget: budget(service, repo, settings).await?,
        run_id: run_id.to_owned(),
        as_of: None,
        used_for: match rules.mode {
            TriageMode::Grace => AnswerUse::Close,
            TriageMode::Off | TriageMode::Shadow | TriageMode::Suggest => AnswerUse::Suggestion,
        },
        is_backtest: false,
    };
    let outbox = if service.github().is_some() { Some(service.outbox().await?) } else { None };
    let (with, now, item_type, number) = (service.detectors(), service.now(), item.item_type, item.number);
    let triaged = triage_item(service.store(), outbox, repo, item, with, &options, &rules, now).await?;
    if triaged.action.is_some_and(|action| action != TriageActionKind::Recorded) {
        service.wake_publisher();
    }
    tracing::info!(
        repo = %repo.name,
        item_type = item_type.as_str(),
        number = number.get(),
        triage_id = triaged.triage_id,
        reason = triaged.reason,
        "an item is triaged"
    );
    if triaged.triage_id.is_some() { Ok(()) } else { Err(JobError::Ignored(triaged.reason)) }
}

/// Fetches a repository's maintainers if they were never fetched. An item gets only one suggestion, and a suggestion
/// made without the maintainers would never announce a close.
async fn know_maintainers(service: &Service, repo: &Repo) -> Result<(), JobError> {
    let (store, Some(github)) = (service.store(), service.github()) else { return Ok(()) };
    match store.repos().maintainers(repo.id).await? {
        Some(_) => Ok(()),
        None => refresh_unless_set(store, github, repo).await.map(drop),
    }
}

/// Leaves an edited item to a later job if it was triaged recently. Several edits share one job.
async fn triage_later(service: &Service, repo: &Repo, item: &Item, last: Option<Timestamp>) -> Result<bool, JobError> {
    let (store, now) = (service.store(), service.now());
    let Some(id) = repo.github_id else { return Ok(false) };
    let job = TriageJob { github_id: id, item_type: item.item_type, number: item.number };
    let rested = last.map_or(now, |last| last + PAUSE);
    let before = store.jobs().last_of(&triage_key(id, item.number), JobKind::Triage).await?;
    // Two triage runs at once would both comment.
    let is_owed = before.is_some_and(|job| job.state.is_active());
    if rested <= now && !is_owed {
        return Ok(false);
    }
    queue_once(store, &job, Some(&repo.name), rested.max(now), now).await?;
    Ok(true)
}

struct PastTriage {
    /// Whether a past triage was about the current text.
    saw_this_text: bool,
    last: Option<Timestamp>,
}

async fn past_triage(service: &Service, run_id: &str, repo: &Repo, item: &Item) -> Result<PastTriage, JobError> {
    let store = service.store();
    let mut acted = store.duplicates().triage_actions_of(repo.id, item.item_type, item.number).await?;
    if acted.is_empty() {
        return Ok(PastTriage { saw_this_text: false, last: None });
    }
    let records = store.duplicates().triage_records_of(repo.id, item.item_type, item.number).await?;
    acted.retain(|stored| {
        records.iter().any(|record| record.id == stored.action.triage_id && record.record.run_id != run_id)
    });
    let saw_this_text = acted.iter().any(|stored| {
        records
            .iter()
            .any(|record| record.id == stored.action.triage_id && record.record.content_version == item.content_version)
    });
    Ok(PastTriage { saw_this_text, last: acted.iter().map(|stored| stored.created_at).max() })
}

pub(crate) async fn budget(service: &Service, repo: &Repo, settings: &RepoSettings) -> Result<TokenBudget, JobError> {
    let monthly = settings.monthly_cost(service.parts().monthly_cost);
    let Some(monthly) = monthly.filter(|_| service.parts().detectors.is_hosted()) else {
        return Ok(TokenBudget::default());
    };
    let spent = service.store().models().spent_since(repo.id, month_of(service.now())).await?;
    let prices = service.parts().prices.filter(|_| service.parts().detectors.counts_tokens());
    Ok(TokenBudget::up_to((monthly - spent).max(0.0), prices))
}
