//! `man`: manual pages, one for each command.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap_mangen::Man;
use serde_json::json;

use crate::arguments::Arguments;
use crate::commands::Command;
use crate::output::report::Report;
use crate::output::tables::counted;
use crate::session::context::Context;

/// Print the manual page, or write one for each command.
#[derive(Debug, clap::Args)]
#[command(before_help = "Example:\n  canonry man | man -l -\n  canonry man ~/.local/share/man/man1")]
pub(crate) struct Args {
    /// The folder for the pages of all commands; it must exist
    folder: Option<PathBuf>,
}

pub(crate) async fn run(args: Args, _context: &Context) -> Result<Report> {
    let mut root = Arguments::program().disable_help_subcommand(true);
    root.build();
    let Some(folder) = args.folder else {
        let page = page(&root)?;
        return Ok(Report::new(json!({ "pages": 1 }), page.as_str()).with("page", page));
    };
    let mut written = Vec::new();
    write(&root, &folder, &mut written)?;
    let text = format!("Wrote {} to {}.\n", counted(written.len() as u64, "page"), folder.display());
    Ok(Report::new(json!({ "pages": written.len() }), text).with("files", written))
}

/// Renders the man page of a command. The example comes before the long description, and the page of the program lists
/// the commands in groups.
fn page(command: &clap::Command) -> Result<String> {
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    page.extend_from_slice(section("EXAMPLE", command.get_before_help()).as_bytes());
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.get_name() == "canonry" {
        for (heading, group) in Command::groups() {
            let group = group.subcommand_help_heading(heading.to_uppercase());
            Man::new(group).render_subcommands_section(&mut page)?;
        }
    } else if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    page.extend_from_slice(section("NOTES", command.get_after_help()).as_bytes());
    Ok(String::from_utf8(page)?)
}

/// Renders a section whose lines are not reflowed.
fn section(heading: &str, text: Option<&clap::builder::StyledStr>) -> String {
    let Some(text) = text else { return String::new() };
    let mut section = format!(".SH {heading}\n.nf\n");
    for line in text.to_string().lines().filter(|line| *line != "Example:") {
        let line = line.replace('\\', "\\e").replace('-', "\\-");
        let guard = if line.starts_with(['.', '\'']) { "\\&" } else { "" };
        let _ = writeln!(section, "{guard}{line}");
    }
    section + ".fi\n"
}

fn write(command: &clap::Command, folder: &std::path::Path, written: &mut Vec<PathBuf>) -> Result<()> {
    let path = folder.join(Man::new(command.clone()).get_filename());
    fs::write(&path, page(command)?)
        .with_context(|| format!("{} cannot be written; check the folder and its permissions", path.display()))?;
    written.push(path);
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        write(below, folder, written)?;
    }
    Ok(())
}
