//! Tests whole reviews, with the real store on both engines and real git repositories.

mod builtin_rules;
mod coverage;
mod crashes;
mod failures;
mod feedback;
mod gaps;
mod history;
mod memory;
pub(crate) mod model;
mod model_context;
mod past_findings;
pub(crate) mod project;
mod races;
mod safety;
mod scopes;
mod story;
mod unused_dependencies;
