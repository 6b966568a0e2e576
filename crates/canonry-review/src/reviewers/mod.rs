//! Contains the reviewers of a change.

mod builtin;
pub(crate) mod collect;
mod command;
mod context;
mod findings_json;
mod json_problem;
pub(crate) mod linted_commit;
pub mod llm;
mod rdjson;
mod report_file;
mod report_text;
mod sarif;
mod sarif_log;
mod tool_path;
pub(crate) mod tool_reads;

pub use builtin::{FileToRead, read_with_rules};
pub(crate) use builtin::{find_unused_dependencies, manifests_to_recheck, search_commits};
pub use command::CommandReviewer;
pub(crate) use context::{ContextRequest, Outline, gather_context};
pub use context::{FoundCode, GuidanceFile, ReviewContext};
pub use findings_json::read_findings;
pub use rdjson::read_rdjson;
pub use report_file::{ReportError, read_report};
pub use sarif::read_sarif;
