//! Home, the overview of one repository, search, and the keyboard shortcuts.

pub(crate) mod activity_figures;
pub(crate) mod health;
pub(crate) mod keys;
pub(crate) mod needs;
pub(crate) mod overview;
pub(crate) mod repository;
pub(crate) mod search;
pub(crate) mod visible_repos;

use std::sync::Arc;

use axum::Router;

use crate::console::Console;

pub(crate) fn routes() -> Router<Arc<Console>> {
    Router::new().merge(keys::routes()).merge(overview::routes()).merge(repository::routes()).merge(search::routes())
}
