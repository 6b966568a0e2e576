//! `dedupe`: all steps from GitHub to a plan.

use anyhow::Result;
use canonry_config::config_hash;
use canonry_domain::{ItemState, ItemType, Probability, Similarity, TargetPolicy};
use canonry_triage::{
    CHANGES_PER_SYNC, DedupeError, DedupeOptions, DedupeReport, DedupeStep, Dedupers, JudgeOptions, NeighbourQuery,
    PlanOptions, SyncOptions, dedupe, plan_rules, sync,
};
use serde_json::{Value, json};

use crate::commands::start::sync::fetch_changes;
use crate::commands::triage::candidates::score;
use crate::commands::triage::judge::probability;
use crate::commands::{triage::judge, triage::plan_close};
use crate::options::chat::{LimitOptions, ProviderOptions};
use crate::options::item_filter::{OneOrAll, one_or_all};
use crate::options::retrieval::{EmbedderOptions, ModeOption, SourceOptions, snapshots_of};
use crate::output::exit::Exit;
use crate::output::numbers::thousands;
use crate::output::report::Report;
use crate::output::tables::counted;
use crate::session::context::Context;
use crate::session::database::DatabaseOption;
use crate::session::github::{GithubOption, has_credentials};
use crate::session::known_repo::{RepoOption, find_named};
use crate::session::repo_settings::SettingsOption;

/// Find duplicates and plan what to close; closes nothing.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Find duplicates and plan what to close; closes nothing.\n\n\
        Runs every step: syncs the items (with GITHUB_TOKEN), embeds what changed, finds candidates, judges them, \
        repeats that on whole clusters until no new duplicate appears, judges the pairs that a plan lacks, and prints \
        the plan. Running it again asks the judge no question twice.",
    before_help = "Example:\n  canonry dedupe\n  canonry dedupe --repo octo/cat --no-sync --type issue\n  \
        ANTHROPIC_API_KEY=… canonry dedupe --provider anthropic --max-calls 500"
)]
pub(crate) struct Args {
    #[command(flatten)]
    repo: RepoOption,
    /// Only items of this type: issue, pr or all
    #[arg(long = "type", value_name = "TYPE", default_value = "all", value_parser = one_or_all::<ItemType>)]
    item_type: OneOrAll<ItemType>,
    /// Work on what the database has, without syncing from GitHub
    #[arg(long)]
    no_sync: bool,
    /// How many candidates of an item are judged at most
    #[arg(long, value_name = "K", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=50))]
    k: u16,
    /// The lowest score of a candidate, 0 to 1
    #[arg(long, value_name = "SCORE", default_value = "0.75", value_parser = score)]
    min_score: Similarity,
    /// The state of the candidates: open, closed or all
    #[arg(long, value_name = "STATE", default_value = "open", value_parser = one_or_all::<ItemState>)]
    state: OneOrAll<ItemState>,
    /// The lowest confidence that makes two items duplicates, 0 to 1 [default: 0.85, or as the settings say]
    #[arg(long, value_name = "CONFIDENCE", value_parser = probability)]
    min_edge: Option<Probability>,
    /// The lowest confidence for a close, 0 to 1 [default: 0.90, or as the settings say]
    #[arg(long, value_name = "CONFIDENCE", value_parser = probability)]
    min_close: Option<Probability>,
    /// Which pair must have been judged: canonical-only or direct-fallback [default: canonical-only, or as the settings say]
    #[arg(long, value_name = "POLICY")]
    target_policy: Option<TargetPolicy>,
    /// Do not judge the pairs that the plan lacks
    #[arg(long)]
    no_judge_missing: bool,
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
    settings: SettingsOption,
    #[command(flatten)]
    github: GithubOption,
    #[command(flatten)]
    database: DatabaseOption,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Report> {
    let models = args.provider.models(args.source.source())?;
    let syncs = !args.no_sync && has_credentials();
    let store = if syncs { args.database.open(context).await? } else { args.database.open_known(context).await? };
    let progress = context.progress("items");
    let bar = progress.bar();
    let mut fetched = None;
    let repo = if syncs {
        bar.set_message("items fetched");
        let name = args.repo.name_to_fetch(&store).await?;
        let github = args.github.client(bar)?;
        let options = SyncOptions { item_type: args.item_type.one(), ..SyncOptions::default() };
        let done = sync(&store, &github, &name, options, &mut |so_far| bar.set_position(so_far.fetched)).await?;
        fetched = Some((done.inserted, done.updated));
        // `done.repo` is the current name of the repository.
        let name = done.repo.as_ref().unwrap_or(&name);
        if args.item_type.one() != Some(ItemType::Issue) {
            fetch_changes(&store, &github, name, CHANGES_PER_SYNC, bar).await?;
        }
        find_named(&store, name).await?
    } else {
        args.repo.find(&store).await?
    };
    let mut config = args.settings.for_plan(&args.github, &repo).await?;
    if let Some(min_edge) = args.min_edge {
        config.close.min_edge = min_edge.get();
    }
    if let Some(min_close) = args.min_close {
        config.close.min_close = min_close.get();
    }
    let apply_needs = plan_close::maintainers_for_plan(&store, &repo, &args.github, context).await?;
    let embedder = args.embedder.embedder(&store).await?;
    let snapshots = snapshots_of(&args.database)?;
    let run_id = context.run_id.to_string();
    let hash = config_hash(&config).to_string();
    let options = DedupeOptions {
        wanted: NeighbourQuery {
            mode: args.mode.mode,
            k: usize::from(args.k),
            min_score: args.min_score,
            state: args.state.one(),
        },
        judge: JudgeOptions {
            item_type: args.item_type.one(),
            source: args.source.source(),
            min_edge: Probability::new(config.close.min_edge)?,
            allow_stale: false,
            rejudge: false,
            joining: None,
            workers: args.limits.workers(),
            budget: args.limits.budget(),
            config_hash: hash.clone(),
            run_id: run_id.clone(),
        },
        plan: PlanOptions {
            item_type: args.item_type.one(),
            source: args.source.source(),
            rules: plan_rules(&config, args.target_policy)?,
            dry_run: false,
            config_hash: hash,
            run_id,
        },
        judge_missing: !args.no_judge_missing,
    };
    let with = Dedupers {
        embedder: &*embedder,
        extractor: models.extractor(),
        judge: models.judge(),
        snapshots: snapshots.as_deref(),
    };
    let mut progress = |step: DedupeStep, done: u64| {
        let words = match step {
            DedupeStep::Analyzing => "cards made".to_owned(),
            DedupeStep::Embedding => "items embedded".to_owned(),
            DedupeStep::Comparing(round) => format!("items compared, round {round}"),
            DedupeStep::Judging(round) => format!("items judged, round {round}"),
            DedupeStep::Planning => "planning".to_owned(),
        };
        progress.update(&words, done, None);
    };
    let done = dedupe(&store, &repo, with, &options, context.now, &mut progress).await;
    bar.finish_and_clear();
    store.disconnect().await;
    let done = match done {
        Err(DedupeError::Plan(error)) => return plan_close::report(&repo, Err(error), None),
        done => done?,
    };
    let synced = match fetched {
        Some((new, changed)) => {
            format!("Fetched {} and {}.\n", counted(new, "new item"), counted(changed, "changed item"))
        }
        None if args.no_sync => String::new(),
        None => "Not synced: GITHUB_TOKEN is not set, so the plan is about what the database has.\n".to_owned(),
    };
    let summary = synced + &summary(&done);
    let failed: u64 = done.rounds.iter().map(|round| round.judged.failed).sum();
    let stopped = done.rounds.iter().find_map(|round| round.judged.stopped.clone());
    let DedupeReport { cards_failed, embedded, rounds, plan } = done;
    let report = plan_close::report(&repo, Ok(plan), apply_needs.as_deref())?
        .preceded_by(&summary)
        .with("embedded", embedded)
        .with("cards_failed", cards_failed)
        .with("synced", fetched.is_some())
        .with(
            "rounds",
            rounds
                .iter()
                .map(|round| {
                    json!({
                        "candidate_sets": round.sets, "fell_back_to_raw": round.fell_back,
                        "skipped_missing_embedding": round.without_vector, "judge": judge::stats(&round.judged),
                    })
                })
                .collect::<Vec<Value>>(),
        );
    let report = match &stopped {
        Some(why) => report.with("stopped", why),
        None => report,
    };
    Ok(if failed > 0 || cards_failed > 0 || stopped.is_some() { report.ending(Exit::SomeFailed) } else { report })
}

fn summary(done: &DedupeReport) -> String {
    let mut text = format!("Embedded {}.\n", counted(done.embedded, "item"));
    if done.cards_failed > 0 {
        let failed = counted(done.cards_failed, "card");
        text += &format!("{failed} failed; those items are compared by title and body.\n");
    }
    for (number, round) in (1..).zip(&done.rounds) {
        let judged = &round.judged;
        text += &format!(
            "Round {number}: compared {}, judged {}, found {}.\n",
            counted(round.sets, "item"),
            thousands(judged.judged),
            counted(judged.accepted, "new duplicate")
        );
        let saving = judge::saving(judged);
        if !saving.is_empty() {
            text += &format!("  {saving}");
        }
        if round.without_vector > 0 {
            text += &format!("  Skipped {} without a vector.\n", counted(round.without_vector, "item"));
        }
        if judged.failed > 0 {
            text += &format!("  {} got no answer; run the command again to retry.\n", counted(judged.failed, "item"));
        }
        if let Some(why) = &judged.stopped {
            text += &format!("  Stopped early: {why}. Run the command again to continue.\n");
        }
    }
    text + "\n"
}
