//! Metrics that this process counts in memory: answers to webhooks, and the duration of jobs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use canonry_github::Clock;
use canonry_store::Job;
use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};

use crate::admin::exposition::{Exposition, MetricKind};
use crate::jobs::job_handler::{JobError, JobHandler, LeasedJob};

/// Upper bounds in seconds, from a job that finds nothing to do to the sync of a large repository.
const BOUNDS: [f64; 12] = [0.005, 0.02, 0.1, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0];

/// The counters of a process. Clones share their counts. A restart resets the counts, which Prometheus handles.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    counted: Arc<Mutex<ProcessCounters>>,
}

#[derive(Debug, Default)]
struct ProcessCounters {
    webhooks: BTreeMap<u16, u64>,
    jobs: BTreeMap<(String, &'static str), Histogram>,
}

#[derive(Debug, Default)]
struct Histogram {
    /// The number of samples between each bound and the one before it; the last entry counts samples above all
    /// bounds.
    counts: [u64; BOUNDS.len() + 1],
    sum: f64,
}

impl Metrics {
    pub fn new() -> Self {
        Self::default()
    }

    /// Wraps a handler and measures its time with `clock`.
    pub fn measured(&self, handler: Arc<dyn JobHandler>, clock: Arc<dyn Clock>) -> Arc<dyn JobHandler> {
        Arc::new(MeasuredHandler { handler, clock, metrics: self.clone() })
    }

    pub(crate) fn expose(&self, page: &mut Exposition) {
        let counted = self.lock();
        let mut webhooks = page.family(
            "canonry_webhooks_total",
            MetricKind::Counter,
            "Requests to the webhook's address, by the status of the answer.",
        );
        for (status, count) in &counted.webhooks {
            webhooks.sample(&[("status", &status.to_string())], *count as f64);
        }
        let mut jobs = page.family(
            "canonry_job_seconds",
            MetricKind::Histogram,
            "The duration of job attempts, by the job's kind and the result.",
        );
        for ((kind, result), histogram) in &counted.jobs {
            let mut so_far = 0;
            let at_most: Vec<(f64, u64)> = BOUNDS
                .into_iter()
                .zip(histogram.counts)
                .map(|(bound, count)| {
                    so_far += count;
                    (bound, so_far)
                })
                .collect();
            let count = histogram.counts.iter().sum();
            jobs.histogram(&[("kind", kind), ("result", result)], &at_most, count, histogram.sum);
        }
    }

    fn job_ended(&self, kind: &str, result: &'static str, seconds: f64) {
        let mut counted = self.lock();
        let histogram = counted.jobs.entry((kind.to_owned(), result)).or_default();
        let place = BOUNDS.iter().position(|bound| seconds <= *bound).unwrap_or(BOUNDS.len());
        histogram.counts[place] += 1;
        histogram.sum += seconds;
    }

    fn lock(&self) -> MutexGuard<'_, ProcessCounters> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) async fn count_webhooks(State(metrics): State<Metrics>, request: Request, next: Next) -> Response {
    let answer = next.run(request).await;
    *metrics.lock().webhooks.entry(answer.status().as_u16()).or_default() += 1;
    answer
}

struct MeasuredHandler {
    handler: Arc<dyn JobHandler>,
    clock: Arc<dyn Clock>,
    metrics: Metrics,
}

impl JobHandler for MeasuredHandler {
    fn handle<'a>(&'a self, leased: &'a LeasedJob) -> BoxFuture<'a, Result<(), JobError>> {
        Box::pin(async move {
            let mut watch = Stopwatch {
                measured: self,
                kind: leased.job.kind.as_str(),
                begun: self.clock.now(),
                result: "stopped",
            };
            let result = self.handler.handle(leased).await;
            watch.result = match &result {
                Ok(()) => "done",
                Err(JobError::Ignored(_)) => "ignored",
                Err(JobError::Postpone { .. } | JobError::Unavailable(_)) => "postponed",
                Err(JobError::Retry(_)) => "failed",
                Err(JobError::Hopeless(_)) => "hopeless",
            };
            result
        })
    }

    fn on_dead<'a>(&'a self, job: &'a Job, why: &'a str) -> BoxFuture<'a, ()> {
        self.handler.on_dead(job, why)
    }

    fn longest(&self, job: &Job) -> SignedDuration {
        self.handler.longest(job)
    }
}

/// Counts on drop, so that a panic of the handler or a task aborted after a lost lease is counted too.
struct Stopwatch<'a> {
    measured: &'a MeasuredHandler,
    kind: &'a str,
    begun: Timestamp,
    result: &'static str,
}

impl Drop for Stopwatch<'_> {
    fn drop(&mut self) {
        // A clock that was set back must not give a negative duration.
        let seconds = self.measured.clock.now().duration_since(self.begun).as_secs_f64().max(0.0);
        self.measured.metrics.job_ended(self.kind, self.result, seconds);
    }
}
