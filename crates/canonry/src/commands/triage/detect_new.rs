//! `detect-new`: is one item a duplicate of an open one?

use anyhow::{Result, bail};
use canonry_domain::{ItemState, OnlineThresholds, Probability, Similarity, Verdict};
use canonry_store::Store;
use canonry_triage::{DetectOptions, DetectReport, Detectors, ItemQuery, TopMatch, detect_new};
use serde_json::{Value, json};

use crate::commands::triage::candidates::score;
use crate::commands::triage::judge::probability;
use crate::options::chat::{LimitOptions, ProviderOptions};
use crate::options::item_number::ItemOption;
use crate::options::retrieval::{EmbedderOptions, ModeOption, SourceOptions, snapshots_of};
use crate::output::exit::{Exit, WrongUsage};
use crate::output::numbers::percent;
use crate::output::printable::one_line;
use crate::output::reasons::online_reason;
use crate::output::report::Report;
use crate::output::tables::table;
use crate::session::context::Context;
use crate::session::database::DatabaseOption;
use crate::session::github::{GithubOption, has_credentials};
use crate::session::known_repo::RepoOption;

/// Check whether an item duplicates an open one.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Check whether an item duplicates an open one.\n\n\
        With GITHUB_TOKEN the item is fetched first; without it, the item must be in the database. Nothing is written to \
        GitHub. The verdict is stored with every neighbour and score behind it.",
    before_help = "Example:\n  canonry detect-new 12\n  \
        canonry detect-new 40 --repo octo/cat --type pr --provider anthropic --json"
)]
pub(crate) struct Args {
    #[command(flatten)]
    item: ItemOption,
    #[command(flatten)]
    repo: RepoOption,
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

pub(crate) async fn run(args: Args, context: &Context) -> Result<Report> {
    if args.maybe_threshold > args.duplicate_threshold {
        bail!(WrongUsage("--maybe-threshold must not be above --duplicate-threshold".to_owned()));
    }
    let models = args.provider.models(args.source.source())?;
    let fetches = has_credentials();
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
    let query = ItemQuery { repo, item_type: args.item.item_type, number: args.item.number() };
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
    };
    let with = Detectors {
        github: github.as_ref(),
        embedder: &*embedder,
        extractor: models.extractor(),
        judge: models.judge(),
        snapshots: snapshots.as_deref(),
        indexes: None,
    };
    let found = detect_new(&store, &query, with, &options, context.now).await;
    bar.finish_and_clear();
    store.disconnect().await;
    let (repo, found) = found?;
    let verdict = &found.verdict;
    let report = Report::new(json!({ "neighbours": found.top_matches.len() }), text(&found, &repo.name.to_string()))
        .of(&repo.name)
        .with("type", found.item.item_type)
        .with("number", found.item.number)
        .with("verdict", verdict.verdict)
        .with("is_duplicate", found.is_duplicate)
        .with("confidence", verdict.confidence)
        .with("duplicate_of", verdict.target)
        .with("reason", &verdict.reason)
        .with("reasoning", &found.reasoning)
        .with("top_matches", found.top_matches.iter().map(matched).collect::<Vec<_>>())
        .with("effective_source", found.effective_source.as_str())
        .with("source_fallback_reason", found.source_fallback_reason)
        .with("judge_failure", &found.judge_failure)
        .with("triage_id", found.triage_id);
    Ok(if found.judge_unreachable { report.ending(Exit::SomeFailed) } else { report })
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
        text += "Compared by title and body: the card failed.\n";
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
    text + &format!("\nDetails: canonry show {} --repo {repo}\n", found.item.number)
}
