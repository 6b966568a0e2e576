//! `installation` and `installation_repositories`: which repositories Canonry may access.

use canonry_domain::GithubId;
use canonry_github::webhook::{InstallationEvent, InstallationRepositoriesEvent, InstalledRepo};
use canonry_store::{Repo, RepoAccess};

use super::webhook::Webhook;
use crate::handlers::find_repo::{NamedRepo, known_repo, queue_sync, stored_repo};
use crate::jobs::job_handler::JobError;

pub(super) async fn installation(hook: Webhook<'_>, about: &InstallationEvent) -> Result<(), JobError> {
    match hook.action() {
        "created" | "new_permissions_accepted" => admit(hook, &about.repositories).await,
        "deleted" => {
            dismiss(hook, &about.repositories, RepoAccess::Removed).await?;
            of_installation(hook, RepoAccess::Active, RepoAccess::Removed).await
        }
        // These payloads list no repositories: all are meant.
        "suspend" => of_installation(hook, RepoAccess::Active, RepoAccess::Suspended).await,
        "unsuspend" => of_installation(hook, RepoAccess::Suspended, RepoAccess::Active).await,
        action => Err(JobError::Ignored(format!("an installation's {action} event changes nothing here"))),
    }
}

pub(super) async fn repositories(hook: Webhook<'_>, about: &InstallationRepositoriesEvent) -> Result<(), JobError> {
    dismiss(hook, &about.repositories_removed, RepoAccess::Removed).await?;
    admit(hook, &about.repositories_added).await
}

/// Stores and syncs repositories that Canonry may now access.
async fn admit(hook: Webhook<'_>, repos: &[InstalledRepo]) -> Result<(), JobError> {
    for told in told(repos) {
        let repo = known_repo(hook.service, &told).await?;
        let installation = hook.event.installation_id.map(GithubId);
        hook.service.store().repos().set_installation(repo.id, installation).await?;
        set_access(hook, &repo, RepoAccess::Active).await?;
    }
    Ok(())
}

/// Marks repositories that Canonry may no longer access. Unknown repositories need no mark.
async fn dismiss(hook: Webhook<'_>, repos: &[InstalledRepo], access: RepoAccess) -> Result<(), JobError> {
    for told in told(repos) {
        if let Some(repo) = stored_repo(hook.service, &told).await? {
            set_access(hook, &repo, access).await?;
        }
    }
    Ok(())
}

/// Changes the access of all repositories of the installation from `from` to `to`. An App is installed once on an
/// account, so the account's repositories are the installation's, even if no webhook listed them.
async fn of_installation(hook: Webhook<'_>, from: RepoAccess, to: RepoAccess) -> Result<(), JobError> {
    let store = hook.service.store();
    let installed = match hook.event.installation_id {
        Some(id) => store.repos().of_installation(GithubId(id)).await?,
        None => Vec::new(),
    };
    let account = hook.event.raw["installation"]["account"]["login"].as_str().unwrap_or_default();
    let all = store.repos().list().await?;
    let owned = all.into_iter().filter(|repo| repo.name.owner().eq_ignore_ascii_case(account));
    for repo in installed.into_iter().chain(owned) {
        if store.repos().access(repo.id).await? == from {
            set_access(hook, &repo, to).await?;
        }
    }
    Ok(())
}

async fn set_access(hook: Webhook<'_>, repo: &Repo, access: RepoAccess) -> Result<(), JobError> {
    hook.service.store().repos().set_access(repo.id, access, hook.service.now()).await?;
    if access == RepoAccess::Active {
        queue_sync(hook.service, repo).await?;
    }
    Ok(())
}

fn told(repos: &[InstalledRepo]) -> impl Iterator<Item = NamedRepo> + '_ {
    repos.iter().filter_map(|repo| NamedRepo::new(repo.id, &repo.full_name))
}
