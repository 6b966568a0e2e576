//! Tests what strangers put into repositories and reports: bad input may be dropped, but never costs the review.

mod commands;
mod contents;
mod fuzzed;
mod hostile_configuration;
mod other_repositories;
mod reports;
mod reviewed;
