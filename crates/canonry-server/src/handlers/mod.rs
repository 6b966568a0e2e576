//! What is done about each webhook.

mod installations;
mod issue_comments;
mod issues;
mod items;
mod pull_requests;
mod pushes;
mod repositories;
mod triage;
mod webhook;

pub(crate) use triage::triage_again;
pub(crate) use webhook::webhook;
