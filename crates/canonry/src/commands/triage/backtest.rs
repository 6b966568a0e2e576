//! `backtest`: how often Canonry would have been right about past duplicates.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context as _, Result};
use canonry_domain::{ItemType, Probability};
use canonry_models::Embedder;
use canonry_retrieval::{Interval, RetrievalMeasures};
use canonry_store::{Repo, Store};
use canonry_triage::{
    Backtest, BacktestError, BacktestOptions, EmbedSource, GATES, Miss, Neighbourhood, TruthFile, VerdictPoint,
    backtest, backtest_html, sync_outcomes,
};
use indicatif::ProgressStyle;
use serde_json::{Map, Value, json};

use crate::commands::triage::candidates::types;
use crate::options::item_filter::{OneOrAll, one_or_all};
use crate::options::retrieval::{EmbedderOptions, ModeOption, neighbourhood};
use crate::output::exit::Exit;
use crate::output::file::OutputFile;
use crate::output::numbers::{percent, thousands};
use crate::output::printable::one_line;
use crate::output::report::Report;
use crate::output::tables::{Table, counted, table};
use crate::session::context::Context;
use crate::session::database::DatabaseOption;
use crate::session::github::{GithubOption, TOKEN_VARIABLE};
use crate::session::known_repo::RepoOption;

/// Replay past duplicates and measure the precision.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Replay past duplicates and measure the precision.\n\n\
        Every item that people closed as a duplicate is compared with only what existed when it was opened. Run this \
        before you let Canonry comment: it ends with a recommendation. Where no duplicate is known yet and \
        GITHUB_TOKEN is set, GitHub is asked for them first.",
    before_help = "Example:\n  canonry backtest --report backtest.html\n  \
        canonry backtest --repo octo/cat --type issue --truth truth.jsonl --retrieval lexical --json"
)]
pub(crate) struct Args {
    #[command(flatten)]
    repo: RepoOption,
    /// Only items of this type: issue, pr or all
    #[arg(long = "type", value_name = "TYPE", default_value = "all", value_parser = one_or_all::<ItemType>)]
    item_type: OneOrAll<ItemType>,
    /// A file of lines {"type","number","relevant":[…]} with the true duplicates [default: what people closed as duplicates]
    #[arg(long, value_name = "FILE")]
    truth: Option<PathBuf>,
    /// The wanted precision, 0 to 1: the lowest threshold that reaches it is shown
    #[arg(long, value_name = "SHARE", default_value = "0.8", value_parser = share)]
    precision: Probability,
    /// Write an HTML report with curves and the worst misses to this file
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Replay at most so many duplicates, chosen at random, and as many other items [default: all duplicates]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    limit_queries: Option<u32>,
    /// The seed of the sample; the same seed gives the same figures
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    mode: ModeOption,
    #[command(flatten)]
    embedder: EmbedderOptions,
    #[command(flatten)]
    github: GithubOption,
    #[command(flatten)]
    database: DatabaseOption,
}

fn share(text: &str) -> Result<Probability, String> {
    let number: f64 = text.parse().map_err(|_| format!("{text:?} is not a number between 0 and 1"))?;
    Probability::new(number).map_err(|error| error.to_string())
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Report> {
    let truth = args.truth.as_deref().map(TruthFile::read).transpose()?;
    let store = args.database.open_existing().await?;
    let repo = args.repo.find(&store).await?;
    // A file that cannot be written fails before the replay, not after it.
    let run_id = context.run_id.to_string();
    let page = args.report.as_deref().map(|path| OutputFile::create(path, &run_id)).transpose()?;
    let embedder = args.embedder.embedder(&store).await?;
    let begun = Instant::now();
    let mut loaded = load(&args, &store, &repo, &*embedder).await?;
    let load_seconds = begun.elapsed().as_secs_f64();
    let mut done = replay(&args, &store, &repo, &loaded, truth.as_ref(), context).await;
    let nothing_known = truth.is_none() && matches!(done, Err(BacktestError::NoDuplicates { .. }));
    if nothing_known && learn(&args, &store, &repo, context).await? {
        loaded = load(&args, &store, &repo, &*embedder).await?;
        done = replay(&args, &store, &repo, &loaded, truth.as_ref(), context).await;
    }
    store.disconnect().await;
    let done = done?;
    if let Some(mut page) = page {
        page.write_all(backtest_html(&done, context.now).as_bytes())?;
        page.finish()?;
    }
    let mut text = text(&done);
    if let Some(path) = &args.report {
        text += &format!("\nWrote the curves to {}.\n", path.display());
    }
    let exit = if done.mistakes.is_empty() { Exit::Done } else { Exit::SomeFailed };
    Ok(Report::new(done.counts, text)
        .of(&repo.name)
        .with("model", &done.model)
        .with("mode", done.options.mode)
        .with("calibrated", done.calibrated)
        .with("retrieval", retrieval(&done))
        .with("verdicts", verdicts(&done))
        .with("misses", &done.misses)
        .with("timing", timing(&done, load_seconds))
        .with("method", done.method())
        .with("cautions", done.cautions())
        .with("recommendation", done.recommendation())
        .with("errors", &done.mistakes)
        .with("report", &args.report)
        .ending(exit))
}

async fn load(args: &Args, store: &Store, repo: &Repo, embedder: &dyn Embedder) -> Result<Vec<Neighbourhood>> {
    let mut loaded = Vec::new();
    for item_type in types(args.item_type) {
        loaded.push(neighbourhood(store, repo, item_type, embedder, EmbedSource::Raw, &args.database).await?);
    }
    Ok(loaded)
}

async fn replay(
    args: &Args,
    store: &Store,
    repo: &Repo,
    loaded: &[Neighbourhood],
    truth: Option<&TruthFile>,
    context: &Context,
) -> Result<Backtest, BacktestError> {
    let bar = context.counter("replaying");
    bar.set_style(
        ProgressStyle::with_template("{spinner} replaying {bar:30} {human_pos} of {human_len} ({per_sec}, {eta})")
            .expect("invariant: a constant template"),
    );
    let options = BacktestOptions {
        mode: args.mode.mode,
        wanted_precision: args.precision.get(),
        limit_queries: args.limit_queries.map(|count| count as usize),
        seed: args.seed,
    };
    let mut progress = |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    };
    let done = backtest(store, repo, loaded, truth, options, &mut progress).await;
    bar.finish_and_clear();
    done
}

/// Asks GitHub what closed duplicates are duplicates of, if there is a token. Returns whether it learned anything.
async fn learn(args: &Args, store: &Store, repo: &Repo, context: &Context) -> Result<bool> {
    if std::env::var_os(TOKEN_VARIABLE).is_none_or(|token| token.is_empty()) {
        return Ok(false);
    }
    let bar = context.counter("outcomes from GitHub");
    let github = args.github.client(&bar)?;
    let learned = sync_outcomes(store, &github, &repo.name, &mut |so_far| bar.set_position(so_far.asked)).await;
    bar.finish_and_clear();
    let learned = learned.context("no duplicates are known yet, and GitHub could not be asked for them")?;
    Ok(!learned.learned.is_empty())
}

fn retrieval(done: &Backtest) -> Value {
    let mut all = measures(&done.retrieval);
    let by_type: Map<String, Value> =
        done.by_type.iter().map(|(item_type, of)| (item_type.to_string(), measures(of))).collect();
    let curve: Vec<Value> = done.recall_curve.iter().map(|(k, recall)| json!({ "k": k, "recall": recall })).collect();
    all["by_type"] = json!(by_type);
    all["curve"] = json!(curve);
    all
}

fn measures(of: &RetrievalMeasures) -> Value {
    let limits = |interval: Interval| [interval.low, interval.high];
    json!({
        "queries": of.queries,
        "recall_at": {
            "1": of.recall_at_1.value, "5": of.recall_at_5.value,
            "10": of.recall_at_10.value, "20": of.recall_at_20.value,
        },
        "mrr": of.mrr.value,
        "intervals": {
            "recall_at": {
                "1": limits(of.recall_at_1), "5": limits(of.recall_at_5),
                "10": limits(of.recall_at_10), "20": limits(of.recall_at_20),
            },
            "mrr": limits(of.mrr),
        },
    })
}

/// Reports precision and recall at the default threshold of a new installation, then all other figures.
fn verdicts(done: &Backtest) -> Value {
    let point = done.default_point();
    json!({
        "threshold": point.threshold,
        "precision": point.precision.map(|share| share.value),
        "recall": point.recall.value,
        "intervals": {
            "precision": point.precision.map(|share| [share.low, share.high]),
            "recall": [point.recall.low, point.recall.high],
        },
        "gates": GATES.map(|gate| *done.verdicts.at(gate)),
        "wanted_precision": done.verdicts.wanted_precision,
        "meets_wanted": done.verdicts.meets_wanted,
        "reliability": done.verdicts.reliability,
        "levels": done.verdicts.levels,
    })
}

fn timing(done: &Backtest, load_seconds: f64) -> Value {
    let mut timing = json!(done.timing);
    timing["load_seconds"] = json!(load_seconds);
    timing
}

/// How many misses the text shows at most; the page and `--json` contain more.
const SHOWN: usize = 8;

fn text(done: &Backtest) -> String {
    let counts = &done.counts;
    let by = done.model.as_deref().map(|model| format!(", vectors of {}", one_line(model))).unwrap_or_default();
    let mut text = format!(
        "Replayed {} and {} of {} ({}{by}), each against the items that existed before it.\n",
        counted(counts.duplicates_replayed as u64, "duplicate"),
        counted(counts.others_replayed as u64, "other item"),
        done.repo,
        done.options.mode,
    );
    for caution in done.cautions() {
        text += &format!("  ! {caution}\n");
    }
    for mistake in done.mistakes.iter().take(SHOWN) {
        text += &format!("    line {}: {}\n", mistake.line, one_line(&mistake.message));
    }
    text += &format!("\nHow often the right earlier item is found:\n{}\n", found(done));
    text += &format!(
        "\nHow often a comment would have been right, from this score of the nearest item on:\n{}\n",
        spoken(done)
    );
    text += &format!("{}\n", wanted(done));
    text += &format!("\nHow often the nearest item is right, by its score:\n{}\n", reliable(done));
    if !done.misses.is_empty() {
        text += "\nWorst misses:\n";
    }
    for miss in done.misses.iter().take(SHOWN) {
        text += &missed(miss);
    }
    text += "\nRecommendation:\n";
    for sentence in done.recommendation() {
        text += &format!("  {sentence}\n");
    }
    let timing = &done.timing;
    text += &format!(
        "\nTook {:.1} seconds; a search took {:.1} ms (median), {:.1} ms (95th percentile).\n",
        timing.replay_seconds, timing.search_ms_p50, timing.search_ms_p95
    );
    text
}

fn found(done: &Backtest) -> Table {
    let mut found = table(["", "queries", "first", "first 5", "first 10", "first 20", "MRR"]);
    let mut add = |name: &str, of: &RetrievalMeasures| {
        found.add_row([
            name.to_owned(),
            thousands(of.queries as u64),
            share_cell(of.recall_at_1),
            share_cell(of.recall_at_5),
            share_cell(of.recall_at_10),
            share_cell(of.recall_at_20),
            format!("{:.2} ({:.2}–{:.2})", of.mrr.value, of.mrr.low, of.mrr.high),
        ]);
    };
    add("all", &done.retrieval);
    if done.by_type.len() > 1 {
        for (item_type, of) in &done.by_type {
            add(&format!("{}s", item_type.in_words()), of);
        }
    }
    found.with_numbers_from(1)
}

fn spoken(done: &Backtest) -> Table {
    let mut spoken = table(["score", "comments per 1,000 new items", "right", "duplicates found"]);
    for gate in GATES {
        let point = done.verdicts.at(gate);
        spoken.add_row([
            percent(gate),
            format!("{:.1}", point.per_thousand),
            point.precision.map_or("no comments".to_owned(), share_cell),
            share_cell(point.recall),
        ]);
    }
    spoken.with_numbers_from(0)
}

fn wanted(done: &Backtest) -> String {
    let wanted = done.verdicts.wanted_precision * 100.0;
    match &done.verdicts.meets_wanted {
        Some(VerdictPoint { threshold, given, precision: Some(precision), .. }) => format!(
            "The lowest score that would have been right at least {wanted:.0} % of the time: {}, right {}, with {} in the replay.",
            percent(threshold.get()),
            share_cell(*precision),
            counted(*given as u64, "comment")
        ),
        _ => format!("No score would have been right at least {wanted:.0} % of the time."),
    }
}

fn reliable(done: &Backtest) -> Table {
    let mut reliable = table(["score", "replayed items", "right"]);
    for band in &done.verdicts.reliability {
        reliable.add_row([
            format!("{:.0}–{:.0} %", band.from * 100.0, band.to * 100.0),
            thousands(band.answers as u64),
            share_cell(band.right),
        ]);
    }
    reliable.with_numbers_from(0)
}

fn missed(miss: &Miss) -> String {
    let named = |item: &canonry_triage::NamedItem| format!("#{} {}", item.number, one_line(&item.title));
    let rank = miss.rank.map_or("not among the first 100".to_owned(), |rank| format!("rank {rank}"));
    let mut text = format!(
        "  {} {}\n    is a duplicate of {} ({rank})\n",
        miss.item_type,
        named(&miss.duplicate),
        named(&miss.expected)
    );
    if let (Some(first), Some(score)) = (&miss.first, miss.first_score) {
        text += &format!("    the nearest was {} ({})\n", named(first), percent(score.get()));
    }
    if let Some(url) = &miss.duplicate.url {
        text += &format!("    {}\n", one_line(url));
    }
    text
}

fn share_cell(share: Interval) -> String {
    format!("{:.0} % ({:.0}–{:.0})", share.value * 100.0, share.low * 100.0, share.high * 100.0)
}
