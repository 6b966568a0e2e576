//! `undo-close`: opens again what a plan closed.

use anyhow::Result;
use canonry_domain::{ItemNumber, UndoReason};
use canonry_github::outbox::Outbox;
use canonry_store::CloseRunId;
use canonry_triage::{ReportedRow, UndoOptions, undo_close};

use crate::commands::triage::apply_close::{live_settings, report};
use crate::commands::triage::plan::run_number;
use crate::output::report::Report;
use crate::run::release_leases_when_stopped;
use crate::session::context::Context;
use crate::session::database::DatabaseOption;
use crate::session::github::GithubOption;
use crate::session::known_repo::RunRepoOption;

/// Open again what a plan closed, and say why.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Open again what a plan closed, and say why.\n\n\
        Only items whose last close is Canonry's are opened. Unless another reason is given, the two items are ruled not \
        to be duplicates, and are never planned together again.",
    after_help = "Example:\n  canonry undo-close --repo octo/cat --run 7\n  \
        canonry undo-close --repo octo/cat --run 7 --item 12 --reason wrong-target --note 'it is #9'"
)]
pub(crate) struct Args {
    #[command(flatten)]
    repo: RunRepoOption,
    /// The plan, or the run that applied it
    #[arg(long, value_name = "N", value_parser = run_number)]
    run: CloseRunId,
    /// Only this item [default: all that were closed]
    #[arg(long, value_name = "NUMBER")]
    item: Option<ItemNumber>,
    /// Why: not-duplicate, wrong-target or other; only the first rules that the two are not duplicates
    #[arg(long, value_name = "REASON", default_value = "not-duplicate")]
    reason: UndoReason,
    /// What else to say in the comment
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    #[command(flatten)]
    github: GithubOption,
    #[command(flatten)]
    database: DatabaseOption,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Report> {
    let store = args.database.open_known(context).await?;
    let repo = args.repo.find(&store, args.run).await?;
    let bar = context.counter("rows");
    let github = args.github.client(&bar)?;
    let config = live_settings(&github, &repo).await?.config;
    let outbox = Outbox::open(store.clone(), github.clone(), rand::random()).await?;
    let run_id = context.run_id.to_string();
    let options = UndoOptions {
        run: args.run,
        item: args.item,
        reason: args.reason,
        note: args.note.as_deref(),
        by: None,
        config: &config,
        run_id: &run_id,
        most_rows: None,
    };
    let mut on_row = |_: &ReportedRow| bar.inc(1);
    release_leases_when_stopped(&store);
    let done = undo_close(&store, &github, &outbox, &repo, options, &mut on_row).await;
    bar.finish_and_clear();
    store.disconnect().await;
    Ok(report(&repo, &done?, "Opened", args.run))
}
