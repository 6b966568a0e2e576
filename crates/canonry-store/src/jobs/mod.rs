//! The job queue: queued work, its leases, and schedules.

pub(crate) mod enqueue;
pub(crate) mod kind;
pub(crate) mod leases;
pub(crate) mod queue;
pub(crate) mod schedules;
pub(crate) mod signal;
pub(crate) mod status;

pub use kind::{JobKind, StoredJobKind};
pub use leases::{JobCaps, JobEnd, JobLease, JobScope};
pub use queue::{Job, JobFilter, JobId, JobState, NewJob};
pub use signal::JobSignal;
pub use status::QueueStatus;
