//! `issue_comment`: comments around a close show what an issue is a duplicate of; commands to Canonry are carried out
//! and answered; and any comment of a person stops an announced close.

use canonry_domain::GithubId;
use canonry_github::item_from_issue;
use canonry_github::webhook::IssueCommentEvent;
use canonry_store::{MentionPlace, Repo};

use super::graces;
use super::items::{learn, no_item, take_item};
use super::mentions::{PostedComment, handle_mention};
use super::webhook::Webhook;
use crate::handlers::webhook_outcomes::KnownPeople;
use crate::jobs::job_handler::JobError;

pub(super) async fn issue_comment(hook: Webhook<'_>, repo: &Repo, about: &IssueCommentEvent) -> Result<(), JobError> {
    let Ok(record) = item_from_issue(&about.issue, hook.received_at()) else { return Err(no_item()) };
    let (number, item_type) = (record.number, record.item_type);
    take_item(hook, repo, record).await?;
    let (own, maintainers) = (hook.own_login().await?, hook.maintainers(repo).await?);
    let event = hook.outcome_source(&repo.name, KnownPeople { own, maintainers: &maintainers }).of_comment(about);
    learn(hook, repo, event).await?;
    if hook.action() != "created" {
        return Ok(());
    }
    let mentioned = match &about.comment.user {
        Some(by) => {
            let comment = PostedComment {
                place: MentionPlace::Issue,
                comment: GithubId(about.comment.id),
                text: &about.comment.body,
                by,
                written_at: about.comment.created_at,
                number,
                item_type,
                author: about.issue.user.as_ref(),
                in_reply_to: None,
            };
            handle_mention(hook, repo, comment).await?
        }
        None => None,
    };
    // A person who rules that the item is a duplicate wants it closed; any other comment stops the close.
    if !mentioned.as_ref().is_some_and(|mentioned| mentioned.rules_duplicate) {
        graces::on_comment(hook, repo, about).await?;
    }
    mentioned.and_then(|mentioned| mentioned.ignored).map_or(Ok(()), |reason| Err(JobError::ignored(reason)))
}
