//! The program through its front door: arguments in, stdout, stderr, exit status and database out.

mod bad_files;
mod both_engines;
mod corpus;
mod demo_and_manual;
mod from_github;
mod place;
mod schemas;
mod set_up;
mod settings;
mod show;
mod stopped;
mod wrong_usage;
