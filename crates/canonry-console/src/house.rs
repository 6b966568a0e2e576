//! The pages that every console has: signing in, repositories, items, jobs, deliveries, settings, the App, the keys.

use std::sync::Arc;

use axum::Router;

use crate::console::Console;
use crate::{announced, deeds, deliveries, items, jobs, keys, overview, repository, settings, setup, sign_in};

pub(crate) fn routes() -> Router<Arc<Console>> {
    Router::new()
        .merge(sign_in::routes())
        .merge(overview::routes())
        .merge(repository::routes())
        .merge(announced::routes())
        .merge(deeds::routes())
        .merge(items::routes())
        .merge(jobs::routes())
        .merge(deliveries::routes())
        .merge(settings::routes())
        .merge(setup::routes())
        .merge(keys::routes())
}
