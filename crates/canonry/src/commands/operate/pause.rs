//! `pause`: holds back everything that Canonry writes in a repository.

use anyhow::Result;
use canonry_store::BrakeKind;
use canonry_triage::{brake_document, brakes_in_force};
use serde_json::json;

use crate::output::printable::one_line;
use crate::output::report::Report;
use crate::session::context::Context;
use crate::session::database::DatabaseOption;
use crate::session::known_repo::RepoOption;

/// Stop all writes to a repository until `canonry resume`.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Stop all writes to a repository until `canonry resume`.\n\n\
        What is found meanwhile is kept and written afterwards if it still holds. Answers to people who ask in comments \
        still come, and a close can still be undone. Saying `/canonry pause` in a comment does the same.",
    after_help = "Example:\n  canonry pause --repo octo/cat --reason 'a release is under way'"
)]
pub(crate) struct Args {
    #[command(flatten)]
    repo: RepoOption,
    /// Why, for who reads it later
    #[arg(long, value_name = "TEXT", default_value = "asked for at the command line")]
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
            format!("{} is paused already, since {}: {}\n", repo.name, brake.set_at, one_line(&brake.why))
        }
        _ => format!("Nothing more is written to {name}.\n\nNext: canonry resume --repo {name}\n", name = repo.name),
    };
    let stats = json!({ "paused": u8::from(paused) });
    Ok(Report::new(stats, text).of(&repo.name).with("brakes", brakes.iter().map(brake_document).collect::<Vec<_>>()))
}
