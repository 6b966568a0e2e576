//! Stored webhooks, and commands in comments.

pub(crate) mod accept;
pub(crate) mod log;
pub(crate) mod mentions;

pub use log::{Delivery, DeliveryAction, DeliveryFilter, DeliveryReceipt, DeliveryState, NewDelivery};
pub use mentions::{Mention, MentionOutcome, MentionPlace};
