//! Queues a stored webhook again.

use canonry_boxed::boxed;
use canonry_github::webhook::NotJson;
use canonry_store::{Store, StoreError};
use jiff::Timestamp;

use crate::intake::classify_webhook::classify_webhook;

#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    #[error("there is no delivery {0}; see `canonry deliveries list`")]
    Unknown(String),
    #[error("delivery {0} cannot be replayed: its body was deleted after it was handled")]
    Emptied(String),
    #[error("delivery {0} is already queued")]
    Queued(String),
    #[error(transparent)]
    NotJson(#[from] NotJson),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Queues a delivery again, whatever its state. An ignored delivery gets a job: a newer version may know how to
/// handle it.
#[boxed]
pub async fn replay(store: &Store, id: &str, now: Timestamp) -> Result<(), ReplayError> {
    let Some(delivery) = store.deliveries().get(id).await? else {
        return Err(ReplayError::Unknown(id.to_owned()));
    };
    let Some(body) = store.deliveries().payload(id).await? else {
        return Err(ReplayError::Emptied(id.to_owned()));
    };
    let webhook = classify_webhook(id, &delivery.event, &body)?;
    if store.deliveries().replay(id, &webhook.job(), now).await? {
        Ok(())
    } else {
        Err(ReplayError::Queued(id.to_owned()))
    }
}
