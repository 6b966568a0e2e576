//! `plan`: a stored plan, shown, exported, and ruled on row by row.

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

use crate::commands::triage::plan_close::rows_table;
use crate::output::exit::{Exit, Refused};
use crate::output::file::OutputFile;
use crate::output::report::Report;
use crate::output::tables::counted;
use crate::session::context::Context;
use crate::session::database::DatabaseOption;
use crate::session::known_repo::RunRepoOption;

/// Show or export a plan, and approve or exclude single rows of it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  canonry plan show --repo octo/cat --run 7\n  \
        canonry plan exclude --repo octo/cat --run 7 --item 12 --item 15\n  \
        canonry plan export --repo octo/cat --run 7 --format markdown --output plan.md")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Show a plan with what was said about its rows and what became of them
    Show(PlanArgs),
    /// Approve rows: they are free of the daily limit, and `apply-close --approved-only` carries out only them. To approve
    /// a row that was excluded, in this plan or before, lifts the exclusion
    Approve(RowArgs),
    /// Exclude rows: neither this plan nor a later one closes them, until somebody approves them or removes the ruling
    Exclude(RowArgs),
    /// Write a plan as Markdown, JSON or CSV
    Export(ExportArgs),
}

#[derive(Debug, clap::Args)]
struct PlanArgs {
    #[command(flatten)]
    repo: RunRepoOption,
    /// The plan, as `canonry plan-close` names it
    #[arg(long, value_name = "N", value_parser = run_number)]
    run: CloseRunId,
    #[command(flatten)]
    database: DatabaseOption,
}

#[derive(Debug, clap::Args)]
struct RowArgs {
    #[command(flatten)]
    plan: PlanArgs,
    /// The items of the rows
    #[arg(long = "item", value_name = "NUMBER", num_args = 1.., required_unless_present = "all", conflicts_with = "all")]
    items: Vec<ItemNumber>,
    /// Every row that closes its item; `approve` leaves those alone that somebody has approved or excluded before
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
    /// The form: markdown, json or csv
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "markdown", hide_possible_values = true)]
    format: Format,
    /// The file [default: the output]
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
            let repo = args.repo.find(&store, args.run).await?;
            let plan = find(&store, &repo, args.run).await?;
            Ok(report(&repo, &plan, rows_table(&plan.rows).to_string() + "\n"))
        }
        Action::Approve(args) => rule(&args, true, context).await,
        Action::Exclude(args) => rule(&args, false, context).await,
        Action::Export(args) => export(&args, context).await,
    }
}

pub(crate) fn run_number(text: &str) -> Result<CloseRunId, String> {
    let number: i64 = text.parse().map_err(|_| format!("{text:?} is not the number of a run"))?;
    Ok(CloseRunId::new(number))
}

async fn find(store: &Store, repo: &Repo, run: CloseRunId) -> Result<StoredPlan> {
    let Some(plan) = stored_plan(store, repo, run).await? else {
        bail!("{name} has no plan {run}; make one with `canonry plan-close --repo {name}`", name = repo.name);
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

async fn rule(args: &RowArgs, approved: bool, context: &Context) -> Result<Report> {
    let store = args.plan.database.open_known(context).await?;
    let repo = args.plan.repo.find(&store, args.plan.run).await?;
    let plan = find(&store, &repo, args.plan.run).await?;
    let meant = |row: &&PlannedRow| {
        (row.skip.is_none() || (row.skip == Some(SkipReason::Excluded) && !args.all))
            && args.item_type.is_none_or(|item_type| row.item_type == item_type)
            && (args.all || args.items.contains(&row.number))
    };
    let rows: Vec<&PlannedRow> = plan.rows.iter().filter(meant).collect();
    if let Some(missing) = args.items.iter().find(|number| rows.iter().all(|row| row.number != **number)) {
        bail!(
            "plan {run} closes no item #{missing}; see `canonry plan show --repo {name} --run {run}`",
            run = args.plan.run,
            name = repo.name
        );
    }
    let word = Some(approved);
    if !may_row_approval_change_now(&store, &repo, args.plan.run, word, context.now).await? {
        bail!(Refused(format!(
            "nothing was changed. {ONLY_EXCLUDE} Wait until it has ended; `canonry plan show --repo {} --run {}` tells what \
             became of each row",
            repo.name, args.plan.run
        )));
    }
    let only_undecided = args.all && approved;
    let noted = if only_undecided {
        store.plans().set_all_approved(args.plan.run, args.item_type, word, None, context.now).await?
    } else {
        let rows = rows.iter().map(|row| (row.item_type, row.number));
        set_rows_approved(&store, args.plan.run, rows, word, None, context.now).await?
    };
    let said = if approved { "Approved" } else { "Excluded" };
    let mut text = format!("{said} {} of plan {}.\n", counted(noted as u64, "row"), args.plan.run);
    if only_undecided {
        text.push_str(&left_excluded(&rows));
    }
    if !approved && noted > 0 {
        let (name, run) = (&repo.name, args.plan.run);
        text.push_str(&format!(
            "Later plans leave them open too. To lift that: canonry plan approve --repo {name} --run {run} --item NUMBER, \
             or canonry override remove ID --repo {name}\n"
        ));
    }
    let plan = find(&store, &repo, args.plan.run).await?;
    store.disconnect().await;
    text.push_str(&carried_out(&repo, &plan, meant));
    Ok(report(&repo, &plan, text))
}

/// Which of the rows somebody excluded: whoever approves all others is to know of them.
fn left_excluded(rows: &[&PlannedRow]) -> String {
    let excluded: Vec<String> = rows
        .iter()
        .filter(|row| row.approved == Some(false) && row.result.is_none())
        .map(|row| format!("#{}", row.number))
        .collect();
    match excluded.as_slice() {
        [] => String::new(),
        excluded => format!("Left excluded, as somebody said before: {}.\n", excluded.join(", ")),
    }
}

/// Which of the rows meant were carried out before the word came, and how that is taken back.
fn carried_out(repo: &Repo, plan: &StoredPlan, meant: impl Fn(&&PlannedRow) -> bool) -> String {
    let done = plan.rows.iter().filter(meant).filter_map(|row| Some((row.number, row.result.as_deref()?)));
    let done: Vec<String> = done.map(|(number, result)| format!("#{number} ({result})")).collect();
    if done.is_empty() {
        return String::new();
    }
    let (name, run) = (&repo.name, plan.run.id);
    format!(
        "Carried out before, and not changed: {}. What was closed is opened again by `canonry undo-close --repo {name} \
         --run {run} --item NUMBER`.\n",
        done.join(", ")
    )
}

async fn export(args: &ExportArgs, context: &Context) -> Result<Report> {
    let store = args.plan.database.open_existing().await?;
    let repo = args.plan.repo.find(&store, args.plan.run).await?;
    let plan = find(&store, &repo, args.plan.run).await?;
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
    let text = format!("Wrote plan {} to {}.\n", args.plan.run, file.display());
    Ok(report(&repo, &plan, text))
}
