//! `embed`: vectors for a repository's items.

use anyhow::{Result, anyhow};
use canonry_triage::{EmbedOptions, EmbedReport, embed};
use serde_json::json;

use crate::options::item_filter::ItemFilterOptions;
use crate::options::retrieval::{EmbedderOptions, SourceOptions};
use crate::output::exit::Exit;
use crate::output::printable::one_line;
use crate::output::report::Report;
use crate::output::tables::counted;
use crate::session::context::Context;
use crate::session::database::DatabaseOption;
use crate::session::known_repo::RepoOption;

/// Compute the vectors that items are compared by.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Compute the vectors that items are compared by.\n\n\
        The local embedder is part of this program: no download, no key, no network. Vectors are stored batch by \
        batch; with --only-changed an interrupted run continues where it stopped. Without a terminal, a line on stderr shows \
        every ten seconds how much is left.",
    before_help = "Example:\n  canonry embed --only-changed\n  \
        OPENAI_API_KEY=… canonry embed --repo octo/cat --embedder openai"
)]
pub(crate) struct Args {
    #[command(flatten)]
    repo: RepoOption,
    /// Only items without a current vector of this model
    #[arg(long)]
    only_changed: bool,
    #[command(flatten)]
    filter: ItemFilterOptions,
    #[command(flatten)]
    source: SourceOptions,
    #[command(flatten)]
    embedder: EmbedderOptions,
    #[command(flatten)]
    database: DatabaseOption,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Report> {
    let store = args.database.open_known(context).await?;
    let repo = args.repo.find(&store).await?;
    let embedder = args.embedder.embedder(&store).await?;
    let options = EmbedOptions {
        source: args.source.source(),
        item_type: args.filter.item_type(),
        state: args.filter.state(),
        only_changed: args.only_changed,
    };
    let progress = context.progress("items embedded");
    let mut told = |so_far: &EmbedReport| progress.update("items embedded", so_far.embedded, Some(so_far.total));
    let done = embed(&store, &*embedder, &repo, options, context.now, &mut told).await;
    progress.finish();
    store.disconnect().await;
    let done = done.map_err(|failure| anyhow!("{failure}"))?;
    let mut text =
        format!("Embedded {} of {} with {}.\n", counted(done.embedded, "text"), repo.name, embedder.model_id());
    if done.without_card > 0 {
        let count = counted(done.without_card, "item");
        text += &format!("{count} had no current card; run `canonry analyze-intent --only-changed`.\n");
    }
    for (number, message) in &done.refused {
        text += &format!("Skipped #{number}: {}\n", one_line(message));
    }
    let stats = json!({
        "discovered": done.discovered,
        "embedded": done.embedded,
        "without_card": done.without_card,
        "failed": done.refused.len(),
    });
    let errors: Vec<_> =
        done.refused.iter().map(|(number, message)| json!({ "number": number, "message": message })).collect();
    let exit = if errors.is_empty() { Exit::Done } else { Exit::SomeFailed };
    Ok(Report::new(stats, text).of(&repo.name).with("model", embedder.model_id()).with("errors", errors).ending(exit))
}
