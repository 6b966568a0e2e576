//! The options of `serve` that add reviewers to Canonry's own rules.

use std::sync::Arc;

use anyhow::{Result, bail};
use canonry_domain::Extractor;
use canonry_models::chat::Thinking;
use canonry_models::chat::TokenPrices;
use canonry_review::reviewers::CommandReviewer;
use canonry_server::{ReviewModel, ReviewParts};

use crate::options::chat::{amount, chat_model};
use crate::output::exit::WrongUsage;
use crate::session::model_patience::ModelPatience;

/// Who reviews where a repository's file names the reviewers llm and command.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Reviewers")]
pub(crate) struct ReviewModelOptions {
    /// The provider of the reviewer llm: openai (any compatible service), anthropic, gemini or command (a program)
    /// [default: none]
    #[arg(long, value_name = "PROVIDER")]
    review_provider: Option<Extractor>,
    /// The model of the reviewer llm [default: the provider's usual one]; for command, the program and its arguments
    #[arg(long, value_name = "MODEL", requires = "review_provider")]
    review_model: Option<String>,
    /// That model's base URL; llama.cpp and ollama stand for such a server on this machine [default: the provider's own
    /// service]
    #[arg(long, value_name = "URL", requires = "review_provider")]
    review_base_url: Option<String>,
    /// That model's reasoning effort: low, medium or high [default: the model's own]
    #[arg(long, value_name = "EFFORT", requires = "review_provider")]
    review_thinking: Option<Thinking>,
    /// The price of a million input tokens of that model, in US dollars [default: --input-price]
    #[arg(long, value_name = "USD", value_parser = amount, requires_all = ["review_provider", "review_output_price"])]
    review_input_price: Option<f64>,
    /// The price of a million output tokens of that model, in US dollars [default: --output-price]
    #[arg(long, value_name = "USD", value_parser = amount, requires_all = ["review_provider", "review_input_price"])]
    review_output_price: Option<f64>,
    /// The program that the reviewer named command runs, and its arguments, separated by spaces, without quotes and
    /// without a shell. It gets the diff on its standard input, runs in an empty folder, and answers in SARIF, in rdjson
    /// or with {"findings": […]}
    #[arg(long, value_name = "PROGRAM")]
    review_command: Option<String>,
}

impl ReviewModelOptions {
    /// Returns the reviewers that the options name. `prices` are the prices of the judge's model; they apply if these
    /// options name no prices.
    pub(crate) fn parts(&self, prices: Option<TokenPrices>, patience: ModelPatience) -> Result<ReviewParts> {
        let command = match self.review_command.as_deref().map(CommandReviewer::from_line) {
            Some(None) => bail!(WrongUsage("name a program with --review-command 'PROGRAM ARGUMENTS'".to_owned())),
            command => command.flatten(),
        };
        Ok(ReviewParts { llm: self.llm(prices, patience)?, command })
    }

    fn llm(&self, prices: Option<TokenPrices>, patience: ModelPatience) -> Result<Option<ReviewModel>> {
        let Some(provider) = self.review_provider else { return Ok(None) };
        if provider == Extractor::Local {
            let words = "there is no local review model; use the reviewer builtin, or --review-provider openai, anthropic, \
                gemini or command";
            bail!(WrongUsage(words.to_owned()));
        }
        let (model, base_url) = (self.review_model.as_deref(), self.review_base_url.as_deref());
        let chat = chat_model("--review-provider", provider, model, base_url, self.review_thinking, patience)?;
        let own = self.review_input_price.zip(self.review_output_price);
        let prices = own.map(|(input, output)| TokenPrices { input, output }).or(prices);
        Ok(chat.map(|chat| ReviewModel { provider, chat: Arc::from(chat), prices }))
    }
}
