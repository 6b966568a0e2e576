//! `judge-audit`: how often a cheap judge agrees with a strong one.

use anyhow::Result;
use canonry_domain::{
    AuditTally, Extractor, ItemType, JudgeProof, LEAST_PROVEN_PRECISION, LEAST_PROVING_ANSWERS, Probability,
};
use canonry_store::AuditedItem;
use canonry_triage::{AuditOptions, judge_audit};
use serde_json::{Value, json};

use crate::commands::triage::judge::probability;
use crate::options::chat::{LimitOptions, chat_model, judge_of};
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
use crate::session::model_patience::ModelPatience;

const OWN_BASE_URL: &str = "Its base URL; llama.cpp and ollama stand for such a server on this machine [default: --base-url, or \
    the provider's own service]";

/// Measure a cheap judge against a strong one.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Measure a cheap judge against a strong one.\n\n\
        Both judge the same sample of the repository's candidate sets through the same gates; the strong judge counts as \
        right. The audit is stored: `canonry report-audit` shows it again, and what tighter gates would have changed, \
        without a model call.\n\n\
        It also proves the cheap judge: a model closes nothing in a repository before an audit there knows at least 20 of \
        its accepted answers and 90 % of them were right. People's rulings and sampled verdicts count before the strong judge.",
    before_help = "Example:\n  canonry judge-audit --strong-provider anthropic --sample-size 100\n  \
        canonry judge-audit --repo octo/cat --cheap-provider openai --cheap-model small --strong-provider openai --strong-model large --seed 7"
)]
pub(crate) struct Args {
    #[command(flatten)]
    repo: RepoOption,
    /// Only items of this type: issue, pr or all
    #[arg(long = "type", value_name = "TYPE", default_value = "all", value_parser = one_or_all::<ItemType>)]
    item_type: OneOrAll<ItemType>,
    /// How many candidate sets at most
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    sample_size: u32,
    /// The seed of the sample; the same seed gives the same sample
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: i64,
    /// The cheap judge: local, openai, anthropic, gemini or command
    #[arg(long, value_name = "PROVIDER", default_value = "local")]
    cheap_provider: Extractor,
    /// Its model [default: the provider's usual one]
    #[arg(long, value_name = "MODEL")]
    cheap_model: Option<String>,
    #[arg(long, value_name = "URL", help = OWN_BASE_URL)]
    cheap_base_url: Option<String>,
    /// The strong judge: local, openai, anthropic, gemini or command
    #[arg(long, value_name = "PROVIDER")]
    strong_provider: Extractor,
    /// Its model [default: the provider's usual one]
    #[arg(long, value_name = "MODEL")]
    strong_model: Option<String>,
    #[arg(long, value_name = "URL", help = OWN_BASE_URL)]
    strong_base_url: Option<String>,
    /// The base URL of both models; llama.cpp and ollama stand for such a server on this machine
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// The lowest confidence that makes two items duplicates, 0 to 1
    #[arg(long, value_name = "CONFIDENCE", default_value = "0.85", value_parser = probability)]
    min_edge: Probability,
    #[command(flatten)]
    source: SourceOptions,
    #[command(flatten)]
    patience: ModelPatience,
    #[command(flatten)]
    limits: LimitOptions,
    #[command(flatten)]
    database: DatabaseOption,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Report> {
    let shared = |provider: Extractor, own: &Option<String>| {
        let takes = !matches!(provider, Extractor::Local | Extractor::Command);
        own.clone().or_else(|| args.base_url.clone().filter(|_| takes))
    };
    let model = |option: &str, provider, name: &Option<String>, base_url: &Option<String>| {
        chat_model(option, provider, name.as_deref(), shared(provider, base_url).as_deref(), None, args.patience)
    };
    let cheap = model("--cheap-provider", args.cheap_provider, &args.cheap_model, &args.cheap_base_url)?;
    let strong = model("--strong-provider", args.strong_provider, &args.strong_model, &args.strong_base_url)?;
    let store = args.database.open_known(context).await?;
    let repo = args.repo.find(&store).await?;
    let options = AuditOptions {
        item_type: args.item_type.one(),
        source: args.source.source(),
        sample_size: args.sample_size,
        seed: args.seed,
        min_edge: args.min_edge,
        workers: args.limits.workers(),
        budget: args.limits.budget(),
        run_id: context.run_id.to_string(),
    };
    let bar = context.counter("items judged twice");
    let mut progress = |done| bar.set_position(done);
    let cheap = judge_of(args.cheap_provider, cheap.as_deref(), false);
    let strong = judge_of(args.strong_provider, strong.as_deref(), false);
    let done = judge_audit(&store, &repo, cheap, strong, &options, context.now, &mut progress).await;
    bar.finish_and_clear();
    store.disconnect().await;
    let done = done?;
    let next = format!("\nNext: canonry report-audit {} --repo {} --sweep\n", done.id, repo.name);
    let judge = format!("{} {}", cheap.provider(), cheap.model_id());
    let mut text = tally_text(done.id, &done.tally) + &proof_text(&judge, args.cheap_provider, done.proof) + &next;
    if let Some(why) = &done.stopped {
        text += &format!("Stopped early: {why}.\n");
    }
    let report = Report::new(json!({ "sampled": done.items.len() }), text)
        .of(&repo.name)
        .with("audit", audit_document(done.id, &done.tally))
        .with("proof", proof_document(args.cheap_provider, done.proof))
        .with("simulations", json!([]))
        .with("stopped", done.stopped.as_deref())
        .with("items", done.items.iter().map(item_document).collect::<Vec<_>>());
    // A vague text or an empty answer is a separate class, not a failure.
    let some_failed = done.stopped.is_some() || done.items.iter().any(|audited| audited.item.has_failed());
    Ok(if some_failed { report.ending(Exit::SomeFailed) } else { report })
}

/// Reports in JSON whether the cheap judge may close.
fn proof_document(provider: Extractor, proof: JudgeProof) -> Value {
    json!({
        "right": proof.right,
        "wrong": proof.wrong,
        "precision": proof.precision(),
        "least_answers": LEAST_PROVING_ANSWERS,
        "least_precision": LEAST_PROVEN_PRECISION,
        "may_close": provider == Extractor::Local || proof.is_enough(),
    })
}

/// Reports in words whether the cheap judge may close.
fn proof_text(judge: &str, provider: Extractor, proof: JudgeProof) -> String {
    if provider == Extractor::Local {
        return String::new();
    }
    format!("\n{}: {}\n", one_line(judge), proof.in_words())
}

pub(crate) fn audit_document(id: i64, tally: &AuditTally) -> Value {
    let mut document = json!({ "id": id });
    if let (Value::Object(document), Value::Object(tally)) = (&mut document, json!(tally)) {
        document.extend(tally);
    }
    document
}

/// Reports one audited item in JSON.
pub(crate) fn item_document(audited: &AuditedItem) -> Value {
    json!({
        "number": audited.number,
        "type": audited.item_type,
        "class": audited.class,
        "candidates": audited.item.candidates,
        "cheap": audited.item.cheap,
        "strong": audited.item.strong,
    })
}

pub(crate) fn tally_text(id: i64, tally: &AuditTally) -> String {
    let share = |share: Option<f64>| share.map_or_else(|| "unknown".to_owned(), percent);
    let mut shown = table(["result", "items"]).with_numbers_from(1);
    for (what, count) in [
        ("both found the same duplicate (tp)", tally.tp),
        ("only the cheap judge found one (fp)", tally.fp),
        ("only the strong judge found one (fn)", tally.missed),
        ("neither found one (tn)", tally.tn),
        ("both found different ones (conflict)", tally.conflict),
        ("one of them gave no answer (incomplete)", tally.incomplete),
    ] {
        shown.add_row([what.to_owned(), thousands(count)]);
    }
    format!(
        "Audit {id} of {}.\n\n{shown}\n\nPrecision {}, recall {}, measured against the strong judge.\n",
        counted(tally.sample_size, "item"),
        share(tally.precision),
        share(tally.recall)
    )
}
