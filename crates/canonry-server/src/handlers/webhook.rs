//! Passes a webhook to the handler of its event.

use canonry_domain::{Login, Maintainers, RepoName};
use canonry_github::api::RestUser;
use canonry_github::webhook::{Event, EventBody, parse_event};
use canonry_store::{Delivery, Repo, RepoAccess};
use jiff::Timestamp;

use super::{
    installations, issue_comments, issues, pull_requests, pushes, repositories, review_comments, review_threads,
    reviews,
};
use crate::handlers::find_repo::{NamedRepo, is_back, known_repo};
use crate::handlers::repo_settings::{LazySettings, RepoSettings};
use crate::handlers::webhook_outcomes::{KnownPeople, OutcomeSource};
use crate::jobs::job_handler::JobError;
use crate::service::Service;

/// From this many bytes on, a body is parsed on a blocking thread, so that other work continues.
const LARGE: usize = 256 * 1024;

#[derive(Clone, Copy)]
pub(super) struct Webhook<'a> {
    pub(super) service: &'a Service,
    pub(super) delivery: &'a Delivery,
    pub(super) event: &'a Event,
    pub(super) settings: &'a LazySettings,
}

/// Handles a webhook. It may come late, twice, or out of order.
pub(crate) async fn webhook(service: &Service, delivery: &Delivery, body: &str) -> Result<(), JobError> {
    let event = read(&delivery.event, body).await?;
    let hook = Webhook { service, delivery, event: &event, settings: &LazySettings::default() };
    match &event.body {
        EventBody::Ping(_) => Err(JobError::ignored("GitHub tested the webhook")),
        EventBody::Installation(installation) => installations::installation(hook, installation).await,
        EventBody::InstallationRepositories(changed) => installations::repositories(hook, changed).await,
        EventBody::Repository(repository) => repositories::repository(hook, repository).await,
        EventBody::Push(push) => pushes::push(hook, push).await,
        EventBody::Issues(about) => issues::issues(hook, &hook.repo().await?, about).await,
        EventBody::IssueComment(about) => issue_comments::issue_comment(hook, &hook.repo().await?, about).await,
        EventBody::PullRequest(about) => pull_requests::pull_request(hook, &hook.repo().await?, about).await,
        // GitHub sends every check of every App.
        EventBody::Check(_) if hook.action() != "rerequested" => {
            Err(JobError::ignored("only a check that is requested again starts a review"))
        }
        EventBody::Check(about) => reviews::check(hook, &hook.repo().await?, about).await,
        EventBody::Label(_) => Err(JobError::ignored("labels arrive with their items")),
        EventBody::PullRequestReviewComment(about) => {
            review_comments::review_comment(hook, &hook.repo().await?, about).await
        }
        EventBody::PullRequestReviewThread(about) => {
            review_threads::review_thread(hook, &hook.repo().await?, about).await
        }
        EventBody::PullRequestReview(about) => reviews::review(hook, &hook.repo().await?, about).await,
        EventBody::Ignored => Err(JobError::Ignored(format!("Canonry does not handle this {} event", event.name))),
    }
}

async fn read(name: &str, body: &str) -> Result<Event, JobError> {
    let read = if body.len() < LARGE {
        parse_event(name, body.as_bytes())
    } else {
        let (name, body) = (name.to_owned(), body.to_owned());
        let reading = tokio::task::spawn_blocking(move || parse_event(&name, body.as_bytes()));
        reading.await.map_err(|_| JobError::Retry("the body could not be read to its end".to_owned()))?
    };
    read.map_err(|_| JobError::Hopeless("the webhook's body is not JSON".to_owned()))
}

impl<'a> Webhook<'a> {
    /// Empty if the event has no actions.
    pub(super) fn action(&self) -> &str {
        self.event.action.as_deref().unwrap_or_default()
    }

    pub(super) fn received_at(&self) -> Timestamp {
        self.delivery.received_at
    }

    pub(super) fn named_repo(&self) -> Result<NamedRepo, JobError> {
        let named = self.event.repository.as_ref();
        let named = named.and_then(|repo| NamedRepo::new(repo.id, &repo.full_name));
        named.ok_or_else(|| JobError::ignored("it names no repository"))
    }

    /// Stores the repository's default branch, which every webhook names. A fix counts only there.
    pub(super) async fn note_default_branch(&self, repo: &Repo) -> Result<(), JobError> {
        let named = self.event.repository.as_ref().map(|repo| repo.default_branch.as_str()).unwrap_or_default();
        Ok(self.service.store().repos().set_default_branch(repo.id, named).await?)
    }

    /// The repository in the store, for work on its items.
    async fn repo(&self) -> Result<Repo, JobError> {
        let repo = known_repo(self.service, &self.named_repo()?).await?;
        let why = match self.service.store().repos().access(repo.id).await? {
            RepoAccess::Active => return Ok(repo),
            RepoAccess::Removed if self.may_be_back() && is_back(self.service, &repo, self.received_at()).await? => {
                return Ok(repo);
            }
            RepoAccess::Removed => "Canonry no longer has access to it",
            RepoAccess::Suspended => "the installation is suspended",
            RepoAccess::Archived => "it is archived",
            RepoAccess::Deleted => "it was deleted",
        };
        Err(JobError::Ignored(format!("nothing is done in {}: {why}", repo.name)))
    }

    /// The settings of the webhook's repository, read once.
    pub(super) async fn settings(&self, repo: &Repo) -> Result<&'a RepoSettings, JobError> {
        self.settings.get(self.service, repo).await
    }

    /// Whether to recheck an inaccessible repository: an App's own webhooks come only from where it is installed.
    fn may_be_back(&self) -> bool {
        !self.service.is_app() || self.event.installation_id.is_some()
    }

    /// The account that Canonry writes with; `None` without GitHub.
    pub(super) async fn own_login(&self) -> Result<Option<&Login>, JobError> {
        if self.service.github().is_none() {
            return Ok(None);
        }
        Ok(Some(self.service.outbox().await?.own_login()))
    }

    /// The repository's maintainers, as far as they are known.
    pub(super) async fn maintainers(&self, repo: &Repo) -> Result<Maintainers, JobError> {
        let list = self.service.store().repos().maintainers(repo.id).await?;
        Ok(list.into_iter().flat_map(|list| list.logins).collect())
    }

    pub(super) fn outcome_source<'b>(&'b self, repo: &'b RepoName, people: KnownPeople<'b>) -> OutcomeSource<'b> {
        let (delivery_id, received_at) = (self.delivery.id.as_str(), self.received_at());
        OutcomeSource { delivery_id, received_at, repo, event: self.event, people }
    }

    /// Why the event gets no answer: Canonry or another bot caused it, or wrote the item.
    pub(super) fn not_a_person(&self, own: Option<&Login>, author: Option<&RestUser>) -> Option<&'static str> {
        let is_own = |user: &RestUser| own.is_some() && user.to_login().as_ref() == own;
        match self.event.sender.as_ref() {
            Some(sender) if is_own(sender) => return Some("Canonry did it itself"),
            Some(sender) if sender.is_bot() => return Some("a bot did it"),
            _ => {}
        }
        match author {
            Some(author) if is_own(author) => Some("Canonry wrote it itself"),
            Some(author) if author.is_bot() => Some("a bot wrote it"),
            _ => None,
        }
    }
}
