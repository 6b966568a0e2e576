//! The task runner: the same task names on a developer's machine and in CI.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a task runner talks to the terminal")]

mod bench;
mod browser;
mod check;
mod dependencies;
mod docs;
mod environment;
mod layout;
mod lint_packages;
mod memory_folder;
mod package;
mod postgres;
mod process;
mod run_tests;
mod supervisor;
mod tools;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The tasks of this workspace.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Formatting, dependencies, clippy and rustdoc, with warnings denied.
    Check,
    /// Every test on both engines; installs and starts what the tests need.
    ///
    /// Without arguments the documentation's examples run too.
    Test {
        /// Passed on to `cargo nextest run`, for example `-p canonry-store` or a part of a name.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        nextest: Vec<String>,
    },
    /// Measures a release build and prints Markdown tables; without a name, everything.
    Bench {
        #[arg(value_parser = bench::names())]
        name: Option<String>,
        /// For `judge-model`: --base-url URL [--model NAME] [--pairs COUNT] [--other-pairs COUNT] [--timeout SECONDS].
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        options: Vec<String>,
    },
    /// The long versions of the kill and property tests.
    Soak {
        /// Passed on to `cargo nextest run`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        nextest: Vec<String>,
    },
    /// Writes the generated parts of docs/.
    Docs {
        /// Change nothing; fail when a file is not what would be written.
        #[arg(long)]
        check: bool,
    },
    /// Makes the pictures of docs/images from a run of the demo.
    Pictures,
    /// Prints the size of the code and what is against the rules of its layout.
    Layout,
    /// Makes wheel, npm packages and bill of materials from a built program.
    Package(package::PackageArguments),
    /// Runs one PostgreSQL server until stdin ends.
    #[command(hide = true)]
    PostgresServer(supervisor::ServerArguments),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().task {
        Task::Check => check::check(),
        Task::Test { nextest } => run_tests::test(&nextest),
        Task::Bench { name, options } => bench::bench(name.as_deref(), &options),
        Task::Soak { nextest } => run_tests::soak(&nextest),
        Task::Docs { check: false } => docs::write(),
        Task::Docs { check: true } => docs::check(),
        Task::Pictures => run_tests::write_pictures(),
        Task::Layout => layout::report(),
        Task::Package(arguments) => package::package(&arguments),
        Task::PostgresServer(arguments) => supervisor::supervise(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
