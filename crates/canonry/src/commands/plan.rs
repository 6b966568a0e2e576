//! `plan`: a stored plan, shown, exported, and ruled on row by row.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Result, bail};
use canonry_domain::{ItemNumber, ItemType};
use canonry_store::{CloseRunId, Repo, Store};
use canonry_triage::{PlannedRow, StoredPlan, stored_plan};
use serde_json::{Value, json};

use crate::commands::plan_close::{row_document, rows_table};
use crate::context::Context;
use crate::database::DatabaseOption;
use crate::exit::Exit;
use crate::known_repo::RunRepoOption;
use crate::output_file::OutputFile;
use crate::report::Report;
use crate::tables::counted;

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
    /// Approve rows: they are free of the daily limit, and `apply-close --approved-only` carries out only them
    Approve(RowArgs),
    /// Exclude rows: they are not carried out
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
    /// Every row that closes its item
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

/// Reads the number of a run.
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
        row.skip.is_none()
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
    for item_type in ItemType::ALL {
        let of_type = rows.iter().filter(|row| row.item_type == *item_type);
        let numbers: Vec<ItemNumber> = of_type.map(|row| row.number).collect();
        if !numbers.is_empty() {
            store.set_approved(args.plan.run, *item_type, &numbers, Some(approved), context.now).await?;
        }
    }
    let plan = find(&store, &repo, args.plan.run).await?;
    store.close().await;
    let word = if approved { "Approved" } else { "Excluded" };
    let text = format!("{word} {} of plan {}.\n", counted(rows.len() as u64, "row"), args.plan.run);
    Ok(report(&repo, &plan, text))
}

async fn export(args: &ExportArgs, context: &Context) -> Result<Report> {
    let store = args.plan.database.open_existing().await?;
    let repo = args.plan.repo.find(&store, args.plan.run).await?;
    let plan = find(&store, &repo, args.plan.run).await?;
    let written = match args.format {
        Format::Markdown => markdown(&repo, &plan),
        Format::Csv => csv(&plan),
        Format::Json => {
            let items: Vec<Value> = plan.rows.iter().map(row_document).collect();
            let document = json!({ "repo": repo.name, "plan": { "id": plan.run.id.get(), "created_at": plan.run.created_at }, "items": items });
            format!("{}\n", serde_json::to_string_pretty(&document)?)
        }
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

fn markdown(repo: &Repo, plan: &StoredPlan) -> String {
    let mut text = format!(
        "# Plan {} of {}\n\nMade on {}. Nothing is closed until it is applied.\n\n\
         | item | action | in favour of | confidence | evidence or reason | approved |\n|---|---|---|---:|---|---|\n",
        plan.run.id, repo.name, plan.run.created_at
    );
    for row in &plan.rows {
        let action = if row.skip.is_none() { "close" } else { "leave open" };
        let why = match row.skip {
            Some(reason) => format!("`{}`: {}", reason.as_str(), reason.in_words()),
            None => row
                .evidence
                .facts
                .iter()
                .chain(&row.evidence.reasoning)
                .map(|fact| cell(fact))
                .collect::<Vec<_>>()
                .join("; "),
        };
        let approved = match row.approved {
            Some(true) => "yes",
            Some(false) => "excluded",
            None => "",
        };
        let confidence = row.confidence.map_or_else(String::new, |confidence| format!("{:.2}", confidence.get()));
        text += &format!(
            "| #{} {} | {action} | #{} {} | {confidence} | {why} | {approved} |\n",
            row.number,
            cell(&row.title),
            row.target,
            cell(&row.target_title)
        );
    }
    text
}

/// Text of strangers as one cell: it can neither end the cell nor ping anybody.
fn cell(text: &str) -> String {
    canonry_github::quote_line(text, 200).replace('|', "\\|")
}

fn csv(plan: &StoredPlan) -> String {
    let mut text = String::from(
        "type,number,title,action,target,target_title,skip_reason,confidence,approved,reasoning,facts,result\r\n",
    );
    for row in &plan.rows {
        let optional = |value: Option<String>| value.unwrap_or_default();
        let fields = [
            row.item_type.to_string(),
            row.number.to_string(),
            row.title.clone(),
            if row.skip.is_none() { "close" } else { "skip" }.to_owned(),
            row.target.to_string(),
            row.target_title.clone(),
            optional(row.skip.map(|reason| reason.as_str().to_owned())),
            optional(row.confidence.map(|confidence| confidence.to_string())),
            optional(row.approved.map(|approved| approved.to_string())),
            optional(row.evidence.reasoning.clone()),
            row.evidence.facts.join("; "),
            optional(row.result.clone()),
        ];
        text += &fields.map(|field| quoted(&field)).join(",");
        text += "\r\n";
    }
    text
}

/// A field of a CSV file. One that a spreadsheet would take for a formula gets a quote in front: titles are written by
/// strangers.
fn quoted(field: &str) -> String {
    let tame = if field.starts_with(['=', '+', '-', '@', '\t', '\r']) { format!("'{field}") } else { field.to_owned() };
    if tame.contains([',', '"', '\n', '\r']) { format!("\"{}\"", tame.replace('"', "\"\"")) } else { tame }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn fields_can_neither_break_a_row_nor_be_a_formula() {
        for (field, expected) in [
            ("plain", "plain"),
            ("a,b", "\"a,b\""),
            ("say \"hi\"\nthere", "\"say \"\"hi\"\"\nthere\""),
            ("=HYPERLINK(1)", "'=HYPERLINK(1)"),
            ("-1,2", "\"'-1,2\""),
        ] {
            assert_eq!(quoted(field), expected);
        }
    }
}
