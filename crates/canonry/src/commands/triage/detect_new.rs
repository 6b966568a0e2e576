//! `detect-new`: is an item a duplicate of an open one?

use anyhow::{Result, bail};
use canonry_domain::{Extractor, ItemState, OnlineThresholds, Probability, Similarity, Since, Verdict, parse_moment};
use canonry_store::{Store, StoredJudge};
use canonry_triage::{
    AnswerUse, AsOf, DEFAULT_INDEX_MEMORY, DetectOptions, DetectReport, Detectors, IndexCache, ItemQuery, TopMatch,
    detect_new,
};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::commands::triage::candidates::score;
use crate::commands::triage::judge::probability;
use crate::options::chat::{LimitOptions, ProviderOptions};
use crate::options::item_number::ItemsOption;
use crate::options::retrieval::{EmbedderOptions, ModeOption, SourceOptions, snapshots_of};
use crate::output::exit::{Exit, WrongUsage};
use crate::output::numbers::percent;
use crate::output::printable::one_line;
use crate::output::reasons::online_reason;
use crate::output::report::Report;
use crate::output::tables::{counted, table};
use crate::session::context::Context;
use crate::session::database::DatabaseOption;
use crate::session::github::{GithubOption, has_credentials};
use crate::session::known_repo::RepoOption;

/// Check whether an item duplicates an open one.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Check whether an item duplicates an open one.\n\n\
        With GITHUB_TOKEN the item is fetched first; without it, the item must be in the database. Nothing is written to \
        GitHub. The verdict is stored with every neighbour and score behind it. Several numbers are checked one after \
        another.\n\n\
        With --as-of an item is compared with what existed then: items that were filed before, open or closed as they were \
        at that time, without rulings. That works on the database alone and stores no verdict.",
    before_help = "Example:\n  canonry detect-new 12\n  canonry detect-new 12 13 14 --as-of filing\n  \
        canonry detect-new 40 --repo octo/cat --type pr --provider anthropic --json"
)]
pub(crate) struct Args {
    #[command(flatten)]
    item: ItemsOption,
    #[command(flatten)]
    repo: RepoOption,
    /// Compare with what existed then: a date, a time, a number of days such as 30d, or "filing" for the time when each item
    /// was filed; stores no verdict
    #[arg(long, value_name = "WHEN", value_parser = when)]
    as_of: Option<AsOfOption>,
    /// How many neighbours at most
    #[arg(long, value_name = "K", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=50))]
    k: u16,
    /// The lowest score of a neighbour that is judged, 0 to 1
    #[arg(long, value_name = "SCORE", default_value = "0.75", value_parser = score)]
    min_score: Similarity,
    /// The lowest confidence for "maybe a duplicate", 0 to 1
    #[arg(long, value_name = "CONFIDENCE", default_value = "0.85", value_parser = probability)]
    maybe_threshold: Probability,
    /// The lowest confidence for "a duplicate", 0 to 1
    #[arg(long, value_name = "CONFIDENCE", default_value = "0.92", value_parser = probability)]
    duplicate_threshold: Probability,
    #[command(flatten)]
    source: SourceOptions,
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

/// The value of `--as-of`.
#[derive(Debug, Clone, Copy)]
enum AsOfOption {
    Filing,
    At(Timestamp),
    Since(Since),
}

impl AsOfOption {
    fn as_of(self, now: Timestamp) -> AsOf {
        match self {
            Self::Filing => AsOf::Filing,
            Self::At(at) => AsOf::At(at),
            Self::Since(since) => AsOf::At(since.moment(now)),
        }
    }
}

fn when(text: &str) -> Result<AsOfOption, String> {
    if text == "filing" {
        return Ok(AsOfOption::Filing);
    }
    let parsed = text.parse().map(AsOfOption::Since).ok().or_else(|| parse_moment(text).ok().map(AsOfOption::At));
    parsed.ok_or_else(|| format!("{text:?} is not a time; write a date such as 2024-05-01, 30d, or filing"))
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Report> {
    if args.maybe_threshold > args.duplicate_threshold {
        bail!(WrongUsage("--maybe-threshold must not be above --duplicate-threshold".to_owned()));
    }
    let models = args.provider.models(args.source.source())?;
    let as_of = args.as_of.map(|when| when.as_of(context.now));
    // What GitHub says now is not what it said then.
    let fetches = has_credentials() && as_of.is_none();
    let store: Store =
        if fetches { args.database.open(context).await? } else { args.database.open_known(context).await? };
    let repo = match fetches {
        true => args.repo.name_to_fetch(&store).await?,
        // This gives different errors for an unknown repository and for an unknown item.
        false => args.repo.find(&store).await?.name,
    };
    let embedder = args.embedder.embedder(&store).await?;
    let bar = context.counter("requests");
    let github = if fetches { Some(args.github.client(&bar)?) } else { None };
    let snapshots = snapshots_of(&args.database)?;
    let options = DetectOptions {
        k: usize::from(args.k),
        thresholds: OnlineThresholds {
            min_score: args.min_score,
            maybe: args.maybe_threshold,
            duplicate: args.duplicate_threshold,
        },
        mode: args.mode.mode,
        budget: args.limits.budget(),
        run_id: context.run_id.to_string(),
        as_of,
        used_for: AnswerUse::Print,
        is_backtest: false,
    };
    let numbers = args.item.numbers();
    // One item needs its index once.
    let indexes = (numbers.len() > 1).then(|| IndexCache::new(DEFAULT_INDEX_MEMORY as usize * 1_000_000));
    let with = Detectors {
        github: github.as_ref(),
        embedder: &*embedder,
        extractor: models.extractor(),
        judge: models.judge(),
        snapshots: snapshots.as_deref(),
        indexes: indexes.as_ref(),
    };
    let mut found = Vec::with_capacity(numbers.len());
    for number in numbers {
        let query = ItemQuery { repo: repo.clone(), item_type: args.item.item_type, number: *number };
        found.push((*number, detect_new(&store, &query, with, &options, context.now).await));
    }
    bar.finish_and_clear();
    store.disconnect().await;
    if let [_] = found[..] {
        let (repo, found) = found.remove(0).1?;
        let stats = json!({ "neighbours": found.top_matches.len() });
        let report = Report::new(stats, text(&found, &repo.name.to_string())).of(&repo.name);
        let report = document(&found).into_iter().fold(report, |report, (key, value)| report.with(&key, value));
        return Ok(if found.judge_unreachable { report.ending(Exit::SomeFailed) } else { report });
    }
    let (mut shown, mut items, mut failed) = (Vec::new(), Vec::new(), 0_u64);
    let (mut judged, mut by_model) = (0_u64, 0_u64);
    let mut name = repo;
    for (number, found) in found {
        match found {
            Ok((repo, found)) => {
                shown.push(text(&found, &repo.name.to_string()));
                items.push(Value::Object(document(&found)));
                failed += u64::from(found.judge_unreachable);
                judged += u64::from(found.judge.is_some());
                let is_model = |judge: &StoredJudge| judge.provider != Extractor::Local.as_str();
                by_model += u64::from(found.judge.as_ref().is_some_and(is_model));
                name = repo.name;
            }
            Err(error) => {
                shown.push(format!("#{number} was not checked: {}\n", one_line(&error.to_string())));
                items.push(json!({ "number": number, "error": error.to_string() }));
                failed += 1;
            }
        }
    }
    let mut stats = json!({ "checked": items.len() as u64 - failed, "failed": failed });
    if args.provider.cascade {
        (stats["judged"], stats["judged_by_model"]) = (json!(judged), json!(by_model));
        let judged = counted(judged, "item");
        shown.push(format!("The model was asked about {by_model} of {judged}; the local judge settled the others.\n"));
    }
    let report = Report::new(stats, shown.join("\n")).of(&name).with("items", items);
    Ok(if failed > 0 { report.ending(Exit::SomeFailed) } else { report })
}

/// The keys that describe one item's verdict.
fn document(found: &DetectReport) -> Map<String, Value> {
    let verdict = &found.verdict;
    let keys = json!({
        "type": found.item.item_type,
        "number": found.item.number,
        "verdict": verdict.verdict,
        "is_duplicate": found.is_duplicate,
        "confidence": verdict.confidence,
        "duplicate_of": verdict.target,
        "reason": verdict.reason,
        "reasoning": found.reasoning,
        "top_matches": found.top_matches.iter().map(matched).collect::<Vec<_>>(),
        "effective_source": found.effective_source.as_str(),
        "source_fallback_reason": found.source_fallback_reason,
        "judge_failure": found.judge_failure,
        "judge": found.judge.as_ref().map(|judge| json!({ "provider": judge.provider, "model": judge.model })),
        "triage_id": found.triage_id,
    });
    match keys {
        Value::Object(keys) => keys,
        _ => Map::new(),
    }
}

fn matched(one: &TopMatch) -> Value {
    json!({
        "number": one.number, "score": one.score, "similarity": one.similarity, "state": one.state, "title": one.title, "url": one.url,
        "judged": one.judged,
    })
}

fn text(found: &DetectReport, repo: &str) -> String {
    let item = format!("{} #{}", found.item.item_type.in_words(), found.item.number);
    let target = found.verdict.target.map_or_else(String::new, |target| format!("#{target}"));
    let bold = anstyle::Style::new().bold();
    let verdict = match found.verdict.verdict {
        Verdict::Duplicate => format!("{item} is a duplicate of {target}"),
        Verdict::MaybeDuplicate => format!("{item} may be a duplicate of {target}"),
        Verdict::NotDuplicate => format!("{item} is not a known duplicate"),
    };
    let mut text = format!("{bold}{verdict}{bold:#}: {}", online_reason(&found.verdict.reason));
    // After "not a duplicate", a confidence would read as the confidence in that verdict, which not every judge gives.
    if let Some(confidence) = found.verdict.confidence.filter(|_| found.verdict.verdict != Verdict::NotDuplicate) {
        text += &format!(" (confidence {})", percent(confidence.get()));
    }
    text += ".\n";
    if let Some(reasoning) = found.reasoning.as_deref().filter(|reasoning| !reasoning.is_empty()) {
        text += &format!("{}\n", one_line(reasoning));
    }
    if let Some(failure) = &found.judge_failure {
        text += &format!("The judge gave no usable answer: {}. Run the command again.\n", one_line(failure));
    }
    if found.source_fallback_reason.is_some() {
        text += "Compared by title and body: the intent card could not be made.\n";
    }
    if !found.top_matches.is_empty() {
        let mut shown = table(["nearest", "score", "state", "title"]);
        for one in &found.top_matches {
            let state = match one.state {
                ItemState::Open => "open",
                ItemState::Closed => "closed, maybe fixed",
            };
            shown.add_row([
                format!("#{}", one.number),
                percent(one.score.get()),
                state.to_owned(),
                one_line(&one.title),
            ]);
        }
        text += &format!("\n{shown}\n");
    }
    match found.triage_id {
        Some(_) => text + &format!("\nDetails: canonry show {} --repo {repo}\n", found.item.number),
        None => text + "\nNot stored: the comparison was as of an earlier time.\n",
    }
}
