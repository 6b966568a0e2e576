//! A run in GitHub Actions: one event through the same handlers, jobs and outbox as in the service, then what is due,
//! then the end. The database is kept in the repository between two runs.

pub(crate) mod drain;
pub(crate) mod held_state;
pub(crate) mod lost_items;
pub(crate) mod run_event;
pub(crate) mod run_once;
pub(crate) mod run_report;
pub(crate) mod state_file;
pub(crate) mod state_ref;

pub use drain::DrainSummary;
pub use held_state::StateKeeper;
pub use run_event::{RunEvent, RunEventError};
pub use run_once::{RunError, RunOnce, RunReport, ServiceMaker};
pub use run_report::{RunEventReport, RunVerdict, run_summary};
pub use state_file::StateFileError;
pub use state_ref::{StateError, StateRef};
