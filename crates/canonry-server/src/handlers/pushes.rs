//! `push`: the settings file may have changed.

use canonry_github::webhook::PushEvent;

use super::webhook::Webhook;
use crate::handlers::find_repo::stored_repo;
use crate::jobs::job_handler::{Handled, JobError};

pub(super) async fn push(hook: Webhook<'_>, push: &PushEvent) -> Result<Handled, JobError> {
    let told = match hook.told_repo() {
        Ok(told) => told,
        Err(reason) => return Ok(Handled::Ignored(reason)),
    };
    let default = hook.event.repository.as_ref().map(|repo| repo.default_branch.as_str()).unwrap_or_default();
    let is_default = push.reference.strip_prefix("refs/heads/").is_some_and(|branch| branch == default);
    // A payload that does not name the default branch may be about it.
    if !is_default && !default.is_empty() {
        return Ok(Handled::ignored("settings come from the default branch, and this is another one"));
    }
    let Some(repo) = stored_repo(hook.service, &told).await? else {
        return Ok(Handled::ignored("no settings of that repository are kept"));
    };
    hook.service.store().repos().expire_settings(repo.id).await?;
    Ok(Handled::Done)
}
