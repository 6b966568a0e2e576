//! Issues and pull requests: the list, one item's page, announced closes, rulings.

pub(crate) mod announced_closes;
pub(crate) mod check_page;
pub(crate) mod gates;
pub(crate) mod gone;
pub(crate) mod item_page;
pub(crate) mod judge_part;
pub(crate) mod list;
pub(crate) mod public_checks;
pub(crate) mod pull_findings;
pub(crate) mod rulings;
pub(crate) mod state;
pub(crate) mod timeline;
pub(crate) mod triage_run;
pub(crate) mod verdict;
pub(crate) mod verdict_actions;
pub(crate) mod verdict_text;

use std::sync::Arc;

use axum::Router;

use crate::console::Console;

pub(crate) fn routes() -> Router<Arc<Console>> {
    Router::new()
        .merge(announced_closes::routes())
        .merge(check_page::routes())
        .merge(item_page::routes())
        .merge(list::routes())
}
