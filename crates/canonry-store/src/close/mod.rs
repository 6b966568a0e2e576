//! Plans that people review, the runs that apply or undo them, announced closes, objections and brakes.

pub(crate) mod brakes;
pub(crate) mod graces;
pub(crate) mod item_closes;
pub(crate) mod leases;
pub(crate) mod objections;
pub(crate) mod plan_pages;
pub(crate) mod plan_review;
pub(crate) mod progress;
pub(crate) mod results;
pub(crate) mod runs;

pub use brakes::{Brake, BrakeKind};
pub use graces::{AnnouncedClose, Grace, GraceState, NewGrace};
pub use item_closes::ItemClose;
pub use leases::StoredCloseLease;
pub use objections::{NewObjection, Objection, ObjectionKind};
pub use plan_pages::{PlanOrigin, PlanRowFilter, PlanSummary, PlanTotals, ReviewedRow};
pub use plan_review::{RowApproval, RowsLeft, StandingApproval};
pub use results::{AppliedClose, CloseOutcome, CloseResult, NotDuplicate};
pub use runs::{CloseMode, CloseRun, CloseRunId, CloseRunRow, NewPlan, NewPlanRow, StoredCloseResult};
