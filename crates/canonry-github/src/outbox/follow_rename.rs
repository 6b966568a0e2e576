//! Repositories are renamed while writes to them wait.

use super::write_job::WriteJob;

impl WriteJob<'_> {
    /// Asks GitHub what the repository is called now and notes it; `true` when that is another name than
    /// the one the entry was about to be sent to. What fails here is told by the refusal that led here.
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
