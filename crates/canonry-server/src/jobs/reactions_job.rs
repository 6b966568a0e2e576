//! The job that counts reactions to Canonry's comments. Reactions have no webhook.

use canonry_review::poll_finding_reactions;
use canonry_store::JobKind;
use canonry_triage::poll_reactions;
use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use crate::jobs::job_handler::{JobError, LeasedJob};
use crate::jobs::service_job::ServiceJob;
use crate::service::Service;

/// Reads the reactions to all comments that may still teach something: suggestions and inline findings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ReactionsJob {}

impl ServiceJob for ReactionsJob {
    const KIND: JobKind = JobKind::Reactions;
    const LONGEST: SignedDuration = SignedDuration::from_hours(2);

    async fn run(&self, service: &Service, _leased: &LeasedJob) -> Result<(), JobError> {
        let Some(github) = service.github() else {
            return Err(JobError::ignored("reading reactions needs credentials for GitHub"));
        };
        let own = service.outbox().await?.own_login();
        let suggestions = poll_reactions(service.store(), github, own, service.now()).await?;
        let findings = poll_finding_reactions(service.store(), github, own, service.now()).await?;
        match [suggestions.retry_at, findings.retry_at].into_iter().flatten().min() {
            Some(until) => Err(JobError::Postpone {
                reason: "waiting for GitHub's rate limit before reading reactions".to_owned(),
                until,
            }),
            None => Ok(()),
        }
    }
}
