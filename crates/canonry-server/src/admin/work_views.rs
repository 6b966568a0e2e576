//! Jobs and deliveries as people and programs see them, for the command line and the console.

use canonry_domain::{ItemNumber, ItemType, RepoName};
use canonry_store::{Delivery, Job, JobKind};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::jobs::orders::ConsoleOrder;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobView<'a> {
    pub id: i64,
    pub delivery: Option<&'a str>,
    pub key: &'a str,
    pub repo: Option<&'a RepoName>,
    pub kind: &'a str,
    pub payload: &'a Value,
    pub state: &'a str,
    pub attempts: i64,
    pub run_after: Timestamp,
    pub lease_until: Option<Timestamp>,
    pub error: Option<&'a str>,
    pub created_at: Timestamp,
    pub finished_at: Option<Timestamp>,
    /// What it does.
    #[serde(skip)]
    pub work: String,
    /// The repository or the item, by the repository's name: the key contains only its id.
    #[serde(skip)]
    pub about: String,
}

impl<'a> From<&'a Job> for JobView<'a> {
    fn from(job: &'a Job) -> Self {
        Self {
            id: job.id.get(),
            delivery: job.delivery_id.as_deref(),
            key: &job.key,
            repo: job.repo.as_ref(),
            kind: job.kind.as_str(),
            payload: &job.payload,
            state: job.state.as_str(),
            attempts: job.attempts,
            run_after: job.run_after,
            lease_until: job.lease_until,
            error: job.error.as_deref(),
            created_at: job.created_at,
            finished_at: job.finished_at,
            work: work_of(job),
            about: match (&job.repo, job.key.split_once('#')) {
                (Some(repo), Some((_, number))) => format!("{repo}#{number}"),
                (Some(repo), None) => repo.to_string(),
                (None, _) => job.key.clone(),
            },
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeliveryView<'a> {
    pub id: &'a str,
    pub event: &'a str,
    pub action: Option<&'a str>,
    pub repo: Option<&'a RepoName>,
    pub number: Option<ItemNumber>,
    pub state: &'a str,
    pub reason: Option<&'a str>,
    pub received_at: Timestamp,
    pub finished_at: Option<Timestamp>,
    /// The event and its action: `issues opened`.
    #[serde(skip)]
    pub title: String,
}

impl<'a> From<&'a Delivery> for DeliveryView<'a> {
    fn from(delivery: &'a Delivery) -> Self {
        Self {
            id: &delivery.id,
            event: &delivery.event,
            action: delivery.action.as_deref(),
            repo: delivery.repo.as_ref(),
            number: delivery.number,
            state: delivery.state.as_str(),
            reason: delivery.reason.as_deref(),
            received_at: delivery.received_at,
            finished_at: delivery.finished_at,
            title: match &delivery.action {
                Some(action) => format!("{} {action}", delivery.event),
                None => delivery.event.clone(),
            },
        }
    }
}

fn work_of(job: &Job) -> String {
    let item = |item_type: ItemType, number: ItemNumber| format!("{} #{number}", item_type.in_words());
    match ConsoleOrder::of(job) {
        Some(ConsoleOrder::Apply(order)) if order.only_takes_back => {
            return format!("undo what was begun of plan {}", order.plan.get());
        }
        Some(ConsoleOrder::Apply(order)) => return format!("apply plan {}", order.plan.get()),
        Some(ConsoleOrder::Undo(order)) => {
            let what = order.item.map_or_else(|| "all items".to_owned(), |(kind, number)| item(kind, number));
            return format!("reopen {what} of plan {}", order.plan.get());
        }
        Some(ConsoleOrder::CancelGrace(order)) => {
            return format!("cancel the announced close of {}", item(order.item_type, order.number));
        }
        Some(ConsoleOrder::Plan(_) | ConsoleOrder::Canonicalize(_)) | None => {}
    }
    job.kind.known().map_or_else(|| job.kind.to_string(), |kind| kind_in_words(kind).to_owned())
}

const fn kind_in_words(kind: JobKind) -> &'static str {
    match kind {
        JobKind::Webhook => "process a webhook",
        JobKind::Sync => "sync the repository",
        JobKind::Review => "review a pull request",
        JobKind::Triage => "compare a changed item again",
        JobKind::Reactions => "read reactions to comments",
        JobKind::Recover => "recover failed deliveries",
        JobKind::Grace => "close announced duplicates that are due",
        JobKind::Objections => "read reactions to closes",
        // Orders have a longer description, unless this version cannot read their form.
        JobKind::ApplyClose => "apply a plan",
        JobKind::UndoClose => "undo a plan",
        JobKind::Plan => "make a plan",
        JobKind::Canonicalize => "recompute the clusters",
        JobKind::CancelGrace => "cancel an announced close",
    }
}
