//! `resume`: lets Canonry write to a repository again.

use anyhow::Result;
use canonry_triage::{brake_document, brakes_in_force};
use serde_json::json;

use crate::output::report::Report;
use crate::session::context::Context;
use crate::session::database::DatabaseOption;
use crate::session::known_repo::RepoOption;

/// Go on after a pause, or after people objected to too many closes.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Go on after a pause, or after people objected to too many closes.\n\n\
        Saying `/canonry resume` in a comment does the same.",
    after_help = "Example:\n  canonry resume --repo octo/cat"
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
        true => format!("Nothing holds Canonry back in {}.\n", repo.name),
        false => format!("Canonry writes to {} again.\n", repo.name),
    };
    let stats = json!({ "lifted": lifted.len() });
    Ok(Report::new(stats, text).of(&repo.name).with("lifted", lifted.iter().map(brake_document).collect::<Vec<_>>()))
}
