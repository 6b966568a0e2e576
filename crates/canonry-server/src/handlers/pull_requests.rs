//! `pull_request`: taken in, reviewed when something asks for that, and triaged when it is new or its text changed. Its
//! closing tells nothing about duplicates.

use canonry_domain::review::NoReview;
use canonry_github::item_from_pull;
use canonry_github::webhook::PullRequestEvent;
use canonry_store::Repo;

use super::graces;
use super::items::{no_item, take_item};
use super::reviews::of_pull_request;
use super::triage::{Occasion, triage};
use super::webhook::Webhook;
use crate::jobs::job_handler::{Handled, JobError};

pub(super) async fn pull_request(
    hook: Webhook<'_>,
    repo: &Repo,
    about: &PullRequestEvent,
) -> Result<Handled, JobError> {
    let Ok(record) = item_from_pull(&about.pull_request, hook.received_at()) else { return Ok(no_item()) };
    let number = record.number;
    let item = take_item(hook, repo, record).await?;
    graces::on_pull(hook, repo, number, about).await?;
    // Before triage, which may have to wait for the repository's other items.
    let review = match &item {
        Some(item) => of_pull_request(hook, repo, item, about).await?,
        None => None,
    };
    let occasion = match hook.action() {
        "opened" => Occasion::Opened,
        "edited" if about.changes.title.is_some() || about.changes.body.is_some() => Occasion::Edited,
        _ => {
            return Ok(match review {
                Some(Err(why)) => Handled::Ignored(format!("it is taken in and not reviewed: {why}")),
                Some(Ok(())) | None => Handled::Done,
            });
        }
    };
    let own = hook.own_login().await?;
    let triaged = match hook.not_a_person(own, about.pull_request.user.as_ref()) {
        Some(why) => Handled::Ignored(format!("it is taken in and not triaged: {why}")),
        None => triage(hook.service, &hook.delivery.id, repo, item, occasion).await?,
    };
    Ok(together(review, triaged))
}

/// What became of a webhook that is about a review and about triage: nothing was done only if nothing was done of either.
fn together(review: Option<Result<(), NoReview>>, triaged: Handled) -> Handled {
    match (review, triaged) {
        (Some(Ok(())), _) => Handled::Done,
        (Some(Err(why)), Handled::Ignored(reason)) => Handled::Ignored(format!("{reason}; it is not reviewed: {why}")),
        (Some(Err(_)) | None, triaged) => triaged,
    }
}

#[cfg(test)]
mod tests {
    use canonry_domain::review::NoReview;

    use super::together;
    use crate::jobs::job_handler::Handled;

    #[test]
    fn only_what_came_to_nothing_at_all_is_ignored() {
        let nothing = || Handled::ignored("a bot wrote it");
        assert_eq!(together(Some(Ok(())), nothing()), Handled::Done);
        assert_eq!(together(Some(Err(NoReview::Draft)), Handled::Done), Handled::Done);
        assert_eq!(together(None, nothing()), nothing());
        let neither = Handled::ignored("a bot wrote it; it is not reviewed: it is a draft");
        assert_eq!(together(Some(Err(NoReview::Draft)), nothing()), neither);
    }
}
