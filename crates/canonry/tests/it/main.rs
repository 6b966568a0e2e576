//! The program through its front door: arguments in, stdout, stderr, exit status and database out.

mod analyze_intent;
mod backtest;
mod bad_files;
mod both_engines;
mod corpus;
mod demo_and_manual;
mod from_github;
mod large_repository;
mod place;
mod references;
mod retrieval;
mod schemas;
mod service;
mod set_up;
mod settings;
mod show;
mod simulate_learning;
mod stopped;
mod wrong_usage;
