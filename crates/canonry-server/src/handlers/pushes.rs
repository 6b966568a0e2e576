//! `push`: the settings file may have changed.

use canonry_github::webhook::PushEvent;

use super::webhook::Webhook;
use crate::handlers::find_repo::stored_repo;
use crate::jobs::job_handler::JobError;

pub(super) async fn push(hook: Webhook<'_>, push: &PushEvent) -> Result<(), JobError> {
    let told = hook.named_repo()?;
    let default = hook.event.repository.as_ref().map(|repo| repo.default_branch.as_str()).unwrap_or_default();
    let is_default = push.reference.strip_prefix("refs/heads/").is_some_and(|branch| branch == default);
    // A payload without a default branch may be about it.
    if !is_default && !default.is_empty() {
        return Err(JobError::ignored("only a push to the default branch changes the settings"));
    }
    let Some(repo) = stored_repo(hook.service, &told).await? else {
        return Err(JobError::ignored("no settings of this repository are cached"));
    };
    hook.note_default_branch(&repo).await?;
    hook.service.store().repos().expire_settings(repo.id).await?;
    Ok(())
}
