//! Maps each kind of job to its type.

use canonry_store::{Job, JobKind, StoredJobKind};
use futures_util::future::BoxFuture;
use jiff::SignedDuration;
use tracing::Instrument as _;

use crate::intake::recover_deliveries::RecoverJob;
use crate::jobs::closing_job::{ApplyOrder, UndoOrder};
use crate::jobs::grace_job::{GraceJob, ObjectionsJob};
use crate::jobs::job_handler::{JobError, JobHandler, LeasedJob};
use crate::jobs::orders::OrderJob;
use crate::jobs::planning_job::{CancelGraceOrder, CanonicalizeOrder, PlanOrder};
use crate::jobs::reactions_job::ReactionsJob;
use crate::jobs::service_job::{ServiceJob, payload_of, unreadable};
use crate::jobs::sync_job::SyncJob;
use crate::jobs::triage_job::TriageJob;
use crate::jobs::webhook_job::WebhookJob;
use crate::review::review_requests::ReviewJob;
use crate::service::Service;

/// How often a job of an unknown kind is rechecked: a newer version may run beside this one.
const UNKNOWN_PAUSE: SignedDuration = SignedDuration::from_mins(1);
/// How long such a job waits for the newer version.
const UNKNOWN_FOR: SignedDuration = SignedDuration::from_hours(24);

/// Evaluates an expression with the job type of a stored kind.
macro_rules! with_job_type {
    ($kind:expr, $job:ident => $known:expr, else $unknown:expr) => {
        match $kind {
            StoredJobKind::Known(kind) => match kind {
                JobKind::Webhook => with_job_type!(@ WebhookJob, $job => $known),
                JobKind::Sync => with_job_type!(@ SyncJob, $job => $known),
                JobKind::Review => with_job_type!(@ ReviewJob, $job => $known),
                JobKind::Triage => with_job_type!(@ TriageJob, $job => $known),
                JobKind::Reactions => with_job_type!(@ ReactionsJob, $job => $known),
                JobKind::Recover => with_job_type!(@ RecoverJob, $job => $known),
                JobKind::Grace => with_job_type!(@ GraceJob, $job => $known),
                JobKind::Objections => with_job_type!(@ ObjectionsJob, $job => $known),
                JobKind::ApplyClose => with_job_type!(@ OrderJob<ApplyOrder>, $job => $known),
                JobKind::UndoClose => with_job_type!(@ OrderJob<UndoOrder>, $job => $known),
                JobKind::Plan => with_job_type!(@ OrderJob<PlanOrder>, $job => $known),
                JobKind::Canonicalize => with_job_type!(@ OrderJob<CanonicalizeOrder>, $job => $known),
                JobKind::CancelGrace => with_job_type!(@ OrderJob<CancelGraceOrder>, $job => $known),
            },
            StoredJobKind::Unknown(_) => $unknown,
        }
    };
    (@ $type:ty, $job:ident => $known:expr) => {{
        type $job = $type;
        $known
    }};
}

impl JobHandler for Service {
    fn handle<'a>(&'a self, leased: &'a LeasedJob) -> BoxFuture<'a, Result<(), JobError>> {
        let job = &leased.job;
        let event = leased.delivery.as_ref().map(|(delivery, _)| delivery.event.as_str());
        let kind = job.kind.as_str();
        let span = tracing::info_span!("job", job = job.id.get(), kind, delivery = job.delivery_id, event);
        let run = with_job_type!(&job.kind, Kind => run::<Kind>(self, leased), else {
            let error = unknown_kind(self, job);
            Box::pin(async { Err(error) })
        });
        Box::pin(run.instrument(span))
    }

    fn on_dead<'a>(&'a self, job: &'a Job, why: &'a str) -> BoxFuture<'a, ()> {
        with_job_type!(&job.kind, Kind => on_dead::<Kind>(self, job, why), else Box::pin(async {}))
    }

    fn longest(&self, job: &Job) -> SignedDuration {
        with_job_type!(&job.kind, Kind => Kind::LONGEST, else SignedDuration::from_mins(15))
    }
}

fn run<'a, T: ServiceJob>(service: &'a Service, leased: &'a LeasedJob) -> BoxFuture<'a, Result<(), JobError>> {
    Box::pin(async move {
        match payload_of::<T>(&leased.job) {
            Some(job) => job.run(service, leased).await,
            None => Err(unreadable(&leased.job)),
        }
    })
}

fn on_dead<'a, T: ServiceJob>(service: &'a Service, job: &'a Job, why: &'a str) -> BoxFuture<'a, ()> {
    Box::pin(async move {
        if let Some(payload) = payload_of::<T>(job) {
            payload.on_dead(service, job, why).await;
        }
    })
}

/// Another version queued the job. It stays queued for that version for a day.
fn unknown_kind(service: &Service, job: &Job) -> JobError {
    let (now, reason) = (service.now(), format!("this version has no handler for the kind {}", job.kind));
    if now.duration_since(job.created_at) < UNKNOWN_FOR {
        JobError::Postpone { reason, until: now + UNKNOWN_PAUSE }
    } else {
        JobError::Hopeless(reason)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::jobs::service_job::read_payload;

    /// A stored payload as this version reads and stores it again.
    fn read(kind: JobKind, stored: &Value) -> Option<Value> {
        with_job_type!(StoredJobKind::Known(kind), Kind => {
            assert_eq!(Kind::KIND, kind);
            read_payload::<Kind>(stored).map(|job| json!(job))
        }, else None)
    }

    /// Every form in which any version so far has stored a payload.
    fn stored() -> Vec<(JobKind, Value)> {
        let order = |order: Value| json!({ "github_id": 77, "run_id": "console-00000000deadbeef", "order": order });
        vec![
            (JobKind::Webhook, json!({ "event": "issues", "action": "opened" })),
            (JobKind::Webhook, json!(null)),
            (JobKind::Webhook, json!({ "event": "ping", "action": null })),
            (JobKind::Webhook, json!({ "event": "issues", "action": "opened", "github_id": 77 })),
            (JobKind::Sync, json!({ "github_id": 77 })),
            (JobKind::Sync, json!({ "github_id": null })),
            (JobKind::Sync, json!({})),
            (JobKind::Sync, json!({ "full": true })),
            (
                JobKind::Review,
                json!({ "github_id": 77, "number": 7, "requests": 1, "full": true, "by": "ann", "because": "mention", "wishes": ["d1"] }),
            ),
            (
                JobKind::Review,
                json!({ "github_id": 77, "number": 7, "requests": 0, "full": false, "by": null, "because": "pushed", "wishes": [] }),
            ),
            (JobKind::Triage, json!({ "github_id": 77, "type": "pr", "number": 7 })),
            (JobKind::Reactions, json!({})),
            (JobKind::Recover, json!({ "since": "2026-03-01T00:00:00Z" })),
            (JobKind::Recover, json!({})),
            (JobKind::Grace, json!({})),
            (JobKind::Objections, json!({})),
            (JobKind::ApplyClose, order(json!({ "plan": 3, "approved_only": true, "by": "ann" }))),
            (
                JobKind::ApplyClose,
                order(json!({ "plan": 3, "approved_only": true, "only_takes_back": true, "by": null })),
            ),
            (
                JobKind::UndoClose,
                order(json!({ "plan": 3, "item": ["issue", 7], "reason": "wrong-target", "note": "no", "by": "ann" })),
            ),
            (
                JobKind::UndoClose,
                order(json!({ "plan": 3, "item": null, "reason": "other", "note": null, "by": null })),
            ),
            (JobKind::Plan, order(json!({ "item_type": "issue", "min_close": 0.9, "policy": null, "by": null }))),
            (JobKind::Canonicalize, order(json!({ "item_type": null, "by": "ann" }))),
            (JobKind::CancelGrace, order(json!({ "item_type": "issue", "number": 7, "by": "ann" }))),
        ]
    }

    #[test]
    fn what_any_version_stored_is_read_and_stored_as_before() {
        for (kind, payload) in stored() {
            let again = read(kind, &payload).unwrap_or_else(|| panic!("{kind}: {payload}"));
            // Other fields of the first syncs are no longer needed, and orders may have more fields by now.
            let fields = payload.as_object().into_iter().flatten();
            for (field, value) in fields.filter(|(field, _)| again.get(field).is_some() && *field != "order") {
                assert_eq!(again[field], *value, "{kind}: {payload}");
            }
        }
        for kind in JobKind::ALL {
            assert!(stored().iter().any(|(stored, _)| stored == kind), "{kind} has no sample");
        }
    }

    #[test]
    fn a_payload_of_another_version_is_not_guessed_at() {
        for (kind, payload) in [
            (JobKind::Review, json!({ "number": "seven" })),
            (JobKind::Triage, json!({ "github_id": 77, "type": "discussion", "number": 7 })),
            (JobKind::ApplyClose, json!({ "github_id": 77, "run_id": "r", "order": { "plan": "three" } })),
            (JobKind::UndoClose, json!(null)),
        ] {
            assert_eq!(read(kind, &payload), None, "{kind}: {payload}");
        }
    }
}
