//! `pull_request`: taken in, and triaged when it is new or its text changed. Its closing tells nothing about duplicates.

use canonry_github::item_from_pull;
use canonry_github::webhook::PullRequestEvent;
use canonry_store::Repo;

use super::items::{no_item, take_item};
use super::triage::{Occasion, triage};
use super::webhook::Webhook;
use crate::handler::{Handled, JobError};

pub(super) async fn pull_request(
    hook: Webhook<'_>,
    repo: &Repo,
    about: &PullRequestEvent,
) -> Result<Handled, JobError> {
    let Ok(record) = item_from_pull(&about.pull_request, hook.received_at()) else { return Ok(no_item()) };
    let item = take_item(hook, repo, record).await?;
    let occasion = match hook.action() {
        "opened" => Occasion::Opened,
        "edited" if about.changes.title.is_some() || about.changes.body.is_some() => Occasion::Edited,
        _ => return Ok(Handled::Done),
    };
    let own = hook.own_login().await?;
    if let Some(why) = hook.not_a_person(own, about.pull_request.user.as_ref()) {
        return Ok(Handled::Ignored(format!("it is taken in and not triaged: {why}")));
    }
    triage(hook.service, &hook.delivery.id, repo, item, occasion).await
}
