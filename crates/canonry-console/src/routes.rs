//! All addresses of the console.

use std::sync::Arc;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};

use crate::console::{Console, ConsoleParts};
use crate::layout::errors::{PageError, in_their_frame};
use crate::layout::headers::harden;
use crate::layout::htmx::for_htmx;
use crate::layout::{assets, theme};
use crate::{admin, clusters, home, items, learning, plans, reviews, sign_in};

/// The console's pages, to be merged with the service's other routes.
pub fn console_routes(parts: ConsoleParts) -> Router {
    let console = Arc::new(Console::new(parts));
    Router::new()
        .merge(assets::routes())
        .merge(theme::routes())
        .fallback(nothing)
        .merge(admin::routes())
        .merge(clusters::map::routes())
        .merge(home::routes())
        .merge(items::routes())
        .merge(learning::routes())
        .merge(plans::list::routes())
        .merge(reviews::routes())
        .merge(sign_in::sign_in_page::routes())
        .layer(from_fn_with_state(Arc::clone(&console), in_their_frame))
        .layer(from_fn(for_htmx))
        .layer(from_fn_with_state(Arc::clone(&console), harden))
        .with_state(console)
}

async fn nothing() -> PageError {
    PageError::NotFound
}
