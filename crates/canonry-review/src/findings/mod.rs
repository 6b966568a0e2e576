//! Processes reviewers' findings: tracked from push to push, filtered, rated, remembered.

pub(crate) mod base_findings;
pub(crate) mod code_excerpts;
pub(crate) mod configured_filters;
pub(crate) mod earlier_outcomes;
pub(crate) mod explain_finding;
pub(crate) mod judge_findings;
pub(crate) mod memory;
pub(crate) mod reviewer_answer;
pub(crate) mod severity_limits;

pub use configured_filters::ConfiguredFilters;
pub use explain_finding::{FindingLife, explain_finding, second_reading_reason};
pub use reviewer_answer::{RawFinding, ReviewerAnswer, SuggestedFix, merge_findings, reviewers_by_file};
pub use severity_limits::SeverityLimits;
