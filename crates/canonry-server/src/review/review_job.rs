//! The job that reviews a pull request: it ends when a review of the current head is published, or the pull request
//! is not open.

use std::sync::Arc;

use canonry_config::{RepoConfig, Reviewer};
use canonry_domain::review::{CommitSha, ReviewSubject};
use canonry_domain::{Extractor, ItemNumber, month_of};
use canonry_github::outbox::Outbox;
use canonry_github::{GitHub, GitHubError};
use canonry_review::reviewers::CommandReviewer;
use canonry_review::reviewers::llm::{LlmReviewBudget, LlmReviewer};
use canonry_review::{
    FetchedRepository, Git, GitError, InvalidRemote, LintedCommit, Publication, PublicationError, PublicationResult,
    PullDescription, Remote, Repository, ReviewError, ReviewOutcome, ReviewReport, ReviewRequest, ReviewerChoice,
    choose_reviewers, poll_reactions_of_pull, remarks_of_pull, review, weigh_remarks,
};
use canonry_store::{BrakeKind, CompletedRun, Job, Repo};
use jiff::{SignedDuration, Timestamp};
use sha2::{Digest as _, Sha256};

use crate::github_writes::recheck::{PAUSED_FOR, ServiceRecheck};
use crate::handlers::find_repo::active_repo;
use crate::handlers::repo_settings::{LazySettings, RepoSettings};
use crate::jobs::job_errors::in_words;
use crate::jobs::job_handler::JobError;
use crate::review::metered_model::{MeteredModel, ReviewModel};
use crate::review::review_folder::ReviewFolder;
use crate::review::review_requests::ReviewJob;
use crate::service::Service;

/// How often one try follows a pull request to a new head; then other jobs get their turn.
const ROUNDS: usize = 4;
const REST: SignedDuration = SignedDuration::from_secs(10);
/// The prefix of commands if the settings do not set one.
const DEFAULT_HANDLE: &str = "canonry";

/// The reviewers beside Canonry's own rules, as the operator configured them. A repository's file says whether they
/// are used.
#[derive(Clone, Default)]
pub struct ReviewParts {
    pub llm: Option<ReviewModel>,
    /// The program of the reviewer `command`. It gets the diff and runs in an empty folder.
    pub command: Option<CommandReviewer>,
}

/// Reviews a pull request and publishes the findings.
pub(crate) async fn review_pull(service: &Service, request: &ReviewJob, job: &Job) -> Result<(), JobError> {
    let Some(github) = service.github() else {
        return Err(JobError::ignored("reviews need credentials for GitHub"));
    };
    let repo = active_repo(service, request.github_id).await?;
    if service.store().close().brake_in_force(repo.id, BrakeKind::Pause).await?.is_some() {
        let reason = format!("Canonry is paused in {}", repo.name);
        return Err(JobError::Postpone { reason, until: service.now() + PAUSED_FOR });
    }
    let reviewed = ReviewRun::new(service, github, &repo, request, job).await?.follow_pull().await;
    if let Ok(()) | Err(JobError::Ignored(_)) = &reviewed {
        let ignored = reviewed.as_ref().err().map(ToString::to_string);
        let number = request.number.get();
        tracing::info!(repo = %repo.name, number, because = request.because, ignored, "a review request is done");
    }
    reviewed
}

/// Reports on the pull request that its review failed, so that its check does not stay in progress forever.
pub(crate) async fn report_dead_review(
    service: &Service,
    request: &ReviewJob,
    job: &Job,
    why: &str,
) -> Result<(), JobError> {
    let Some(github) = service.github() else { return Ok(()) };
    let repo = active_repo(service, request.github_id).await?;
    let run = ReviewRun::new(service, github, &repo, request, job).await?;
    // Unreadable settings may be the reason for the failure.
    let handle = run.settings().await.map_or(DEFAULT_HANDLE, RepoSettings::handle);
    let publication = run.publication(handle);
    let words = format!("The review failed too often: {}.", why.trim_end_matches('.'));
    match run.fetch_pull().await {
        Ok(LivePull::Open(head)) => {
            publication.could_not(&head.head, &words, &format!("{}-{}-given-up", job.id, job.attempts)).await?;
        }
        Ok(LivePull::Over(_)) => {}
        Err(error) => {
            tracing::warn!(repo = %repo.name, number = request.number.get(), %error, "the commit that was not reviewed is unknown");
        }
    }
    Ok(publication.leave("the review failed", &words).await?)
}

struct ReviewRun<'a> {
    service: &'a Service,
    github: &'a GitHub,
    outbox: &'a Outbox,
    recheck: ServiceRecheck,
    repo: &'a Repo,
    number: ItemNumber,
    subject: ReviewSubject,
    request: &'a ReviewJob,
    job: &'a Job,
    settings: LazySettings,
}

enum HeadReview {
    Published,
    MovedOn,
    /// The review of this head may no longer be published, though the head is still current: only a new review may.
    Refused(CommitSha),
}

enum LivePull {
    Open(PullHead),
    /// There is nothing to review, for this reason.
    Over(&'static str),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct PullHead {
    base: CommitSha,
    base_branch: String,
    head: CommitSha,
    description: PullDescription,
}

struct ReviewSteps<'a> {
    live: &'a PullHead,
    settings: &'a RepoSettings,
    reviewers: &'a [ReviewerChoice],
    /// The requested review, which only has to be published.
    done: Option<CompletedRun>,
    /// Whether to make a new review even if there was one.
    requested: bool,
    asked_at: Timestamp,
}

struct ReviewFailure {
    error: JobError,
    /// `None` if the message could not be posted, or the failure is temporary.
    message: Option<String>,
}

impl<E: Into<JobError>> From<E> for ReviewFailure {
    fn from(error: E) -> Self {
        Self { error: error.into(), message: None }
    }
}

impl ReviewFailure {
    /// Retries, and reports the failure to people: the review they wait for may not come.
    fn reported(error: &dyn std::error::Error) -> Self {
        let words = in_words(error);
        Self { message: Some(format!("Canonry could not {words}.")), error: JobError::Retry(words) }
    }
}

impl<'a> ReviewRun<'a> {
    async fn new(
        service: &'a Service,
        github: &'a GitHub,
        repo: &'a Repo,
        request: &'a ReviewJob,
        job: &'a Job,
    ) -> Result<Self, JobError> {
        let (outbox, recheck) = (service.outbox().await?, service.recheck(github));
        let (number, subject, settings) =
            (request.number, ReviewSubject::Pull(request.number), LazySettings::default());
        Ok(Self { service, github, outbox, recheck, repo, number, subject, request, job, settings })
    }

    /// The settings of the default branch, whatever a change contains.
    async fn settings(&self) -> Result<&RepoSettings, JobError> {
        self.settings.get(self.service, self.repo).await
    }

    /// Reviews the head, and the next one if the head changes meanwhile.
    async fn follow_pull(&self) -> Result<(), JobError> {
        let mut refused = None;
        for _ in 0..ROUNDS {
            match self.review_head(refused.as_ref()).await? {
                HeadReview::Published => return Ok(()),
                HeadReview::MovedOn => {}
                HeadReview::Refused(head) if refused.as_ref() == Some(&head) => {
                    let head = head.short();
                    return Err(JobError::Retry(format!(
                        "the review of {head} could not be published, twice in a row"
                    )));
                }
                HeadReview::Refused(head) => refused = Some(head),
            }
        }
        let reason = "new commits arrive faster than they can be reviewed".to_owned();
        Err(JobError::Postpone { reason, until: self.service.now() + REST })
    }

    fn publication<'p>(&'p self, handle: &'p str) -> Publication<'p> {
        Publication {
            store: self.service.store(),
            github: self.github,
            outbox: self.outbox,
            repo: self.repo,
            number: self.number,
            check_runs: self.service.is_app(),
            recheck: &self.recheck,
            handle: Some(handle),
        }
    }

    /// Ends without a review; a check must not stay in progress.
    async fn leave(&self, why: &str) -> Result<HeadReview, JobError> {
        self.publication(DEFAULT_HANDLE).leave(why, &format!("This commit was not reviewed: {why}.")).await?;
        Err(JobError::ignored(why))
    }

    async fn review_head(&self, refused: Option<&CommitSha>) -> Result<HeadReview, JobError> {
        // The time before the fetch: a later fetch knows a later head.
        let asked_at = self.service.now();
        let live = match self.fetch_pull().await? {
            LivePull::Open(live) => live,
            LivePull::Over(why) => return self.leave(why).await,
        };
        let settings = self.settings().await?;
        let config = settings.config();
        // If the settings cannot be read, only a pull request that was reviewed before gets here: its old review must
        // not count for another change.
        if settings.is_review_readable() && !config.review.enabled {
            return self.leave("review.enabled is false").await;
        }
        let publication = self.publication(settings.handle());
        let is_refused = refused == Some(&live.head);
        let done = if is_refused { None } else { self.done_before(&live).await? };
        let is_another_change = done.is_none() && self.was_another_change(&live).await?;
        let requested = done.is_none() && (self.request.requests > 0 || is_refused || is_another_change);
        let reviewers = choose_reviewers(&config.review, &self.at_hand(config));
        let is_nobody_there = reviewers.iter().all(ReviewerChoice::is_missing);
        if done.is_none() && is_nobody_there {
            let why = "None of the reviewers in `.canonry.yml` is available here.";
            self.tell(&publication, &live.head, why).await;
            return Err(JobError::ignored("none of the reviewers in .canonry.yml is available here"));
        }
        let plan = ReviewSteps { live: &live, settings, reviewers: &reviewers, done, requested, asked_at };
        if plan.done.is_none() {
            publication.begin(&live.head, is_another_change).await?;
            self.poll_reactions().await;
        }
        let mut report = match self.review(&plan).await {
            Ok(ReviewOutcome::Reviewed(report) | ReviewOutcome::AlreadyReviewed(report)) => report,
            Ok(ReviewOutcome::Superseded { .. }) => return Ok(HeadReview::MovedOn),
            Ok(ReviewOutcome::Busy { until }) => {
                let reason = format!("another process reviews {}", live.head.short());
                return Err(JobError::Postpone { reason, until });
            }
            Err(failure) => {
                if let Some(why) = &failure.message {
                    self.tell(&publication, &live.head, why).await;
                }
                return Err(failure.error);
            }
        };
        self.weigh_remarks(config, &mut report).await?;
        // Another base branch makes another change of the same head.
        match self.fetch_pull().await? {
            LivePull::Open(now) if now.head == live.head && now.base_branch == live.base_branch => {}
            LivePull::Open(_) => return Ok(HeadReview::MovedOn),
            LivePull::Over(why) => return self.leave(why).await,
        }
        match publication.publish(&report).await? {
            PublicationResult::Done { inline, settled, refused, .. } => {
                tracing::info!(
                    repo = %self.repo.name, number = self.number.get(), head = live.head.short(), inline, settled,
                    refused = refused.len(), "a review is published"
                );
                Ok(HeadReview::Published)
            }
            PublicationResult::Superseded => match self.fetch_pull().await? {
                LivePull::Open(now) if now.head == live.head => Ok(HeadReview::Refused(live.head)),
                LivePull::Open(_) => Ok(HeadReview::MovedOn),
                LivePull::Over(why) => self.leave(why).await,
            },
            PublicationResult::Waiting { until, reason } => Err(JobError::Postpone { reason, until }),
        }
    }

    /// The pull request as GitHub shows it now, whatever webhooks said; or why there is nothing to review.
    async fn fetch_pull(&self) -> Result<LivePull, JobError> {
        let pull = match self.github.pull(&self.repo.name, self.number).await {
            Ok(pull) => pull,
            Err(GitHubError::NotFound { .. } | GitHubError::Gone { .. }) => {
                return Ok(LivePull::Over("the pull request is gone"));
            }
            // The next try uses the new name.
            Err(error @ GitHubError::Moved { .. }) => return Err(JobError::Retry(in_words(&error))),
            Err(error) => return Err(error.into()),
        };
        if pull.state != "open" {
            return Ok(LivePull::Over("the pull request is closed"));
        }
        match (pull.base.sha.parse(), pull.head.sha.parse()) {
            (Ok(base), Ok(head)) => {
                let description = PullDescription { title: pull.title, body: pull.body.unwrap_or_default() };
                Ok(LivePull::Open(PullHead { base, base_branch: pull.base.branch, head, description }))
            }
            _ => {
                Err(JobError::Retry(format!("GitHub does not name the commits of {} #{}", self.repo.name, self.number)))
            }
        }
    }

    /// The requested review if it is already made: of the current head, against the current base branch, and, if a
    /// new review was requested, made by this job since. The base commit it was compared with may be older: main
    /// changes all the time.
    async fn done_before(&self, live: &PullHead) -> Result<Option<CompletedRun>, JobError> {
        let last = self.service.store().review().last_completed_run(self.repo.id, &self.subject).await?;
        Ok(last.filter(|last| {
            last.head == live.head
                && last.base_branch.as_ref() == Some(&live.base_branch)
                && (self.request.requests == 0 || last.owner.starts_with(&self.claimed_by()))
        }))
    }

    /// Whether the last review of the head was about another change, because it had another base branch.
    async fn was_another_change(&self, live: &PullHead) -> Result<bool, JobError> {
        let last =
            self.service.store().review().last_completed_run_of_head(self.repo.id, &self.subject, &live.head).await?;
        Ok(last.and_then(|last| last.base_branch).is_some_and(|branch| branch != live.base_branch))
    }

    /// The prefix of this job's claims; a request that joins the job changes it.
    fn claimed_by(&self) -> String {
        format!("job-{}-{}-", self.job.id, self.request.requests)
    }

    /// The operator's program, if the repository wants it.
    fn at_hand(&self, config: &RepoConfig) -> Vec<ReviewerChoice> {
        let command = self.service.parts().reviewers.command.clone();
        let is_wanted = config.review.reviewers.contains(&Reviewer::Command);
        command.filter(|_| is_wanted).map(ReviewerChoice::Command).into_iter().collect()
    }

    async fn review(&self, plan: &ReviewSteps<'_>) -> Result<ReviewOutcome, ReviewFailure> {
        let folder = ReviewFolder::make().map_err(|error| ReviewFailure::reported(&NoFolder(error)))?;
        let reviewed = self.review_in(&folder, plan).await;
        if let Err(error) = folder.close() {
            tracing::warn!(%error, "the folder with a fetched change could not be deleted");
        }
        reviewed
    }

    async fn review_in(&self, folder: &ReviewFolder, plan: &ReviewSteps<'_>) -> Result<ReviewOutcome, ReviewFailure> {
        let (service, store, live) = (self.service, self.service.store(), plan.live);
        let empty = folder.path().join("empty");
        std::fs::create_dir(&empty).map_err(|error| ReviewFailure::reported(&NoFolder(error)))?;
        let base = plan.done.as_ref().map_or(&live.base, |done| &done.base);
        let repository = match &plan.done {
            // Nothing is read any more.
            Some(_) => Repository::Local(Git::new(&empty)),
            None => Repository::Fetched(self.fetch(folder, base, &live.head).await?),
        };
        let (config, notes) = (plan.settings.config(), plan.settings.notes());
        let llm = plan.reviewers.contains(&ReviewerChoice::Llm).then(|| self.llm()).flatten();
        let embedder = config.knowledge.retrieval.enabled.then(|| service.detectors().embedder);
        let owner = format!("{}{:032x}", self.claimed_by(), rand::random::<u128>());
        let request = ReviewRequest {
            repo: self.repo.id,
            name: &self.repo.name,
            subject: &self.subject,
            repository: &repository,
            root: Some(&empty),
            base,
            base_branch: Some(&live.base_branch),
            head: &live.head,
            requested: plan.requested,
            full: plan.requested && self.request.full,
            asked_at: plan.asked_at,
            settings: config,
            description: Some(&live.description),
            notes: &notes,
            reviewers: plan.reviewers,
            // The service reads no reports of other tools.
            linted: LintedCommit::Head,
            base_reports: &[],
            base_ledger: Some(&ReviewSubject::Branch(live.base_branch.clone())),
            llm_budget: self.llm_budget(plan.settings, llm.is_some()).await?,
            owner: &owner,
        };
        let ticking = Arc::clone(&service.parts().clock);
        let clock = move || ticking.now();
        match review(store, &request, llm.as_ref(), embedder, &clock).await {
            Ok(outcome) => Ok(outcome),
            Err(ReviewError::Store(error)) => Err(error.into()),
            Err(error) => Err(ReviewFailure::reported(&error)),
        }
    }

    async fn fetch(
        &self,
        folder: &ReviewFolder,
        base: &CommitSha,
        head: &CommitSha,
    ) -> Result<FetchedRepository, ReviewFailure> {
        let token = self.github.git_token(&self.repo.name).await?;
        let remote = Remote::new(&self.github.clone_url(&self.repo.name), Some(token.expose()));
        let remote = remote.map_err(|error: InvalidRemote| ReviewFailure::reported(&error))?;
        let fetched = FetchedRepository::fetch(&folder.path().join("git"), &remote, base, head).await;
        fetched.map_err(|error: GitError| ReviewFailure::reported(&error))
    }

    /// The operator's model, which records its cost.
    fn llm(&self) -> Option<LlmReviewer> {
        let parts = self.service.parts();
        let metered = MeteredModel {
            model: parts.reviewers.llm.clone()?,
            store: parts.store.clone(),
            repo: self.repo.id,
            run_id: format!("job-{}", self.job.id),
            clock: Arc::clone(&parts.clock),
        };
        Some(LlmReviewer::new(Arc::new(metered)))
    }

    async fn llm_budget(&self, settings: &RepoSettings, is_asked: bool) -> Result<LlmReviewBudget, JobError> {
        let model = self.service.parts().reviewers.llm.as_ref();
        // A program does not report how many tokens it used.
        let prices = model.filter(|model| model.provider != Extractor::Command).and_then(|model| model.prices);
        let usual = LlmReviewBudget { prices, ..LlmReviewBudget::of(settings.config().review.model_budget) };
        if !is_asked {
            return Ok(usual);
        }
        let Some(monthly) = settings.monthly_cost(self.service.parts().monthly_cost) else { return Ok(usual) };
        let spent = self.service.store().models().spent_since(self.repo.id, month_of(self.service.now())).await?;
        Ok(LlmReviewBudget { cost_usd: Some((monthly - spent).max(0.0)), ..usual })
    }

    /// Reads the reactions to the last review, which count for this one; the review continues if they cannot be read.
    async fn poll_reactions(&self) {
        let (store, own, now) = (self.service.store(), self.outbox.own_login(), self.service.now());
        let polled = poll_reactions_of_pull(store, self.github, own, self.repo, self.number, now).await;
        if let Err(error) = polled {
            tracing::warn!(repo = %self.repo.name, number = self.number.get(), %error, "reactions could not be read before a review");
        }
    }

    /// Weighs the comments of other bots and people, if the settings name bots; the review is published without them if
    /// they cannot be read.
    async fn weigh_remarks(&self, config: &RepoConfig, report: &mut ReviewReport) -> Result<(), JobError> {
        let bots = &config.review.referee.bots;
        if bots.is_empty() {
            return Ok(());
        }
        let (service, own) = (self.service, self.outbox.own_login());
        match remarks_of_pull(self.github, own, &self.repo.name, self.number, bots).await {
            Ok(heard) => {
                let embedder = Some(service.detectors().embedder);
                Ok(weigh_remarks(service.store(), self.repo.id, embedder, report, heard, service.now()).await?)
            }
            Err(error) => {
                tracing::warn!(repo = %self.repo.name, number = self.number.get(), %error, "comments of other reviewers could not be read");
                report.notes.push(format!("comments of other reviewers were not read: failed to {error}"));
                Ok(())
            }
        }
    }

    /// Posts that there is no review, and why; the same text once per job.
    async fn tell(&self, publication: &Publication<'_>, head: &CommitSha, why: &str) {
        let words = canonry_domain::hex_digits(&Sha256::digest(why)[..4]);
        let told = publication.could_not(head, why, &format!("{}-{words}", self.job.id)).await;
        if let Err(error) = told {
            tracing::warn!(repo = %self.repo.name, number = self.number.get(), %error, "the failure of the review could not be posted on the pull request");
        }
    }
}

/// Nothing can be fetched without a folder.
#[derive(Debug, thiserror::Error)]
#[error("make a folder to fetch into: {0}")]
struct NoFolder(std::io::Error);

impl From<PublicationError> for JobError {
    fn from(error: PublicationError) -> Self {
        match error {
            PublicationError::Store(error) => error.into(),
            PublicationError::GitHub(error) => error.into(),
            PublicationError::Outbox(error) => error.into(),
            error @ PublicationError::NotPublishable(_) => Self::Hopeless(in_words(&error)),
        }
    }
}
