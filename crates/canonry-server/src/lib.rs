#![doc = include_str!("../README.md")]

mod address_places;
mod connections;
mod serve;
mod slow_bodies;
mod slow_readers;
mod trusted_proxies;

mod body_budget;
mod intake;
mod intake_batch;
mod replay;
mod sorting;

mod back_off;
mod handler;
mod job_errors;
mod job_signals;
mod kinds;
mod outage;
mod owned_task;
mod planned_job;
mod worker;

mod closing_job;
mod console_jobs;
mod corpus;
mod grace_job;
mod handlers;
mod known_repo;
mod metered_model;
mod planning_job;
mod recheck;
mod repo_rules;
mod retry;
mod review_folder;
mod review_job;
mod review_settings;
mod review_triggers;
mod service;
mod webhook_outcomes;

mod publisher;
mod reactions_job;
mod recover;
mod repo_sync;
mod scheduler;

mod api;
mod exposition;
mod health;
mod metrics;
mod operations;
mod repo_readers;
mod stored_metrics;
mod threshold_report;
mod wrong_tokens;

pub use console_jobs::{
    ApplyOrder, CancelGraceOrder, CanonicalizeOrder, ClosingDeed, PlanOrder, UndoOrder, closing_deed, closing_jobs_of,
    is_being_applied, is_word_taken_now, last_closing_job, queue_apply, queue_cancel_grace, queue_canonicalize,
    queue_plan, queue_sync, queue_undo, repo_id_of,
};
pub use handler::{Handled, JobError, JobHandler, Work};
pub use kinds::JOB_KINDS;
pub use metered_model::ReviewModel;
pub use metrics::Metrics;
pub use operations::{Operations, operations_routes};
pub use publisher::Publish;
pub use replay::{ReplayError, replay};
pub use retry::{Retried, RetriedJobs, is_order, ordered_plan, retry_job, retry_jobs};
pub use review_folder::ReviewFolder;
pub use review_job::ReviewParts;
pub use scheduler::{Scheduler, Schedules};
pub use serve::{DRAIN, ServeParts, Served, ServiceOptions, serve};
pub use service::{DetectorSource, Service, ServiceParts};
pub use threshold_report::{
    ReportedAdjustment, ReportedSettings, ReportedThreshold, ThresholdReport, threshold_report,
};
pub use trusted_proxies::{InvalidProxy, TrustedProxy};
pub use worker::{Ended, Worker};
pub use wrong_tokens::WrongTokens;
