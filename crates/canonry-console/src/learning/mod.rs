//! What Canonry learned: thresholds, audits of the judge, adjudication.

pub(crate) mod adjudication;
pub(crate) mod audits;
pub(crate) mod gate_simulation;
pub(crate) mod sentences;
pub(crate) mod thresholds;

use std::sync::Arc;

use axum::Router;

use crate::console::Console;

pub(crate) fn routes() -> Router<Arc<Console>> {
    Router::new().merge(adjudication::routes()).merge(audits::routes()).merge(thresholds::routes())
}
