//! `resume`: lets Canonry write to a repository again.

use anyhow::Result;
use canonry_triage::{brake_document, brakes_in_force};
use serde_json::json;

use crate::output::report::Report;
use crate::session::context::Context;
use crate::session::database::DatabaseOption;
use crate::session::known_repo::RepoOption;

/// Allow writes again after a pause or too many objections.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Allow writes again after a pause, or automatic closes after too many objections.\n\n\
        `/canonry resume` in a comment does the same.",
    before_help = "Example:\n  canonry resume --repo octo/cat"
)]
pub(crate) struct Args {
    #[command(flatten)]
    repo: RepoOption,
    #[command(flatten)]
    database: DatabaseOption,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Report> {
    let store = args.database.open_known(context).await?;
    let repo = args.repo.find(&store).await?;
    let lifted = brakes_in_force(&store, repo.id).await?;
    store.close().lift_brakes(repo.id, None, context.now).await?;
    store.disconnect().await;
    let text = match lifted.is_empty() {
        true => format!("{} was not paused.\n", repo.name),
        false => format!("Resumed {}.\n", repo.name),
    };
    let stats = json!({ "lifted": lifted.len() });
    Ok(Report::new(stats, text).of(&repo.name).with("lifted", lifted.iter().map(brake_document).collect::<Vec<_>>()))
}
