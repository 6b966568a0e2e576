//! A new item, or one with a new text, is looked at.

use canonry_domain::{GithubId, Item, ItemNumber, ItemState, ItemType, OnlineThresholds, TriageMode, month_of};
use canonry_models::chat::TokenBudget;
use canonry_store::{Job, JobState, Repo, RepoAccess, TriageActionKind};
use canonry_triage::{DetectOptions, triage_item};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::handlers::ensure_synced::{Corpus, corpus};
use crate::handlers::repo_settings::repo_rules;
use crate::jobs::job_handler::{Handled, JobError};
use crate::jobs::kinds::TRIAGE;
use crate::jobs::planned_job::PlannedJob;
use crate::jobs::sync_job::refresh_if_theirs;
use crate::service::Service;

/// Neighbours that a new item is compared with.
const NEIGHBOURS: usize = 8;
/// How long after an item was looked at its next text is: who edits a text edits it again, and each look costs.
const PAUSE: SignedDuration = SignedDuration::from_mins(10);

/// Why an item is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Occasion {
    Opened,
    Edited,
    /// Its text changed a while ago.
    EditedBefore,
}

/// Looks at an item as its repository wishes. `run_id` is the same for every try.
pub(super) async fn triage(
    service: &Service,
    run_id: &str,
    repo: &Repo,
    item: Option<Item>,
    occasion: Occasion,
) -> Result<Handled, JobError> {
    let Some(item) = item else {
        return Ok(Handled::ignored("the item has left the repository"));
    };
    if item.state != ItemState::Open {
        return Ok(Handled::ignored("the item is closed"));
    }
    if occasion != Occasion::Opened {
        let past = past(service, run_id, repo, &item).await?;
        if past.saw_this_text {
            return Ok(Handled::ignored("its text is as it was when it was triaged"));
        }
        if occasion == Occasion::Edited && looks_later(service, repo, &item, past.last).await? {
            return Ok(Handled::Done);
        }
    }
    let rules = repo_rules(service, repo).await?;
    if rules.triage.mode == TriageMode::Off {
        return Ok(Handled::ignored("triage is switched off in this repository"));
    }
    match corpus(service, repo).await? {
        Corpus::Ready => {}
        Corpus::Syncing(until) => {
            return Err(JobError::Postpone { reason: format!("the items of {} are being fetched", repo.name), until });
        }
        Corpus::Failed(reason) => return Err(JobError::Unavailable(reason)),
        Corpus::Unreadable(reason) => return Ok(Handled::Ignored(reason)),
    }
    if rules.triage.mode == TriageMode::Grace {
        know_maintainers(service, repo).await?;
    }
    let options = DetectOptions {
        k: NEIGHBOURS,
        thresholds: OnlineThresholds::default(),
        mode: service.parts().retrieval,
        budget: budget(service, repo, rules.monthly_cost).await?,
        run_id: run_id.to_owned(),
    };
    let outbox = if service.github().is_some() { Some(service.outbox().await?) } else { None };
    let (with, now, item_type, number) = (service.detectors(), service.now(), item.item_type, item.number);
    let triaged = triage_item(service.store(), outbox, repo, item, with, &options, &rules.triage, now).await?;
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
    Ok(if triaged.triage_id.is_some() { Handled::Done } else { Handled::Ignored(triaged.reason) })
}

/// Asks who maintains a repository of which nobody has asked yet. An item gets one suggestion: made without that answer, it
/// would never announce a close.
async fn know_maintainers(service: &Service, repo: &Repo) -> Result<(), JobError> {
    let (store, Some(github)) = (service.store(), service.github()) else { return Ok(()) };
    match store.repos().maintainers(repo.id).await? {
        Some(_) => Ok(()),
        None => refresh_if_theirs(store, github, repo).await,
    }
}

/// The job that looks at an item some time after its text changed.
pub(crate) async fn triage_again(service: &Service, job: &Job) -> Result<Handled, JobError> {
    let store = service.store();
    let said = &job.payload;
    let item_type =
        [ItemType::Issue, ItemType::Pr].into_iter().find(|kind| Some(kind.as_str()) == said["type"].as_str());
    let number = said["number"].as_i64().and_then(|number| ItemNumber::new(number).ok());
    let (Some(id), Some(item_type), Some(number)) = (said["github_id"].as_i64(), item_type, number) else {
        return Err(JobError::Hopeless("the job does not say which item it is about".to_owned()));
    };
    let Some(repo) = store.repos().by_github_id(GithubId(id)).await? else {
        return Ok(Handled::ignored("nothing of that repository is kept"));
    };
    let access = store.repos().access(repo.id).await?;
    if access != RepoAccess::Active {
        return Ok(Handled::Ignored(format!("the repository is {}", access.as_str())));
    }
    let item = store.corpus().item(repo.id, item_type, number).await?.filter(|item| item.gone.is_none());
    triage(service, &format!("job-{}", job.id), &repo, item, Occasion::EditedBefore).await
}

/// Leaves an item whose text changed to a job of a later moment if it was looked at just now; one job for however many
/// changes. Its key is its own: what else is told about the item does not wait for it.
async fn looks_later(service: &Service, repo: &Repo, item: &Item, last: Option<Timestamp>) -> Result<bool, JobError> {
    let (store, now) = (service.store(), service.now());
    let Some(id) = repo.github_id else { return Ok(false) };
    let planned = PlannedJob {
        key: format!("triage/{}#{}", id.0, item.number),
        repo: Some(repo.name.clone()),
        kind: TRIAGE,
        payload: json!({ "github_id": id.0, "type": item.item_type.as_str(), "number": item.number }),
    };
    let rested = last.map_or(now, |last| last + PAUSE);
    let planned_before = store.jobs().last_of(&planned.key, TRIAGE).await?;
    // Two looks at once would both speak.
    let is_owed = planned_before.is_some_and(|job| matches!(job.state, JobState::Queued | JobState::Running));
    if rested <= now && !is_owed {
        return Ok(false);
    }
    store.jobs().enqueue_once(&planned.job(), rested.max(now), now).await?;
    Ok(true)
}

/// What other runs came to about an item.
struct Past {
    /// Whether one of them was about the text that it has now.
    saw_this_text: bool,
    /// When the last one came to its end.
    last: Option<Timestamp>,
}

async fn past(service: &Service, run_id: &str, repo: &Repo, item: &Item) -> Result<Past, JobError> {
    let store = service.store();
    let mut acted = store.duplicates().triage_actions_of(repo.id, item.item_type, item.number).await?;
    if acted.is_empty() {
        return Ok(Past { saw_this_text: false, last: None });
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
    Ok(Past { saw_this_text, last: acted.iter().map(|stored| stored.created_at).max() })
}

/// What hosted models may still cost this month.
pub(crate) async fn budget(service: &Service, repo: &Repo, monthly: Option<f64>) -> Result<TokenBudget, JobError> {
    let Some(monthly) = monthly.filter(|_| service.parts().detectors.is_hosted()) else {
        return Ok(TokenBudget::default());
    };
    let spent = service.store().models().spent_since(repo.id, month_of(service.now())).await?;
    let prices = service.parts().prices.filter(|_| service.parts().detectors.counts_tokens());
    Ok(TokenBudget::up_to((monthly - spent).max(0.0), prices))
}
