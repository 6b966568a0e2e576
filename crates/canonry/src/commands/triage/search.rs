//! `search`: items similar to a text or to another item.

use anyhow::Result;
use canonry_domain::{ItemNumber, ItemState, ItemType, Similarity};
use canonry_retrieval::SEARCH_LIMIT;
use canonry_triage::{EmbedSource, FoundItem, SearchFor, SearchOptions, search};
use serde_json::json;

use crate::commands::triage::candidates::{score, types};
use crate::options::item_filter::{OneOrAll, one_or_all};
use crate::options::retrieval::{EmbedderOptions, ModeOption, neighbourhood, require_vectors};
use crate::output::numbers::percent;
use crate::output::printable::one_line;
use crate::output::report::Report;
use crate::output::tables::table;
use crate::session::context::Context;
use crate::session::database::DatabaseOption;
use crate::session::known_repo::RepoOption;

/// Search for items like a text or like another item.
#[derive(Debug, clap::Args)]
#[command(
    group = clap::ArgGroup::new("what").required(true).args(["query", "similar_to"]),
    before_help = "Example:\n  canonry search --query 'crash when saving'\n  \
        canonry search --repo octo/cat --similar-to 12 --type all --exclude windows"
)]
pub(crate) struct Args {
    #[command(flatten)]
    repo: RepoOption,
    /// The text to search for
    #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    query: Option<String>,
    /// The item to search by
    #[arg(long, value_name = "NUMBER")]
    similar_to: Option<ItemNumber>,
    /// Rank items with this term higher; may be repeated
    #[arg(long, value_name = "TERM")]
    include: Vec<String>,
    /// Leave out items with this term; may be repeated
    #[arg(long, value_name = "TERM")]
    exclude: Vec<String>,
    /// Only items of this type: issue, pr or all
    #[arg(long = "type", value_name = "TYPE", default_value = "issue", value_parser = one_or_all::<ItemType>)]
    item_type: OneOrAll<ItemType>,
    /// Only items in this state: open, closed or all
    #[arg(long, value_name = "STATE", default_value = "all", value_parser = one_or_all::<ItemState>)]
    state: OneOrAll<ItemState>,
    /// How many hits at most
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=SEARCH_LIMIT as i64))]
    limit: u16,
    /// The lowest score of a hit, 0 to 1
    #[arg(long, value_name = "SCORE", default_value = "0.30", value_parser = score)]
    min_score: Similarity,
    #[command(flatten)]
    mode: ModeOption,
    #[command(flatten)]
    embedder: EmbedderOptions,
    #[command(flatten)]
    database: DatabaseOption,
}

pub(crate) async fn run(args: Args, _context: &Context) -> Result<Report> {
    let store = args.database.open_existing().await?;
    let repo = args.repo.find(&store).await?;
    let embedder = args.embedder.embedder(&store).await?;
    let mut neighbourhoods = Vec::new();
    for item_type in types(args.item_type) {
        neighbourhoods
            .push(neighbourhood(&store, &repo, item_type, &*embedder, EmbedSource::Raw, &args.database).await?);
    }
    require_vectors(&store, &repo, &*embedder, args.mode.mode, &neighbourhoods).await?;
    let search_for = match (args.query, args.similar_to) {
        (_, Some(number)) => SearchFor::SimilarTo(number),
        (query, None) => SearchFor::Text(query.unwrap_or_default()),
    };
    let options = SearchOptions {
        mode: args.mode.mode,
        state: args.state.one(),
        limit: usize::from(args.limit),
        min_score: args.min_score,
        include: args.include,
        exclude: args.exclude,
    };
    let found = search(&store, &repo, &*embedder, &neighbourhoods, &search_for, &options).await?;
    store.disconnect().await;
    let hits: Vec<_> = found
        .iter()
        .map(|hit| {
            json!({
                "number": hit.number, "type": hit.item_type, "state": hit.state, "title": hit.title,
                "score": hit.score, "url": hit.url,
            })
        })
        .collect();
    Ok(Report::new(json!({ "hits": hits.len() }), text(&found))
        .of(&repo.name)
        .with("model", embedder.model_id())
        .with("calibrated", embedder.calibration().is_fitted())
        .with("hits", hits))
}

fn text(found: &[FoundItem]) -> String {
    if found.is_empty() {
        return "No similar items. Try other words, or a lower --min-score.\n".to_owned();
    }
    let mut shown = table(["item", "state", "score", "title"]);
    for hit in found {
        shown.add_row([
            format!("{} #{}", hit.item_type, hit.number),
            hit.state.to_string(),
            percent(hit.score.get()),
            one_line(&hit.title),
        ]);
    }
    format!("{shown}\n")
}
