//! The jobs for announced closes: they start and end grace periods, close what is due, and record objections.

use std::collections::HashMap;

use canonry_config::SettingsSection;
use canonry_domain::{GraceEnd, TriageMode};
use canonry_github::GitHub;
use canonry_github::outbox::Outbox;
use canonry_store::{BrakeKind, Grace, JobKind, Repo, RepoAccess, RepoId};
use canonry_triage::{
    EmbedSource, GraceOutcome, GraceParts, Objections, SettingsError, begin_announced_graces, cancel_grace,
    close_due_grace_by_index, is_closing, live_settings, post_ended_graces, triage_mode,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::handlers::budget;
use crate::handlers::repo_settings::RepoSettings;
use crate::jobs::job_handler::{JobError, LeasedJob};
use crate::jobs::service_job::{PreparedJob, ServiceJob};
use crate::service::Service;

/// Processes every grace. Only one such job runs at a time, in any process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct GraceJob {}

impl ServiceJob for GraceJob {
    const KIND: JobKind = JobKind::Grace;

    async fn run(&self, service: &Service, _leased: &LeasedJob) -> Result<(), JobError> {
        sweep_graces(service).await
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ObjectionsJob {}

impl ServiceJob for ObjectionsJob {
    const KIND: JobKind = JobKind::Objections;

    async fn run(&self, service: &Service, _leased: &LeasedJob) -> Result<(), JobError> {
        record_objections(service).await
    }
}

pub(crate) async fn queue_grace_sweep(service: &Service) -> Result<(), JobError> {
    let (job, now) = (PreparedJob::new(&GraceJob {}, None), service.now());
    service.store().jobs().enqueue_joined(&job.row(), |waiting, _| waiting.clone(), now, now).await?;
    Ok(())
}

/// Processes every grace: starts those that are announced, cancels those that the settings no longer allow, and
/// closes what is due. A grace that fails does not stop the others.
async fn sweep_graces(service: &Service) -> Result<(), JobError> {
    let Some(github) = service.github() else {
        return Err(JobError::ignored("closing needs credentials for GitHub"));
    };
    let (store, outbox, now) = (service.store(), service.outbox().await?, service.now());
    begin_announced_graces(store, Some(outbox), now).await?;
    post_ended_graces(store, outbox, now).await?;
    let mut sweep = GraceSweep { service, github, outbox, settings: HashMap::new() };
    let mut failure = None;
    for grace in store.close().waiting_graces(None).await? {
        if let Err(error) = sweep.look_after(&grace).await {
            tracing::warn!(repo = %grace.repo.name, number = grace.number.get(), %error, "an announced close could not be processed");
            failure.get_or_insert(error);
        }
    }
    service.wake_publisher();
    match failure {
        // The next sweep comes soon enough, so a failed sweep must not become a failed job.
        Some(JobError::Hopeless(reason)) => Err(JobError::Ignored(reason)),
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// Fetches what no webhook reported about closes: reopened items, and reactions to closing comments.
async fn record_objections(service: &Service) -> Result<(), JobError> {
    let Some(github) = service.github() else {
        return Err(JobError::ignored("reading reactions needs credentials for GitHub"));
    };
    let (store, outbox, now) = (service.store(), service.outbox().await?, service.now());
    let mut retry_at: Option<Timestamp> = None;
    let mut repos = store.repos().active().await?;
    repos.retain(|repo| repo.github_id.is_some());
    for repo in &repos {
        let settings = RepoSettings::last_read(service, repo).await?;
        let objections = Objections { store, outbox: Some(outbox), repo, handle: settings.handle() };
        let report = objections.find(github, now).await?;
        retry_at = [retry_at, report.retry_at].into_iter().flatten().min();
        if let Some(error) = report.failed {
            tracing::warn!(repo = %repo.name, error, "reactions to closing comments could not be read");
        }
    }
    service.wake_publisher();
    match retry_at {
        Some(until) => Err(JobError::Postpone {
            reason: "waiting for GitHub's rate limit before reading objections".to_owned(),
            until,
        }),
        None => Ok(()),
    }
}

struct GraceSweep<'a> {
    service: &'a Service,
    github: &'a GitHub,
    outbox: &'a Outbox,
    /// The current settings of each repository; `None` if they cannot be read.
    settings: HashMap<RepoId, Option<RepoSettings>>,
}

impl GraceSweep<'_> {
    async fn look_after(&mut self, grace: &Grace) -> Result<(), JobError> {
        let (service, store, now) = (self.service, self.service.store(), self.service.now());
        let repo = &grace.repo;
        let is_due = grace.due_at <= now;
        if store.repos().access(repo.id).await? != RepoAccess::Active {
            return self.wait(grace, is_due, "no_access").await;
        }
        // A close that has begun has already posted its closing comment. Only its own checks may end it now, and they
        // correct the comment.
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
        if !has_begun && triage_mode(settings.parsed()) != TriageMode::Grace {
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

    async fn close(&self, grace: &Grace, settings: &RepoSettings) -> Result<(), JobError> {
        let (service, with) = (self.service, self.service.detectors());
        let budget = budget(service, &grace.repo, settings).await?;
        let run_id = format!("grace-{}-{:016x}", grace.id, rand::random::<u64>());
        let parts = GraceParts {
            store: service.store(),
            github: self.github,
            outbox: self.outbox,
            judge: with.judge,
            budget: &budget,
            source: with.extractor.map_or(EmbedSource::Raw, |by| EmbedSource::Intent(by.maker().extractor)),
            config: settings.parsed(),
            run_id: &run_id,
        };
        let outcome = close_due_grace_by_index(parts, with, grace).await?;
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

/// The current settings; `None` if they cannot be read or have an error in a section that matters here.
async fn readable_settings(service: &Service, github: &GitHub, repo: &Repo) -> Result<Option<RepoSettings>, JobError> {
    match live_settings(service.store(), github, repo).await {
        Ok(text) => {
            let settings = RepoSettings::read(text.as_deref());
            let mistaken =
                [SettingsSection::Triage, SettingsSection::Close].iter().any(|part| settings.parsed().fell_back(*part));
            Ok((!mistaken).then_some(settings))
        }
        Err(SettingsError::Store(error)) => Err(error.into()),
        Err(SettingsError::GitHub(error)) => {
            tracing::warn!(repo = %repo.name, %error, "the settings could not be fetched; nothing is closed until they are");
            Ok(None)
        }
    }
}
