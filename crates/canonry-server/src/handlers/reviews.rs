//! Decides which webhooks about pull requests and checks start a review.

use canonry_domain::review::{CommitSha, NoReview, ReviewOccasion, ReviewSubject, ReviewTrigger};
use canonry_domain::review::{TriggerFacts, TriggerRules, review_trigger};
use canonry_domain::{GithubId, Item, ItemNumber, ItemState, ItemType, Login};
use canonry_github::api::RestUser;
use canonry_github::webhook::{CheckEvent, PullLink, PullRequestEvent, PullRequestReviewEvent};
use canonry_store::Repo;

use super::graces::on_review;
use super::webhook::Webhook;
use crate::jobs::job_handler::JobError;
use crate::review::review_requests::{ReviewJob, queue_review};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReviewDecision {
    NotAsked,
    Queued,
    Skipped(NoReview),
}

/// Queues a review of a pull request if the event asks for one.
pub(super) async fn of_pull_request(
    hook: Webhook<'_>,
    repo: &Repo,
    item: &Item,
    about: &PullRequestEvent,
) -> Result<ReviewDecision, JobError> {
    let Some(own) = hook.own_login().await? else { return Ok(ReviewDecision::NotAsked) };
    if hook.action() == "synchronize" {
        // Whatever the triggers are: the review under way is about commits that are no longer the head.
        supersede(hook, repo, item.number, &about.pull_request.head.sha).await?;
    }
    let Some(occasion) = occasion(hook.action(), about, own) else { return Ok(ReviewDecision::NotAsked) };
    let pull = TriggeringPull {
        number: item.number,
        is_open: item.state == ItemState::Open,
        is_draft: about.pull_request.draft,
        author: about.pull_request.user.as_ref().and_then(RestUser::to_login),
    };
    request_review(hook, repo, own, occasion, &pull).await
}

/// `pull_request_review`: a person who reviews a pull request is working on it. Their comments are handled one by
/// one.
pub(super) async fn review(hook: Webhook<'_>, repo: &Repo, about: &PullRequestReviewEvent) -> Result<(), JobError> {
    let is_person = hook.not_a_person(hook.own_login().await?, about.review.user.as_ref()).is_none();
    if hook.action() == "submitted"
        && is_person
        && let Ok(number) = ItemNumber::new(about.pull_request.number)
    {
        on_review(hook, repo, number).await?;
    }
    Err(JobError::ignored("comments of a review arrive in events of their own"))
}

/// `check_run` and `check_suite`: a person wants Canonry's check to run again.
pub(super) async fn check(hook: Webhook<'_>, repo: &Repo, about: &CheckEvent) -> Result<(), JobError> {
    let Some(own) = hook.own_login().await? else {
        return Err(JobError::ignored("reviews need credentials for GitHub"));
    };
    let app = about.check.app.as_ref().and_then(|app| format!("{}[bot]", app.slug).parse::<Login>().ok());
    if app.as_ref() != Some(own) {
        return Err(JobError::ignored("the check is not Canonry's"));
    }
    let mut why = None;
    let mut queued = false;
    for number in pulls_of(hook, repo, about).await? {
        let Some(item) = hook.service.store().corpus().item(repo.id, ItemType::Pr, number).await? else { continue };
        let pull = TriggeringPull {
            number,
            is_open: item.state == ItemState::Open && item.gone.is_none(),
            // A requested review includes drafts.
            is_draft: false,
            author: item.author.clone(),
        };
        match request_review(hook, repo, own, ReviewOccasion::CheckRerequested, &pull).await? {
            ReviewDecision::Queued => queued = true,
            ReviewDecision::Skipped(reason) => why = Some(reason),
            ReviewDecision::NotAsked => {}
        }
    }
    match why {
        _ if queued => Ok(()),
        Some(why) => Err(JobError::Ignored(format!("not reviewed again: {why}"))),
        None => Err(JobError::ignored("the pull request is unknown")),
    }
}

/// The facts of a pull request that decide whether to review it.
struct TriggeringPull {
    number: ItemNumber,
    is_open: bool,
    is_draft: bool,
    author: Option<Login>,
}

/// The occasion for a review that an action is; `None` if it has nothing to do with reviews.
fn occasion(action: &str, about: &PullRequestEvent, own: &Login) -> Option<ReviewOccasion> {
    let asked = about.requested_reviewer.as_ref().and_then(RestUser::to_login);
    match action {
        "opened" => Some(ReviewOccasion::Opened),
        "reopened" => Some(ReviewOccasion::Reopened),
        "ready_for_review" => Some(ReviewOccasion::ReadyForReview),
        "review_requested" if asked.as_ref() == Some(own) => Some(ReviewOccasion::ReviewRequested),
        "synchronize" => Some(ReviewOccasion::Pushed),
        "edited" if about.changes.base.is_some() => Some(ReviewOccasion::Retargeted),
        _ => None,
    }
}

fn because(occasion: ReviewOccasion) -> &'static str {
    match occasion {
        ReviewOccasion::Opened => "opened",
        ReviewOccasion::Reopened => "reopened",
        ReviewOccasion::ReadyForReview => "ready_for_review",
        ReviewOccasion::ReviewRequested => "review_requested",
        ReviewOccasion::Pushed => "pushed",
        ReviewOccasion::Retargeted => "retargeted",
        ReviewOccasion::CheckRerequested => "check_rerequested",
    }
}

async fn request_review(
    hook: Webhook<'_>,
    repo: &Repo,
    own: &Login,
    occasion: ReviewOccasion,
    pull: &TriggeringPull,
) -> Result<ReviewDecision, JobError> {
    let store = hook.service.store();
    let subject = ReviewSubject::Pull(pull.number);
    let settings = hook.settings(repo).await?;
    let review = &settings.config().review;
    let rules = TriggerRules {
        readable: settings.is_review_readable(),
        enabled: review.enabled,
        on_opened: review.triggers.on_opened,
        on_ready_for_review: review.triggers.on_ready_for_review,
        on_review_requested: review.triggers.on_review_requested,
        on_synchronize: review.triggers.on_synchronize,
        skip_authors: &review.skip_authors,
    };
    let sender = hook.event.sender.as_ref();
    let facts = TriggerFacts {
        occasion,
        is_open: pull.is_open,
        is_draft: pull.is_draft,
        was_reviewed: !store.review().runs(repo.id, Some(&subject), 1).await?.is_empty(),
        author: pull.author.as_ref(),
        own,
        by_bot: sender.is_some_and(|sender| sender.is_bot() || sender.to_login().as_ref() == Some(own)),
    };
    let requested = match review_trigger(&rules, &facts) {
        ReviewTrigger::Review { requested } => requested,
        ReviewTrigger::Skip(why) => {
            let (number, because) = (pull.number.get(), because(occasion));
            tracing::info!(repo = %repo.name, number, because, why = why.as_str(), "a pull request is not reviewed");
            return Ok(ReviewDecision::Skipped(why));
        }
    };
    // A check may be about several pull requests, each of which has its own job.
    let by = sender.and_then(RestUser::to_login);
    let job = ReviewJob::new(repo, pull.number, by, because(occasion), &hook.delivery.id)?;
    queue_review(hook.service, repo, ReviewJob { requests: u32::from(requested), ..job }).await?;
    Ok(ReviewDecision::Queued)
}

/// Ends reviews under way for other heads. A late webhook may name a former head: then the review starts again for
/// the current one.
async fn supersede(hook: Webhook<'_>, repo: &Repo, number: ItemNumber, head: &str) -> Result<(), JobError> {
    let Ok(head) = head.parse::<CommitSha>() else { return Ok(()) };
    let (store, subject) = (hook.service.store(), ReviewSubject::Pull(number));
    let ended = store.review().supersede(repo.id, &subject, &head, hook.service.now()).await?;
    if ended > 0 {
        tracing::info!(repo = %repo.name, number = number.get(), head = head.short(), "a review under way is superseded");
    }
    Ok(())
}

/// The pull requests of a check. GitHub names none if the head is in a fork; then it is the one in the check's own
/// key, or those whose head was fetched.
async fn pulls_of(hook: Webhook<'_>, repo: &Repo, about: &CheckEvent) -> Result<Vec<ItemNumber>, JobError> {
    let named = named_in(&about.check.pull_requests, repo.github_id);
    if !named.is_empty() {
        return Ok(named);
    }
    if let Some(number) = about.check.external_id.as_deref().and_then(number_in) {
        return Ok(vec![number]);
    }
    let Ok(head) = about.check.head_sha.parse::<CommitSha>() else { return Ok(Vec::new()) };
    let subjects = hook.service.store().review().subjects_of_head(repo.id, &head).await?;
    Ok(subjects.iter().filter_map(ReviewSubject::pull).collect())
}

/// The pull requests of this repository among those that a check names. Pull requests in forks sometimes have the
/// same head, and their numbers mean other pull requests here.
fn named_in(links: &[PullLink], repo: Option<GithubId>) -> Vec<ItemNumber> {
    let is_own = |link: &&PullLink| link.base.as_ref().is_none_or(|base| Some(GithubId(base.repo.id)) == repo);
    links.iter().filter(is_own).filter_map(|link| ItemNumber::new(link.number).ok()).collect()
}

/// The pull request that the key of a check run begins with.
fn number_in(external_id: &str) -> Option<ItemNumber> {
    let number = external_id.strip_prefix("pull/")?.split('/').next()?;
    number.parse().ok().and_then(|number: i64| ItemNumber::new(number).ok())
}

#[cfg(test)]
mod tests {
    use canonry_domain::GithubId;
    use canonry_github::webhook::{CheckEvent, EventBody, parse_event};

    use super::{named_in, number_in};

    #[test]
    fn pull_requests_of_forks_are_others() {
        let body = br#"{"action": "rerequested", "check_suite": {"id": 1, "head_sha": "a", "pull_requests": [
            {"number": 3, "base": {"ref": "main", "repo": {"id": 77}}}, {"number": 4, "base": {"repo": {"id": 9}}}, {"number": 5}]}}"#;
        let event = parse_event("check_suite", body).expect("a webhook");
        let EventBody::Check(CheckEvent { check }) = event.body else { panic!("no check") };
        let named: Vec<i64> = named_in(&check.pull_requests, Some(GithubId(9))).iter().map(|one| one.get()).collect();
        assert_eq!(named, [4, 5]);
    }

    #[test]
    fn the_key_of_a_check_names_its_pull_request() {
        assert_eq!(number_in("pull/12/4-1").map(|number| number.get()), Some(12));
        for other in ["", "pull/", "pull/x/1", "pull/-1/1", "12/1", "run-12"] {
            assert_eq!(number_in(other), None, "{other}");
        }
    }
}
