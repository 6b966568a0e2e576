//! Pending and sent writes to GitHub, and the comments that Canonry wrote.

pub(crate) mod entries;
pub(crate) mod markers;
pub(crate) mod own_comments;

pub use entries::{
    NewOutboxEntry, OutboxEnd, OutboxEntry, OutboxId, OutboxLease, OutboxScope, OutboxState, Reservation, WritePriority,
};
