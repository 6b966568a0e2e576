//! The job that reviews a pull request: it ends when a review of what stands there now is published, or nothing is open.

use std::sync::Arc;

use canonry_config::Reviewer;
use canonry_domain::review::{CommitSha, ReviewSubject};
use canonry_domain::{Extractor, ItemNumber, month_of};
use canonry_github::outbox::Outbox;
use canonry_github::{GitHub, GitHubError};
use canonry_review::reviewers::CommandReviewer;
use canonry_review::reviewers::llm::{LlmReviewBudget, LlmReviewer};
use canonry_review::{
    FetchedRepository, Git, GitError, InvalidRemote, Publication, PublicationError, PublicationResult, Remote,
    Repository, ReviewError, ReviewOutcome, ReviewRequest, ReviewerChoice, choose_reviewers, poll_reactions_of_pull,
    review,
};
use canonry_store::{BrakeKind, CompletedRun, Job, Repo, RepoAccess};
use jiff::{SignedDuration, Timestamp};
use sha2::{Digest as _, Sha256};

use crate::github_writes::recheck::{PAUSED_FOR, ServiceRecheck};
use crate::handlers::repo_settings::repo_rules;
use crate::handlers::review_settings::{ReviewWishes, review_settings};
use crate::jobs::job_errors::in_words;
use crate::jobs::job_handler::{Handled, JobError};
use crate::jobs::metered_model::{MeteredModel, ReviewModel};
use crate::jobs::review_folder::ReviewFolder;
use crate::jobs::review_requests::ReviewWish;
use crate::service::Service;

/// How often one try follows a pull request that moves on; then others get their turn.
const ROUNDS: usize = 4;
/// How long it rests then.
const REST: SignedDuration = SignedDuration::from_secs(10);
/// What commands begin with where the settings say nothing else.
const DEFAULT_HANDLE: &str = "canonry";

/// Who reviews beside Canonry's own rules, as the operator set it up. A repository's file says whether they do.
#[derive(Clone, Default)]
pub struct ReviewParts {
    /// The model behind the reviewer `llm`.
    pub llm: Option<ReviewModel>,
    /// The program behind the reviewer `command`. It gets the diff, and runs in an empty folder.
    pub command: Option<CommandReviewer>,
}

/// Reviews a pull request and publishes what was found.
pub(crate) async fn review_pull(service: &Service, job: &Job) -> Result<Handled, JobError> {
    let Some(wish) = ReviewWish::of(&job.payload) else {
        return Err(JobError::Hopeless("the job does not say which pull request it is about".to_owned()));
    };
    let Some(github) = service.github() else {
        return Ok(Handled::ignored("nothing can be reviewed without credentials for GitHub"));
    };
    let store = service.store();
    let Some(repo) = store.repos().by_github_id(wish.repo()).await? else {
        return Ok(Handled::ignored("nothing of that repository is kept"));
    };
    let access = store.repos().access(repo.id).await?;
    if access != RepoAccess::Active {
        return Ok(Handled::Ignored(format!("the repository is {}", access.as_str())));
    }
    if store.close().brake_in_force(repo.id, BrakeKind::Pause).await?.is_some() {
        let reason = format!("Canonry is paused in {}", repo.name);
        return Err(JobError::Postpone { reason, until: service.now() + PAUSED_FOR });
    }
    let reviewing = Reviewing::new(service, github, &repo, &wish, job).await?;
    let mut refused = None;
    for _ in 0..ROUNDS {
        match reviewing.round(refused.as_ref()).await? {
            Round::Ended(handled) => {
                let ignored = if let Handled::Ignored(reason) = &handled { Some(reason.as_str()) } else { None };
                tracing::info!(repo = %repo.name, number = wish.number.get(), because = wish.because, ignored, "a wish for a review is done with");
                return Ok(handled);
            }
            Round::MovedOn => {}
            Round::Refused(head) if refused.as_ref() == Some(&head) => {
                return Err(JobError::Retry(format!(
                    "the review of {} could not be published twice in a row",
                    head.short()
                )));
            }
            Round::Refused(head) => refused = Some(head),
        }
    }
    let reason = "the pull request moves on faster than it can be reviewed".to_owned();
    Err(JobError::Postpone { reason, until: service.now() + REST })
}

/// Says on the pull request that its review was given up, however that came: a check that says for ever that it is in
/// progress helps nobody.
pub(crate) async fn review_given_up(service: &Service, job: &Job, why: &str) {
    if let Err(error) = tell_given_up(service, job, why).await {
        tracing::warn!(job = job.id.get(), key = job.key, %error, "nobody could be told that a review was given up");
    }
}

async fn tell_given_up(service: &Service, job: &Job, why: &str) -> Result<(), JobError> {
    let (Some(wish), Some(github)) = (ReviewWish::of(&job.payload), service.github()) else { return Ok(()) };
    let Some(repo) = service.store().repos().by_github_id(wish.repo()).await? else { return Ok(()) };
    if service.store().repos().access(repo.id).await? != RepoAccess::Active {
        return Ok(());
    }
    let reviewing = Reviewing::new(service, github, &repo, &wish, job).await?;
    // It may be the settings that cannot be read.
    let handle = review_settings(service, &repo)
        .await
        .map_or_else(|_| DEFAULT_HANDLE.to_owned(), |read| read.config.mentions.handle);
    let publication = reviewing.publication(&handle);
    let words = format!("Canonry gave up: {}.", why.trim_end_matches('.'));
    match reviewing.live().await {
        Ok(Ok(live)) => {
            publication.could_not(&live.head, &words, &format!("{}-{}-given-up", job.id, job.attempts)).await?;
        }
        Ok(Err(_)) => {}
        Err(error) => {
            tracing::warn!(repo = %repo.name, number = wish.number.get(), %error, "it is not known which commit was not reviewed");
        }
    }
    Ok(publication.leave(&words).await?)
}

struct Reviewing<'a> {
    service: &'a Service,
    github: &'a GitHub,
    outbox: &'a Outbox,
    recheck: ServiceRecheck,
    repo: &'a Repo,
    number: ItemNumber,
    subject: ReviewSubject,
    wish: &'a ReviewWish,
    job: &'a Job,
}

/// How a look at the pull request ended.
enum Round {
    Ended(Handled),
    MovedOn,
    /// The review of this head may not be published any more, though the head still stands: only a new one may.
    Refused(CommitSha),
}

/// The pull request as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Live {
    base: CommitSha,
    base_branch: String,
    head: CommitSha,
}

struct Plan<'a> {
    live: &'a Live,
    settings: &'a ReviewWishes,
    reviewers: &'a [ReviewerChoice],
    /// The review that fulfils the wish, and is only to be published.
    done: Option<CompletedRun>,
    /// Whether there is to be a new review whatever there was.
    requested: bool,
    asked_at: Timestamp,
}

/// A failure, and what people are told of it.
struct Failure {
    error: JobError,
    /// `None` where nobody could be told, or it passes by itself.
    told: Option<String>,
}

impl<E: Into<JobError>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self { error: error.into(), told: None }
    }
}

impl Failure {
    /// Tries again, and tells people: what they wait for may not come.
    fn told(error: &dyn std::error::Error) -> Self {
        let words = in_words(error);
        Self { told: Some(format!("Canonry failed to {words}.")), error: JobError::Retry(words) }
    }
}

impl<'a> Reviewing<'a> {
    async fn new(
        service: &'a Service,
        github: &'a GitHub,
        repo: &'a Repo,
        wish: &'a ReviewWish,
        job: &'a Job,
    ) -> Result<Self, JobError> {
        let (outbox, recheck) = (service.outbox().await?, service.recheck(github));
        let (number, subject) = (wish.number, ReviewSubject::Pull(wish.number));
        Ok(Self { service, github, outbox, recheck, repo, number, subject, wish, job })
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
            handle,
        }
    }

    /// Ends the wish without a review; a check that says that one is in progress must not say so any longer.
    async fn leave(&self, why: &str) -> Result<Round, JobError> {
        self.publication(DEFAULT_HANDLE).leave(&format!("This commit was not reviewed: {why}.")).await?;
        Ok(Round::Ended(Handled::ignored(why)))
    }

    async fn round(&self, refused: Option<&CommitSha>) -> Result<Round, JobError> {
        // From before it is looked: whoever looks later knows a later head.
        let asked_at = self.service.now();
        let live = match self.live().await? {
            Ok(live) => live,
            Err(why) => return self.leave(why).await,
        };
        let settings = review_settings(self.service, self.repo).await?;
        // With settings that nobody can read, only what was reviewed before gets here: its old review must not pass for one
        // of another change.
        if settings.readable && !settings.config.review.enabled {
            return self.leave("review.enabled is false").await;
        }
        let publication = self.publication(&settings.config.mentions.handle);
        let is_refused = refused == Some(&live.head);
        let done = if is_refused { None } else { self.done_before(&live).await? };
        let is_another_change = done.is_none() && self.was_another_change(&live).await?;
        let requested = done.is_none() && (self.wish.requests > 0 || is_refused || is_another_change);
        let reviewers = choose_reviewers(&settings.config.review, &self.at_hand(&settings));
        let is_nobody_there = reviewers.iter().all(ReviewerChoice::is_missing);
        if done.is_none() && is_nobody_there {
            let why = "The settings name no reviewer that this service has.";
            self.tell(&publication, &live.head, why).await;
            return Ok(Round::Ended(Handled::ignored("the settings name no reviewer that this service has")));
        }
        let plan = Plan { live: &live, settings: &settings, reviewers: &reviewers, done, requested, asked_at };
        if plan.done.is_none() {
            publication.begin(&live.head, is_another_change).await?;
            self.hear_reactions().await;
        }
        let report = match self.review(&plan).await {
            Ok(ReviewOutcome::Reviewed(report) | ReviewOutcome::AlreadyReviewed(report)) => report,
            Ok(ReviewOutcome::Superseded { .. }) => return Ok(Round::MovedOn),
            Ok(ReviewOutcome::Busy { until }) => {
                let reason = format!("another process reviews {}", live.head.short());
                return Err(JobError::Postpone { reason, until });
            }
            Err(failure) => {
                if let Some(why) = &failure.told {
                    self.tell(&publication, &live.head, why).await;
                }
                return Err(failure.error);
            }
        };
        // Another branch to be merged into makes another change of the same head.
        match self.live().await? {
            Ok(now) if now.head == live.head && now.base_branch == live.base_branch => {}
            Ok(_) => return Ok(Round::MovedOn),
            Err(why) => return self.leave(why).await,
        }
        match publication.publish(&report).await? {
            PublicationResult::Done { inline, settled, refused, .. } => {
                tracing::info!(
                    repo = %self.repo.name, number = self.number.get(), head = live.head.short(), inline, settled,
                    refused = refused.len(), "a review is published"
                );
                Ok(Round::Ended(Handled::Done))
            }
            PublicationResult::Superseded => match self.live().await? {
                Ok(now) if now.head == live.head => Ok(Round::Refused(live.head)),
                Ok(_) => Ok(Round::MovedOn),
                Err(why) => self.leave(why).await,
            },
            PublicationResult::Waiting { until, reason } => Err(JobError::Postpone { reason, until }),
        }
    }

    /// The pull request as GitHub tells of it now, whatever webhooks told; or why there is nothing to review.
    async fn live(&self) -> Result<Result<Live, &'static str>, JobError> {
        let pull = match self.github.pull(&self.repo.name, self.number).await {
            Ok(pull) => pull,
            Err(GitHubError::NotFound { .. } | GitHubError::Gone { .. }) => return Ok(Err("the pull request is gone")),
            // The next try goes to the new name.
            Err(error @ GitHubError::Moved { .. }) => return Err(JobError::Retry(in_words(&error))),
            Err(error) => return Err(error.into()),
        };
        if pull.state != "open" {
            return Ok(Err("the pull request is closed"));
        }
        match (pull.base.sha.parse(), pull.head.sha.parse()) {
            (Ok(base), Ok(head)) => Ok(Ok(Live { base, base_branch: pull.base.branch, head })),
            _ => {
                Err(JobError::Retry(format!("GitHub does not name the commits of {} #{}", self.repo.name, self.number)))
            }
        }
    }

    /// The review that fulfils the wish already: of the head as it is, against the branch that it is to be merged into
    /// now, and, where somebody asked for a new one, made by this very job since. The commit that the head was compared
    /// with then stands: main moves on all the time.
    async fn done_before(&self, live: &Live) -> Result<Option<CompletedRun>, JobError> {
        let last = self.service.store().review().last_completed_run(self.repo.id, &self.subject).await?;
        Ok(last.filter(|last| {
            last.head == live.head
                && last.base_branch.as_ref() == Some(&live.base_branch)
                && (self.wish.requests == 0 || last.owner.starts_with(&self.claimed_by()))
        }))
    }

    /// Whether the last review of the head was about another change: it was to be merged into another branch then.
    async fn was_another_change(&self, live: &Live) -> Result<bool, JobError> {
        let last =
            self.service.store().review().last_completed_run_of_head(self.repo.id, &self.subject, &live.head).await?;
        Ok(last.and_then(|last| last.base_branch).is_some_and(|branch| branch != live.base_branch))
    }

    /// How claims of this job begin; a wish that joins it changes that.
    fn claimed_by(&self) -> String {
        format!("job-{}-{}-", self.job.id, self.wish.requests)
    }

    /// The operator's program, where the repository wants it.
    fn at_hand(&self, settings: &ReviewWishes) -> Vec<ReviewerChoice> {
        let command = self.service.parts().reviewers.command.clone();
        let is_wanted = settings.config.review.reviewers.contains(&Reviewer::Command);
        command.filter(|_| is_wanted).map(ReviewerChoice::Command).into_iter().collect()
    }

    async fn review(&self, plan: &Plan<'_>) -> Result<ReviewOutcome, Failure> {
        let folder = ReviewFolder::make().map_err(|error| Failure::told(&NoFolder(error)))?;
        let reviewed = self.review_in(&folder, plan).await;
        if let Err(error) = folder.close() {
            tracing::warn!(%error, "a folder that a change was fetched into could not be removed");
        }
        reviewed
    }

    async fn review_in(&self, folder: &ReviewFolder, plan: &Plan<'_>) -> Result<ReviewOutcome, Failure> {
        let (service, store, live) = (self.service, self.service.store(), plan.live);
        let empty = folder.path().join("empty");
        std::fs::create_dir(&empty).map_err(|error| Failure::told(&NoFolder(error)))?;
        let base = plan.done.as_ref().map_or(&live.base, |done| &done.base);
        let repository = match &plan.done {
            // Nothing is read any more.
            Some(_) => Repository::Local(Git::new(&empty)),
            None => Repository::Fetched(self.fetch(folder, base, &live.head).await?),
        };
        let llm = plan.reviewers.contains(&ReviewerChoice::Llm).then(|| self.llm()).flatten();
        let embedder = plan.settings.config.knowledge.retrieval.enabled.then(|| service.detectors().embedder);
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
            full: plan.requested && self.wish.full,
            asked_at: plan.asked_at,
            settings: &plan.settings.config,
            notes: &plan.settings.notes,
            reviewers: plan.reviewers,
            llm_budget: self.llm_budget(llm.is_some()).await?,
            owner: &owner,
        };
        let ticking = Arc::clone(&service.parts().clock);
        let clock = move || ticking.now();
        match review(store, &request, llm.as_ref(), embedder, &clock).await {
            Ok(outcome) => Ok(outcome),
            Err(ReviewError::Store(error)) => Err(error.into()),
            Err(error) => Err(Failure::told(&error)),
        }
    }

    async fn fetch(
        &self,
        folder: &ReviewFolder,
        base: &CommitSha,
        head: &CommitSha,
    ) -> Result<FetchedRepository, Failure> {
        let token = self.github.git_token(&self.repo.name).await?;
        let remote = Remote::new(&self.github.clone_url(&self.repo.name), Some(token.expose()));
        let remote = remote.map_err(|error: InvalidRemote| Failure::told(&error))?;
        let fetched = FetchedRepository::fetch(&folder.path().join("git"), &remote, base, head).await;
        fetched.map_err(|error: GitError| Failure::told(&error))
    }

    /// The operator's model, which notes what it costs.
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

    /// What the model may still cost this month.
    async fn llm_budget(&self, is_asked: bool) -> Result<LlmReviewBudget, JobError> {
        let model = self.service.parts().reviewers.llm.as_ref();
        // A program does not tell how many tokens it took.
        let prices = model.filter(|model| model.provider != Extractor::Command).and_then(|model| model.prices);
        let usual = LlmReviewBudget { prices, ..LlmReviewBudget::default() };
        if !is_asked {
            return Ok(usual);
        }
        let Some(monthly) = repo_rules(self.service, self.repo).await?.monthly_cost else { return Ok(usual) };
        let spent = self.service.store().models().spent_since(self.repo.id, month_of(self.service.now())).await?;
        Ok(LlmReviewBudget { cost_usd: Some((monthly - spent).max(0.0)), ..usual })
    }

    /// What people made of the last review counts for this one; a review does without where that cannot be read.
    async fn hear_reactions(&self) {
        let (store, own, now) = (self.service.store(), self.outbox.own_login(), self.service.now());
        let heard = poll_reactions_of_pull(store, self.github, own, self.repo, self.number, now).await;
        if let Err(error) = heard {
            tracing::warn!(repo = %self.repo.name, number = self.number.get(), %error, "reactions could not be read before a review");
        }
    }

    /// Says that there is no review and why; the same words once in a job.
    async fn tell(&self, publication: &Publication<'_>, head: &CommitSha, why: &str) {
        let words = canonry_domain::hex_digits(&Sha256::digest(why)[..4]);
        let told = publication.could_not(head, why, &format!("{}-{words}", self.job.id)).await;
        if let Err(error) = told {
            tracing::warn!(repo = %self.repo.name, number = self.number.get(), %error, "nobody could be told that a review failed");
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
