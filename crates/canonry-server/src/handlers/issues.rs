//! `issues`: stores the issue, learns from it, and triages it if it is new or its text changed. Many changes end its
//! grace.

use canonry_domain::{GoneReason, ItemType};
use canonry_github::item_from_issue;
use canonry_github::webhook::IssuesEvent;
use canonry_store::Repo;

use super::graces;
use super::items::{learn, leave, no_item, take_item};
use super::triage::{TriageOccasion, triage};
use super::webhook::Webhook;
use crate::handlers::webhook_outcomes::KnownPeople;
use crate::jobs::job_handler::JobError;

pub(super) async fn issues(hook: Webhook<'_>, repo: &Repo, about: &IssuesEvent) -> Result<(), JobError> {
    let Ok(record) = item_from_issue(&about.issue, hook.received_at()) else { return Err(no_item()) };
    if matches!(hook.action(), "deleted" | "transferred") {
        graces::on_issue(hook, repo, record.number, about).await?;
    }
    match hook.action() {
        "deleted" => return leave(hook, repo, record, GoneReason::Deleted).await,
        "transferred" => return leave(hook, repo, record, GoneReason::Transferred).await,
        _ => {}
    }
    let own = hook.own_login().await?;
    let event = match hook.action() {
        // Only these actions contain an outcome.
        "closed" | "reopened" | "labeled" | "unlabeled" if record.item_type == ItemType::Issue => {
            let maintainers = hook.maintainers(repo).await?;
            hook.outcome_source(&repo.name, KnownPeople { own, maintainers: &maintainers }).of_issue(about)
        }
        _ => None,
    };
    // The webhook says who made the change; an upsert only sees the change. So the event is recorded first. An
    // unknown issue must be stored before anything can be recorded about it.
    let number = record.number;
    let (before, after) = match event {
        Some(event) if hook.service.store().corpus().item(repo.id, record.item_type, number).await?.is_some() => {
            (Some(event), None)
        }
        event => (None, event),
    };
    learn(hook, repo, before).await?;
    let item = take_item(hook, repo, record).await?;
    learn(hook, repo, after).await?;
    // Before triage, which may post another comment about the edited text.
    graces::on_issue(hook, repo, number, about).await?;
    let occasion = match hook.action() {
        "opened" => TriageOccasion::Opened,
        "edited" if about.changes.title.is_some() || about.changes.body.is_some() => TriageOccasion::Edited,
        _ => return Ok(()),
    };
    if let Some(why) = hook.not_a_person(own, about.issue.user.as_ref()) {
        return Err(JobError::Ignored(format!("stored, not triaged: {why}")));
    }
    triage(hook.service, hook.settings, &hook.delivery.id, repo, item, occasion).await
}
