#![doc = include_str!("../README.md")]

mod export;
mod identify;
mod import;
mod import_source;
mod record_reader;
mod refresh_maintainers;
mod stored_etags;
mod sweep;
mod sync;
mod sync_outcomes;

pub use export::{ExportFailure, export};
pub use identify::{Identified, IdentifyError, identify};
pub use import::{BadRecord, ERRORS_KEPT, ImportFailure, ImportProgress, ImportReport, import};
pub use import_source::UnusableFile;
pub use refresh_maintainers::refresh_maintainers;
pub use sweep::{SweepReport, sweep};
pub use sync::{SyncError, SyncFailure, SyncOptions, SyncReport, sync};
pub use sync_outcomes::{OutcomesReport, sync_outcomes};
