//! The command line: parses, calls one function of a library, prints.

use std::process::ExitCode;

mod admin_token;
mod arguments;
mod chat_options;
mod commands;
mod console_secrets;
mod context;
mod database;
mod detector_source;
#[cfg(test)]
mod documented_commands;
mod error_message;
mod exit;
mod github;
mod item_filter;
mod json;
mod known_repo;
mod local_clone;
mod logging;
mod model_patience;
mod output_file;
mod printable;
mod published_pull;
mod repo_settings;
mod report;
mod retrieval_options;
mod review_model_options;
mod reviewed_repo;
mod reviewer_options;
mod run;
mod run_id;
mod tables;

// Without it glibc gives memory back and takes it again with every batch of an import.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    canonry_models::hide_own_memory();
    run::run(std::env::args_os()).into()
}
