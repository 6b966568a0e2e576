//! Jobs, deliveries, settings, activity, and creating the GitHub App.

pub(crate) mod activity;
pub(crate) mod deliveries;
pub(crate) mod jobs;
pub(crate) mod repo_settings;
pub(crate) mod settings;
pub(crate) mod settings_file_change;
pub(crate) mod settings_keys;
pub(crate) mod setup;
pub(crate) mod work_lists;

use std::sync::Arc;

use axum::Router;

use crate::console::Console;

pub(crate) fn routes() -> Router<Arc<Console>> {
    Router::new()
        .merge(activity::routes())
        .merge(deliveries::routes())
        .merge(jobs::routes())
        .merge(settings::routes())
        .merge(setup::routes())
}
