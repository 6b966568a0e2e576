//! Contains Canonry's own rules: deterministic, without an API key, and silent rather than wrong.

mod code_lines;
mod committed_output;
mod conflict_markers;
mod credential_files;
mod credentials;
mod debug_leftovers;
mod disabled_tests;
mod focused_tests;
mod large_files;
mod merge_leftovers;
mod past_credentials;
mod place;
mod reading;
mod rules;
mod secret_files;
mod syntax;
mod unused_dependency;
mod url_passwords;
mod usual_passwords;
mod workflow_security;

pub(crate) use past_credentials::search_commits;
pub use reading::FileToRead;
pub use rules::read_with_rules;
pub(crate) use unused_dependency::{find_unused_dependencies, manifests_to_recheck};
