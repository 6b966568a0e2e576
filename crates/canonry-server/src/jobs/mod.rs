//! What is done later: the worker, the queue's rules, and one file for each kind of job.

pub(crate) mod back_off;
pub(crate) mod closing_job;
pub(crate) mod console_jobs;
pub(crate) mod grace_job;
pub(crate) mod job_errors;
pub(crate) mod job_handler;
pub(crate) mod job_signals;
pub(crate) mod kinds;
pub(crate) mod metered_model;
pub(crate) mod outage;
pub(crate) mod owned_task;
pub(crate) mod planned_job;
pub(crate) mod planning_job;
pub(crate) mod reactions_job;
pub(crate) mod retry_jobs;
pub(crate) mod review_folder;
pub(crate) mod review_job;
pub(crate) mod review_requests;
pub(crate) mod scheduler;
pub(crate) mod sync_job;
pub(crate) mod worker;

pub use console_jobs::{
    ApplyOrder, CancelGraceOrder, CanonicalizeOrder, ClosingDeed, PlanOrder, UndoOrder, closing_deed, closing_jobs_of,
    is_being_applied, last_closing_job, may_row_approval_change_now, queue_apply, queue_cancel_grace,
    queue_canonicalize, queue_plan, queue_sync, queue_undo, repo_id_of,
};
pub use job_handler::{Handled, JobError, JobHandler, Work};
pub use kinds::JOB_KINDS;
pub use metered_model::ReviewModel;
pub use retry_jobs::{Retried, RetriedJobs, is_order, ordered_plan, retry_job, retry_jobs};
pub use review_folder::ReviewFolder;
pub use review_job::ReviewParts;
pub use scheduler::{Scheduler, Schedules};
pub use worker::{Ended, Worker};
