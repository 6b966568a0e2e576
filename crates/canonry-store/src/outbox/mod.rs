//! Writes to GitHub that are owed, and the comments that Canonry wrote.

pub(crate) mod entries;
pub(crate) mod markers;
pub(crate) mod own_comments;

pub use entries::{
    NewOutboxEntry, OutboxEnd, OutboxEntry, OutboxId, OutboxLease, OutboxScope, OutboxState, Reservation, WritePriority,
};
