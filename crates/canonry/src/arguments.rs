//! The arguments that all commands share, and the help of the program as a whole.

use std::fmt::Write as _;

use canonry_review::output::columns::wrapped;
use clap::CommandFactory as _;

use crate::commands::Command;
use crate::output::terminal;

/// Every exit status of every command, for the help and the manual.
pub(crate) const EXIT_STATUSES: &str = "Exit status: 0 done, 1 failed, 2 wrong usage, 3 done but some items failed, \
    4 refused by a safety rule, 5 findings that `review --fail-on` asks for, 10 to 13 answers of `check`.";

/// Finds duplicate issues and pull requests, closes them safely, and reviews changes.
#[derive(Debug, clap::Parser)]
#[command(
    name = "canonry",
    version,
    arg_required_else_help = true,
    after_help = format!("Try it, without an account or a key:\n  canonry demo\n\n\
        Find the duplicates of a repository; nothing is closed:\n  canonry sync --repo octo/cat\n  canonry dedupe\n\n\
        Review a change, in a clone:\n  canonry review --base main\n\n\
        `canonry COMMAND --help` explains a command.\n\n{EXIT_STATUSES}")
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
    /// Print one JSON document
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Show more: exact times, hashes, and the steps on stderr; -vv shows everything
    #[arg(short, long, global = true, action = clap::ArgAction::Count, conflicts_with = "quiet")]
    pub(crate) verbose: u8,
    /// Print nothing on stderr but errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
}

impl Arguments {
    /// Returns the clap command of the program, with a help text that lists the commands in groups.
    pub(crate) fn program() -> clap::Command {
        let command = Self::command();
        let template = help_template(&command, terminal::width().unwrap_or(100));
        command.help_template(template)
    }
}

/// In a terminal narrower than this, a command's description is shown below its name.
const NARROW: usize = 60;

fn help_template(command: &clap::Command, width: usize) -> String {
    let (header, literal) = (command.get_styles().get_header(), command.get_styles().get_literal());
    let mut template = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    let groups = Command::groups();
    let visible = |group: &clap::Command| group.get_subcommands().filter(|one| !one.is_hide_set()).cloned().collect();
    let groups: Vec<(&str, Vec<clap::Command>)> = groups.iter().map(|(name, group)| (*name, visible(group))).collect();
    let longest = groups.iter().flat_map(|(_, commands)| commands).map(|one| one.get_name().len()).max();
    let column = if width < NARROW { 6 } else { longest.unwrap_or_default() + 4 };
    for (heading, commands) in &groups {
        let _ = writeln!(template, "\n{header}{heading}:{header:#}");
        for one in commands {
            let name = one.get_name();
            let about = one.get_about().map(ToString::to_string).unwrap_or_default();
            let lines = wrapped(&about, width.saturating_sub(column).max(20), usize::MAX - 1);
            let indent = " ".repeat(column);
            let begin = if width < NARROW { format!("\n{indent}") } else { " ".repeat(column - 2 - name.len()) };
            let about = lines.join(&format!("\n{indent}"));
            let _ = writeln!(template, "  {literal}{name}{literal:#}{begin}{about}");
        }
    }
    let _ = write!(template, "\n{header}Options:{header:#}\n{{options}}{{after-help}}");
    template
}
