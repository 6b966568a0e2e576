//! The jobs that plan, cluster, and call announced closes off because a person ordered it. Nothing is closed here.

use canonry_config::{config_hash, parse};
use canonry_domain::GraceEnd;
use canonry_store::Job;
use canonry_triage::{
    EmbedSource, PlanError, PlanOptions, cancel_grace, canonicalize, counts_for_a_plan, plan_close, plan_rules,
};

use crate::handlers::repo_settings::settings_text;
use crate::jobs::closing_job::{Stopped, ended, know_maintainers, mistaken, ordered_repo, still_maintains, unreadable};
use crate::jobs::console_jobs::{CancelGraceOrder, CanonicalizeOrder, PlanOrder, order_of, run_of};
use crate::jobs::job_errors::in_words;
use crate::jobs::job_handler::{Handled, JobError};
use crate::service::Service;

/// Makes a plan, as `plan-close` does. A job that is done again makes no second one.
pub(crate) async fn plan(service: &Service, job: &Job) -> Result<Handled, JobError> {
    ended(make_plan(service, job).await)
}

/// Brings clusters up to date, as `canonicalize` does.
pub(crate) async fn cluster(service: &Service, job: &Job) -> Result<Handled, JobError> {
    ended(bring_up_to_date(service, job).await)
}

pub(crate) async fn call_off(service: &Service, job: &Job) -> Result<Handled, JobError> {
    ended(end_grace(service, job).await)
}

async fn make_plan(service: &Service, job: &Job) -> Result<Handled, Stopped> {
    let order: PlanOrder = order_of(job).ok_or_else(unreadable)?;
    let (store, repo, now) = (service.store(), ordered_repo(service, job).await?, service.now());
    still_maintains(service, &repo, order.by.as_ref()).await?;
    if store.plans().of_run(repo.id, run_of(job)).await?.is_some() {
        return Ok(Handled::Done);
    }
    let parsed = parse(&settings_text(service, &repo).await?.unwrap_or_default());
    if let Some(words) = mistaken(&parsed) {
        return Err(Stopped::Refused(words));
    }
    let mut config = parsed.config;
    if let Some(min_close) = order.min_close {
        config.close.min_close = min_close.get();
    }
    let known = store.repos().maintainers(repo.id).await?;
    let counts = known.is_some_and(|list| counts_for_a_plan(&list, now));
    if let Some(github) = service.github().filter(|_| !counts) {
        know_maintainers(store, github, &repo).await?;
    }
    let rules = plan_rules(&config, order.policy).map_err(|error| Stopped::Refused(in_words(&error)))?;
    let options = PlanOptions {
        item_type: order.item_type,
        source: source(service),
        rules,
        dry_run: false,
        config_hash: config_hash(&config).to_string(),
        run_id: run_of(job).to_owned(),
    };
    match plan_close(store, &repo, None, &options, now).await {
        Ok(_) => Ok(Handled::Done),
        Err(PlanError::Store(error)) => Err(error.into()),
        Err(error @ (PlanError::NoMaintainers(_) | PlanError::Judge(_))) => Err(Stopped::Refused(in_words(&error))),
    }
}

async fn bring_up_to_date(service: &Service, job: &Job) -> Result<Handled, Stopped> {
    let order: CanonicalizeOrder = order_of(job).ok_or_else(unreadable)?;
    let (store, repo) = (service.store(), ordered_repo(service, job).await?);
    still_maintains(service, &repo, order.by.as_ref()).await?;
    let report = canonicalize(store, &repo, order.item_type, source(service), service.now()).await?;
    if report.stored {
        return Ok(Handled::Done);
    }
    Err(Stopped::Refused(format!(
        "nobody knows who maintains {0}, whose items stay open before others'; run `canonry maintainers refresh --repo {0}`, \
         or name them with `canonry maintainers set --repo {0} LOGIN…`",
        repo.name
    )))
}

async fn end_grace(service: &Service, job: &Job) -> Result<Handled, Stopped> {
    let CancelGraceOrder { item_type, number, by } = order_of(job).ok_or_else(unreadable)?;
    let (store, repo) = (service.store(), ordered_repo(service, job).await?);
    still_maintains(service, &repo, by.as_ref()).await?;
    let outbox = match service.github() {
        Some(_) => Some(service.outbox().await?),
        None => None,
    };
    let now = service.now();
    let cancelled = cancel_grace(store, outbox, &repo, item_type, number, GraceEnd::CalledOff, now).await?;
    service.wake_publisher();
    if cancelled {
        return Ok(Handled::Done);
    }
    Err(Stopped::Refused(format!("no close of #{number} waits any more that could be called off")))
}

fn source(service: &Service) -> EmbedSource {
    service.detectors().extractor.map_or(EmbedSource::Raw, |by| EmbedSource::Intent(by.maker().extractor))
}
