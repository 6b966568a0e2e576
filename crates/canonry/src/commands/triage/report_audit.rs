//! `report-audit`: a stored audit, and what tighter gates would have made of it.

use anyhow::{Result, bail};
use canonry_domain::{
    AdjudicationSummary, AuditItem, AuditSimulation, AuditTally, Share, Similarity, TighterGates, Verdict,
    simulate_audit, sweep_audit,
};
use serde_json::json;

use crate::commands::triage::candidates::score;
use crate::commands::triage::judge_audit::{audit_document, item_document, tally_text};
use crate::output::report::Report;
use crate::output::tables::{counted, table};
use crate::session::context::Context;
use crate::session::database::DatabaseOption;
use crate::session::known_repo::RepoOption;

/// Show a stored audit, and what tighter gates would have made of it; no model is asked.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  canonry report-audit --repo octo/cat\n  \
        canonry report-audit --repo octo/cat --run 3 --max-rank 1 --min-score 0.9\n  \
        canonry report-audit --repo octo/cat --run 3 --sweep")]
pub(crate) struct Args {
    #[command(flatten)]
    repo: RepoOption,
    /// The audit, as `canonry judge-audit` names it [default: the newest]
    #[arg(long, value_name = "N")]
    run: Option<i64>,
    /// The last rank that the cheap judge may choose
    #[arg(long, value_name = "RANK", value_parser = clap::value_parser!(u32).range(1..))]
    max_rank: Option<u32>,
    /// The least score of what it chooses, 0 to 1
    #[arg(long, value_name = "SCORE", value_parser = score)]
    min_score: Option<Similarity>,
    /// The least gap between that and the best alternative, 0 to 1
    #[arg(long, value_name = "GAP", value_parser = score)]
    min_gap: Option<Similarity>,
    /// Try every combination of some usual gates
    #[arg(long)]
    sweep: bool,
    #[command(flatten)]
    database: DatabaseOption,
}

pub(crate) async fn run(args: Args, _context: &Context) -> Result<Report> {
    let store = args.database.open_existing().await?;
    let repo = args.repo.find(&store).await?;
    let audit = match args.run {
        Some(id) => store.judge().audit_run(id).await?.filter(|audit| audit.repo == repo.id),
        None => store.judge().latest_audit(repo.id).await?,
    };
    let Some(audit) = audit else {
        match args.run {
            Some(id) => bail!("{name} has no audit {id}; see `canonry judge-audit --help`", name = repo.name),
            None => {
                bail!("{name} has no audit yet; make one with `canonry judge-audit --repo {name}`", name = repo.name)
            }
        }
    };
    let audited = store.judge().audit_items(audit.id).await?;
    let people = AdjudicationSummary::of(&store.judge().adjudication_totals(repo.id).await?);
    let tally: AuditTally = audited.iter().map(|item| item.class).collect();
    let items: Vec<AuditItem> = audited.iter().map(|audited| audited.item.clone()).collect();
    let gates =
        TighterGates { max_rank: args.max_rank, min_score: args.min_score, min_gap: args.min_gap.map(Similarity::get) };
    let mut simulations = Vec::new();
    if gates != TighterGates::default() {
        simulations.push(simulate_audit(&items, gates));
    }
    if args.sweep {
        simulations.extend(sweep_audit(&items));
    }
    let judges = format!(
        "The cheap judge was {} {}, the strong one {} {}.\n",
        audit.audit.cheap_provider, audit.audit.cheap_model, audit.audit.strong_provider, audit.audit.strong_model
    );
    let text = tally_text(audit.id, &tally) + &judges + &people_text(&people) + &simulations_text(&simulations);
    Ok(Report::new(json!({ "sampled": audited.len(), "simulations": simulations.len() }), text)
        .of(&repo.name)
        .with("audit", audit_document(audit.id, &tally))
        .with("seed", audit.audit.seed)
        .with("cheap", json!({ "provider": audit.audit.cheap_provider, "model": audit.audit.cheap_model }))
        .with("strong", json!({ "provider": audit.audit.strong_provider, "model": audit.audit.strong_model }))
        .with("simulations", &simulations)
        .with("people", &people)
        .with("items", audited.iter().map(item_document).collect::<Vec<_>>()))
}

/// What people said in the console about sampled verdicts, by verdict; the levels are for programs.
fn people_text(people: &AdjudicationSummary) -> String {
    if people.answered == 0 {
        return String::new();
    }
    let mut shown = table(["sampled verdicts", "confirmed", "refuted", "cannot tell", "precision", "95 % between"]);
    for one in &people.verdicts {
        let called = match one.verdict {
            Verdict::Duplicate => "called a duplicate",
            Verdict::MaybeDuplicate => "called a maybe",
            Verdict::NotDuplicate => "called no duplicate",
        };
        let (precision, between) = shares(one.share);
        let cells = [one.share.right, one.share.wrong, one.unsure].map(|count| count.to_string());
        let [confirmed, refuted, unsure] = cells;
        shown.add_row([called.to_owned(), confirmed, refuted, unsure, precision, between]);
    }
    format!("\nPeople looked at {} in the console:\n\n{shown}\n", counted(people.answered, "sampled verdict"))
}

fn shares(share: Share) -> (String, String) {
    let Some(value) = share.value() else { return ("–".to_owned(), "–".to_owned()) };
    let interval = share.interval();
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    (percent(value), format!("{} and {}", percent(interval.low), percent(interval.high)))
}

fn simulations_text(simulations: &[AuditSimulation]) -> String {
    if simulations.is_empty() {
        return String::new();
    }
    let share = |share: Option<f64>| share.map_or_else(|| "–".to_owned(), |share| format!("{:.1} %", share * 100.0));
    let any = |value: Option<String>| value.unwrap_or_else(|| "any".to_owned());
    let mut shown = table(["last rank", "least score", "least gap", "tp", "fp", "fn", "precision", "recall"]);
    for AuditSimulation { gates, tally } in simulations {
        shown.add_row([
            any(gates.max_rank.map(|rank| rank.to_string())),
            any(gates.min_score.map(|score| score.to_string())),
            any(gates.min_gap.map(|gap| gap.to_string())),
            tally.tp.to_string(),
            tally.fp.to_string(),
            tally.missed.to_string(),
            share(tally.precision),
            share(tally.recall),
        ]);
    }
    format!("\nWith tighter gates for the cheap judge:\n\n{shown}\n")
}
