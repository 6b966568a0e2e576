//! An event of GitHub Actions becomes a stored webhook.

use canonry_domain::RepoName;
use canonry_github::webhook::NotJson;
use canonry_store::{DeliveryReceipt, PackedText, Store, StoreError};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::intake::classify_webhook::classify_webhook;
use crate::jobs::service_job::queue_once;
use crate::jobs::sync_job::SyncJob;

/// An event as GitHub Actions hands it to a run: its name and its payload, which is that of the webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEvent {
    /// Unique for each event; a run that is started again has the same.
    pub id: String,
    pub name: String,
    pub payload: String,
}

#[derive(Debug, thiserror::Error)]
pub enum RunEventError {
    #[error("the event's payload is not JSON: {0}; see GITHUB_EVENT_PATH")]
    NotJson(#[from] NotJson),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl RunEvent {
    /// Whether GitHub sends the event to webhooks too, with a payload that the run needs.
    pub fn is_webhook(&self) -> bool {
        self.webhook().is_some()
    }

    /// The name of the webhook with this payload; `None` for events that are no webhook, such as a schedule.
    fn webhook(&self) -> Option<&str> {
        match self.name.as_str() {
            "schedule" | "workflow_dispatch" | "repository_dispatch" | "workflow_call" | "" => None,
            "pull_request_target" => Some("pull_request"),
            name => Some(name),
        }
    }
}

/// Stores the event with its job, as the service stores a webhook. `None` if the event is no webhook.
pub(crate) async fn store_run_event(
    store: &Store,
    event: &RunEvent,
    now: Timestamp,
) -> Result<Option<DeliveryReceipt>, RunEventError> {
    let Some(name) = event.webhook() else { return Ok(None) };
    let webhook = classify_webhook(&event.id, name, &event.payload)?;
    let body = PackedText::pack(&event.payload);
    Ok(Some(store.deliveries().accept(&webhook.delivery(&body), now).await?))
}

/// Queues the first sync of a repository that is not in the database yet. `true` if it is not.
pub(crate) async fn queue_first_sync(store: &Store, repo: &RepoName, now: Timestamp) -> Result<bool, StoreError> {
    if store.repos().find(repo).await?.is_some() {
        return Ok(false);
    }
    queue_once(store, &SyncJob::unknown(), Some(repo), now, now).await?;
    Ok(true)
}
