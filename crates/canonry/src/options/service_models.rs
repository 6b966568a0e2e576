//! The models of a service and their budget: the same options for `serve` and `run`.

use std::sync::{Arc, OnceLock};

use anyhow::{Result, bail};
use canonry_models::chat::TokenPrices;
use canonry_retrieval::RetrievalMode;
use canonry_server::ReviewParts;
use canonry_store::Store;
use canonry_triage::{DetectorSource, IndexCache};

use crate::options::chat::{Models, ProviderOptions, amount};
use crate::options::retrieval::{EmbedderOptions, ModeOption, SourceOptions, snapshots_of};
use crate::options::review_model::ReviewModelOptions;
use crate::output::exit::WrongUsage;
use crate::session::database::DatabaseOption;
use crate::session::detector_source::ServiceModels;

#[derive(Debug, clap::Args)]
pub(crate) struct ServiceModelOptions {
    /// The most that models may cost per repository and calendar month, in US dollars; needs the two prices. A repository
    /// can set a lower limit in its .canonry.yml
    #[arg(long, value_name = "USD", value_parser = amount, requires_all = ["input_price", "output_price"])]
    monthly_cost: Option<f64>,
    /// What a million tokens cost that the model reads, in US dollars
    #[arg(long, value_name = "USD", value_parser = amount, requires = "output_price")]
    input_price: Option<f64>,
    /// What a million tokens cost that the model writes, in US dollars
    #[arg(long, value_name = "USD", value_parser = amount, requires = "input_price")]
    output_price: Option<f64>,
    #[command(flatten)]
    source: SourceOptions,
    #[command(flatten)]
    mode: ModeOption,
    #[command(flatten)]
    embedder: EmbedderOptions,
    #[command(flatten)]
    provider: ProviderOptions,
    #[command(flatten)]
    review: ReviewModelOptions,
}

impl ServiceModelOptions {
    pub(crate) fn prices(&self) -> Option<TokenPrices> {
        self.input_price.zip(self.output_price).map(|(input, output)| TokenPrices { input, output })
    }

    pub(crate) const fn monthly_cost(&self) -> Option<f64> {
        self.monthly_cost
    }

    pub(crate) const fn mode(&self) -> RetrievalMode {
        self.mode.mode
    }

    /// The models that judge and those that review, as these options define them.
    pub(crate) fn load(&self) -> Result<(Models, ReviewParts)> {
        let models = self.provider.models(self.source.source())?;
        let reviewers = self.review.parts(self.prices(), self.provider.patience)?;
        if self.monthly_cost.is_some() && !models.are_hosted() && reviewers.llm.is_none() {
            let words =
                "--monthly-cost is for hosted models; name one with --provider, --extractor or --review-provider";
            bail!(WrongUsage(words.to_owned()));
        }
        if (models.are_hosted() || reviewers.llm.is_some()) && self.prices().is_none() {
            tracing::warn!(
                "the models' prices are unknown, so a repository with budget.monthlyCostUsd in its .canonry.yml gets no model; set \
                 --input-price and --output-price"
            );
        }
        Ok((models, reviewers))
    }

    /// The detectors of a service. `index_memory` is in MB.
    pub(crate) async fn detectors(
        &self,
        models: Models,
        store: &Store,
        database: &DatabaseOption,
        index_memory: u32,
    ) -> Result<Arc<dyn DetectorSource>> {
        Ok(Arc::new(ServiceModels {
            models,
            remote_embedder: self.embedder.unless_local(store).await?,
            local_embedder: OnceLock::new(),
            snapshots: snapshots_of(database)?,
            indexes: IndexCache::new(index_memory as usize * 1_000_000),
        }))
    }
}
