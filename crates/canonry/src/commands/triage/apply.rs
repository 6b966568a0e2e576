//! `apply`: closes the duplicates of a reviewed plan.

use std::io::Write as _;

use anyhow::{Context as _, Result, bail};
use canonry_config::{MAX_FILE_BYTES, ParsedSettings, RepoConfig, SETTINGS_FILE, parse_bytes};
use canonry_domain::ApplyForecast;
use canonry_github::GitHub;
use canonry_github::outbox::Outbox;
use canonry_store::{BrakeKind, CloseRunId, Repo, Store};
use canonry_triage::{
    ApplyError, ApplyOptions, CloseReport, PlanForecast, ReportedRow, RowResult, age_of_plan, applied_before,
    apply_close, forecast_apply,
};
use serde_json::{Value, json};

use crate::commands::triage::plan_close::{MaintainersAge, know_maintainers};
use crate::options::plan_number::PlanNumber;
use crate::output::exit::{Exit, Refused};
use crate::output::numbers::thousands;
use crate::output::printable::one_line;
use crate::output::reasons::row_reason;
use crate::output::report::Report;
use crate::output::tables::{counted, table};
use crate::run::release_leases_when_stopped;
use crate::session::context::Context;
use crate::session::database::DatabaseOption;
use crate::session::github::GithubOption;
use crate::session::known_repo::RunRepoOption;
use crate::session::repo_settings::SettingsOption;

/// Close the duplicates of a plan on GitHub.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Close the duplicates of a plan on GitHub.\n\n\
        Each row is rechecked on GitHub right before each write; a row whose items changed since the plan is skipped with \
        the reason. Each closed item gets one comment that names the other item, the shared evidence and how to object. \
        The command can be stopped and run again: nothing is commented or closed twice. `canonry undo` reverts it.",
    before_help = "Example:\n  canonry apply 3 --yes\n  canonry apply 3 --yes --approved-only"
)]
pub(crate) struct Args {
    #[command(flatten)]
    plan: PlanNumber,
    #[command(flatten)]
    repo: RunRepoOption,
    /// Confirm that you have read the plan
    #[arg(long)]
    yes: bool,
    /// Only rows that were approved with `canonry plan approve`
    #[arg(long)]
    approved_only: bool,
    #[command(flatten)]
    settings: SettingsOption,
    #[command(flatten)]
    github: GithubOption,
    #[command(flatten)]
    database: DatabaseOption,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Report> {
    let plan = args.plan.get();
    let store = args.database.open_known(context).await?;
    let repo = args.repo.find(&store, plan).await?;
    if !args.yes {
        bail!(Refused(format!(
            "nothing is closed without --yes; read the plan with `canonry plan show {plan}`, then run `canonry apply {plan} --yes`"
        )));
    }
    if let Some(done) = applied_before(&store, &repo, plan, args.approved_only).await? {
        store.disconnect().await;
        return Ok(report(&repo, &done, "Closed", plan));
    }
    let bar = context.counter("rows");
    let github = args.github.client(&bar)?;
    let config = match &args.settings.file {
        Some(file) => {
            let bytes = std::fs::read(file)
                .with_context(|| format!("the settings file {} cannot be read; check its name", file.display()))?;
            parse_bytes(&bytes)
        }
        None => live_settings(&github, &repo).await?,
    };
    // A plan of another repository skips this step, because `apply_close` refuses it.
    if store.plans().run(plan).await?.is_some_and(|run| run.repo.id == repo.id) {
        know_maintainers(&store, &repo, &args.github, MaintainersAge::Now, context).await?;
    }
    let outbox = Outbox::open(store.clone(), github.clone(), rand::random()).await?;
    let run_id = context.run_id.to_string();
    let options = ApplyOptions {
        plan,
        approved_only: args.approved_only,
        config: &config,
        run_id: &run_id,
        most_rows: None,
        ordered_at: context.now,
    };
    if !context.quiet && can_begin(&store, &repo, plan, context).await? {
        let max_per_day = config.config.close.max_per_day;
        let forecast = forecast_apply(&store, &repo, plan, max_per_day, context.now).await?;
        let words = announced(&forecast, args.approved_only, max_per_day);
        bar.suspend(|| writeln!(anstream::stderr().lock(), "{words}"))?;
    }
    let mut on_row = |_: &ReportedRow| bar.inc(1);
    release_leases_when_stopped(&store);
    let done = apply_close(&store, &github, &outbox, &repo, options, &mut on_row).await;
    bar.finish_and_clear();
    store.disconnect().await;
    match done {
        Err(ApplyError::Refused(words)) => bail!(Refused(words)),
        done => Ok(report(&repo, &done?, "Closed", plan)),
    }
}

/// Whether the apply will begin. An apply that will be refused is not announced.
async fn can_begin(store: &Store, repo: &Repo, run: CloseRunId, context: &Context) -> Result<bool> {
    let Some(plan) = store.plans().run(run).await?.filter(|plan| plan.repo.id == repo.id) else { return Ok(false) };
    let is_good = age_of_plan(store, &plan, context.now).await?.refusal(run).is_none();
    Ok(is_good && store.close().brake_in_force(repo.id, BrakeKind::Pause).await?.is_none())
}

/// Describes what is about to be closed, what is not closed today and what stays open.
fn announced(forecast: &PlanForecast, approved_only: bool, max_per_day: u32) -> String {
    let ApplyForecast { closes, kept_back } = if approved_only { forecast.approved_only } else { forecast.all };
    let mut words = format!("Closing {}.", counted(closes, "item"));
    if kept_back > 0 {
        words += &format!(
            " Not closed today: {}. At most {max_per_day} a day are closed without approval; {} closed so far today.",
            counted(kept_back, "item"),
            forecast.closed_today
        );
    }
    if forecast.left.ruled_since > 0 {
        let rows = counted(forecast.left.ruled_since, "item");
        words += &format!(" Left open: {rows}, because somebody ruled about their cluster after the plan was made.");
    }
    words
}

/// Reads the settings file of the repository's default branch; if there is none, returns the defaults.
pub(crate) async fn live_settings(github: &GitHub, repo: &Repo) -> Result<ParsedSettings> {
    match github.default_branch_file(&repo.name, SETTINGS_FILE, MAX_FILE_BYTES).await {
        Ok(Some(file)) => Ok(parse_bytes(file.text.as_bytes())),
        Ok(None) => Ok(ParsedSettings { config: RepoConfig::default(), problems: Vec::new() }),
        // The unreadable file may name a protected label.
        Err(error) => bail!(Refused(format!(
            "{SETTINGS_FILE} of {} cannot be read ({error}), so nothing was closed; try again",
            repo.name
        ))),
    }
}

/// Reports what a run did; `word` names what it did to an item, such as `Closed`.
pub(crate) fn report(repo: &Repo, done: &CloseReport, word: &str, run: CloseRunId) -> Report {
    let stats = json!({
        "attempted": done.attempted, "applied": done.applied, "skipped": done.skipped, "failed": done.failed,
    });
    let report = Report::new(stats, text(done, word, run))
        .of(&repo.name)
        .with("run", run.get())
        .with("remarks", &done.remarks)
        .with("items", done.rows.iter().map(row).collect::<Vec<_>>());
    // Rows that a pause left undone are done when the same command runs again.
    if done.failed > 0 || done.unreached > 0 { report.ending(Exit::SomeFailed) } else { report }
}

fn row(row: &ReportedRow) -> Value {
    json!({ "number": row.number, "type": row.item_type, "result": row.result.as_str(), "reason": row.reason })
}

fn text(done: &CloseReport, word: &str, run: CloseRunId) -> String {
    let mut text = format!("{word} {}", counted(done.applied, "item"));
    for (count, what) in [(done.skipped, "skipped"), (done.failed, "failed")] {
        if count > 0 {
            text += &format!(", {} {what}", thousands(count));
        }
    }
    text += ".\n";
    let already = done.rows.len() as u64 - done.attempted;
    if already > 0 {
        text += &format!("{} already done before.\n", counted(already, "row"));
    }
    let others: Vec<&ReportedRow> = done.rows.iter().filter(|row| row.result != RowResult::Applied).collect();
    if !others.is_empty() {
        let mut shown = table(["item", "result", "why"]);
        for row in others {
            let why = row.reason.as_deref().map(row_reason).unwrap_or_default();
            shown.add_row([format!("{} #{}", row.item_type, row.number), row.result.as_str().to_owned(), why]);
        }
        text += &format!("\n{shown}\n");
    }
    for remark in &done.remarks {
        text += &format!("{}\n", one_line(remark));
    }
    if done.failed > 0 {
        text += "\nRun the command again to retry the failed rows.\n";
    }
    if word == "Closed" && done.applied > 0 {
        text += &format!("\nTo revert: canonry undo {run}\n");
    }
    text
}
