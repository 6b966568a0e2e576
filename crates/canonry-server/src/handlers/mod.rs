//! The handlers of all webhook events.

pub(crate) mod ensure_synced;
pub(crate) mod find_repo;
mod graces;
mod installations;
mod issue_comments;
mod issues;
mod items;
mod mention_actions;
mod mentions;
mod pull_requests;
mod pushes;
pub(crate) mod repo_settings;
mod repositories;
mod review_comments;
mod review_threads;
mod reviews;
mod triage;
mod webhook;
pub(crate) mod webhook_outcomes;

pub(crate) use triage::{TriageOccasion, budget, triage};
pub(crate) use webhook::webhook;
