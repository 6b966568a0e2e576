//! Close plans: making, exporting, applying and undoing them, and objections to closes.

pub(crate) mod apply_close;
pub(crate) mod back_links;
pub(crate) mod close_lease;
pub(crate) mod close_recheck;
pub(crate) mod close_refusal;
pub(crate) mod close_report;
pub(crate) mod close_row;
pub(crate) mod close_writes;
pub(crate) mod common_evidence;
pub(crate) mod dedupe;
pub(crate) mod forecast_apply;
pub(crate) mod live_item;
pub(crate) mod objections;
pub(crate) mod plan_close;
pub(crate) mod plan_export;
pub(crate) mod row_evidence;
pub(crate) mod stored_plan;
pub(crate) mod undo_close;
pub(crate) mod undo_last_close;

pub use apply_close::{ApplyError, ApplyOptions, age_of_plan, applied_before, apply_close};
pub use close_report::{CloseReport, ReportedRow, RowResult};
pub use close_writes::{ClosingError, closes_begun, has_close_begun};
pub use common_evidence::common_evidence;
pub use dedupe::{DedupeError, DedupeOptions, DedupeReport, DedupeRound, DedupeStep, Dedupers, dedupe};
pub use forecast_apply::{PlanForecast, forecast_apply};
pub use objections::{Objections, ObjectionsReport};
pub use plan_close::{PlanError, PlanOptions, PlanReport, PlannedRow, plan_close, plan_rules};
pub use plan_export::{plan_csv, plan_json, plan_markdown, row_document};
pub use row_evidence::{RowEvidence, evidence_text, telling_facts};
pub use stored_plan::{StoredPlan, set_rows_approved, stored_plan};
pub use undo_close::{UndoError, UndoOptions, undo_close};
pub use undo_last_close::{UndoneLast, undo_last_close};
