//! `judge`: decides which of its candidates each item duplicates.

use anyhow::Result;
use canonry_domain::{DecisionStatus, ItemType, Probability};
use canonry_triage::{DecisionLine, JudgeOptions, JudgeReport, judge};
use serde_json::{Value, json};

use crate::options::chat::{LimitOptions, ProviderOptions};
use crate::options::item_filter::{OneOrAll, one_or_all};
use crate::options::retrieval::SourceOptions;
use crate::output::exit::Exit;
use crate::output::numbers::{percent, thousands};
use crate::output::printable::one_line;
use crate::output::report::Report;
use crate::output::tables::{counted, table};
use crate::session::context::Context;
use crate::session::database::DatabaseOption;
use crate::session::known_repo::RepoOption;
use crate::session::repo_settings::edge_settings;

/// Judge whether items duplicate one of their candidates.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Judge whether items duplicate one of their candidates.\n\n\
        The newest candidate set of each open item is judged, then every answer passes the same gates, whichever judge \
        gave it; the first gate that objects is stored as the reason. Items with very little text are skipped, because an edge \
        may close them; `canonry detect-new`, which only suggests, compares them too. What was judged before is not asked again. The \
        local judge weighs the evidence in this program: no key, no network. Models get the text with recognised secrets \
        removed; their keys come from OPENAI_API_KEY, ANTHROPIC_API_KEY and GEMINI_API_KEY. With --cascade the local judge \
        answers first, and the model is asked only about the rest.",
    before_help = "Example:\n  canonry judge\n  \
        ANTHROPIC_API_KEY=… canonry judge --repo octo/cat --provider anthropic --max-calls 500\n  \
        canonry judge --provider command --model 'llm prompt'"
)]
pub(crate) struct Args {
    #[command(flatten)]
    repo: RepoOption,
    /// Only items of this type: issue, pr or all
    #[arg(long = "type", value_name = "TYPE", default_value = "all", value_parser = one_or_all::<ItemType>)]
    item_type: OneOrAll<ItemType>,
    /// The lowest confidence that makes two items duplicates, 0 to 1
    #[arg(long, value_name = "CONFIDENCE", default_value = "0.85", value_parser = probability)]
    min_edge: Probability,
    /// Also judge candidate sets whose item changed since
    #[arg(long)]
    allow_stale: bool,
    /// Judge again what is judged already; a new answer replaces the old one
    #[arg(long)]
    rejudge: bool,
    #[command(flatten)]
    source: SourceOptions,
    #[command(flatten)]
    provider: ProviderOptions,
    #[command(flatten)]
    limits: LimitOptions,
    #[command(flatten)]
    database: DatabaseOption,
}

/// Parses a probability from the command line.
pub(crate) fn probability(text: &str) -> Result<Probability, String> {
    let number: f64 = text.parse().map_err(|_| format!("{text:?} is not a number between 0 and 1"))?;
    Probability::new(number).map_err(|error| error.to_string())
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Report> {
    let model = args.provider.model()?;
    let store = args.database.open_known(context).await?;
    let repo = args.repo.find(&store).await?;
    let options = JudgeOptions {
        item_type: args.item_type.one(),
        source: args.source.source(),
        min_edge: args.min_edge,
        allow_stale: args.allow_stale,
        rejudge: args.rejudge,
        joining: None,
        workers: args.limits.workers(),
        budget: args.limits.budget(),
        config_hash: edge_settings(args.min_edge),
        run_id: context.run_id.to_string(),
    };
    let progress = context.progress("items judged");
    let mut told = |so_far: &JudgeReport| progress.update("items judged", so_far.decisions.len() as u64, None);
    let judge_is = args.provider.judge(model.as_deref());
    let done = judge(&store, &repo, judge_is, &options, context.now, &mut told).await;
    progress.finish();
    store.disconnect().await;
    let done = done?;
    let report = Report::new(stats(&done), text(&done, &repo.name.to_string()))
        .of(&repo.name)
        .with("provider", judge_is.provider())
        .with("model", judge_is.model_id())
        .with("stopped", done.stopped.as_deref())
        .with("decisions", done.decisions.iter().map(decision).collect::<Vec<_>>())
        .with(
            "errors",
            done.errors.iter().map(crate::commands::triage::analyze_intent::failed_item).collect::<Vec<_>>(),
        );
    Ok(if done.failed > 0 || done.stopped.is_some() { report.ending(Exit::SomeFailed) } else { report })
}

pub(crate) fn stats(done: &JudgeReport) -> Value {
    json!({
        "discovered_candidate_sets": done.discovered,
        "judged": done.judged,
        "reused_answers": done.reused,
        "accepted_edges": done.accepted,
        "rejected_edges": done.rejected,
        "skipped_existing_edge": done.skipped_existing_edge,
        "skipped_no_candidates": done.skipped_no_candidates,
        "skipped_vague": done.skipped_vague,
        "skipped_no_content": done.skipped_no_content,
        "stale_sets_used": done.stale_sets_used,
        "settled_locally": done.settled_locally,
        "invalid_responses": done.invalid,
        "failed": done.failed,
        "calls": done.calls,
        "cost_usd": done.cost_usd,
    })
}

fn decision(line: &DecisionLine) -> Value {
    json!({
        "number": line.number,
        "type": line.item_type,
        "target": line.target,
        "model_is_duplicate": line.model_is_duplicate,
        "final_status": line.status.as_str(),
        "veto_reason": line.reason,
        "confidence": line.confidence,
        "reasoning": line.reasoning,
        "reused": line.reused,
    })
}

/// What a cascade saved; empty without one.
pub(crate) fn saving(done: &JudgeReport) -> String {
    match done.settled_locally {
        0 => String::new(),
        settled => format!(
            "The model was asked about {} of {}; the local judge settled the others.\n",
            thousands(done.judged - settled),
            counted(done.judged, "item")
        ),
    }
}

/// How many edges the text shows at most.
const SHOWN: usize = 15;

fn text(done: &JudgeReport, repo: &str) -> String {
    if done.discovered == 0 {
        return format!("No open item has a current candidate set.\n\nNext: canonry candidates --repo {repo}\n");
    }
    let mut text = format!(
        "Judged {}: {}, {}.\n",
        counted(done.judged, "item"),
        counted(done.accepted, "duplicate"),
        format_args!("{} not duplicates", thousands(done.rejected))
    );
    let skipped = [
        (done.skipped_no_candidates, "had no candidate"),
        (
            done.skipped_vague,
            "were too short or vague to close anything by; `canonry detect-new NUMBER` compares one anyway",
        ),
        (done.skipped_no_content, "were unfilled templates"),
        (done.skipped_existing_edge, "were known duplicates before"),
        (done.invalid, "got an unusable answer"),
        (done.failed, "got no answer; run the command again to retry"),
    ];
    for (count, why) in skipped.into_iter().filter(|(count, _)| *count > 0) {
        text.push_str(&format!("  {} {why}\n", thousands(count)));
    }
    text.push_str(&saving(done));
    if let Some(why) = &done.stopped {
        text.push_str(&format!("Stopped early: {why}. Run the command again to continue.\n"));
    }
    let accepted: Vec<&DecisionLine> =
        done.decisions.iter().filter(|line| line.status == DecisionStatus::Accepted).collect();
    if !accepted.is_empty() {
        let mut shown = table(["item", "duplicate of", "confidence", "why"]);
        for line in accepted.iter().take(SHOWN) {
            shown.add_row([
                format!("{} #{}", line.item_type, line.number),
                line.target.map_or_else(String::new, |target| format!("#{target}")),
                line.confidence.map_or_else(String::new, |confidence| percent(confidence.get())),
                one_line(line.reasoning.as_deref().unwrap_or("a person ruled so")),
            ]);
        }
        text.push_str(&format!("\n{shown}\n"));
        if accepted.len() > SHOWN {
            text.push_str(&format!("and {} more (see --json)\n", thousands((accepted.len() - SHOWN) as u64)));
        }
        text.push_str(&format!("\nNext: canonry plan-close --repo {repo}\n"));
    }
    text
}
