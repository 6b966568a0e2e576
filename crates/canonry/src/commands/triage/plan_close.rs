//! `plan-close`: which items would be closed as duplicates of which, for a person to review.

use anyhow::{Result, bail};
use canonry_config::config_hash;
use canonry_domain::{ItemType, Probability, SkipReason, TargetPolicy};
use canonry_store::{CloseRunId, MaintainerSource, Repo, Store};
use canonry_triage::{
    JudgeOptions, PlanError, PlanOptions, PlanReport, PlannedRow, counts_for_a_plan, plan_close, plan_rules,
    refresh_maintainers, row_document,
};
use serde_json::{Value, json};

use crate::commands::triage::analyze_intent::failed_item;
use crate::commands::triage::judge::probability;
use crate::options::chat::{LimitOptions, ProviderOptions};
use crate::options::item_filter::{OneOrAll, one_or_all};
use crate::options::retrieval::SourceOptions;
use crate::output::exit::{Exit, Refused};
use crate::output::moments::date;
use crate::output::numbers::{percent, thousands};
use crate::output::printable::one_line;
use crate::output::report::Report;
use crate::output::tables::{Table, counted, table};
use crate::session::context::Context;
use crate::session::database::DatabaseOption;
use crate::session::github::{GithubOption, has_credentials};
use crate::session::known_repo::RepoOption;
use crate::session::repo_settings::SettingsOption;

/// Plan which duplicates to close; closes nothing.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Plan which duplicates to close; closes nothing.\n\n\
        Every item of a cluster but the canonical gets a row: closed as a duplicate of the canonical, or left open with \
        the reason. Review the plan with `canonry plan show`, then close with `canonry apply`. Approvals of an earlier plan \
        are kept where nothing changed about the pair, exclusions until somebody lifts them. Items of maintainers, items \
        that a person reopened and items with a protected label are never closed. A plan can be made before the maintainers \
        are known; `canonry apply` needs them.",
    before_help = "Example:\n  canonry plan-close --dry-run\n  canonry plan-close\n  \
        canonry plan-close --repo octo/cat --judge-missing --provider anthropic"
)]
pub(crate) struct Args {
    #[command(flatten)]
    repo: RepoOption,
    /// Only items of this type: issue, pr or all
    #[arg(long = "type", value_name = "TYPE", default_value = "all", value_parser = one_or_all::<ItemType>)]
    item_type: OneOrAll<ItemType>,
    /// The lowest confidence for a close, 0 to 1 [default: 0.90, or as the settings say]
    #[arg(long, value_name = "CONFIDENCE", value_parser = probability)]
    min_close: Option<Probability>,
    /// Which pair must have been judged: canonical-only (the item and the canonical) or direct-fallback (also through one
    /// item between them) [default: canonical-only, or as the settings say]
    #[arg(long, value_name = "POLICY")]
    target_policy: Option<TargetPolicy>,
    /// Judge the pairs that the plan lacks
    #[arg(long, conflicts_with = "dry_run")]
    judge_missing: bool,
    /// Show the plan without storing it
    #[arg(long)]
    dry_run: bool,
    /// The lowest confidence that --judge-missing accepts, 0 to 1 [default: 0.85, or as the settings say]
    #[arg(long, value_name = "CONFIDENCE", value_parser = probability)]
    min_edge: Option<Probability>,
    #[command(flatten)]
    source: SourceOptions,
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
    let model = args.provider.model()?;
    let store = args.database.open_known(context).await?;
    let repo = args.repo.find(&store).await?;
    let mut config = args.settings.for_plan(&args.github, &repo).await?;
    if let Some(min_close) = args.min_close {
        config.close.min_close = min_close.get();
    }
    let rules = plan_rules(&config, args.target_policy)?;
    let apply_needs = maintainers_for_plan(&store, &repo, &args.github, context).await?;
    let options = PlanOptions {
        item_type: args.item_type.one(),
        source: args.source.source(),
        rules,
        dry_run: args.dry_run,
        config_hash: config_hash(&config).to_string(),
        run_id: context.run_id.to_string(),
    };
    let judging = JudgeOptions {
        item_type: options.item_type,
        source: options.source,
        min_edge: args.min_edge.map_or_else(|| Probability::new(config.close.min_edge), Ok)?,
        allow_stale: false,
        rejudge: false,
        joining: None,
        workers: args.limits.workers(),
        budget: args.limits.budget(),
        config_hash: options.config_hash.clone(),
        run_id: options.run_id.clone(),
    };
    let judge = args.judge_missing.then(|| (args.provider.judge(model.as_deref()), &judging));
    let planned = plan_close(&store, &repo, judge, &options, context.now).await;
    store.disconnect().await;
    report(&repo, planned, apply_needs.as_deref())
}

/// Reports a plan, or the error that prevented it. `apply_needs` says what is still unknown and must be known before
/// anything is closed.
pub(crate) fn report(repo: &Repo, planned: Result<PlanReport, PlanError>, apply_needs: Option<&str>) -> Result<Report> {
    let planned = match planned {
        Err(error @ PlanError::NoMaintainers(_)) => bail!(Refused(error.to_string())),
        planned => planned?,
    };
    let report = Report::new(stats(&planned), text(&planned, &repo.name.to_string(), apply_needs))
        .of(&repo.name)
        .with("apply_needs", apply_needs)
        .with("plan", json!({ "id": planned.plan.map(CloseRunId::get) }))
        .with("stopped", planned.judged.stopped.as_deref())
        .with("errors", planned.judged.errors.iter().map(failed_item).collect::<Vec<_>>())
        .with("items", planned.rows.iter().map(row_document).collect::<Vec<_>>());
    let some_failed = planned.judged.failed > 0 || planned.judged.stopped.is_some();
    Ok(if some_failed { report.ending(Exit::SomeFailed) } else { report })
}

/// How old a list of maintainers from GitHub may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MaintainersAge {
    /// A day: enough to plan by.
    OfToday,
    /// It is fetched again: somebody may have become a maintainer since the plan.
    Now,
}

/// Fetches the maintainers if that is possible. A plan closes nothing, so without a token it is made all the same: the
/// result says what an apply will need.
pub(crate) async fn maintainers_for_plan(
    store: &Store,
    repo: &Repo,
    github: &GithubOption,
    context: &Context,
) -> Result<Option<String>> {
    let known = store.repos().maintainers(repo.id).await?;
    if has_credentials() || known.as_ref().is_some_and(|list| counts_for_a_plan(list, context.now)) {
        know_maintainers(store, repo, github, MaintainersAge::OfToday, context).await?;
        return Ok(None);
    }
    let name = &repo.name;
    let why = match known {
        Some(list) => format!("The list of maintainers of {name} is from {}", context.when(list.written_at)),
        None => format!("The maintainers of {name} are unknown"),
    };
    Ok(Some(format!(
        "{why}, so the plan may contain their items. `canonry apply` needs the list: set GITHUB_TOKEN, or run \
         `canonry maintainers set LOGIN… --repo {name}`."
    )))
}

/// Makes sure that the maintainers are known. A list that was set by hand is kept; a list from GitHub is fetched again
/// if it is older than `age` allows. If GitHub does not answer, the command is refused.
pub(crate) async fn know_maintainers(
    store: &Store,
    repo: &Repo,
    github: &GithubOption,
    age: MaintainersAge,
    context: &Context,
) -> Result<()> {
    let known = store.repos().maintainers(repo.id).await?;
    let counts = known.as_ref().is_some_and(|list| match age {
        MaintainersAge::OfToday => counts_for_a_plan(list, context.now),
        MaintainersAge::Now => list.source == MaintainerSource::Set,
    });
    if counts {
        return Ok(());
    }
    let name = &repo.name;
    let Ok(client) = github.client(&context.counter("collaborators")) else {
        let why = match known {
            Some(list) => format!("the list of maintainers of {name} is from {}", context.when(list.written_at)),
            None => format!("the maintainers of {name} are unknown"),
        };
        bail!(Refused(format!(
            "{why}, and their items must stay open; set GITHUB_TOKEN, or list them with `canonry maintainers set LOGIN… --repo {name}`"
        )));
    };
    if let Err(error) = refresh_maintainers(store, &client, name).await {
        bail!(Refused(format!(
            "GitHub did not list the maintainers of {name} ({error}); try again, or run `canonry maintainers set LOGIN… --repo {name}`"
        )));
    }
    Ok(())
}

fn stats(planned: &PlanReport) -> Value {
    let mut skipped = serde_json::Map::new();
    for reason in planned.rows.iter().filter_map(|row| row.skip) {
        let count = skipped.get(reason.as_str()).and_then(Value::as_u64).unwrap_or_default();
        skipped.insert(reason.as_str().to_owned(), json!(count + 1));
    }
    json!({
        "clusters": planned.clusters,
        "considered": planned.rows.len(),
        "close": planned.rows.iter().filter(|row| row.skip.is_none()).count(),
        "skip": planned.rows.iter().filter(|row| row.skip.is_some()).count(),
        "skipped_by_reason": skipped,
        "missing_pairs": planned.missing_pairs,
        "judged_pairs": planned.judged.judged,
        "accepted_pairs": planned.judged.accepted,
        "failed_pairs": planned.judged.failed,
    })
}

fn text(planned: &PlanReport, repo: &str, apply_needs: Option<&str>) -> String {
    if planned.rows.is_empty() {
        return format!(
            "Nothing to close: {repo} has no known duplicates.\n\n\
             Why an item is not one: canonry show NUMBER --repo {repo}\n"
        );
    }
    let closes = planned.rows.iter().filter(|row| row.skip.is_none()).count() as u64;
    let skips = planned.rows.len() as u64 - closes;
    let mut text = match planned.plan {
        Some(plan) => format!("Plan {}: ", plan.get()),
        None => "Dry run: ".to_owned(),
    };
    let (closed, left) = (counted(closes, "item"), thousands(skips));
    text += &format!("{closed} to close, {left} left open.\n{}", shown_rows(&planned.rows));
    if planned.missing_pairs > 0 {
        let pairs = counted(planned.missing_pairs, "row");
        text += &format!("\n{pairs} not yet judged against the item that stays open");
        text += match planned.judged.judged {
            0 => "; --judge-missing judges exactly those pairs.\n",
            _ => ", even after --judge-missing.\n",
        };
    }
    if planned.judged.failed > 0 {
        let why = planned.judged.errors.first().map(|failed| one_line(&failed.message)).unwrap_or_default();
        let pairs = counted(planned.judged.failed, "pair");
        text += &format!("The judge gave no answer about {pairs} ({why}); run the command again to retry.\n");
    }
    if let Some(why) = &planned.judged.stopped {
        text += &format!("Stopped before all missing pairs were judged: {why}.\n");
    }
    if let Some(plan) = planned.plan.filter(|_| closes > 0) {
        let plan = plan.get();
        text += &format!(
            "\nNothing is closed yet. Next:\n  canonry plan exclude {plan} --item NUMBER   leave an item open\n  \
             canonry apply {plan} --yes                  close the rest\n"
        );
    }
    if let Some(needs) = apply_needs {
        text += &format!("\n{needs}\n");
    }
    text
}

/// Shows the rows as a table; rows that close an item come first. Items of unknown people are counted, not listed: most
/// come from an import without these fields, and then every row has the same reason.
pub(crate) fn shown_rows(rows: &[PlannedRow]) -> String {
    let is_unknown = |row: &&PlannedRow| row.skip == Some(SkipReason::UncertainMaintainerIdentity);
    let (unknown, listed): (Vec<&PlannedRow>, Vec<&PlannedRow>) = rows.iter().partition(is_unknown);
    let mut text = String::new();
    if !listed.is_empty() {
        text += &format!("\n{}\n", rows_table(listed));
    }
    if !unknown.is_empty() {
        let count = counted(unknown.len() as u64, "item");
        text += &format!(
            "\nLeft open because the author or the assignees are unknown: {count}. Import `author` and `assignees` \
             (`[]` if nobody is assigned), or run `canonry sync`.\n"
        );
    }
    text
}

fn rows_table(mut ordered: Vec<&PlannedRow>) -> Table {
    ordered.sort_by_key(|row| (row.skip.is_some(), row.item_type, row.target, row.number));
    let mut shown = table(["item", "action", "duplicate of", "sure", "why"]);
    for row in ordered {
        let by = row.approved_by.as_ref().map(|by| format!(" by {}", one_line(by.as_str()))).unwrap_or_default();
        let action = match (row.skip, row.approved) {
            (Some(_), _) => "leave open".to_owned(),
            (None, Some(false)) => format!("excluded{by}"),
            (None, Some(true)) if by.is_empty() => "close ✓".to_owned(),
            (None, Some(true)) => format!("close ✓ approved{by}"),
            (None, None) => "close".to_owned(),
        };
        let why = match row.skip {
            Some(SkipReason::Excluded) => {
                let since = row.approved_at.map(|at| format!(" on {}", date(at))).unwrap_or_default();
                format!("excluded{}{since}", if by.is_empty() { " by a person" } else { &by })
            }
            Some(reason) => reason.in_words().to_owned(),
            None => row.evidence.facts.first().or(row.evidence.reasoning.as_ref()).cloned().unwrap_or_default(),
        };
        let why = row.result.as_ref().map_or(why, Clone::clone);
        shown.add_row([
            format!("#{} {}", row.number, short(&row.title)),
            action,
            format!("#{} {}", row.target, short(&row.target_title)),
            row.confidence.map_or_else(String::new, |confidence| percent(confidence.get())),
            one_line(&why),
        ]);
    }
    shown
}

/// Returns the beginning of a title, with every character escaped that would act on a terminal.
fn short(title: &str) -> String {
    const SHOWN: usize = 40;
    let line = one_line(title);
    if line.chars().count() <= SHOWN {
        return line;
    }
    let cut: String = line.chars().take(SHOWN - 1).collect();
    format!("{}…", cut.trim_end())
}
