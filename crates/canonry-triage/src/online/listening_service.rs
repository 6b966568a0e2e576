//! Whether a service hears commands in a repository's comments.

use canonry_boxed::boxed;
use canonry_store::{DeliveryFilter, Repo, Store, StoreError};
use jiff::{SignedDuration, Timestamp};

/// Older webhooks do not show whether a service runs.
const HEARD_WITHIN: SignedDuration = SignedDuration::from_hours(7 * 24);

/// A running service has recent webhooks of the repository in this database.
#[boxed]
pub async fn is_service_listening(store: &Store, repo: &Repo, now: Timestamp) -> Result<bool, StoreError> {
    let about = DeliveryFilter { repo: Some(repo.name.clone()), ..DeliveryFilter::default() };
    let last = store.deliveries().list(&about, 1).await?;
    Ok(last.iter().any(|last| last.received_at >= now - HEARD_WITHIN))
}
