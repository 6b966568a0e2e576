//! The job that processes a webhook.

use canonry_domain::{GithubId, RepoName};
use canonry_store::JobKind;
use serde::{Deserialize, Serialize};

use crate::handlers::webhook;
use crate::jobs::job_handler::{JobError, LeasedJob};
use crate::jobs::service_job::ServiceJob;
use crate::service::Service;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct WebhookJob {
    #[serde(default)]
    pub(crate) event: String,
    pub(crate) action: Option<String>,
    /// GitHub's id of the repository; earlier versions did not store it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) github_id: Option<GithubId>,
    /// Stored in a column of its own.
    #[serde(skip)]
    pub(crate) key: String,
}

impl ServiceJob for WebhookJob {
    const KIND: JobKind = JobKind::Webhook;

    fn key(&self, _repo: Option<&RepoName>) -> String {
        self.key.clone()
    }

    async fn run(&self, service: &Service, leased: &LeasedJob) -> Result<(), JobError> {
        match &leased.delivery {
            Some((delivery, body)) => webhook(service, delivery, body).await,
            None => Err(JobError::Hopeless("its delivery is no longer stored".to_owned())),
        }
    }
}
