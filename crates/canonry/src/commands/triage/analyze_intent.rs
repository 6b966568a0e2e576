//! `analyze-intent`: an intent card for each item.

use anyhow::{Result, anyhow};
use canonry_domain::Extractor;
use canonry_triage::{AnalyzeOptions, AnalyzeReport, FailedItem, IntentExtractor, analyze_intent};
use serde_json::{Value, json};

use crate::options::chat::chat_model;
use crate::options::item_filter::ItemFilterOptions;
use crate::output::exit::Exit;
use crate::output::printable::one_line;
use crate::output::report::Report;
use crate::output::tables::counted;
use crate::session::context::Context;
use crate::session::database::DatabaseOption;
use crate::session::known_repo::RepoOption;
use crate::session::model_patience::ModelPatience;

/// Write down what each item wants, as a card that items can be compared by.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Write down what each item wants, as a card that items can be compared by.\n\n\
        The local extractor reads headings, error lines, stack frames, versions, code and links by rules: no key, no \
        network. A model reads the text itself; what it is sent holds no secrets that Canonry recognises. Where it \
        fails, a failed card says why, and the item goes on being compared by its own text. Keys come from \
        OPENAI_API_KEY, ANTHROPIC_API_KEY and GEMINI_API_KEY.",
    after_help = "Example:\n  canonry analyze-intent --repo octo/cat --only-changed\n  \
        ANTHROPIC_API_KEY=… canonry analyze-intent --repo octo/cat --extractor anthropic\n  \
        canonry analyze-intent --repo octo/cat --extractor command --model 'llm prompt'"
)]
pub(crate) struct Args {
    #[command(flatten)]
    repo: RepoOption,
    /// Only items without a card of this extractor and model that is about their present text
    #[arg(long)]
    only_changed: bool,
    #[command(flatten)]
    filter: ItemFilterOptions,
    /// Who makes the cards: local (by rules), openai (any compatible service), anthropic, gemini or command (a program)
    #[arg(long, value_name = "EXTRACTOR", default_value = "local")]
    extractor: Extractor,
    /// The model [default: the provider's usual one]; for command, the program and its arguments, parted by spaces
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Where the model is [default: the provider's own service]
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    #[command(flatten)]
    patience: ModelPatience,
    /// How many items a model is asked about at once
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
        kept => anyhow!("{} ({} were made before that and stay)", failure.cause, counted(kept, "card")),
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

/// So many failures are shown to a person; `--json` has more of them.
const SHOWN: usize = 20;

fn text(done: &AnalyzeReport, extractor: Extractor) -> String {
    let mut text = format!("Made {} with the {extractor} extractor.\n", counted(done.analyzed, "card"));
    if done.skipped_fresh > 0 {
        text.push_str(&format!("{} had a fresh one.\n", counted(done.skipped_fresh, "item")));
    }
    if done.failed > 0 {
        text.push_str(&format!(
            "\n{} got none, and will be compared by title and body:\n",
            counted(done.failed, "item")
        ));
        for failed in done.errors.iter().take(SHOWN) {
            text.push_str(&format!("  {} #{}: {}\n", failed.item_type, failed.number, one_line(&failed.message)));
        }
        let hidden = done.failed.saturating_sub(SHOWN as u64);
        if hidden > 0 {
            text.push_str(&format!("  and {hidden} more (see --json)\n"));
        }
    }
    text
}
