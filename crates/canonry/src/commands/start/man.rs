//! `man`: manual pages, one for each command.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::CommandFactory as _;
use clap_mangen::Man;
use serde_json::json;

use crate::arguments::Arguments;
use crate::output::report::Report;
use crate::output::tables::counted;
use crate::session::context::Context;

/// Print the manual page, or write the pages of all commands into a folder.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  canonry man | man -l -\n  canonry man ~/.local/share/man/man1")]
pub(crate) struct Args {
    /// The folder, which must exist
    folder: Option<PathBuf>,
}

pub(crate) async fn run(args: Args, _context: &Context) -> Result<Report> {
    let mut root = Arguments::command().disable_help_subcommand(true);
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

fn page(command: &clap::Command) -> Result<String> {
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page)?;
    Ok(String::from_utf8(page)?)
}

fn write(command: &clap::Command, folder: &std::path::Path, written: &mut Vec<PathBuf>) -> Result<()> {
    let man = Man::new(command.clone());
    let path = folder.join(man.get_filename());
    let mut page = Vec::new();
    man.render(&mut page)?;
    fs::write(&path, page)
        .with_context(|| format!("{} cannot be written; check the folder and your rights to it", path.display()))?;
    written.push(path);
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        write(below, folder, written)?;
    }
    Ok(())
}
