//! `calibrate`: fits a remote model's scores to the repository's own duplicates.

use anyhow::Result;
use canonry_domain::ItemType;
use canonry_retrieval::RetrievalMode;
use canonry_triage::{EmbedSource, calibrate};
use serde_json::json;

use crate::options::retrieval::{EmbedderOptions, neighbourhood, require_vectors};
use crate::output::numbers::{percent, thousands};
use crate::output::report::Report;
use crate::session::context::Context;
use crate::session::database::DatabaseOption;
use crate::session::known_repo::RepoOption;

/// Fit a remote model's scores to known duplicates.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Fit a remote model's scores to known duplicates.\n\n\
        Thresholds keep their meaning that way: 75 % keeps 95 % of the true pairs; among items that have an earlier \
        duplicate, 90 % means even odds and 95 % four in five. Among all new items, most of which have none, it is far \
        less; `canonry backtest` measures it. The fit is used for every repository embedded by that model. The local \
        model is calibrated already.",
    before_help = "Example:\n  canonry calibrate --embedder voyage"
)]
pub(crate) struct Args {
    #[command(flatten)]
    repo: RepoOption,
    #[command(flatten)]
    embedder: EmbedderOptions,
    #[command(flatten)]
    database: DatabaseOption,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Report> {
    let store = args.database.open_known(context).await?;
    let repo = args.repo.find(&store).await?;
    let embedder = args.embedder.remote(&store).await?;
    let issues = [neighbourhood(&store, &repo, ItemType::Issue, &*embedder, EmbedSource::Raw, &args.database).await?];
    require_vectors(&store, &repo, &*embedder, RetrievalMode::Dense, &issues).await?;
    let done = calibrate(&store, &issues[0], context.now).await?;
    store.disconnect().await;
    let fitted = &done.fitted;
    let text = format!(
        "Fitted the scores of {} to {} true and {} other pairs. A score of 75 % keeps {} of the true pairs; 90 % was \
         right {} of the time, 95 % {}.\n",
        embedder.model_id(),
        thousands(done.true_pairs as u64),
        thousands(done.other_pairs as u64),
        percent(fitted.kept_at_75),
        percent(fitted.odds_at_90),
        percent(fitted.odds_at_95),
    );
    let stats = json!({ "true_pairs": done.true_pairs, "other_pairs": done.other_pairs });
    Ok(Report::new(stats, text)
        .of(&repo.name)
        .with("model", embedder.model_id())
        .with("calibration", &fitted.calibration)
        .with("kept_at_75", fitted.kept_at_75)
        .with("odds_at_90", fitted.odds_at_90)
        .with("odds_at_95", fitted.odds_at_95))
}
