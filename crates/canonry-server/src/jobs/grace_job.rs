//! The jobs that look after graces: what is announced begins, what is due is closed, and objections are heard.

use std::collections::HashMap;

use canonry_config::{ParsedSettings, SettingsSection, parse};
use canonry_domain::{GraceEnd, TriageMode};
use canonry_github::GitHub;
use canonry_github::outbox::Outbox;
use canonry_store::{BrakeKind, Grace, Repo, RepoAccess, RepoId};
use canonry_triage::{
    EmbedSource, GraceOutcome, GraceParts, Objections, SettingsError, begin_announced_graces, cancel_grace,
    close_due_grace, is_closing, live_settings, post_ended_graces, triage_mode,
};
use jiff::Timestamp;
use serde_json::json;

use crate::handlers::budget;
use crate::handlers::repo_settings::{handle_of, repo_rules};
use crate::jobs::job_handler::{Handled, JobError};
use crate::jobs::kinds::{GRACE, OBJECTIONS};
use crate::jobs::planned_job::PlannedJob;
use crate::service::Service;

/// The job that looks after every grace. One at a time, whichever process runs it.
pub(crate) fn planned_sweep() -> PlannedJob {
    PlannedJob { key: GRACE.to_owned(), repo: None, kind: GRACE, payload: json!({}) }
}

/// The job that asks what people think of closes.
pub(crate) fn planned_hearing() -> PlannedJob {
    PlannedJob { key: OBJECTIONS.to_owned(), repo: None, kind: OBJECTIONS, payload: json!({}) }
}

/// Has graces looked after at once, because a maintainer waits for it.
pub(crate) async fn sweep_soon(service: &Service) -> Result<(), JobError> {
    let now = service.now();
    service.store().jobs().enqueue_joined(&planned_sweep().job(), |waiting, _| waiting.clone(), now, now).await?;
    Ok(())
}

/// Looks after every grace: begins those that are announced, ends those that the settings no longer want, and closes
/// what is due. One that fails keeps nobody from the others.
pub(crate) async fn sweep(service: &Service) -> Result<Handled, JobError> {
    let Some(github) = service.github() else {
        return Ok(Handled::ignored("nothing can be closed without credentials for GitHub"));
    };
    let (store, outbox, now) = (service.store(), service.outbox().await?, service.now());
    begin_announced_graces(store, now).await?;
    post_ended_graces(store, outbox, now).await?;
    let mut sweep = Sweep { service, github, outbox, settings: HashMap::new() };
    let mut failure = None;
    for grace in store.close().waiting_graces(None).await? {
        if let Err(error) = sweep.look_after(&grace).await {
            tracing::warn!(repo = %grace.repo.name, number = grace.number.get(), %error, "a grace could not be looked after");
            failure.get_or_insert(error);
        }
    }
    service.wake_publisher();
    match failure {
        // The next sweep comes soon enough: a try in vain must not end in a job that is given up.
        Some(JobError::Hopeless(reason)) => Ok(Handled::Ignored(reason)),
        Some(error) => Err(error),
        None => Ok(Handled::Done),
    }
}

/// Asks what became of closes that no webhook told of: reopened items, and reactions to closing comments.
pub(crate) async fn hear_objections(service: &Service) -> Result<Handled, JobError> {
    let Some(github) = service.github() else {
        return Ok(Handled::ignored("reactions cannot be read without credentials for GitHub"));
    };
    let (store, outbox, now) = (service.store(), service.outbox().await?, service.now());
    let mut retry_at: Option<Timestamp> = None;
    let mut repos = store.repos().active().await?;
    repos.retain(|repo| repo.github_id.is_some());
    for repo in &repos {
        let handle = handle_of(service, repo).await?;
        let objections = Objections { store, outbox: Some(outbox), repo, handle: &handle };
        let report = objections.find(github, now).await?;
        retry_at = [retry_at, report.retry_at].into_iter().flatten().min();
        if let Some(error) = report.failed {
            tracing::warn!(repo = %repo.name, error, "reactions to closing comments could not be read");
        }
    }
    service.wake_publisher();
    match retry_at {
        Some(until) => {
            Err(JobError::Postpone { reason: "waiting for GitHub's rate limit to hear objections".to_owned(), until })
        }
        None => Ok(Handled::Done),
    }
}

/// A sweep under way.
struct Sweep<'a> {
    service: &'a Service,
    github: &'a GitHub,
    outbox: &'a Outbox,
    /// The settings of each repository as they are now; none where they cannot be read.
    settings: HashMap<RepoId, Option<ParsedSettings>>,
}

impl Sweep<'_> {
    async fn look_after(&mut self, grace: &Grace) -> Result<(), JobError> {
        let (service, store, now) = (self.service, self.service.store(), self.service.now());
        let repo = &grace.repo;
        let is_due = grace.due_at <= now;
        if store.repos().access(repo.id).await? != RepoAccess::Active {
            return self.wait(grace, is_due, "no_access").await;
        }
        // A close that has begun has said so already: whatever ends it now, its own checks do, and correct that.
        let has_begun = is_closing(store, grace).await?;
        if !has_begun && store.close().brake_in_force(repo.id, BrakeKind::Breaker).await?.is_some() {
            return self.cancel(grace, GraceEnd::Breaker).await;
        }
        if !self.settings.contains_key(&repo.id) {
            let read = readable_settings(service, self.github, repo).await?;
            self.settings.insert(repo.id, read);
        }
        let Some(settings) = self.settings.get(&repo.id).and_then(Option::as_ref) else {
            return self.wait(grace, is_due, "settings_unreadable").await;
        };
        if !has_begun && triage_mode(settings) != TriageMode::Grace {
            return self.cancel(grace, GraceEnd::ModeChanged).await;
        }
        if is_due || has_begun { self.close(grace, settings).await } else { Ok(()) }
    }

    async fn cancel(&self, grace: &Grace, end: GraceEnd) -> Result<(), JobError> {
        let (store, now) = (self.service.store(), self.service.now());
        cancel_grace(store, Some(self.outbox), &grace.repo, grace.item_type, grace.number, end, now).await?;
        Ok(())
    }

    async fn wait(&self, grace: &Grace, is_due: bool, why: &str) -> Result<(), JobError> {
        if is_due {
            self.service.store().close().note_grace(grace.id, Some(why)).await?;
        }
        Ok(())
    }

    async fn close(&self, grace: &Grace, config: &ParsedSettings) -> Result<(), JobError> {
        let (service, with) = (self.service, self.service.detectors());
        let rules = repo_rules(service, &grace.repo).await?;
        let budget = budget(service, &grace.repo, rules.monthly_cost).await?;
        let run_id = format!("grace-{}-{:016x}", grace.id, rand::random::<u64>());
        let parts = GraceParts {
            store: service.store(),
            github: self.github,
            outbox: self.outbox,
            judge: with.judge,
            budget: &budget,
            source: with.extractor.map_or(EmbedSource::Raw, |by| EmbedSource::Intent(by.maker().extractor)),
            config,
            run_id: &run_id,
        };
        let outcome = close_due_grace(parts, grace).await?;
        let (what, reason) = match &outcome {
            GraceOutcome::Closed => ("closed", ""),
            GraceOutcome::Cancelled(end) => ("cancelled", end.as_str()),
            GraceOutcome::Refused(reason) => ("refused", reason.as_str()),
            GraceOutcome::Waiting(reason) => ("waiting", reason.as_str()),
        };
        tracing::info!(repo = %grace.repo.name, number = grace.number.get(), outcome = what, reason, "a grace is over");
        Ok(())
    }
}

/// The settings as they are now; none where they cannot be read or hold a mistake that matters here.
async fn readable_settings(
    service: &Service,
    github: &GitHub,
    repo: &Repo,
) -> Result<Option<ParsedSettings>, JobError> {
    match live_settings(service.store(), github, repo).await {
        Ok(text) => {
            let parsed = parse(&text.unwrap_or_default());
            let mistaken = parsed.fell_back(SettingsSection::Triage) || parsed.fell_back(SettingsSection::Close);
            Ok((!mistaken).then_some(parsed))
        }
        Err(SettingsError::Store(error)) => Err(error.into()),
        Err(SettingsError::GitHub(error)) => {
            tracing::warn!(repo = %repo.name, %error, "the settings could not be fetched; nothing is closed until they are");
            Ok(None)
        }
    }
}
