//! Webhooks: checked, classified and stored with their jobs; recovered and replayed.

pub(crate) mod classify_webhook;
pub(crate) mod recover_deliveries;
pub(crate) mod replay_delivery;
pub(crate) mod webhook_batches;
pub(crate) mod webhook_route;

pub use replay_delivery::{ReplayError, replay};
