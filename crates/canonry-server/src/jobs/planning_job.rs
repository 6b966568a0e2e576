//! The jobs that plan, cluster, and cancel announced closes on a person's order. They close nothing.

use canonry_config::config_hash;
use canonry_domain::{GraceEnd, ItemNumber, ItemType, Login, Probability, TargetPolicy};
use canonry_store::JobKind;
use canonry_triage::{
    EmbedSource, PlanError, PlanOptions, cancel_grace, canonicalize, counts_for_a_plan, plan_close, plan_rules,
};
use serde::{Deserialize, Serialize};

use crate::handlers::repo_settings::RepoSettings;
use crate::jobs::closing_job::{know_maintainers, mistaken, still_maintains};
use crate::jobs::job_errors::in_words;
use crate::jobs::job_handler::JobError;
use crate::jobs::job_keys::{KeyedRepo, closing_key, item_key};
use crate::jobs::orders::{Order, OrderContext};
use crate::service::Service;

/// Makes a plan, as `plan-close` does. A job that runs again makes no second plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanOrder {
    pub item_type: Option<ItemType>,
    /// The least confidence with which an item is closed; `None` uses the settings.
    pub min_close: Option<Probability>,
    /// What must have been judged; `None` uses the settings.
    pub policy: Option<TargetPolicy>,
    /// The account that ordered it; `None` is the operator.
    pub by: Option<Login>,
}

/// Recomputes the clusters and their canonicals, as `canonicalize` does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CanonicalizeOrder {
    pub item_type: Option<ItemType>,
    /// The account that ordered it; `None` is the operator.
    pub by: Option<Login>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelGraceOrder {
    pub item_type: ItemType,
    pub number: ItemNumber,
    /// The account that ordered it; `None` is the operator.
    pub by: Option<Login>,
}

impl Order for PlanOrder {
    const KIND: JobKind = JobKind::Plan;

    fn key(&self, repo: KeyedRepo<'_>) -> String {
        closing_key(repo)
    }

    async fn carry_out(&self, context: OrderContext<'_>) -> Result<(), JobError> {
        let OrderContext { service, repo, run_id, .. } = context;
        let (store, now) = (service.store(), service.now());
        still_maintains(service, repo, self.by.as_ref()).await?;
        if store.plans().of_run(repo.id, run_id).await?.is_some() {
            return Ok(());
        }
        let settings = RepoSettings::load(service, repo).await?;
        if let Some(words) = mistaken(settings.parsed()) {
            return Err(JobError::Ignored(words));
        }
        let mut config = settings.config().clone();
        if let Some(min_close) = self.min_close {
            config.close.min_close = min_close.get();
        }
        let known = store.repos().maintainers(repo.id).await?;
        let counts = known.is_some_and(|list| counts_for_a_plan(&list, now));
        if let Some(github) = service.github().filter(|_| !counts) {
            know_maintainers(store, github, repo).await?;
        }
        if store.repos().maintainers(repo.id).await?.is_none() {
            return Err(JobError::Ignored(in_words(&PlanError::NoMaintainers(repo.name.clone()))));
        }
        let rules = plan_rules(&config, self.policy).map_err(|error| JobError::Ignored(in_words(&error)))?;
        let options = PlanOptions {
            item_type: self.item_type,
            source: source(service),
            rules,
            dry_run: false,
            config_hash: config_hash(&config).to_string(),
            run_id: run_id.to_owned(),
        };
        match plan_close(store, repo, None, &options, now).await {
            Ok(_) => Ok(()),
            Err(PlanError::Store(error)) => Err(error.into()),
            Err(error @ (PlanError::NoMaintainers(_) | PlanError::Judge(_))) => {
                Err(JobError::Ignored(in_words(&error)))
            }
        }
    }
}

impl Order for CanonicalizeOrder {
    const KIND: JobKind = JobKind::Canonicalize;

    fn key(&self, repo: KeyedRepo<'_>) -> String {
        closing_key(repo)
    }

    async fn carry_out(&self, context: OrderContext<'_>) -> Result<(), JobError> {
        let OrderContext { service, repo, .. } = context;
        let store = service.store();
        still_maintains(service, repo, self.by.as_ref()).await?;
        let report = canonicalize(store, repo, self.item_type, source(service), service.now()).await?;
        if report.stored {
            return Ok(());
        }
        Err(JobError::Ignored(format!(
            "the maintainers of {0} are unknown, and their items are preferred as canonical; run `canonry maintainers refresh --repo {0}`, \
             or name them with `canonry maintainers set --repo {0} LOGIN…`",
            repo.name
        )))
    }
}

impl Order for CancelGraceOrder {
    const KIND: JobKind = JobKind::CancelGrace;

    fn key(&self, repo: KeyedRepo<'_>) -> String {
        item_key(repo, self.number)
    }

    async fn carry_out(&self, context: OrderContext<'_>) -> Result<(), JobError> {
        let OrderContext { service, repo, .. } = context;
        let (store, number) = (service.store(), self.number);
        still_maintains(service, repo, self.by.as_ref()).await?;
        let outbox = match service.github() {
            Some(_) => Some(service.outbox().await?),
            None => None,
        };
        let now = service.now();
        let cancelled = cancel_grace(store, outbox, repo, self.item_type, number, GraceEnd::CalledOff, now).await?;
        service.wake_publisher();
        if cancelled {
            return Ok(());
        }
        Err(JobError::Ignored(format!("no announced close of #{number} is left to cancel")))
    }
}

fn source(service: &Service) -> EmbedSource {
    service.detectors().extractor.map_or(EmbedSource::Raw, |by| EmbedSource::Intent(by.maker().extractor))
}
