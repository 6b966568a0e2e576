//! The job that counts reactions to Canonry's comments, which have no webhook.

use canonry_review::poll_finding_reactions;
use canonry_triage::poll_reactions;

use crate::jobs::job_handler::{Handled, JobError};
use crate::service::Service;

/// Reads the reactions to all comments that may still teach something: suggestions, and findings at their lines.
pub(crate) async fn poll(service: &Service) -> Result<Handled, JobError> {
    let Some(github) = service.github() else {
        return Ok(Handled::Ignored("reactions cannot be read without credentials for GitHub".to_owned()));
    };
    let own = service.outbox().await?.own_login();
    let suggestions = poll_reactions(service.store(), github, own, service.now()).await?;
    let findings = poll_finding_reactions(service.store(), github, own, service.now()).await?;
    match [suggestions.retry_at, findings.retry_at].into_iter().flatten().min() {
        Some(until) => {
            Err(JobError::Postpone { reason: "waiting for GitHub's rate limit to count reactions".to_owned(), until })
        }
        None => Ok(Handled::Done),
    }
}
