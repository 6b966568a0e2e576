#![doc = include_str!("../README.md")]

mod connections;
mod serve;

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

mod corpus;
mod grace_job;
mod handlers;
mod known_repo;
mod metered_model;
mod recheck;
mod repo_rules;
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

pub use handler::{Handled, JobError, JobHandler, Work};
pub use metered_model::ReviewModel;
pub use metrics::Metrics;
pub use operations::{Operations, operations_routes};
pub use publisher::Publish;
pub use replay::{ReplayError, replay};
pub use review_job::ReviewParts;
pub use scheduler::{Scheduler, Schedules};
pub use serve::{ServeParts, Served, ServiceOptions, serve};
pub use service::{DetectorSource, Service, ServiceParts};
pub use threshold_report::{
    ReportedAdjustment, ReportedSettings, ReportedThreshold, ThresholdReport, threshold_report,
};
pub use worker::{Ended, Worker};
