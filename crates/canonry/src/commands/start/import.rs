//! `import`: reads files into the corpus.

use std::path::PathBuf;

use anyhow::Result;
use canonry_domain::RepoName;
use canonry_triage::{BadRecord, ImportReport, import};
use indicatif::ProgressStyle;
use serde_json::{Value, json};

use crate::output::exit::Exit;
use crate::output::numbers::thousands;
use crate::output::printable::one_line;
use crate::output::report::Report;
use crate::output::tables::{counted, table};
use crate::session::context::Context;
use crate::session::database::DatabaseOption;

/// Import issues and pull requests from files.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Import issues and pull requests from files: JSON lines, or the arrays that `gh api` prints, also gzipped.\n\n\
        Each record needs a number and a title. It may have: repo, type (issue or pr), body, state, state_reason, author, \
        assignees, labels, comments, review_comments, created_at, updated_at, closed_at, url, duplicate_of, and for pull \
        requests files and diff. A missing author or missing assignees are unknown, and such an item is never closed; \
        `\"assignees\": []` means that nobody is assigned. A record that cannot be read is reported with its line and \
        skipped. Importing the same file again changes nothing.",
    before_help = "Example:\n  canonry import --repo octo/cat issues.jsonl.gz\n  \
        gh api --paginate 'repos/octo/cat/issues?state=all' | canonry import --repo octo/cat -"
)]
pub(crate) struct Args {
    /// The files; - is the standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The repository of records that name none; records of another one are refused
    #[arg(long, value_name = "OWNER/NAME")]
    repo: Option<RepoName>,
    #[command(flatten)]
    database: DatabaseOption,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Report> {
    let store = args.database.open(context).await?;
    let bar = context.counter("importing");
    bar.set_style(
        ProgressStyle::with_template("{spinner} importing {bar:30} {human_pos} of {human_len} ({per_sec}, {eta})")
            .expect("invariant: a constant template"),
    );
    let mut progress = |progress: canonry_triage::ImportProgress| {
        bar.set_length(progress.total);
        bar.set_position(progress.done);
    };
    let done = import(&store, args.files, args.repo.as_ref(), context.now, &mut progress).await;
    bar.finish_and_clear();
    store.disconnect().await;
    Ok(report(&done?))
}

fn report(done: &ImportReport) -> Report {
    let stats = json!({
        "read": done.read, "inserted": done.inserted, "updated": done.updated,
        "unchanged": done.unchanged, "failed": done.failed,
    });
    let exit = match done.failed {
        0 => Exit::Done,
        all if all == done.read => Exit::Failed,
        _ => Exit::SomeFailed,
    };
    let report = Report::new(stats, text(done))
        .with("repos", &done.repos)
        .with("errors", done.errors.iter().map(bad_record).collect::<Vec<_>>())
        .ending(exit);
    match done.repos.as_slice() {
        [only] => report.of(only),
        _ => report,
    }
}

fn bad_record(bad: &BadRecord) -> Value {
    json!({ "file": bad.file, "line": bad.line, "message": bad.message })
}

/// How many bad records the text shows at most; `--json` contains more.
const SHOWN: usize = 20;

fn text(done: &ImportReport) -> String {
    let names: Vec<String> = done.repos.iter().map(ToString::to_string).collect();
    let mut text = match names.as_slice() {
        [] => format!("Read {}; none could be imported.\n", counted(done.read, "record")),
        names => format!("Read {} of {}.\n", counted(done.read, "record"), names.join(", ")),
    };
    let mut counts = table(["new", "changed", "unchanged", "failed"]).with_numbers_from(0);
    counts.add_row([done.inserted, done.updated, done.unchanged, done.failed].map(thousands));
    text.push_str(&format!("{counts}\n"));
    if done.failed > 0 {
        text.push_str("\nSkipped records:\n");
        for bad in done.errors.iter().take(SHOWN) {
            text.push_str(&format!("  {}, line {}: {}\n", one_line(&bad.file), bad.line, one_line(&bad.message)));
        }
        let hidden = done.failed.saturating_sub(SHOWN as u64);
        if hidden > 0 {
            text.push_str(&format!("  and {} more (see --json)\n", thousands(hidden)));
        }
    }
    text
}
