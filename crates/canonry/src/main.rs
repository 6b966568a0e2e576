//! The command line: parses, calls one function of a library, prints.

use std::process::ExitCode;

mod options;
mod output;
mod session;

mod arguments;
mod commands;
#[cfg(test)]
mod documented_commands;
mod run;

// Without it glibc gives memory back and takes it again with every batch of an import.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    canonry_models::hide_own_memory();
    run::run(std::env::args_os()).into()
}
