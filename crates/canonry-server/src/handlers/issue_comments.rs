//! `issue_comment`: what people say around a closing tells what an issue is a duplicate of; what they ask Canonry for is
//! done and answered; and any word of theirs stops a close that was announced.

use canonry_domain::GithubId;
use canonry_github::item_from_issue;
use canonry_github::webhook::IssueCommentEvent;
use canonry_store::{MentionPlace, Repo};

use super::graces;
use super::items::{learn, no_item, take_item};
use super::mentions::{Said, mentioned};
use super::webhook::Webhook;
use crate::handlers::webhook_outcomes::People;
use crate::jobs::job_handler::{Handled, JobError};

pub(super) async fn issue_comment(
    hook: Webhook<'_>,
    repo: &Repo,
    about: &IssueCommentEvent,
) -> Result<Handled, JobError> {
    let Ok(record) = item_from_issue(&about.issue, hook.received_at()) else { return Ok(no_item()) };
    let (number, item_type) = (record.number, record.item_type);
    take_item(hook, repo, record).await?;
    let (own, maintainers) = (hook.own_login().await?, hook.maintainers(repo).await?);
    let event = hook.told(&repo.name, People { own, maintainers: &maintainers }).of_comment(about);
    learn(hook, repo, event).await?;
    if hook.action() != "created" {
        return Ok(Handled::Done);
    }
    let mentioned = match &about.comment.user {
        Some(by) => {
            let said = Said {
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
            mentioned(hook, repo, said).await?
        }
        None => None,
    };
    // Whoever rules that it is a duplicate wants it closed; everybody else has something to say first.
    if !mentioned.as_ref().is_some_and(|mentioned| mentioned.rules_duplicate) {
        graces::on_comment(hook, repo, about).await?;
    }
    Ok(mentioned.map_or(Handled::Done, |mentioned| mentioned.handled))
}
