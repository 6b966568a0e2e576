//! `report-audit`: a stored audit, and what tighter gates would have changed.

use anyhow::{Result, bail};
use canonry_domain::{
    AdjudicationSummary, AuditItem, AuditSimulation, AuditTally, Share, Similarity, TighterGates, Verdict,
    simulate_audit, sweep_audit,
};
use serde_json::json;

use crate::commands::triage::candidates::score;
use crate::commands::triage::judge_audit::{audit_document, item_document, tally_text};
use crate::output::numbers::{percent, thousands};
use crate::output::report::Report;
use crate::output::tables::{counted, table};
use crate::session::context::Context;
use crate::session::database::DatabaseOption;
use crate::session::known_repo::RepoOption;

/// Show a stored audit and simulate tighter gates.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Show a stored audit and simulate tighter gates, without a model call.",
    before_help = "Example:\n  canonry report-audit\n  canonry report-audit 3 --max-rank 1 --min-score 0.9\n  \
        canonry report-audit 3 --repo octo/cat --sweep"
)]
pub(crate) struct Args {
    /// The audit's number, as `canonry judge-audit` prints it [default: the newest]
    #[arg(value_name = "AUDIT")]
    audit: Option<i64>,
    #[arg(long, value_name = "N", hide = true, conflicts_with = "audit")]
    run: Option<i64>,
    #[command(flatten)]
    repo: RepoOption,
    /// The lowest rank that the cheap judge may choose
    #[arg(long, value_name = "RANK", value_parser = clap::value_parser!(u32).range(1..))]
    max_rank: Option<u32>,
    /// The lowest score of what it chooses, 0 to 1
    #[arg(long, value_name = "SCORE", value_parser = score)]
    min_score: Option<Similarity>,
    /// The smallest gap between that and the best alternative, 0 to 1
    #[arg(long, value_name = "GAP", value_parser = score)]
    min_gap: Option<Similarity>,
    /// Try the usual gates in every combination
    #[arg(long)]
    sweep: bool,
    #[command(flatten)]
    database: DatabaseOption,
}

pub(crate) async fn run(args: Args, _context: &Context) -> Result<Report> {
    let store = args.database.open_existing().await?;
    let repo = args.repo.find(&store).await?;
    let number = args.audit.or(args.run);
    let audit = match number {
        Some(id) => store.judge().audit_run(id).await?.filter(|audit| audit.repo == repo.id),
        None => store.judge().latest_audit(repo.id).await?,
    };
    let Some(audit) = audit else {
        match number {
            Some(id) => bail!("{} has no audit {id}; `canonry report-audit` shows the newest", repo.name),
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

/// Shows what people answered in the console about sampled verdicts, for each verdict.
fn people_text(people: &AdjudicationSummary) -> String {
    if people.answered == 0 {
        return String::new();
    }
    let mut shown = table(["verdict", "confirmed", "refuted", "unsure", "precision", "95 % CI"]).with_numbers_from(1);
    for one in &people.verdicts {
        let called = match one.verdict {
            Verdict::Duplicate => "duplicate",
            Verdict::MaybeDuplicate => "maybe",
            Verdict::NotDuplicate => "not a duplicate",
        };
        let (precision, between) = shares(one.share);
        let cells = [one.share.right, one.share.wrong, one.unsure].map(thousands);
        let [confirmed, refuted, unsure] = cells;
        shown.add_row([called.to_owned(), confirmed, refuted, unsure, precision, between]);
    }
    format!("\nPeople checked {} in the console:\n\n{shown}\n", counted(people.answered, "sampled verdict"))
}

fn shares(share: Share) -> (String, String) {
    let Some(value) = share.value() else { return ("–".to_owned(), "–".to_owned()) };
    let interval = share.interval();
    let whole = |share: f64| format!("{:.0}", share * 100.0);
    (percent(value), format!("{}–{} %", whole(interval.low), whole(interval.high)))
}

fn simulations_text(simulations: &[AuditSimulation]) -> String {
    if simulations.is_empty() {
        return String::new();
    }
    let share = |share: Option<f64>| share.map_or_else(|| "–".to_owned(), percent);
    let any = |value: Option<String>| value.unwrap_or_else(|| "any".to_owned());
    let heading = ["max rank", "min score", "min gap", "tp", "fp", "fn", "precision", "recall"];
    let mut shown = table(heading).with_numbers_from(0);
    for AuditSimulation { gates, tally } in simulations {
        shown.add_row([
            any(gates.max_rank.map(|rank| rank.to_string())),
            any(gates.min_score.map(|score| percent(score.get()))),
            any(gates.min_gap.map(|gap| format!("{:.1} %", gap * 100.0))),
            thousands(tally.tp),
            thousands(tally.fp),
            thousands(tally.missed),
            share(tally.precision),
            share(tally.recall),
        ]);
    }
    format!("\nWith tighter gates for the cheap judge:\n\n{shown}\n")
}
