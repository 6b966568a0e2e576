//! The command line: it parses, calls one function of a library, and prints.

use std::process::ExitCode;

mod options;
mod output;
mod session;

mod arguments;
mod commands;
#[cfg(test)]
mod documented_commands;
mod run;
mod version;

// Without it glibc returns memory to the system and takes it again with every batch of an import.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    canonry_models::hide_own_memory();
    run::run(std::env::args_os()).into()
}
