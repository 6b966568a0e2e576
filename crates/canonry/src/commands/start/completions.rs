//! `completions`: the completion script for a shell.

use anyhow::Result;
use clap_complete::Shell;
use serde_json::json;

use crate::arguments::Arguments;
use crate::output::report::Report;
use crate::session::context::Context;

/// Print completions for a shell.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Example:\n  canonry completions bash > ~/.local/share/bash-completion/completions/canonry\n  \
        canonry completions fish > ~/.config/fish/completions/canonry.fish"
)]
pub(crate) struct Args {
    /// The shell: bash, zsh, fish, elvish or powershell
    shell: Shell,
}

pub(crate) async fn run(args: Args, _context: &Context) -> Result<Report> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Arguments::program(), "canonry", &mut script);
    let script = String::from_utf8(script)?;
    Ok(Report::new(json!({}), script.as_str()).with("shell", args.shell.to_string()).with("script", script))
}
