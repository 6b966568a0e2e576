//! `issue_comment`: what people say around a closing tells what an issue is a duplicate of.

use canonry_github::item_from_issue;
use canonry_github::webhook::IssueCommentEvent;
use canonry_store::Repo;

use super::items::{learn, no_item, take_item};
use super::webhook::Webhook;
use crate::handler::{Handled, JobError};
use crate::webhook_outcomes::People;

pub(super) async fn issue_comment(
    hook: Webhook<'_>,
    repo: &Repo,
    about: &IssueCommentEvent,
) -> Result<Handled, JobError> {
    let Ok(record) = item_from_issue(&about.issue, hook.received_at()) else { return Ok(no_item()) };
    take_item(hook, repo, record).await?;
    let (own, maintainers) = (hook.own_login().await?, hook.maintainers(repo).await?);
    let event = hook.told(&repo.name, People { own, maintainers: &maintainers }).of_comment(about);
    learn(hook, repo, event).await?;
    Ok(Handled::Done)
}
