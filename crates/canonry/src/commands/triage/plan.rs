//! `plan`: shows and exports a stored plan, approves and excludes its rows.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Result, bail};
use canonry_domain::{ItemNumber, ItemType, ONLY_EXCLUDE, SkipReason};
use canonry_server::may_row_approval_change_now;
use canonry_store::{CloseRunId, Repo, Store};
use canonry_triage::{
    PlannedRow, StoredPlan, plan_csv, plan_json, plan_markdown, row_document, set_rows_approved, stored_plan,
};
use serde_json::{Value, json};

use crate::commands::triage::plan_close::shown_rows;
use crate::options::plan_number::PlanNumber;
use crate::output::exit::{Exit, Refused};
use crate::output::file::OutputFile;
use crate::output::numbers::thousands;
use crate::output::report::Report;
use crate::output::tables::counted;
use crate::session::context::Context;
use crate::session::database::DatabaseOption;
use crate::session::known_repo::RunRepoOption;

/// Show a plan, approve or exclude its rows, export it.
#[derive(Debug, clap::Args)]
#[command(before_help = "Example:\n  canonry plan show 3\n  canonry plan exclude 3 --item 12 --item 15\n  \
        canonry plan export 3 --format markdown --output plan.md")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Show a plan: its rows, who approved or excluded them, and what was closed
    #[command(before_help = "Example:\n  canonry plan show 3")]
    Show(PlanArgs),
    /// Approve rows
    #[command(
        long_about = "Approve rows.\n\n\
            Approved rows are exempt from the daily limit, and `canonry apply --approved-only` closes only them. Approving \
            a row that was excluded, in this plan or an earlier one, lifts the exclusion.",
        before_help = "Example:\n  canonry plan approve 3 --item 12\n  canonry plan approve 3 --all"
    )]
    Approve(RowArgs),
    /// Exclude rows
    #[command(
        long_about = "Exclude rows.\n\n\
            Neither this plan nor a later one closes them, until somebody approves them or removes the ruling.",
        before_help = "Example:\n  canonry plan exclude 3 --item 12 --item 15"
    )]
    Exclude(RowArgs),
    /// Write a plan as Markdown, JSON or CSV
    #[command(before_help = "Example:\n  canonry plan export 3 --format markdown --output plan.md")]
    Export(ExportArgs),
}

#[derive(Debug, clap::Args)]
struct PlanArgs {
    #[command(flatten)]
    plan: PlanNumber,
    #[command(flatten)]
    repo: RunRepoOption,
    #[command(flatten)]
    database: DatabaseOption,
}

#[derive(Debug, clap::Args)]
struct RowArgs {
    #[command(flatten)]
    plan: PlanArgs,
    /// The item of a row; may be repeated
    #[arg(long = "item", value_name = "NUMBER", num_args = 1.., required_unless_present = "all", conflicts_with = "all")]
    items: Vec<ItemNumber>,
    /// Every row that closes its item; `approve` skips rows that somebody approved or excluded before
    #[arg(long)]
    all: bool,
    /// The type of the items: issue or pr [default: whichever the plan has]
    #[arg(long = "type", value_name = "TYPE")]
    item_type: Option<ItemType>,
}

#[derive(Debug, clap::Args)]
struct ExportArgs {
    #[command(flatten)]
    plan: PlanArgs,
    /// The format: markdown, json or csv
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "markdown", hide_possible_values = true)]
    format: Format,
    /// The file [default: the standard output]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Markdown,
    Json,
    Csv,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Report> {
    match args.action {
        Action::Show(args) => {
            let store = args.database.open_existing().await?;
            let repo = args.repo.find(&store, args.plan.get()).await?;
            let plan = find(&store, &repo, args.plan.get()).await?;
            Ok(report(&repo, &plan, shown(&plan, context)))
        }
        Action::Approve(args) => rule(&args, true, context).await,
        Action::Exclude(args) => rule(&args, false, context).await,
        Action::Export(args) => export(&args, context).await,
    }
}

async fn find(store: &Store, repo: &Repo, run: CloseRunId) -> Result<StoredPlan> {
    let Some(plan) = stored_plan(store, repo, run).await? else {
        bail!("{} has no plan {run}; make one with `canonry plan-close`", repo.name);
    };
    Ok(plan)
}

fn report(repo: &Repo, plan: &StoredPlan, text: String) -> Report {
    let closes = plan.rows.iter().filter(|row| row.skip.is_none()).count();
    let count = |approved| plan.rows.iter().filter(|row| row.skip.is_none() && row.approved == approved).count();
    let stats = json!({
        "considered": plan.rows.len(),
        "close": closes,
        "skip": plan.rows.len() - closes,
        "approved": count(Some(true)),
        "excluded": count(Some(false)),
    });
    Report::new(stats, text)
        .of(&repo.name)
        .with("plan", json!({ "id": plan.run.id.get(), "created_at": plan.run.created_at }))
        .with("items", plan.rows.iter().map(row_document).collect::<Vec<Value>>())
}

/// Shows how many items the plan would close, then its rows.
fn shown(plan: &StoredPlan, context: &Context) -> String {
    let closes = plan.rows.iter().filter(|row| row.skip.is_none() && row.approved != Some(false));
    let (done, open): (Vec<_>, Vec<_>) = closes.partition(|row| row.result.is_some());
    let bold = anstyle::Style::new().bold();
    let (run, age) = (plan.run.id, context.when(plan.run.created_at));
    let mut text = format!("{bold}Plan {run}{bold:#}, made {age}: {} to close", counted(open.len() as u64, "item"));
    if !done.is_empty() {
        text += &format!(", {} done", thousands(done.len() as u64));
    }
    let left = plan.rows.len() - open.len() - done.len();
    text += &format!(", {} left open.\n{}", thousands(left as u64), shown_rows(&plan.rows));
    if !open.is_empty() {
        text += &format!("\nTo close: canonry apply {run} --yes\n");
    }
    text
}

async fn rule(args: &RowArgs, approved: bool, context: &Context) -> Result<Report> {
    let run = args.plan.plan.get();
    let store = args.plan.database.open_known(context).await?;
    let repo = args.plan.repo.find(&store, run).await?;
    let plan = find(&store, &repo, run).await?;
    let meant = |row: &&PlannedRow| {
        (row.skip.is_none() || (row.skip == Some(SkipReason::Excluded) && !args.all))
            && args.item_type.is_none_or(|item_type| row.item_type == item_type)
            && (args.all || args.items.contains(&row.number))
    };
    let rows: Vec<&PlannedRow> = plan.rows.iter().filter(meant).collect();
    if let Some(missing) = args.items.iter().find(|number| rows.iter().all(|row| row.number != **number)) {
        bail!("plan {run} does not close #{missing}; see `canonry plan show {run}`");
    }
    let word = Some(approved);
    if !may_row_approval_change_now(&store, &repo, run, word, context.now).await? {
        bail!(Refused(format!(
            "nothing was changed. {ONLY_EXCLUDE} Wait until it ends; `canonry plan show {run}` shows each row's result"
        )));
    }
    let only_undecided = args.all && approved;
    let noted = if only_undecided {
        store.plans().set_all_approved(run, args.item_type, word, None, context.now).await?
    } else {
        let rows = rows.iter().map(|row| (row.item_type, row.number));
        set_rows_approved(&store, run, rows, word, None, context.now).await?
    };
    let done = if approved { "Approved" } else { "Excluded" };
    let mut text = format!("{done} {} of plan {run}.\n", counted(noted as u64, "row"));
    if only_undecided {
        text.push_str(&left_excluded(&rows));
    }
    if !approved && noted > 0 {
        text.push_str(&format!(
            "Later plans leave them open too. To lift that: canonry plan approve {run} --item NUMBER\n"
        ));
    }
    let plan = find(&store, &repo, run).await?;
    store.disconnect().await;
    text.push_str(&already_done(&plan, meant));
    Ok(report(&repo, &plan, text))
}

/// Lists the rows that stay excluded when all others are approved.
fn left_excluded(rows: &[&PlannedRow]) -> String {
    let excluded: Vec<String> = rows
        .iter()
        .filter(|row| row.approved == Some(false) && row.result.is_none())
        .map(|row| format!("#{}", row.number))
        .collect();
    match excluded.as_slice() {
        [] => String::new(),
        excluded => format!("Still excluded: {}.\n", excluded.join(", ")),
    }
}

/// Lists the rows that were already done, and the command that reopens them.
fn already_done(plan: &StoredPlan, meant: impl Fn(&&PlannedRow) -> bool) -> String {
    let done = plan.rows.iter().filter(meant).filter_map(|row| Some((row.number, row.result.as_deref()?)));
    let done: Vec<String> = done.map(|(number, result)| format!("#{number} ({result})")).collect();
    if done.is_empty() {
        return String::new();
    }
    let run = plan.run.id;
    format!("Already done, and not changed: {}. To reopen: canonry undo {run} --item NUMBER\n", done.join(", "))
}

async fn export(args: &ExportArgs, context: &Context) -> Result<Report> {
    let run = args.plan.plan.get();
    let store = args.plan.database.open_existing().await?;
    let repo = args.plan.repo.find(&store, run).await?;
    let plan = find(&store, &repo, run).await?;
    let written = match args.format {
        Format::Markdown => plan_markdown(&plan),
        Format::Csv => plan_csv(&plan),
        Format::Json => plan_json(&plan),
    };
    let Some(file) = &args.output else {
        if context.json {
            return Ok(report(&repo, &plan, written));
        }
        anstream::stdout().lock().write_all(written.as_bytes())?;
        return Ok(Report::written(Exit::Done));
    };
    let mut output = OutputFile::create(file, &context.run_id.to_string())?;
    output.write_all(written.as_bytes())?;
    output.finish()?;
    let text = format!("Wrote plan {run} to {}.\n", file.display());
    Ok(report(&repo, &plan, text))
}
