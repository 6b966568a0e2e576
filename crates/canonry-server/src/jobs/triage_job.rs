//! The job that triages an item again some time after its text changed.

use canonry_domain::{GithubId, ItemNumber, ItemType, RepoName};
use canonry_store::JobKind;
use serde::{Deserialize, Serialize};

use crate::handlers::find_repo::active_repo;
use crate::handlers::repo_settings::LazySettings;
use crate::handlers::{TriageOccasion, triage};
use crate::jobs::job_handler::{JobError, LeasedJob};
use crate::jobs::job_keys::triage_key;
use crate::jobs::service_job::ServiceJob;
use crate::service::Service;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TriageJob {
    pub(crate) github_id: GithubId,
    #[serde(rename = "type")]
    pub(crate) item_type: ItemType,
    pub(crate) number: ItemNumber,
}

impl ServiceJob for TriageJob {
    const KIND: JobKind = JobKind::Triage;

    fn key(&self, _repo: Option<&RepoName>) -> String {
        triage_key(self.github_id, self.number)
    }

    async fn run(&self, service: &Service, leased: &LeasedJob) -> Result<(), JobError> {
        let repo = active_repo(service, self.github_id).await?;
        let item = service
            .store()
            .corpus()
            .item(repo.id, self.item_type, self.number)
            .await?
            .filter(|item| item.gone.is_none());
        let run_id = format!("job-{}", leased.job.id);
        triage(service, &LazySettings::default(), &run_id, &repo, item, TriageOccasion::EditedBefore).await
    }
}
