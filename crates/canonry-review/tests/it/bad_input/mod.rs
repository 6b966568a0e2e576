//! What strangers put into repositories and reports: it may cost itself, and never the review.

mod commands;
mod contents;
mod fuzzed;
mod hostile_configuration;
mod other_repositories;
mod reports;
mod reviewed;
