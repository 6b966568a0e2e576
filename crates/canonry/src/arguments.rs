//! The arguments: what all commands share.

use crate::commands::Command;

/// Keeps one canonical home for every problem in a repository: finds duplicate issues and pull requests, and reviews changes.
#[derive(Debug, clap::Parser)]
#[command(
    name = "canonry",
    version,
    arg_required_else_help = true,
    after_help = "To see it work, without an account or a key:\n  canonry demo\n\n\
        To begin with items of your own:\n  canonry init\n  canonry sync --repo octo/cat\n\n\
        To review a change, in a clone:\n  canonry review --base main\n\n\
        Exit status: 0 done, 1 failed, 2 wrong usage, 3 done but some items failed, 4 refused by a safety\nrule, 5 findings that `review --fail-on` asks for."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) output: OutputOptions,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// How results and progress are shown.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputOptions {
    /// Print one JSON document instead of words
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Say more on stderr about what is done; twice for everything
    #[arg(short, long, global = true, action = clap::ArgAction::Count, conflicts_with = "quiet")]
    pub(crate) verbose: u8,
    /// Say nothing on stderr but errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
}
