//! Writes to GitHub that are owed, and the comments that Canonry wrote.

pub(crate) mod entries;
pub(crate) mod markers;
pub(crate) mod own_comments;

pub use entries::{
    Lease, NewOutboxEntry, OutboxEnd, OutboxEntry, OutboxId, OutboxScope, OutboxState, Reservation, WritePriority,
};
