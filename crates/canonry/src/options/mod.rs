//! Options that several commands share.

pub(crate) mod chat;
pub(crate) mod item_filter;
pub(crate) mod item_number;
pub(crate) mod local_server;
pub(crate) mod plan_number;
pub(crate) mod retrieval;
pub(crate) mod review_model;
pub(crate) mod reviewers;
pub(crate) mod run_id;
pub(crate) mod service_models;
