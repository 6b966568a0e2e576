//! The list of repositories, one repository at a glance, and the keyboard shortcuts.

pub(crate) mod keys;
pub(crate) mod overview;
pub(crate) mod repository;

use std::sync::Arc;

use axum::Router;

use crate::console::Console;

pub(crate) fn routes() -> Router<Arc<Console>> {
    Router::new().merge(keys::routes()).merge(overview::routes()).merge(repository::routes())
}
