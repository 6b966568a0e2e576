//! `backtest`: how often Canonry would have been right about past duplicates.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context as _, Result};
use canonry_domain::{AdjudicationCase, Interval, ItemType, Probability, Verdict};
use canonry_models::Embedder;
use canonry_retrieval::RetrievalMeasures;
use canonry_store::{Repo, Store, StoredJudge};
use canonry_triage::{
    Backtest, BacktestError, BacktestOptions, DEFAULT_INDEX_MEMORY, Detectors, EmbedSource, GATES, IndexCache, Judge,
    JudgedShare, LEVELS, Miss, Neighbourhood, QuestionForecast, ReplayOptions, ReplayedVerdict, TruthFile,
    VerdictPoint, VerdictReplay, backtest, backtest_html, forecast_questions, replay_verdicts, sync_outcomes,
};
use indicatif::ProgressStyle;
use serde_json::{Map, Value, json};

use crate::commands::triage::candidates::types;
use crate::options::chat::{LimitOptions, ProviderOptions};
use crate::options::item_filter::{OneOrAll, one_or_all};
use crate::options::retrieval::{EmbedderOptions, ModeOption, neighbourhood, snapshots_of};
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

/// Replay past duplicates and measure the verdicts.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Replay past duplicates and measure the verdicts.\n\n\
        A sample of the items that people closed as duplicates, and as many others, are judged as if they were new, with only \
        what existed when they were opened. Run this before you let Canonry comment: it ends with a recommendation. Any \
        judge can be replayed; the cost of a model is estimated before it is asked. People's links miss duplicates: read what \
        they did not link with `canonry adjudicate`, and run it again. Where no duplicate is known yet and GITHUB_TOKEN is \
        set, GitHub is asked for them first.\n\n\
        With --retrieval-only no judge is asked: tables of scores show how well the earlier item is found.",
    before_help = "Example:\n  canonry backtest --report backtest.html\n  \
        canonry backtest --provider openai --base-url http://127.0.0.1:8080/v1 --cascade --max-calls 200\n  \
        canonry backtest --repo octo/cat --type issue --truth truth.jsonl --retrieval-only --json"
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
    /// The wanted precision of comments, 0 to 1
    #[arg(long, value_name = "SHARE", default_value = "0.8", value_parser = share)]
    precision: Probability,
    /// Write an HTML report with curves and the worst misses to this file
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Judge at most so many duplicates, chosen at random, and as many other items
    #[arg(long, value_name = "COUNT", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    sample: u32,
    /// Show only how well the earlier item is found, and ask no judge
    #[arg(long)]
    retrieval_only: bool,
    /// Only estimate what asking the model would take
    #[arg(long, conflicts_with = "retrieval_only")]
    estimate: bool,
    /// Search for at most so many duplicates, chosen at random, and as many other items [default: all duplicates]
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
    provider: ProviderOptions,
    #[command(flatten)]
    limits: LimitOptions,
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
    let model = args.provider.model()?;
    let judge = args.provider.judge(model.as_deref());
    let truth = args.truth.as_deref().map(TruthFile::read).transpose()?;
    // Verdicts that nobody linked are stored, for people to read.
    let store = match args.retrieval_only || args.estimate {
        true => args.database.open_existing().await?,
        false => args.database.open_known(context).await?,
    };
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
    let done = done?;
    let judged = match args.retrieval_only {
        true => None,
        false => Some(judged(&args, &store, &repo, &loaded, truth.as_ref(), &*embedder, judge, context).await?),
    };
    let verdicts_now = judged.as_ref().and_then(|judged| judged.replay.as_ref());
    if let Some(replay) = verdicts_now {
        let cases: Vec<AdjudicationCase> =
            replay.worth_reading().into_iter().filter_map(ReplayedVerdict::case).collect();
        store.judge().add_backtest_cases(repo.id, args.seed as i64, &cases, context.now).await?;
    }
    store.disconnect().await;
    if let Some(mut page) = page {
        page.write_all(backtest_html(&done, verdicts_now, context.now).as_bytes())?;
        page.finish()?;
    }
    let wanted = args.precision.get();
    let mut text = match &judged {
        None => text(&done),
        Some(judged) => judged_text(&done, judged, wanted),
    };
    if let Some(path) = &args.report {
        text += &format!("\nWrote the curves to {}.\n", path.display());
    }
    let is_partial = verdicts_now.is_some_and(|replay| replay.stopped.is_some());
    let exit = if done.mistakes.is_empty() && !is_partial { Exit::Done } else { Exit::SomeFailed };
    let mut report = Report::new(done.counts, text);
    if let Some(judged) = &judged {
        report = report
            .with("judge", json!({ "provider": judged.judge.provider, "model": judged.judge.model }))
            .with("forecast", judged.forecast)
            .with("calls", verdicts_now.map(|replay| replay.calls))
            .with("cost_usd", verdicts_now.and_then(|replay| replay.cost_usd))
            .with("stopped", verdicts_now.and_then(|replay| replay.stopped.as_deref()))
            .with("local_verdicts", judged.local.as_ref().map(replayed));
    }
    let (method, recommendation) = match verdicts_now {
        Some(replay) => (replay.method(), judged_advice(&done, judged.as_ref(), replay, wanted)),
        None => (done.method(), done.recommendation()),
    };
    Ok(report
        .of(&repo.name)
        .with("model", &done.model)
        .with("mode", done.options.mode)
        .with("calibrated", done.calibrated)
        .with("retrieval", retrieval(&done))
        .with("verdicts", verdicts_now.map_or_else(|| verdicts(&done), replayed))
        .with("misses", &done.misses)
        .with("timing", timing(&done, load_seconds))
        .with("method", method)
        .with("cautions", done.cautions())
        .with("recommendation", recommendation)
        .with("errors", &done.mistakes)
        .with("report", &args.report)
        .ending(exit))
}

/// A replay of verdicts, and what it is compared with.
struct JudgedBacktest {
    judge: StoredJudge,
    /// What asking the model was expected to take; `None` for the local judge.
    forecast: Option<QuestionForecast>,
    /// `None` if only the forecast was wanted.
    replay: Option<VerdictReplay>,
    /// The same replay with the local judge, if a model judged.
    local: Option<VerdictReplay>,
}

#[expect(clippy::too_many_arguments, reason = "the command's parts, each of which is another thing")]
async fn judged(
    args: &Args,
    store: &Store,
    repo: &Repo,
    loaded: &[Neighbourhood],
    truth: Option<&TruthFile>,
    embedder: &dyn Embedder,
    judge: Judge<'_>,
    context: &Context,
) -> Result<JudgedBacktest> {
    let snapshots = snapshots_of(&args.database)?;
    let indexes = IndexCache::new(DEFAULT_INDEX_MEMORY as usize * 1_000_000);
    let options = ReplayOptions {
        mode: args.mode.mode,
        sample: args.sample as usize,
        seed: args.seed,
        budget: args.limits.budget(),
        run_id: context.run_id.to_string(),
    };
    let with = |judge| Detectors {
        github: None,
        embedder,
        extractor: None,
        judge,
        snapshots: snapshots.as_deref(),
        indexes: Some(&indexes),
    };
    let line = context.progress("items judged");
    let mut progress = |done, total| line.update("items judged", done, Some(total));
    let local = replay_verdicts(store, repo, loaded, truth, with(Judge::Local), &options, context.now, &mut progress);
    let local = local.await?;
    if matches!(judge, Judge::Local) {
        line.finish();
        return Ok(JudgedBacktest { judge: judge.stored(), forecast: None, replay: Some(local), local: None });
    }
    let forecast = forecast_questions(store, repo, &local, judge, &options.budget).await?;
    let mut judged =
        JudgedBacktest { judge: judge.stored(), forecast: Some(forecast), replay: None, local: Some(local) };
    if !args.estimate {
        if !context.quiet {
            writeln!(anstream::stderr().lock(), "Asking {}: {}.", judged.judge.model, expected(forecast))?;
        }
        let with = with(judge);
        let replay = replay_verdicts(store, repo, loaded, truth, with, &options, context.now, &mut progress).await?;
        judged.replay = Some(replay);
    }
    line.finish();
    Ok(judged)
}

/// `about 380 questions, 1,200,000 input tokens, 133,000 output tokens, 3.10 US dollars`.
fn expected(forecast: QuestionForecast) -> String {
    let cost = forecast.cost_usd.map_or_else(String::new, |cost| format!(", {cost:.2} US dollars"));
    format!(
        "about {}, {} input tokens, {} output tokens{cost}",
        counted(forecast.questions, "question"),
        thousands(forecast.input_tokens),
        thousands(forecast.output_tokens)
    )
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

/// The replayed verdicts, with the same keys for precision and recall.
fn replayed(replay: &VerdictReplay) -> Value {
    let said = replay.said();
    let share = said.estimate.precision();
    let cost = replay.cost_per_duplicate();
    let levels: Vec<Value> = LEVELS
        .iter()
        .map(|level| {
            let mut row = json!(replay.at_confidence(*level));
            row["confidence"] = json!(level);
            row
        })
        .collect();
    json!({
        "judged": replay.verdicts.len(),
        "asked_model": replay.asked_model(),
        "settled_duplicates": replay.settled_duplicates(),
        "unconfirmed": replay.unconfirmed(),
        "without_evidence": replay.without_evidence(),
        "precision": share.map(|share| share.value),
        "recall": said.recall.value,
        "intervals": {
            "precision": share.map(|share| [share.low, share.high]),
            "recall": [said.recall.low, said.recall.high],
            "cost_per_duplicate_usd": cost.map(|cost| [cost.low, cost.high]),
        },
        "said": said,
        "duplicate": replay.of_kind(Verdict::Duplicate),
        "maybe_duplicate": replay.of_kind(Verdict::MaybeDuplicate),
        "levels": levels,
        "cost_per_duplicate_usd": cost.map(|cost| cost.value),
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

fn judged_advice(done: &Backtest, judged: Option<&JudgedBacktest>, replay: &VerdictReplay, wanted: f64) -> Vec<String> {
    replay.recommendation(&done.repo, wanted, judged.and_then(|judged| judged.local.as_ref()))
}

fn judged_text(done: &Backtest, judged: &JudgedBacktest, wanted: f64) -> String {
    let Some(replay) = &judged.replay else {
        let forecast = judged.forecast.map(expected).unwrap_or_default();
        return format!("Asking {} would take {forecast}. Nothing was asked.\n", one_line(&judged.judge.model));
    };
    let mut text = format!("{}\n", replay.method());
    for caution in done.cautions() {
        text += &format!("  ! {caution}\n");
    }
    for mistake in done.mistakes.iter().take(SHOWN) {
        text += &format!("    line {}: {}\n", mistake.line, one_line(&mistake.message));
    }
    if replay.without_date > 0 {
        let items = counted(replay.without_date as u64, "item");
        text += &format!("  ! {items} could not be replayed: nobody knows when they were filed.\n");
    }
    if let Some(why) = &replay.stopped {
        text += &format!("  ! Some items were not judged: {}.\n", one_line(why));
    }
    if replay.is_cascade {
        text += &format!(
            "The model was asked about {} of {}; the local judge settled the others.\n",
            thousands(replay.asked_model()),
            counted(replay.verdicts.len() as u64, "item")
        );
        text += &match replay.settled_duplicates() {
            0 => "Asked about every item, it would have found no more known duplicates.\n".to_owned(),
            count => {
                let more = counted(count, "more known duplicate");
                format!("Asked about every item, it might have found {more} at most.\n")
            }
        };
    }
    let found = done.retrieval.recall_at_10;
    text +=
        &format!("\nThe earlier item is among the first ten neighbours of {} of the duplicates.\n", share_cell(found));
    text +=
        &format!("\nVerdicts of {} ({}):\n{}\n", one_line(&judged.judge.model), judged.judge.provider, kinds(replay));
    text += &format!("\nAnswers by their confidence, whatever the thresholds:\n{}\n", confidences(replay));
    if let Some(cost) = replay.cost_usd {
        text += &format!("\nThe model cost {cost:.2} US dollars for {}", counted(replay.calls, "question"));
        text += &match replay.cost_per_duplicate() {
            Some(each) => format!(
                ", {:.3} ({:.3} to {:.3}) for each duplicate that was named rightly.\n",
                each.value, each.low, each.high
            ),
            None => ".\n".to_owned(),
        };
    }
    text += "\nRecommendation:\n";
    for sentence in judged_advice(done, Some(judged), replay, wanted) {
        text += &format!("  {sentence}\n");
    }
    text
}

fn kinds(replay: &VerdictReplay) -> Table {
    let mut kinds = table([
        "verdict",
        "given",
        "per 1,000 items",
        "linked",
        "read: same",
        "read: different",
        "right",
        "duplicates found",
    ]);
    for (name, share) in [
        ("duplicate", replay.of_kind(Verdict::Duplicate)),
        ("maybe a duplicate", replay.of_kind(Verdict::MaybeDuplicate)),
        ("either", replay.said()),
    ] {
        kinds.add_row(judged_row(name.to_owned(), &share));
    }
    kinds.with_numbers_from(1)
}

fn confidences(replay: &VerdictReplay) -> Table {
    let mut levels = table([
        "confidence",
        "given",
        "per 1,000 items",
        "linked",
        "read: same",
        "read: different",
        "right",
        "duplicates found",
    ]);
    for level in LEVELS {
        levels.add_row(judged_row(percent(level), &replay.at_confidence(level)));
    }
    levels.with_numbers_from(0)
}

fn judged_row(name: String, share: &JudgedShare) -> [String; 8] {
    let estimate = &share.estimate;
    let right = match (estimate.combined, estimate.by_links) {
        (Some(combined), _) => {
            format!("{:.0} % ({:.0}–{:.0})", combined.value * 100.0, combined.low * 100.0, combined.high * 100.0)
        }
        // Nothing that people did not link was read.
        (None, Some(links)) => format!("at least {:.0} %", links.low * 100.0),
        (None, None) => "–".to_owned(),
    };
    [
        name,
        thousands(estimate.given),
        format!("{:.1}", share.per_thousand),
        thousands(estimate.linked),
        thousands(estimate.read_same),
        thousands(estimate.read_different),
        right,
        share_cell(share.recall),
    ]
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
