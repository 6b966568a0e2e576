//! Follows repositories that are renamed while writes to them wait.

use super::write_job::WriteJob;

impl WriteJob<'_> {
    /// Asks GitHub for the repository's present name and records it; `true` if it differs from the name that the entry
    /// was about to use. A failure here is not reported: the refusal that led here is.
    pub(super) async fn learn_new_name(&self) -> bool {
        let repo = &self.entry.repo;
        let github = &self.outbox.github;
        let answer = match repo.github_id {
            Some(id) => github.repo_by_id(&repo.name, id).await,
            None => github.repo(&repo.name).await,
        };
        let Ok(found) = answer else { return false };
        let Some(name) = found.renamed_from(&repo.name) else { return false };
        let noted = self.outbox.store.repos().identify(repo.id, found.github_id(), &name).await;
        tracing::info!(from = %repo.name, to = %name, "the repository has another name now");
        matches!(noted, Ok(Some(_)))
    }
}
