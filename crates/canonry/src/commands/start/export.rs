//! `export`: a repository's items in the import format.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;
use canonry_store::{ItemFilter, Repo, Store};
use canonry_triage::export;
use serde_json::{Value, json};

use crate::options::item_filter::ItemFilterOptions;
use crate::output::error_message::error_message;
use crate::output::exit::Exit;
use crate::output::file::OutputFile;
use crate::output::report::{Report, envelope};
use crate::output::tables::counted;
use crate::session::context::Context;
use crate::session::database::DatabaseOption;
use crate::session::known_repo::RepoOption;

/// Write a repository's items as JSON lines.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Write a repository's items as JSON lines that `canonry import` reads.\n\n\
        Only items are exported: decisions, reviews and what was learned stay in the database. The file appears when it is \
        complete. With --json and no file, the items are part of the document.",
    before_help = "Example:\n  canonry export --output cat.jsonl\n  canonry export --repo octo/cat --state open | jq .title"
)]
pub(crate) struct Args {
    #[command(flatten)]
    repo: RepoOption,
    /// The file to write; without it, or as -, the standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    filter: ItemFilterOptions,
    #[command(flatten)]
    database: DatabaseOption,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Report> {
    let store = args.database.open_existing().await?;
    let repo = args.repo.find(&store).await?;
    let filter = ItemFilter { item_type: args.filter.item_type(), state: args.filter.state(), with_gone: false };
    match args.output.as_deref().filter(|path| *path != Path::new("-")) {
        Some(path) => to_file(&store, &repo, filter, path, context).await,
        None if context.json => into_document(&store, &repo, filter, context).await,
        None => {
            export(&store, &repo, filter, &mut io::BufWriter::new(io::stdout())).await?;
            Ok(Report::written(Exit::Done))
        }
    }
}

async fn to_file(store: &Store, repo: &Repo, filter: ItemFilter, path: &Path, context: &Context) -> Result<Report> {
    let mut file = OutputFile::create(path, &context.run_id.to_string())?;
    let count = export(store, repo, filter, &mut file).await?;
    file.finish()?;
    let text = format!("Wrote {} of {} to {}.\n", counted(count, "item"), repo.name, path.display());
    Ok(Report::new(json!({ "exported": count }), text).of(&repo.name).with("file", path))
}

/// Writes one JSON document that contains the items. Each item is written as soon as it is read, so a repository does
/// not have to fit in memory.
async fn into_document(store: &Store, repo: &Repo, filter: ItemFilter, context: &Context) -> Result<Report> {
    let mut stdout = io::BufWriter::new(io::stdout());
    let head = Value::Object(envelope(&context.command, &context.run_id.to_string(), Some(&repo.name))).to_string();
    let head = head.strip_suffix('}').expect("invariant: an object ends so");
    write!(stdout, "{head},\"items\":[")?;
    let exported = export(store, repo, filter, &mut Elements { output: &mut stdout, between: false }).await;
    let exit = match exported {
        Ok(count) => {
            writeln!(stdout, "],\"stats\":{}}}", json!({ "exported": count }))?;
            Exit::Done
        }
        Err(error) => {
            // The document has begun, so the error becomes part of it.
            let message = error_message(&error.into());
            writeln!(stdout, "],\"stats\":{{}},\"error\":{}}}", json!({ "message": message }))?;
            Exit::Failed
        }
    };
    stdout.flush()?;
    Ok(Report::written(exit))
}

/// Turns lines into the elements of an array: a line end becomes the comma before the next line.
/// Within JSON a line end can only stand between documents.
struct Elements<'a, W> {
    output: &'a mut W,
    between: bool,
}

impl<W: Write> Write for Elements<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.between {
                self.output.write_all(b",\n")?;
                self.between = false;
            }
            match part.strip_suffix(b"\n") {
                Some(line) => {
                    self.output.write_all(line)?;
                    self.between = true;
                }
                None => self.output.write_all(part)?,
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::Elements;

    #[test]
    fn lines_become_elements_however_they_are_cut() {
        for parts in [vec!["{}\n{}\n"], vec!["{", "}", "\n", "{}", "\n"], vec!["{}\n", "{}\n"]] {
            let mut output = Vec::new();
            let mut elements = Elements { output: &mut output, between: false };
            for part in &parts {
                elements.write_all(part.as_bytes()).expect("a vector takes everything");
            }
            assert_eq!(String::from_utf8(output).expect("text"), "{},\n{}", "{parts:?}");
        }
    }
}
