//! `candidates`: finds and stores each item's nearest neighbours.

use anyhow::Result;
use canonry_domain::{ItemState, ItemType, Similarity, ordered_scores};
use canonry_retrieval::ranked_by;
use canonry_store::SetStatus;
use canonry_triage::{CandidateOptions, CandidatesReport, EmbedSource, NeighbourQuery, candidates};
use serde_json::{Value, json};

use crate::options::item_filter::{OneOrAll, one_or_all};
use crate::options::retrieval::{EmbedderOptions, ModeOption, SourceOptions, neighbourhood, require_vectors};
use crate::output::numbers::percent;
use crate::output::report::Report;
use crate::output::tables::{counted, table};
use crate::session::context::Context;
use crate::session::database::DatabaseOption;
use crate::session::known_repo::RepoOption;

/// Find and store each item's nearest neighbours.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Find and store each item's nearest neighbours.\n\n\
        Neighbours are items of the same type. A set is stored even when it is empty, and replaces the item's \
        earlier one. `canonry show -v` shows what each score is made of.",
    before_help = "Example:\n  canonry candidates\n  canonry candidates --repo octo/cat --type issue --k 8 --min-score 0.8"
)]
pub(crate) struct Args {
    #[command(flatten)]
    repo: RepoOption,
    /// Only items of this type: issue, pr or all
    #[arg(long = "type", value_name = "TYPE", default_value = "all", value_parser = one_or_all::<ItemType>)]
    item_type: OneOrAll<ItemType>,
    /// How many neighbours at most
    #[arg(long, value_name = "K", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=50))]
    k: u16,
    /// The lowest score of a neighbour, 0 to 1
    #[arg(long, value_name = "SCORE", default_value = "0.75", value_parser = score)]
    min_score: Similarity,
    /// The state of the neighbours: open, closed or all
    #[arg(long, value_name = "STATE", default_value = "open", value_parser = one_or_all::<ItemState>)]
    state: OneOrAll<ItemState>,
    /// The state of the items themselves: open, closed or all
    #[arg(long, value_name = "STATE", default_value = "open", value_parser = one_or_all::<ItemState>)]
    source_state: OneOrAll<ItemState>,
    #[command(flatten)]
    source: SourceOptions,
    #[command(flatten)]
    mode: ModeOption,
    #[command(flatten)]
    embedder: EmbedderOptions,
    #[command(flatten)]
    database: DatabaseOption,
}

/// Parses a score from the command line.
pub(crate) fn score(text: &str) -> Result<Similarity, String> {
    let number: f64 = text.parse().map_err(|_| format!("{text:?} is not a number between 0 and 1"))?;
    Similarity::new(number).map_err(|error| error.to_string())
}

pub(crate) fn types(option: OneOrAll<ItemType>) -> Vec<ItemType> {
    ItemType::one_or_all(option.one())
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Report> {
    let store = args.database.open_known(context).await?;
    let repo = args.repo.find(&store).await?;
    let embedder = args.embedder.embedder(&store).await?;
    let source = args.source.source();
    let progress = context.progress("items compared");
    let load = async |source: EmbedSource| {
        let mut loaded = Vec::new();
        for item_type in types(args.item_type) {
            loaded.push(neighbourhood(&store, &repo, item_type, &*embedder, source, &args.database).await?);
        }
        anyhow::Ok(loaded)
    };
    let neighbourhoods = load(source).await?;
    // Items without a current card are compared by their text.
    let by_text = if source == EmbedSource::Raw { Vec::new() } else { load(EmbedSource::Raw).await? };
    require_vectors(&store, &repo, &*embedder, args.mode.mode, &neighbourhoods).await?;
    let options = CandidateOptions {
        wanted: NeighbourQuery {
            mode: args.mode.mode,
            k: usize::from(args.k),
            min_score: args.min_score,
            state: args.state.one(),
        },
        source_state: args.source_state.one(),
        joining: None,
    };
    let mut all = CandidatesReport::default();
    let rows = neighbourhoods.iter().flat_map(|neighbourhood| neighbourhood.rows().values());
    let total = rows.filter(|row| options.source_state.is_none_or(|state| row.state == state)).count() as u64;
    for (place, neighbourhood) in neighbourhoods.iter().enumerate() {
        let (before, by_text) = (all.discovered, by_text.get(place));
        let mut told = |done: u64, _: u64| progress.update("items compared", before + done, Some(total));
        let done = candidates(&store, &repo, neighbourhood, by_text, &options, context.now, &mut told).await?;
        all.discovered += done.discovered;
        all.skipped_missing_embedding += done.skipped_missing_embedding;
        all.skipped_changed += done.skipped_changed;
        all.fell_back += done.fell_back;
        all.sets.extend(done.sets);
    }
    progress.finish();
    store.disconnect().await;
    let calibrated = embedder.calibration().is_fitted();
    Ok(Report::new(stats(&all), text(&all, embedder.model_id(), calibrated))
        .of(&repo.name)
        .with("model", embedder.model_id())
        .with("calibrated", calibrated)
        .with("sets", all.sets.iter().map(set).collect::<Vec<_>>()))
}

fn members(all: &CandidatesReport) -> usize {
    all.sets.iter().map(|set| set.members.len()).sum()
}

fn stats(all: &CandidatesReport) -> Value {
    json!({
        "discovered": all.discovered,
        "sets_written": all.sets.len(),
        "members_written": members(all),
        "empty_sets": all.sets.iter().filter(|set| set.members.is_empty()).count(),
        "fell_back_to_raw": all.fell_back,
        "skipped_missing_embedding": all.skipped_missing_embedding,
        "skipped_changed": all.skipped_changed,
    })
}

fn set(set: &canonry_triage::WrittenSet) -> Value {
    let members = set.members.iter().zip(scores(set)).map(|(hit, score)| {
        json!({
            "number": hit.number, "rank": hit.rank, "score": score, "similarity": hit.score, "parts": hit.parts,
        })
    });
    json!({
        "number": set.number,
        "type": set.item_type,
        "representation": set.representation.as_str(),
        "status": SetStatus::Fresh.as_str(),
        "members": members.collect::<Vec<_>>(),
    })
}

fn scores(set: &canonry_triage::WrittenSet) -> Vec<f64> {
    ordered_scores(&set.members.iter().map(|hit| hit.score.get()).collect::<Vec<_>>())
}

/// How many of the nearest pairs the text shows at most.
const SHOWN: usize = 15;
/// How many reasons for a pair's rank are shown at most.
const REASONS: usize = 3;

fn text(all: &CandidatesReport, model: &str, calibrated: bool) -> String {
    let sets = all.sets.len() as u64;
    let mut text =
        format!("Stored {} with {} ({model}).\n", counted(sets, "set"), counted(members(all) as u64, "neighbour"));
    if all.fell_back > 0 {
        let count = counted(all.fell_back, "item");
        text += &format!("Compared {count} by title and body: they have no current card.\n");
    }
    if all.skipped_missing_embedding > 0 {
        let count = counted(all.skipped_missing_embedding, "item");
        text += &format!("Skipped {count} without a current vector; run `canonry embed --only-changed`.\n");
    }
    if all.skipped_changed > 0 {
        text += &format!(
            "Skipped {} that changed meanwhile; run the command again.\n",
            counted(all.skipped_changed, "item")
        );
    }
    if !calibrated {
        text += "The scores are raw cosines: this model is not calibrated (see `canonry calibrate`).\n";
    }
    let best = |set: &'_ canonry_triage::WrittenSet| scores(set).first().copied();
    let mut nearest: Vec<_> = all.sets.iter().filter_map(|set| Some((set, set.members.first()?, best(set)?))).collect();
    nearest.sort_by(|one, other| other.2.total_cmp(&one.2).then(one.0.number.cmp(&other.0.number)));
    if nearest.is_empty() {
        return text;
    }
    let mut shown = table(["item", "nearest", "score", "mainly because of"]);
    for (set, best, score) in nearest.iter().take(SHOWN) {
        // A row should fit into a terminal; `show -v` shows the other reasons.
        let reasons = ranked_by(best.parts.iter().map(|(part, value)| (*part, *value))).unwrap_or_default();
        shown.add_row([
            format!("{} #{}", set.item_type, set.number),
            format!("#{}", best.number),
            percent(*score),
            reasons.split(", ").take(REASONS).collect::<Vec<_>>().join(", "),
        ]);
    }
    if nearest.len() > SHOWN {
        text += &format!("The {SHOWN} nearest of {}:\n", counted(nearest.len() as u64, "pair"));
    }
    text + &format!("{shown}\n")
}
