//! The job that syncs a repository: its items, their vectors, and their outcomes.

use canonry_domain::{GithubId, RepoName};
use canonry_github::{GitHub, GitHubError};
use canonry_store::{JobKind, MaintainerSource, Repo, RepoAccess, Store, SyncProgress};
use canonry_triage::{
    AnalyzeOptions, ChangesReport, EmbedOptions, EmbedSource, IdentifyError, IntentExtractor, SyncError, SyncOptions,
    analyze_intent, embed, read_templates, refresh_maintainers, resolve_actors, sweep, sync, sync_changes,
    sync_outcomes,
};
use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use crate::handlers::find_repo::{name_now, renamed};
use crate::jobs::job_errors::in_words;
use crate::jobs::job_handler::{JobError, LeasedJob};
use crate::jobs::job_keys::{KeyedRepo, sync_key};
use crate::jobs::service_job::ServiceJob;
use crate::service::Service;

/// Less than a day, so that a nightly sync that begins a little early is still a full one.
const NIGHTLY: SignedDuration = SignedDuration::from_hours(20);

/// The requests for changes of pull requests in one sync: a tenth of what the token of a workflow may send in an hour.
const CHANGES_REQUESTS: u64 = 100;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SyncJob {
    github_id: Option<GithubId>,
}

impl SyncJob {
    pub(crate) fn of(repo: &Repo) -> Self {
        Self { github_id: repo.github_id }
    }

    /// A repository of which only the name is known.
    pub(crate) fn unknown() -> Self {
        Self { github_id: None }
    }
}

impl ServiceJob for SyncJob {
    const KIND: JobKind = JobKind::Sync;
    /// Long enough for the first sync of a large repository.
    const LONGEST: SignedDuration = SignedDuration::from_hours(6);

    fn key(&self, repo: Option<&RepoName>) -> String {
        sync_key(KeyedRepo::new(self.github_id, repo))
    }

    async fn run(&self, service: &Service, leased: &LeasedJob) -> Result<(), JobError> {
        sync_repo(service, self.github_id, leased.job.repo.as_ref()).await
    }
}

/// Syncs one repository. Work that reads the whole repository runs once a night.
async fn sync_repo(service: &Service, id: Option<GithubId>, named: Option<&RepoName>) -> Result<(), JobError> {
    let Some(github) = service.github() else {
        return Err(JobError::ignored("syncing needs credentials for GitHub"));
    };
    let Some(named) = named else {
        return Err(JobError::Hopeless("the job names no repository".to_owned()));
    };
    let store = service.store();
    // If there is an id, it alone identifies the repository: the name may belong to another repository by now.
    let known = match id {
        Some(id) => store.repos().by_github_id(id).await?,
        None => store.repos().find(named).await?,
    };
    if id.is_some() && known.is_none() {
        return Err(JobError::ignored("the repository is no longer in the database"));
    }
    if let Some(repo) = &known {
        let access = store.repos().access(repo.id).await?;
        if access != RepoAccess::Active {
            return Err(JobError::Ignored(format!("the repository is {}", access.as_str())));
        }
    }
    let mut asked = known.as_ref().map_or_else(|| named.clone(), |repo| repo.name.clone());
    let mut synced = sync(store, github, &asked, SyncOptions::default(), &mut |_| {}).await;
    // The stored name belongs to another repository by now, and no webhook reported the new name.
    if let (Some(repo), Err(failure)) = (&known, &synced)
        && let Some(id) = repo.github_id
        && has_lost_its_name(&failure.cause)
    {
        let Some(name) = name_now(service, id, &repo.name).await? else {
            store.repos().set_access(repo.id, RepoAccess::Removed, service.now()).await?;
            return Err(JobError::Ignored(in_words(failure)));
        };
        if name.key() != repo.name.key() {
            asked = renamed(service, repo, id, &name).await?.name;
            synced = sync(store, github, &asked, SyncOptions::default(), &mut |_| {}).await;
        }
    }
    let synced = match synced {
        Ok(report) => report,
        Err(failure) if is_out_of_sight(&failure.cause) => {
            if let Some(repo) = &known {
                store.repos().set_access(repo.id, RepoAccess::Removed, service.now()).await?;
            }
            return Err(JobError::Ignored(in_words(&failure)));
        }
        Err(failure) => return Err(failure.cause.into()),
    };
    let name = synced.repo.as_ref().unwrap_or(&asked);
    let repo = store.repos().find(name).await?;
    let repo = repo.ok_or_else(|| JobError::Retry(format!("{name} was renamed while it was synced")))?;
    tracing::info!(repo = %repo.name, fetched = synced.fetched, inserted = synced.inserted, updated = synced.updated, "a repository is synced");
    // Each step runs even if another fails.
    let templates = look_at_templates(service, github, &repo).await;
    let embedded = embed_changed(service, &repo).await;
    let looked_through = look_through(service, github, &repo).await;
    let actors = tell_actors(service, github, &repo).await;
    // Last, so that no other step lacks its requests.
    let changes = fetch_changes(service, github, &repo).await;
    templates.and(embedded).and(looked_through).and(actors).and(changes)
}

/// Whether GitHub no longer shows us the repository.
fn is_out_of_sight(error: &SyncError) -> bool {
    let SyncError::Identify(IdentifyError::GitHub(error)) = error else { return false };
    matches!(error, GitHubError::NotFound { .. } | GitHubError::NotInstalled { .. })
}

/// Whether the stored name of this repository, or its current one, belongs to another repository on GitHub.
fn has_lost_its_name(error: &SyncError) -> bool {
    let SyncError::Identify(error) = error else { return false };
    matches!(error, IdentifyError::AnotherRepository { .. } | IdentifyError::NameTaken { .. })
}

/// Reads the issue template files. Once a night, like everything that reads the whole repository.
async fn look_at_templates(service: &Service, github: &GitHub, repo: &Repo) -> Result<(), JobError> {
    let now = service.now();
    let swept_at = service.store().corpus().sync_progress(repo.id).await?.swept_at;
    if swept_at.is_some_and(|swept| now.duration_since(swept) < NIGHTLY) {
        return Ok(());
    }
    match read_templates(service.store(), github, repo, now).await {
        // Without permission to read files, templates are learned from the issues.
        Err(SyncError::GitHub(error)) => {
            tracing::info!(repo = %repo.name, %error, "the template files could not be read");
            Ok(())
        }
        read => read.map(drop).map_err(JobError::from),
    }
}

/// Computes vectors, and cards if rules make them. A model makes cards only for new items: the cost of a whole
/// repository must be requested first.
async fn embed_changed(service: &Service, repo: &Repo) -> Result<(), JobError> {
    let (store, with, now) = (service.store(), service.detectors(), service.now());
    if let Some(local @ IntentExtractor::Local) = with.extractor {
        let options = AnalyzeOptions { item_type: None, state: None, only_changed: true, workers: 1 };
        let made = analyze_intent(store, repo, local, options, now, &mut |_| {}).await;
        made.map_err(|_| tells_why(repo, "analyze-intent"))?;
    }
    let source = with.extractor.map_or(EmbedSource::Raw, |extractor| EmbedSource::Intent(extractor.maker().extractor));
    let options = EmbedOptions { source, only_changed: true, ..EmbedOptions::default() };
    let embedded = embed(store, with.embedder, repo, options, now, &mut |_| {}).await;
    embedded.map(drop).map_err(|_| tells_why(repo, "embed"))
}

/// A failure without its message, because a model's message may quote the text it was given.
fn tells_why(repo: &Repo, command: &str) -> JobError {
    let name = &repo.name;
    JobError::Retry(format!(
        "`{command}` failed for {name}; `canonry {command} --repo {name} --only-changed` shows why"
    ))
}

/// Once a night: refreshes the maintainers, the targets of duplicates, and which items no longer exist.
async fn look_through(service: &Service, github: &GitHub, repo: &Repo) -> Result<(), JobError> {
    let (store, now) = (service.store(), service.now());
    let progress = store.corpus().sync_progress(repo.id).await?;
    match progress.swept_at {
        Some(swept) if now.duration_since(swept) < NIGHTLY => return Ok(()),
        Some(_) => {}
        None => {
            refresh_unless_set(store, github, repo).await?;
            // Everything was just read for the first time, so no item can be missing.
            let swept = SyncProgress { swept_at: Some(now), ..progress };
            return store.corpus().write_sync_progress(repo.id, &swept).await.map_err(JobError::from);
        }
    }
    let maintainers = refresh_unless_set(store, github, repo).await.map(drop);
    let outcomes = sync_outcomes(store, github, &repo.name, &mut |_| {}).await.map(drop).map_err(JobError::from);
    let swept = sweep(store, github, &repo.name, &mut |_| {}).await.map(drop).map_err(JobError::from);
    maintainers.and(outcomes).and(swept)
}

/// Refreshes the list of maintainers from GitHub; returns GitHub's error if it does not show them. A list that a
/// person has set stays.
pub(crate) async fn refresh_unless_set(
    store: &Store,
    github: &GitHub,
    repo: &Repo,
) -> Result<Option<GitHubError>, JobError> {
    let list = store.repos().maintainers(repo.id).await?;
    if list.is_some_and(|list| list.source == MaintainerSource::Set) {
        return Ok(None);
    }
    match refresh_maintainers(store, github, &repo.name).await {
        Ok(_) => Ok(None),
        Err(SyncError::GitHub(error @ (GitHubError::CollaboratorsHidden { .. } | GitHubError::Forbidden { .. }))) => {
            tracing::debug!(repo = %repo.name, %error, "the maintainers are not known");
            Ok(Some(error))
        }
        Err(error) => Err(error.into()),
    }
}

/// Fetches changes of pull requests that are not stored yet. The next sync continues.
async fn fetch_changes(service: &Service, github: &GitHub, repo: &Repo) -> Result<(), JobError> {
    let ChangesReport { stored, left, stopped, .. } =
        sync_changes(service.store(), github, repo, CHANGES_REQUESTS, &mut |_| {}).await?;
    tracing::info!(repo = %repo.name, stored, left, stopped, "changes of pull requests are stored");
    Ok(())
}

/// Finds who closed and reopened items whose change only a sync has seen.
async fn tell_actors(service: &Service, github: &GitHub, repo: &Repo) -> Result<(), JobError> {
    let own = service.outbox().await?.own_login();
    let told = resolve_actors(service.store(), github, repo, Some(own), service.now()).await;
    told.map(drop).map_err(JobError::from)
}
