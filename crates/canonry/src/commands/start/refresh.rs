//! `refresh`: fetches new items of a repository that was synced before.

use anyhow::Result;
use canonry_domain::ItemType;
use canonry_triage::{CHANGES_PER_SYNC, SyncOptions, sync};

use crate::commands::start::sync::{Further, fetch_changes, report, stopped};
use crate::options::item_filter::ItemFilterOptions;
use crate::output::report::Report;
use crate::session::context::Context;
use crate::session::database::DatabaseOption;
use crate::session::github::GithubOption;
use crate::session::known_repo::RepoOption;

/// Fetch new items of a repository that was synced before.
#[derive(Debug, clap::Args)]
#[command(before_help = "Example:\n  canonry refresh\n  canonry refresh --repo octo/cat --refresh-known")]
pub(crate) struct Args {
    #[command(flatten)]
    repo: RepoOption,
    /// Also update known items, edited titles and bodies included
    #[arg(long)]
    refresh_known: bool,
    #[command(flatten)]
    filter: ItemFilterOptions,
    /// Show what would change, and write nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    github: GithubOption,
    #[command(flatten)]
    database: DatabaseOption,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Report> {
    let bar = context.counter("items from GitHub");
    let github = args.github.client(&bar)?;
    let store =
        if args.dry_run { args.database.open_existing().await? } else { args.database.open_known(context).await? };
    let repo = args.repo.find(&store).await?;
    let options = SyncOptions {
        item_type: args.filter.item_type(),
        state: args.filter.state(),
        since: None,
        only_new: !args.refresh_known,
        dry_run: args.dry_run,
    };
    let done = sync(&store, &github, &repo.name, options, &mut |so_far| bar.set_position(so_far.fetched)).await;
    let done = done.map_err(|failure| stopped(&failure))?;
    let name = done.repo.clone().unwrap_or(repo.name);
    let mut more = Further::default();
    if !args.dry_run && args.filter.item_type() != Some(ItemType::Issue) {
        more.changes = Some(fetch_changes(&store, &github, &name, CHANGES_PER_SYNC, &bar).await?);
    }
    bar.finish_and_clear();
    store.disconnect().await;
    Ok(report(&done, &name, args.dry_run, &more))
}
