//! Finds the stored repository of a webhook by GitHub's id, whatever its name is now.

use canonry_domain::{GithubId, RepoName};
use canonry_github::GitHubError;
use canonry_store::{Repo, RepoAccess};
use jiff::{SignedDuration, Timestamp};

use crate::jobs::job_handler::JobError;
use crate::jobs::service_job::queue_once;
use crate::jobs::sync_job::SyncJob;
use crate::service::Service;

/// The shortest time between two checks whether an inaccessible repository is back.
const LOOK_EVERY: SignedDuration = SignedDuration::from_mins(10);

#[derive(Debug, Clone)]
pub(crate) struct NamedRepo {
    pub(crate) github_id: GithubId,
    pub(crate) name: RepoName,
}

impl NamedRepo {
    /// `None` if the name is invalid: GitHub cannot be asked about such a repository.
    pub(crate) fn new(id: i64, full_name: &str) -> Option<Self> {
        Some(Self { github_id: GithubId(id), name: full_name.parse().ok()? })
    }
}

/// The repository in the store, if it is there. Makes no request and changes nothing.
pub(crate) async fn stored_repo(service: &Service, told: &NamedRepo) -> Result<Option<Repo>, JobError> {
    if let Some(repo) = service.store().repos().by_github_id(told.github_id).await? {
        return Ok(Some(repo));
    }
    // An imported repository has no id yet.
    Ok(service.store().repos().find(&told.name).await?.filter(|repo| repo.github_id.is_none()))
}

/// The repository with this id, for a job about it.
pub(crate) async fn active_repo(service: &Service, id: GithubId) -> Result<Repo, JobError> {
    let Some(repo) = service.store().repos().by_github_id(id).await? else {
        return Err(JobError::ignored("this repository is not stored"));
    };
    match service.store().repos().access(repo.id).await? {
        RepoAccess::Active => Ok(repo),
        access => Err(JobError::Ignored(format!("the repository is {}", access.as_str()))),
    }
}

/// The repository in the store under its current name. A new repository is stored, and a sync of it is queued.
///
/// Webhooks come late and out of order, so a webhook may contain a former name. If it differs from the stored name,
/// GitHub is asked. Only the id identifies the repository.
pub(crate) async fn known_repo(service: &Service, told: &NamedRepo) -> Result<Repo, JobError> {
    let store = service.store();
    if let Some(repo) = store.repos().by_github_id(told.github_id).await? {
        if repo.name.key() == told.name.key() {
            return Ok(repo);
        }
        return match name_now(service, told.github_id, &told.name).await? {
            Some(name) if name.key() != repo.name.key() => renamed(service, &repo, told.github_id, &name).await,
            _ => Ok(repo),
        };
    }
    let repo = match store.repos().find(&told.name).await? {
        Some(repo) if repo.github_id.is_none() => repo,
        // Another worker has stored it since the search by id.
        Some(repo) if repo.github_id == Some(told.github_id) => return Ok(repo),
        Some(former) => {
            free_name(service, &former).await?;
            store.repos().ensure(&told.name, service.now()).await?
        }
        None => store.repos().ensure(&told.name, service.now()).await?,
    };
    let noted = store.repos().identify(repo.id, told.github_id, &told.name).await?;
    // Another worker stored the same repository first; the next try finds it.
    let repo = noted.ok_or_else(|| JobError::Retry(format!("another worker stored {} at the same time", told.name)))?;
    queue_sync(service, &repo).await?;
    Ok(repo)
}

/// Stores the repository's current name.
pub(crate) async fn renamed(
    service: &Service,
    repo: &Repo,
    github_id: GithubId,
    name: &RepoName,
) -> Result<Repo, JobError> {
    let store = service.store();
    if let Some(other) = store.repos().find(name).await?
        && other.id != repo.id
    {
        free_name(service, &other).await?;
    }
    let noted = store.repos().identify(repo.id, github_id, name).await?;
    noted.ok_or_else(|| JobError::Retry(format!("another repository took the name {name} at the same time")))
}

/// Queues a sync of a repository, unless one is already queued or there is no GitHub client.
pub(crate) async fn queue_sync(service: &Service, repo: &Repo) -> Result<(), JobError> {
    if service.github().is_none() {
        return Ok(());
    }
    queue_once(service.store(), &SyncJob::of(repo), Some(&repo.name), service.now(), service.now()).await?;
    Ok(())
}

/// Whether an inaccessible repository is back, now that a webhook about it came at `told_at`. GitHub may have
/// answered "not found" by mistake.
///
/// A webhook from before the last check uses its result; a webhook from after it waits for the next check.
pub(crate) async fn is_back(service: &Service, repo: &Repo, told_at: Timestamp) -> Result<bool, JobError> {
    let Some(github) = service.github() else { return Ok(false) };
    if let Some(looked) = service.looked_at(repo.id)
        && service.now().duration_since(looked) < LOOK_EVERY
    {
        if told_at < looked {
            return Ok(false);
        }
        let reason = format!("GitHub did not find {} a moment ago; it is asked again soon", repo.name);
        return Err(JobError::Postpone { reason, until: looked + LOOK_EVERY });
    }
    match github.repo(&repo.name).await {
        Ok(_) => {
            tracing::info!(repo = %repo.name, "Canonry can access a repository again");
            service.store().repos().set_access(repo.id, RepoAccess::Active, service.now()).await?;
            queue_sync(service, repo).await?;
            Ok(true)
        }
        Err(error) if is_out_of_sight(&error) => {
            service.looked(repo.id);
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}

/// The current name of a repository; `None` if GitHub does not show it.
pub(crate) async fn name_now(
    service: &Service,
    id: GithubId,
    known_as: &RepoName,
) -> Result<Option<RepoName>, JobError> {
    let Some(github) = service.github() else { return Ok(None) };
    match github.repo_by_id(known_as, id).await {
        Ok(answer) => Ok(answer.full_name.parse().ok()),
        Err(error) if is_out_of_sight(&error) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn is_out_of_sight(error: &GitHubError) -> bool {
    matches!(
        error,
        GitHubError::NotFound { .. }
            | GitHubError::NotInstalled { .. }
            | GitHubError::Gone { .. }
            | GitHubError::Moved { .. }
    )
}

/// Takes a name from the repository that is stored under it, because another repository has the name now: the former
/// one was renamed too, or deleted.
async fn free_name(service: &Service, former: &Repo) -> Result<(), JobError> {
    let Some(id) = former.github_id else {
        // It is not known to which repository the items belong, and two corpora must never be mixed.
        return Err(JobError::Hopeless(format!(
            "a repository was renamed to {0}, and the database already has items under that name; export one of the two to another database",
            former.name
        )));
    };
    let store = service.store();
    let now_called = name_now(service, id, &former.name).await?;
    if let Some(name) = now_called.filter(|name| name.key() != former.name.key())
        && store.repos().identify(former.id, id, &name).await?.is_some()
    {
        return Ok(());
    }
    let noted = store.repos().identify(former.id, id, &aside(&former.name, id)).await?;
    noted.ok_or_else(|| JobError::Retry(format!("the name {} could not be freed", former.name)))?;
    store.repos().set_access(former.id, RepoAccess::Removed, service.now()).await?;
    Ok(())
}

/// A unique name for a repository whose name is taken and whose new name is not known.
fn aside(name: &RepoName, id: GithubId) -> RepoName {
    let ending = format!(".was-{}", id.0);
    // GitHub's names have at most 100 characters, all of them ASCII.
    let kept: String = name.name().chars().take(100 - ending.len()).collect();
    let aside = format!("{}/{kept}{ending}", name.owner());
    aside.parse().expect("invariant: the ending has only characters that names may have")
}

#[cfg(test)]
mod tests {
    use canonry_domain::{GithubId, RepoName};

    use super::aside;

    #[test]
    fn a_name_that_is_set_aside_is_still_a_name() {
        let name: RepoName = "tide/pool".parse().expect("valid");
        assert_eq!(aside(&name, GithubId(7)).to_string(), "tide/pool.was-7");
        let long: RepoName = format!("tide/{}", "p".repeat(100)).parse().expect("valid");
        assert_eq!(aside(&long, GithubId(i64::MAX)).name().len(), 100);
    }
}
