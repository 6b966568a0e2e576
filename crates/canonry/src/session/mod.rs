//! The resources of a command: its database, repository, GitHub and models.

pub(crate) mod admin_token;
pub(crate) mod asked_service;
pub(crate) mod console_commands;
pub(crate) mod console_secrets;
pub(crate) mod context;
pub(crate) mod database;
pub(crate) mod detector_source;
pub(crate) mod github;
pub(crate) mod known_repo;
pub(crate) mod local_clone;
pub(crate) mod mcp_access;
pub(crate) mod model_patience;
pub(crate) mod published_pull;
pub(crate) mod remote_history;
pub(crate) mod repo_settings;
