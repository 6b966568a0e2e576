//! `undo`: reopens the items that a plan closed.

use anyhow::Result;
use canonry_domain::{ItemNumber, UndoReason};
use canonry_github::outbox::Outbox;
use canonry_triage::{ReportedRow, UndoOptions, undo_close};

use crate::commands::triage::apply::{live_settings, report};
use crate::options::plan_number::PlanNumber;
use crate::output::report::Report;
use crate::run::release_leases_when_stopped;
use crate::session::context::Context;
use crate::session::database::DatabaseOption;
use crate::session::github::GithubOption;
use crate::session::known_repo::RunRepoOption;

/// Reopen what a plan closed.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Reopen what a plan closed.\n\n\
        Only items whose last close is Canonry's are reopened, each with a comment that says why. With the default \
        reason the two items are ruled not to be duplicates, and no later plan closes one as a duplicate of the other.",
    before_help = "Example:\n  canonry undo 3\n  \
        canonry undo 3 --item 12 --reason wrong-target --note 'it is #9'"
)]
pub(crate) struct Args {
    #[command(flatten)]
    plan: PlanNumber,
    #[command(flatten)]
    repo: RunRepoOption,
    /// Only this item [default: all that the plan closed]
    #[arg(long, value_name = "NUMBER")]
    item: Option<ItemNumber>,
    /// The reason: not-duplicate, wrong-target or other; only not-duplicate rules that the two are different
    #[arg(long, value_name = "REASON", default_value = "not-duplicate")]
    reason: UndoReason,
    /// A text to add to the comment
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    #[command(flatten)]
    github: GithubOption,
    #[command(flatten)]
    database: DatabaseOption,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Report> {
    let plan = args.plan.get();
    let store = args.database.open_known(context).await?;
    let repo = args.repo.find(&store, plan).await?;
    let bar = context.counter("rows");
    let github = args.github.client(&bar)?;
    let config = live_settings(&github, &repo).await?.config;
    let outbox = Outbox::open(store.clone(), github.clone(), rand::random()).await?;
    let run_id = context.run_id.to_string();
    let options = UndoOptions {
        run: plan,
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
    Ok(report(&repo, &done?, "Reopened", plan))
}
