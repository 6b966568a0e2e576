//! The program through its front door: arguments in, stdout, stderr, exit status and database out.

mod analyze_intent;
mod backtest;
mod bad_files;
mod both_engines;
mod corpus;
mod demo_and_manual;
mod from_github;
mod large_repository;
mod lessons;
mod place;
mod references;
mod retrieval;
mod schemas;
mod serve_log;
mod service;
mod set_up;
mod settings;
mod show;
mod simulate_learning;
mod stopped;
mod suggesting;
mod thresholds;
mod wrong_usage;
