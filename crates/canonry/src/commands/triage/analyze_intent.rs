//! `analyze-intent`: an intent card for each item.

use anyhow::{Result, anyhow};
use canonry_domain::Extractor;
use canonry_triage::{AnalyzeOptions, AnalyzeReport, FailedItem, IntentExtractor, analyze_intent};
use serde_json::{Value, json};

use crate::options::chat::chat_model;
use crate::options::item_filter::ItemFilterOptions;
use crate::output::exit::Exit;
use crate::output::numbers::thousands;
use crate::output::printable::one_line;
use crate::output::report::Report;
use crate::output::tables::counted;
use crate::session::context::Context;
use crate::session::database::DatabaseOption;
use crate::session::known_repo::RepoOption;
use crate::session::model_patience::ModelPatience;

/// Extract what each item wants, as an intent card.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Extract what each item wants, as an intent card.\n\n\
        Items can be compared by their cards (--source intent) instead of their text. The local extractor reads \
        headings, error lines, stack frames, versions, code and links by rules: no key, no network. A model reads the \
        text with recognised secrets removed. Where a model fails, the card says why, and the item is compared by its \
        text. Keys come from OPENAI_API_KEY, ANTHROPIC_API_KEY and GEMINI_API_KEY.",
    before_help = "Example:\n  canonry analyze-intent --only-changed\n  \
        ANTHROPIC_API_KEY=… canonry analyze-intent --repo octo/cat --extractor anthropic\n  \
        canonry analyze-intent --extractor command --model 'llm prompt'"
)]
pub(crate) struct Args {
    #[command(flatten)]
    repo: RepoOption,
    /// Only items without a current card of this extractor and model
    #[arg(long)]
    only_changed: bool,
    #[command(flatten)]
    filter: ItemFilterOptions,
    /// The extractor: local (by rules), openai (any compatible service), anthropic, gemini or command (a program)
    #[arg(long, value_name = "EXTRACTOR", default_value = "local")]
    extractor: Extractor,
    /// The model [default: the provider's usual one]; for command, the program and its arguments, separated by spaces
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// The model's base URL; llama.cpp and ollama stand for such a server on this machine [default: the provider's own
    /// service]
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    #[command(flatten)]
    patience: ModelPatience,
    /// How many requests to the model run at once
    #[arg(long, value_name = "COUNT", default_value = "4", value_parser = clap::value_parser!(u8).range(1..=64))]
    workers: u8,
    #[command(flatten)]
    database: DatabaseOption,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Report> {
    let (model, base_url) = (args.model.as_deref(), args.base_url.as_deref());
    let model = chat_model("--extractor", args.extractor, model, base_url, None, args.patience)?;
    let store = args.database.open_known(context).await?;
    let repo = args.repo.find(&store).await?;
    let extractor = match &model {
        Some(model) => IntentExtractor::Model { extractor: args.extractor, model: &**model },
        None => IntentExtractor::Local,
    };
    let options = AnalyzeOptions {
        item_type: args.filter.item_type(),
        state: args.filter.state(),
        only_changed: args.only_changed,
        workers: usize::from(args.workers),
    };
    let bar = context.counter("items analysed");
    let mut progress = |so_far: &AnalyzeReport| bar.set_position(so_far.analyzed + so_far.failed);
    let done = analyze_intent(&store, &repo, extractor, options, context.now, &mut progress).await;
    bar.finish_and_clear();
    store.disconnect().await;
    let done = done.map_err(|failure| match failure.so_far.analyzed {
        0 => anyhow!("{}", failure.cause),
        kept => anyhow!("{} ({} are already stored)", failure.cause, counted(kept, "card")),
    })?;
    let maker = extractor.maker();
    let stats = json!({
        "discovered": done.discovered, "analyzed": done.analyzed,
        "skipped_fresh": done.skipped_fresh, "failed": done.failed,
    });
    let report = Report::new(stats, text(&done, maker.extractor))
        .of(&repo.name)
        .with("extractor", maker.extractor)
        .with("model", &maker.model)
        .with("errors", done.errors.iter().map(failed_item).collect::<Vec<_>>());
    Ok(if done.failed > 0 { report.ending(Exit::SomeFailed) } else { report })
}

pub(crate) fn failed_item(failed: &FailedItem) -> Value {
    json!({ "type": failed.item_type, "number": failed.number, "message": failed.message })
}

/// How many failures the text shows at most; `--json` contains more.
const SHOWN: usize = 20;

fn text(done: &AnalyzeReport, extractor: Extractor) -> String {
    let mut text = format!("Stored {} from the {extractor} extractor.\n", counted(done.analyzed, "card"));
    if done.skipped_fresh > 0 {
        text.push_str(&format!("{} already had a current card.\n", counted(done.skipped_fresh, "item")));
    }
    if done.failed > 0 {
        text.push_str(&format!("\n{} failed and will be compared by title and body:\n", counted(done.failed, "item")));
        for failed in done.errors.iter().take(SHOWN) {
            text.push_str(&format!("  {} #{}: {}\n", failed.item_type, failed.number, one_line(&failed.message)));
        }
        let hidden = done.failed.saturating_sub(SHOWN as u64);
        if hidden > 0 {
            text.push_str(&format!("  and {} more (see --json)\n", thousands(hidden)));
        }
    }
    text
}
