//! Reviews, findings and patterns.

pub(crate) mod code_excerpt;
pub(crate) mod finding_page;
pub(crate) mod finding_verdict;
pub(crate) mod findings;
pub(crate) mod list;
pub(crate) mod patterns;
pub(crate) mod review_page;

use std::sync::Arc;

use axum::Router;

use crate::console::Console;

pub(crate) fn routes() -> Router<Arc<Console>> {
    Router::new().merge(findings::routes()).merge(list::routes()).merge(patterns::routes())
}
