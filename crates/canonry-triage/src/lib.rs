#![doc = include_str!("../README.md")]

mod export;
mod import;
mod import_source;
mod record_reader;

pub use export::{ExportFailure, export};
pub use import::{BadRecord, ERRORS_KEPT, ImportFailure, ImportProgress, ImportReport, import};
pub use import_source::UnusableFile;
