//! All addresses of the console.

use std::sync::Arc;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};

use crate::console::{Console, ConsoleParts};
use crate::errors::{PageError, in_their_frame};
use crate::for_htmx::for_htmx;
use crate::headers::harden;
use crate::{
    adjudication, assets, audits, clusters, findings, house, learning, patterns, plans, reviews, story, theme,
};

/// The console's pages, to be merged with the service's other routes.
pub fn console_routes(parts: ConsoleParts) -> Router {
    let console = Arc::new(Console::new(parts));
    Router::new()
        .merge(assets::routes())
        .merge(theme::routes())
        .fallback(nothing)
        .merge(adjudication::routes())
        .merge(audits::routes())
        .merge(clusters::routes())
        .merge(house::routes())
        .merge(learning::routes())
        .merge(findings::routes())
        .merge(patterns::routes())
        .merge(plans::routes())
        .merge(reviews::routes())
        .merge(story::routes())
        .layer(from_fn_with_state(Arc::clone(&console), in_their_frame))
        .layer(from_fn(for_htmx))
        .layer(from_fn_with_state(Arc::clone(&console), harden))
        .with_state(console)
}

async fn nothing() -> PageError {
    PageError::NotFound
}
