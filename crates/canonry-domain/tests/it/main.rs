//! Tests of the rules against properties, published cases and whole histories.

mod boilerplate;
mod close_direction;
mod close_plans;
mod comment_bodies;
mod duplicate_gates;
mod gate_trail;
mod issue_outcomes;
mod learning;
mod markdown_commands;
mod online_verdict;
mod review_tracking;
