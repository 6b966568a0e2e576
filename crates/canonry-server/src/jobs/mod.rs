//! Jobs that run in the background: the worker, the queue's rules, and one file for each kind of job.

pub(crate) mod closing_job;
pub(crate) mod grace_job;
pub(crate) mod job_errors;
pub(crate) mod job_handler;
pub(crate) mod job_keys;
pub(crate) mod job_signals;
pub(crate) mod orders;
pub(crate) mod outage;
pub(crate) mod owned_task;
pub(crate) mod planning_job;
pub(crate) mod reactions_job;
pub(crate) mod registry;
pub(crate) mod retry_jobs;
pub(crate) mod scheduler;
pub(crate) mod service_job;
pub(crate) mod sync_job;
pub(crate) mod triage_job;
pub(crate) mod webhook_job;
pub(crate) mod worker;

pub use closing_job::{ApplyOrder, UndoOrder};
pub use job_handler::{JobError, JobHandler, LeasedJob};
pub use orders::{
    ConsoleOrder, closing_jobs_of, is_being_applied, last_closing_job, may_row_approval_change_now, queue_apply,
    queue_cancel_grace, queue_canonicalize, queue_plan, queue_sync, queue_undo, repo_id_of,
};
pub use planning_job::{CancelGraceOrder, CanonicalizeOrder, PlanOrder};
pub use retry_jobs::{RetryCounts, RetryOutcome, is_close_order, retry_job, retry_jobs};
pub use scheduler::{Scheduler, Schedules};
pub use worker::{AttemptEnd, Worker};
