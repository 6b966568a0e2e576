//! What GitHub and people sent: webhooks as they came, and mentions in comments.

pub(crate) mod accept;
pub(crate) mod log;
pub(crate) mod mentions;

pub use log::{Accepted, Delivery, DeliveryFilter, DeliveryState, Fate, NewDelivery};
pub use mentions::{Mention, MentionOutcome, MentionPlace};
