//! `reference`: the parts of the documentation that the program generates.

use anyhow::Result;
use canonry_config::{json_schema, reference_markdown};
use canonry_domain::mention::mentions_page;
use clap::Command;
use serde_json::json;

use crate::arguments::{Arguments, EXIT_STATUSES};
use crate::output::report::Report;
use crate::session::context::Context;

/// Print a generated part of the documentation.
#[derive(Debug, clap::Args)]
#[command(hide = true)]
pub(crate) struct Args {
    /// Which part
    #[arg(value_enum)]
    part: Part,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Part {
    /// The commands, as Markdown
    Commands,
    /// What people can ask for in comments, as Markdown
    Mentions,
    /// The settings file, as Markdown
    Configuration,
    /// The settings file, as JSON Schema
    Schema,
}

pub(crate) async fn run(args: Args, _context: &Context) -> Result<Report> {
    let text = match args.part {
        Part::Commands => commands(),
        Part::Mentions => mentions_page(),
        Part::Configuration => reference_markdown(),
        Part::Schema => format!("{}\n", serde_json::to_string_pretty(&json_schema())?),
    };
    Ok(Report::new(json!({}), text.as_str()).with("text", text))
}

fn commands() -> String {
    let mut page = format!(
        "# Commands\n\nWith `--json` each command prints exactly one JSON document on stdout; logs and progress go to \
         stderr. {EXIT_STATUSES}\n",
    );
    let mut root = Arguments::program().disable_help_subcommand(true).term_width(100);
    root.build();
    for (heading, group) in crate::commands::Command::groups() {
        page.push_str(&format!("\n## {heading}\n"));
        for command in group.get_subcommands().filter(|command| !command.is_hide_set()) {
            // The built command contains the options that all commands share.
            let command = root.find_subcommand(command.get_name()).unwrap_or(command);
            describe(command, "canonry", &mut page);
        }
    }
    page
}

fn describe(command: &Command, parent: &str, page: &mut String) {
    let name = format!("{parent} {}", command.get_name());
    // The help text is the only source of this page.
    let help = command
        .clone()
        .bin_name(&name)
        .help_template("{before-help}{about}\n\n{usage-heading} {usage}\n\n{all-args}{after-help}");
    let help = help.term_width(100).render_long_help().to_string();
    let help: Vec<&str> = help.lines().map(str::trim_end).collect();
    page.push_str(&format!("\n### `{name}`\n\n```text\n{}\n```\n", help.join("\n").trim()));
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        describe(below, &name, page);
    }
}
