//! The options of `review` that select the reviewers.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, bail};
use canonry_config::{ModelBudget, ReviewSettings};
use canonry_domain::Extractor;
use canonry_models::chat::Thinking;
use canonry_models::chat::TokenPrices;
use canonry_review::reviewers::CommandReviewer;
use canonry_review::reviewers::llm::{LlmReviewBudget, LlmReviewer};
use canonry_review::{ReviewerChoice, choose_reviewers};

use crate::options::chat::{amount, chat_model};
use crate::output::exit::WrongUsage;
use crate::session::model_patience::ModelPatience;

/// Who reviews.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Reviewers")]
pub(crate) struct ReviewerOptions {
    /// The reviewers beside the reports, one or more: builtin, llm, command [default: none where there are reports, else
    /// review.reviewers of .canonry.yml, which is builtin by default]
    #[arg(long = "reviewer", value_name = "REVIEWER", num_args = 1.., value_delimiter = ',', value_enum, hide_possible_values = true)]
    reviewers: Vec<ReviewerWord>,
    /// Reports of other tools in SARIF 2.1.0
    #[arg(long, value_name = "FILE", num_args = 1..)]
    sarif: Vec<PathBuf>,
    /// SARIF reports of the base by the same tools. Results in them count as older than the change; other results are
    /// shown on any line. A report without a commit is about the merge base
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "sarif")]
    sarif_base: Vec<PathBuf>,
    /// The commit that the linters read. Lines in their reports are mapped to the head [default: the commit that a report
    /// names, else GitHub's merge commit of the head if it is checked out, else the head]
    #[arg(long, value_name = "REV")]
    linted: Option<String>,
    /// Reports of other tools in the Reviewdog Diagnostic Format, one document or lines
    #[arg(long, value_name = "FILE", num_args = 1..)]
    rdjson: Vec<PathBuf>,
    /// A program that reviews, and its arguments, separated by spaces, without quotes and without a shell. It gets the diff
    /// on its standard input and answers in SARIF, in rdjson or with {"findings": […]}
    #[arg(long, value_name = "PROGRAM")]
    command: Option<String>,
    /// The provider of the reviewer llm: openai (any compatible service), anthropic, gemini or command (a program)
    #[arg(long, value_name = "PROVIDER")]
    provider: Option<Extractor>,
    /// The model [default: the provider's usual one]; for the provider command, the program and its arguments
    #[arg(long, value_name = "MODEL", requires = "provider")]
    model: Option<String>,
    /// The model's base URL; llama.cpp and ollama stand for such a server on this machine [default: the provider's own
    /// service]
    #[arg(long, value_name = "URL", requires = "provider")]
    base_url: Option<String>,
    /// The model's reasoning effort: low, medium or high [default: the model's own]
    #[arg(long, value_name = "EFFORT", requires = "provider")]
    thinking: Option<Thinking>,
    #[command(flatten)]
    patience: ModelPatience,
    /// The most questions to the model
    #[arg(long, value_name = "COUNT", requires = "provider", value_parser = clap::value_parser!(u32).range(1..=1000))]
    max_calls: Option<u32>,
    /// The most that the model may cost, in US dollars; needs the two prices
    #[arg(long, value_name = "USD", value_parser = amount, requires_all = ["provider", "input_price", "output_price"])]
    max_cost: Option<f64>,
    /// The price of a million input tokens, in US dollars
    #[arg(long, value_name = "USD", value_parser = amount, requires_all = ["provider", "output_price"])]
    input_price: Option<f64>,
    /// The price of a million output tokens, in US dollars
    #[arg(long, value_name = "USD", value_parser = amount, requires_all = ["provider", "input_price"])]
    output_price: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ReviewerWord {
    Builtin,
    Llm,
    Command,
}

impl ReviewerOptions {
    /// Returns the model that reviews the change, if the options name one.
    pub(crate) fn llm(&self) -> Result<Option<LlmReviewer>> {
        let Some(provider) = self.provider else {
            if self.reviewers.contains(&ReviewerWord::Llm) {
                bail!(WrongUsage(
                    "the reviewer llm needs a model; add --provider, for example --provider anthropic".to_owned()
                ));
            }
            return Ok(None);
        };
        if provider == Extractor::Local {
            let words = "there is no local review model; use --reviewer builtin, or --provider openai, anthropic, gemini or \
                command";
            bail!(WrongUsage(words.to_owned()));
        }
        let (model, base_url) = (self.model.as_deref(), self.base_url.as_deref());
        let model = chat_model("--provider", provider, model, base_url, self.thinking, self.patience)?;
        Ok(model.map(|model| LlmReviewer::new(Arc::from(model))))
    }

    /// Returns the reports about the base.
    pub(crate) fn base_reports(&self) -> &[PathBuf] {
        &self.sarif_base
    }

    /// Returns the name of the commit that the linters read, if the options name one.
    pub(crate) fn linted(&self) -> Option<&str> {
        self.linted.as_deref()
    }

    /// Returns the limits on what the model reads, its calls and its cost.
    pub(crate) fn budget(&self, settings: ModelBudget) -> LlmReviewBudget {
        let usual = LlmReviewBudget::of(settings);
        LlmReviewBudget {
            calls: self.max_calls.unwrap_or(usual.calls),
            cost_usd: self.max_cost.or(usual.cost_usd),
            prices: self.input_price.zip(self.output_price).map(|(input, output)| TokenPrices { input, output }),
            ..usual
        }
    }

    /// Chooses the reviewers from these options and the repository's settings.
    pub(crate) fn choose(&self, settings: &ReviewSettings) -> Result<Vec<ReviewerChoice>> {
        let at_hand = self.at_hand()?;
        if self.reviewers.is_empty() {
            let has_reports = !self.sarif.is_empty() || !self.rdjson.is_empty();
            return Ok(if has_reports { at_hand } else { choose_reviewers(settings, &at_hand) });
        }
        let mut chosen = Vec::new();
        if self.reviewers.contains(&ReviewerWord::Builtin) {
            chosen.push(ReviewerChoice::Builtin);
        }
        chosen.extend(at_hand);
        Ok(chosen)
    }

    /// Returns the reviewers that these options name; they take part whatever the settings say.
    fn at_hand(&self) -> Result<Vec<ReviewerChoice>> {
        let mut at_hand = Vec::new();
        if self.provider.is_some() {
            at_hand.push(ReviewerChoice::Llm);
        }
        at_hand.extend(self.sarif.iter().cloned().map(ReviewerChoice::Sarif));
        at_hand.extend(self.rdjson.iter().cloned().map(ReviewerChoice::Rdjson));
        match self.command.as_deref().map(CommandReviewer::from_line) {
            Some(Some(program)) => at_hand.push(ReviewerChoice::Command(program)),
            None if !self.reviewers.contains(&ReviewerWord::Command) => {}
            Some(None) | None => {
                bail!(WrongUsage("the reviewer command needs a program; add --command 'PROGRAM ARGUMENTS'".to_owned()))
            }
        }
        Ok(at_hand)
    }
}
