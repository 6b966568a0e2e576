//! `pause`: stops all writes to a repository.

use anyhow::Result;
use canonry_store::BrakeKind;
use canonry_triage::{brake_document, brakes_in_force};
use serde_json::json;

use crate::output::printable::one_line;
use crate::output::report::Report;
use crate::session::context::Context;
use crate::session::database::DatabaseOption;
use crate::session::known_repo::RepoOption;

/// Stop all writes to a repository.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Stop all writes to a repository until `canonry resume`.\n\n\
        What is found meanwhile is stored, and written afterwards if it still holds. Commands in comments are still answered, \
        and a close can still be undone. `/canonry pause` in a comment does the same.",
    before_help = "Example:\n  canonry pause\n  canonry pause --repo octo/cat --reason 'a release is under way'"
)]
pub(crate) struct Args {
    #[command(flatten)]
    repo: RepoOption,
    /// The reason, which is stored and shown
    #[arg(long, value_name = "TEXT", default_value = "paused at the command line")]
    reason: String,
    #[command(flatten)]
    database: DatabaseOption,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Report> {
    let store = args.database.open_known(context).await?;
    let repo = args.repo.find(&store).await?;
    let paused = store.close().set_brake(repo.id, BrakeKind::Pause, None, &args.reason, context.now).await?;
    let brakes = brakes_in_force(&store, repo.id).await?;
    store.disconnect().await;
    let text = match brakes.iter().find(|brake| brake.kind == BrakeKind::Pause) {
        Some(brake) if !paused => {
            format!("{} was paused before, {}: {}\n", repo.name, context.when(brake.set_at), one_line(&brake.why))
        }
        _ => format!(
            "Paused {name}: nothing is written there.\n\nTo resume: canonry resume --repo {name}\n",
            name = repo.name
        ),
    };
    let stats = json!({ "paused": u8::from(paused) });
    Ok(Report::new(stats, text).of(&repo.name).with("brakes", brakes.iter().map(brake_document).collect::<Vec<_>>()))
}
