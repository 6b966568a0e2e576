//! `repository`: renamed, transferred, archived, deleted.

use canonry_domain::RepoName;
use canonry_github::webhook::RepositoryEvent;
use canonry_store::{Repo, RepoAccess};

use super::webhook::Webhook;
use crate::handlers::find_repo::{NamedRepo, known_repo, queue_sync, renamed, stored_repo};
use crate::jobs::job_handler::JobError;

pub(super) async fn repository(hook: Webhook<'_>, about: &RepositoryEvent) -> Result<(), JobError> {
    let told = hook.named_repo()?;
    let (service, store) = (hook.service, hook.service.store());
    match hook.action() {
        "deleted" => match stored_repo(service, &told).await? {
            Some(repo) => set_access(hook, &repo, RepoAccess::Deleted).await,
            None => Err(JobError::ignored("this repository is not stored")),
        },
        "archived" => set_access(hook, &known_repo(service, &told).await?, RepoAccess::Archived).await,
        "unarchived" => {
            let repo = known_repo(service, &told).await?;
            set_access(hook, &repo, RepoAccess::Active).await?;
            // No webhook reported what happened meanwhile. A sync that ran first would find the repository archived.
            queue_sync(service, &repo).await?;
            Ok(())
        }
        "renamed" => {
            rename(hook, &told, about).await?;
            Ok(())
        }
        "transferred" => {
            let repo = rename(hook, &told, about).await?;
            set_access(hook, &repo, RepoAccess::Active).await
        }
        // The default branch may have changed.
        "edited" => {
            let repo = known_repo(service, &told).await?;
            store.repos().expire_settings(repo.id).await?;
            Ok(())
        }
        _ => {
            known_repo(service, &told).await?;
            Ok(())
        }
    }
}

/// Stores the repository's new name. GitHub is asked for it if possible. Otherwise the webhook's name is used only if
/// its former name is the stored one, because a late webhook must not restore a former name.
async fn rename(hook: Webhook<'_>, told: &NamedRepo, about: &RepositoryEvent) -> Result<Repo, JobError> {
    let repo = known_repo(hook.service, told).await?;
    if hook.service.github().is_some() || repo.name.key() == told.name.key() {
        return Ok(repo);
    }
    let owner = about.owner_before().unwrap_or(told.name.owner());
    let name = about.name_before().unwrap_or(told.name.name());
    let before: Option<RepoName> = format!("{owner}/{name}").parse().ok();
    if before.is_some_and(|before| before.key() == repo.name.key()) {
        return renamed(hook.service, &repo, told.github_id, &told.name).await;
    }
    Ok(repo)
}

async fn set_access(hook: Webhook<'_>, repo: &Repo, access: RepoAccess) -> Result<(), JobError> {
    hook.service.store().repos().set_access(repo.id, access, hook.service.now()).await?;
    Ok(())
}
