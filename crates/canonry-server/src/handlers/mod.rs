//! What is done about each webhook.

mod graces;
mod installations;
mod issue_comments;
mod issues;
mod items;
mod mention_deeds;
mod mentions;
mod pull_requests;
mod pushes;
mod repositories;
mod review_comments;
mod review_threads;
mod reviews;
mod triage;
mod webhook;

pub(crate) use triage::{budget, triage_again};
pub(crate) use webhook::webhook;
