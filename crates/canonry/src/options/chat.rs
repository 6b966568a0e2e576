//! The options of commands that use a model: which model, how many calls, and the maximum cost.

use anyhow::{Result, anyhow, bail};
use canonry_domain::Extractor;
use canonry_models::chat::{ChatModel, ChatProvider, ChatSettings, CommandChat, CommandSettings, RemoteChat, Thinking};
use canonry_models::chat::{TokenBudget, TokenLimits, TokenPrices};
use canonry_triage::{EmbedSource, IntentExtractor, Judge};

use crate::options::local_server::set_server;
use crate::output::exit::WrongUsage;
use crate::session::model_patience::ModelPatience;

/// Who judges.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ProviderOptions {
    /// The judge: local (in this program), openai (any compatible service), anthropic, gemini or command (a program)
    #[arg(long, value_name = "PROVIDER", default_value = "local")]
    pub(crate) provider: Extractor,
    /// The model [default: the provider's usual one]; for command, the program and its arguments, separated by spaces
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// The model's base URL; llama.cpp and ollama stand for such a server on this machine [default: the provider's own
    /// service]
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Ask the model only about what the local judge does not settle and where its answer could change the result
    #[arg(long)]
    pub(crate) cascade: bool,
    /// The model's reasoning effort: low, medium or high [default: the model's own]
    #[arg(long, value_name = "EFFORT")]
    pub(crate) thinking: Option<Thinking>,
    #[command(flatten)]
    pub(crate) patience: ModelPatience,
}

/// What may be asked and spent.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct LimitOptions {
    /// How many questions to the model run at once
    #[arg(long, value_name = "COUNT", default_value = "4", value_parser = clap::value_parser!(u8).range(1..=64))]
    workers: u8,
    /// Stop after so many questions to the model
    #[arg(long, value_name = "COUNT")]
    max_calls: Option<u64>,
    /// Stop before more than this is spent, in US dollars; needs the two prices
    #[arg(long, value_name = "USD", value_parser = amount, requires_all = ["input_price", "output_price"])]
    max_cost: Option<f64>,
    /// The price of a million input tokens, in US dollars
    #[arg(long, value_name = "USD", value_parser = amount, requires = "output_price")]
    input_price: Option<f64>,
    /// The price of a million output tokens, in US dollars
    #[arg(long, value_name = "USD", value_parser = amount, requires = "input_price")]
    output_price: Option<f64>,
}

pub(crate) fn amount(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| format!("{text:?} is not an amount of money"))?;
    if number.is_finite() && number >= 0.0 { Ok(number) } else { Err(format!("{text:?} is not an amount of money")) }
}

impl LimitOptions {
    /// How many model calls run at the same time.
    pub(crate) fn workers(self) -> usize {
        usize::from(self.workers)
    }

    /// The limits on the calls and the cost of the whole run.
    pub(crate) fn budget(self) -> TokenBudget {
        let prices = self.input_price.zip(self.output_price).map(|(input, output)| TokenPrices { input, output });
        TokenBudget::new(TokenLimits { max_calls: self.max_calls, max_cost: self.max_cost, prices })
    }
}

impl ProviderOptions {
    /// Returns the model that judges; `None` for the local judge.
    pub(crate) fn model(&self) -> Result<Option<Box<dyn ChatModel>>> {
        if self.cascade && self.provider == Extractor::Local {
            bail!(WrongUsage("--cascade needs a model; name one with --provider".to_owned()));
        }
        let (model, base_url) = (self.model.as_deref(), self.base_url.as_deref());
        chat_model("--provider", self.provider, model, base_url, self.thinking, self.patience)
    }

    /// The judge that asks the model of these options.
    pub(crate) fn judge<'a>(&self, model: Option<&'a dyn ChatModel>) -> Judge<'a> {
        judge_of(self.provider, model, self.cascade)
    }
}

/// The models of a command that makes cards and judges.
pub(crate) struct Models {
    judge: Option<Box<dyn ChatModel>>,
    extractor: Option<Box<dyn ChatModel>>,
    provider: Extractor,
    cascade: bool,
    source: EmbedSource,
}

impl Models {
    /// The built-in judge, for commands that ask no language model.
    pub(crate) const fn local() -> Self {
        Self { judge: None, extractor: None, provider: Extractor::Local, cascade: false, source: EmbedSource::Raw }
    }
}

impl ProviderOptions {
    /// Returns the judge's model and, if a model makes the cards that are compared, that model too.
    ///
    /// There is only one --model and one --base-url. With two different providers, both would get the same model and
    /// address, and a key could be sent to the wrong address; this combination is refused.
    pub(crate) fn models(&self, source: EmbedSource) -> Result<Models> {
        let cascade = self.cascade;
        let kind = match source {
            EmbedSource::Intent(kind) if kind != Extractor::Local => kind,
            _ => return Ok(Models { judge: self.model()?, extractor: None, provider: self.provider, cascade, source }),
        };
        let named = self.model.is_some() || self.base_url.is_some();
        if named && self.provider != kind && self.provider != Extractor::Local {
            let words = "--model and --base-url name one model, but --provider and --extractor differ; use the same for both, or \
                run `canonry analyze-intent` first";
            bail!(WrongUsage(words.to_owned()));
        }
        if self.provider == Extractor::Local && self.thinking.is_some() {
            bail!(WrongUsage("--thinking needs a model; name one with --provider".to_owned()));
        }
        let judge = if self.provider == Extractor::Local && !cascade { None } else { self.model()? };
        let (model, base_url) = (self.model.as_deref(), self.base_url.as_deref());
        let extractor = chat_model("--extractor", kind, model, base_url, None, self.patience)?;
        Ok(Models { judge, extractor, provider: self.provider, cascade, source })
    }
}

impl Models {
    pub(crate) fn judge(&self) -> Judge<'_> {
        judge_of(self.provider, self.judge.as_deref(), self.cascade)
    }

    /// Whether a model outside this program judges or makes cards.
    pub(crate) fn are_hosted(&self) -> bool {
        self.judge.is_some() || self.extractor.is_some()
    }

    /// Whether one of the models is a program, which does not report its cost.
    pub(crate) fn ask_a_program(&self) -> bool {
        let extracts = self.extractor.is_some() && self.source == EmbedSource::Intent(Extractor::Command);
        extracts || self.judge.is_some() && self.provider == Extractor::Command
    }

    /// Returns the extractor that makes the cards; `None` if no cards are compared.
    pub(crate) fn extractor(&self) -> Option<IntentExtractor<'_>> {
        match (self.source, &self.extractor) {
            (EmbedSource::Raw, _) => None,
            (EmbedSource::Intent(extractor), Some(model)) => {
                Some(IntentExtractor::Model { extractor, model: &**model })
            }
            (EmbedSource::Intent(_), None) => Some(IntentExtractor::Local),
        }
    }
}

/// Returns a judge that asks the model, in a cascade after the local judge; without a model, the local judge.
pub(crate) fn judge_of(provider: Extractor, model: Option<&dyn ChatModel>, cascade: bool) -> Judge<'_> {
    match (model, cascade) {
        (None, _) => Judge::Local,
        (Some(model), false) => Judge::Model { provider, model },
        (Some(model), true) => Judge::Cascade { provider, model },
    }
}

/// Returns the model that the options name; `None` for the local extractor, which needs no model. `option` is the name
/// of the option that chooses the provider.
pub(crate) fn chat_model(
    option: &str,
    kind: Extractor,
    model: Option<&str>,
    base_url: Option<&str>,
    thinking: Option<Thinking>,
    patience: ModelPatience,
) -> Result<Option<Box<dyn ChatModel>>> {
    let provider = match kind {
        Extractor::Local => {
            if model.is_some() || base_url.is_some() || thinking.is_some() {
                let words = format!("--model, --base-url and --thinking need a model; name one with {option}");
                bail!(WrongUsage(words));
            }
            return Ok(None);
        }
        Extractor::Command => {
            if base_url.is_some() || thinking.is_some() {
                let words =
                    "command takes no --base-url and no --thinking; name the program with --model 'PROGRAM ARGUMENTS'";
                bail!(WrongUsage(words.to_owned()));
            }
            let mut settings = CommandSettings::from_line(model.unwrap_or_default())
                .ok_or_else(|| WrongUsage("name the program with --model 'PROGRAM ARGUMENTS'".to_owned()))?;
            patience.apply_to_program(&mut settings);
            return Ok(Some(Box::new(CommandChat::new(settings))));
        }
        Extractor::OpenAi => ChatProvider::OpenAi,
        Extractor::Anthropic => ChatProvider::Anthropic,
        Extractor::Gemini => ChatProvider::Gemini,
    };
    let mut settings = ChatSettings::from_environment(provider);
    set_server(&mut settings, base_url, model).map_err(WrongUsage)?;
    settings.thinking = thinking;
    patience.apply(&mut settings);
    let model = RemoteChat::new(settings).map_err(|error| anyhow!("failed to {error}"))?;
    Ok(Some(Box::new(model)))
}
