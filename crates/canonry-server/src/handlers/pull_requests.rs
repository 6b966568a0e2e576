//! `pull_request`: stores the pull request, forgets what it changed if that has changed, reviews it if requested, and
//! triages it if it is new or its text changed. A closed pull request says nothing about duplicates.

use canonry_github::item_from_pull;
use canonry_github::webhook::PullRequestEvent;
use canonry_store::Repo;

use super::graces;
use super::items::{no_item, take_item};
use super::reviews::{ReviewDecision, of_pull_request};
use super::triage::{TriageOccasion, triage};
use super::webhook::Webhook;
use crate::jobs::job_handler::JobError;

pub(super) async fn pull_request(hook: Webhook<'_>, repo: &Repo, about: &PullRequestEvent) -> Result<(), JobError> {
    let Ok(record) = item_from_pull(&about.pull_request, hook.received_at()) else { return Err(no_item()) };
    let number = record.number;
    hook.note_default_branch(repo).await?;
    let item = take_item(hook, repo, record).await?;
    if hook.action() == "synchronize" || about.changes.base.is_some() {
        hook.service.store().corpus().forget_pull_changes(repo.id, number).await?;
    }
    graces::on_pull(hook, repo, number, about).await?;
    // Before triage, which may have to wait for the repository's other items.
    let review = match &item {
        Some(item) => of_pull_request(hook, repo, item, about).await?,
        None => ReviewDecision::NotAsked,
    };
    let occasion = match hook.action() {
        "opened" => TriageOccasion::Opened,
        "edited" if about.changes.title.is_some() || about.changes.body.is_some() => TriageOccasion::Edited,
        _ => {
            return match review {
                ReviewDecision::Skipped(why) => Err(JobError::Ignored(format!("stored, not reviewed: {why}"))),
                ReviewDecision::Queued | ReviewDecision::NotAsked => Ok(()),
            };
        }
    };
    let own = hook.own_login().await?;
    let triaged = match hook.not_a_person(own, about.pull_request.user.as_ref()) {
        Some(why) => Err(JobError::Ignored(format!("stored, not triaged: {why}"))),
        None => triage(hook.service, hook.settings, &hook.delivery.id, repo, item, occasion).await,
    };
    together(review, triaged)
}

/// The result of a webhook that concerns a review and triage: it is ignored only if both ignored it.
fn together(review: ReviewDecision, triaged: Result<(), JobError>) -> Result<(), JobError> {
    match (review, triaged) {
        (ReviewDecision::Queued, Err(JobError::Ignored(_))) => Ok(()),
        (ReviewDecision::Skipped(why), Err(JobError::Ignored(reason))) => {
            Err(JobError::Ignored(format!("{reason}; not reviewed: {why}")))
        }
        (_, triaged) => triaged,
    }
}

#[cfg(test)]
mod tests {
    use canonry_domain::review::NoReview;

    use super::{JobError, ReviewDecision, together};

    #[test]
    fn only_what_came_to_nothing_at_all_is_ignored() {
        let nothing = || Err(JobError::ignored("a bot wrote it"));
        assert_eq!(together(ReviewDecision::Queued, nothing()), Ok(()));
        assert_eq!(together(ReviewDecision::Skipped(NoReview::Draft), Ok(())), Ok(()));
        assert_eq!(together(ReviewDecision::NotAsked, nothing()), nothing());
        let neither = Err(JobError::ignored("a bot wrote it; not reviewed: it is a draft"));
        assert_eq!(together(ReviewDecision::Skipped(NoReview::Draft), nothing()), neither);
        let waits = || Err(JobError::Retry("later".to_owned()));
        assert_eq!(together(ReviewDecision::Queued, waits()), waits());
    }
}
