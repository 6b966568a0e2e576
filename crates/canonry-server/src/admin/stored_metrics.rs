//! Metrics that are read from the database on request: jobs, deliveries, outcomes, thresholds, models.

use std::collections::BTreeMap;

use canonry_domain::{CurrentThreshold, LessonKind, RepoName, ThresholdState, Thresholds};
use canonry_store::{BrakeKind, DeliveryState, Grace, LlmTotals, QueueStatus, ReviewState, Store, StoreError};
use jiff::Timestamp;

use crate::admin::exposition::{Exposition, MetricKind};

/// The most repositories that are listed one by one: each costs a query and a few lines.
const MOST_REPOS: usize = 500;
/// Shown for a silent threshold: above every threshold and every score.
const SILENT: f64 = 101.0;

/// A metric family about models: name, help, and value.
type Figure = (&'static str, &'static str, fn(&LlmTotals) -> f64);

pub(crate) struct StoredMetrics {
    queue: QueueStatus,
    deliveries: Vec<(DeliveryState, u64)>,
    repos: usize,
    outcomes: Vec<(RepoName, LessonKind, u64)>,
    thresholds: Vec<(RepoName, Thresholds)>,
    reviews: Vec<(RepoName, ReviewState, u64)>,
    graces: Vec<Grace>,
    brakes: Vec<(RepoName, BrakeKind)>,
    objections: Vec<(RepoName, u64)>,
    llm: Vec<LlmTotals>,
    read_at: Timestamp,
}

impl StoredMetrics {
    pub(crate) async fn read(store: &Store, now: Timestamp) -> Result<Self, StoreError> {
        let repos = store.repos().active().await?;
        let mut thresholds = Vec::with_capacity(repos.len().min(MOST_REPOS));
        let (mut brakes, mut objections) = (Vec::new(), Vec::new());
        for repo in repos.iter().take(MOST_REPOS) {
            thresholds.push((repo.name.clone(), store.learning().thresholds(repo.id).await?));
            for &kind in BrakeKind::ALL {
                if store.close().brake_in_force(repo.id, kind).await?.is_some() {
                    brakes.push((repo.name.clone(), kind));
                }
            }
            let objected = store.close().objections_since(repo.id, Timestamp::UNIX_EPOCH).await?;
            if objected > 0 {
                objections.push((repo.name.clone(), objected));
            }
        }
        Ok(Self {
            queue: store.jobs().status(now).await?,
            deliveries: store.deliveries().counts().await?,
            repos: repos.len(),
            outcomes: store.learning().outcome_counts().await?,
            thresholds,
            reviews: store.review().counts().await?,
            graces: store.close().waiting_graces(None).await?,
            brakes,
            objections,
            llm: store.models().totals().await?,
            read_at: now,
        })
    }

    pub(crate) fn expose(&self, page: &mut Exposition) {
        self.expose_work(page);
        self.expose_learning(page);
        self.expose_reviews(page);
        self.expose_closing(page);
        self.expose_models(page);
    }

    fn expose_work(&self, page: &mut Exposition) {
        let mut jobs = page.family("canonry_jobs", MetricKind::Gauge, "Queued, running and failed jobs, by state.");
        for (state, count) in
            [("queued", self.queue.queued), ("running", self.queue.running), ("dead", self.queue.dead)]
        {
            jobs.sample(&[("state", state)], count as f64);
        }
        let since = |moment: Option<Timestamp>| {
            moment.map_or(0.0, |moment| self.read_at.duration_since(moment).as_secs_f64().max(0.0))
        };
        page.family(
            "canonry_job_oldest_age_seconds",
            MetricKind::Gauge,
            "How long the oldest due job has been waiting; 0 when none waits.",
        )
        .sample(&[], since(self.queue.oldest_due));
        page.family(
            "canonry_job_running_seconds",
            MetricKind::Gauge,
            "How long the oldest running job has been running; 0 when none runs.",
        )
        .sample(&[], since(self.queue.oldest_running));
        let mut deliveries = page.family("canonry_deliveries", MetricKind::Gauge, "Stored webhooks, by state.");
        for state in [DeliveryState::Queued, DeliveryState::Done, DeliveryState::Dead, DeliveryState::Ignored] {
            let count = self.deliveries.iter().find(|(other, _)| *other == state).map_or(0, |(_, count)| *count);
            deliveries.sample(&[("state", state.as_str())], count as f64);
        }
        page.family("canonry_repos", MetricKind::Gauge, "Repositories that Canonry works on.")
            .sample(&[], self.repos as f64);
    }

    fn expose_learning(&self, page: &mut Exposition) {
        // Not a counter, in spite of its name: a person's correction moves an outcome from one kind to another.
        let mut outcomes = page.family(
            "canonry_triage_outcomes_total",
            MetricKind::Gauge,
            "Triage records by lesson; a correction moves a record to another lesson.",
        );
        for (repo, kind, count) in &self.outcomes {
            outcomes.sample(&[("repo", &repo.to_string()), ("kind", kind.as_str())], *count as f64);
        }
        self.expose_states(
            page,
            "canonry_triage_threshold",
            "The threshold for comments, in percent; 101 where Canonry posts none. The repository's own \
             threshold has an empty component.",
            |state| match state.current {
                CurrentThreshold::From(threshold) => f64::from(threshold.get()),
                CurrentThreshold::Silent => SILENT,
            },
        );
        let variance = "The variance of the Beta distribution behind the threshold; small with many outcomes.";
        self.expose_states(page, "canonry_triage_threshold_variance", variance, ThresholdState::variance);
        let samples = "Outcomes that the threshold is based on.";
        self.expose_states(page, "canonry_triage_threshold_samples", samples, |state| state.counts.total as f64);
    }

    fn expose_states(&self, page: &mut Exposition, name: &str, help: &str, value: impl Fn(&ThresholdState) -> f64) {
        let mut family = page.family(name, MetricKind::Gauge, help);
        for (repo, thresholds) in &self.thresholds {
            let repo = repo.to_string();
            family.sample(&[("repo", &repo), ("component", "")], value(&thresholds.repository));
            for (component, state) in &thresholds.components {
                family.sample(&[("repo", &repo), ("component", component.as_str())], value(state));
            }
        }
    }

    fn expose_reviews(&self, page: &mut Exposition) {
        let mut reviews = page.family(
            "canonry_reviews_total",
            MetricKind::Counter,
            "Reviews by how they ended: completed, failed, or superseded by newer commits.",
        );
        for (repo, state, count) in &self.reviews {
            reviews.sample(&[("repo", &repo.to_string()), ("outcome", state.as_str())], *count as f64);
        }
    }

    fn expose_closing(&self, page: &mut Exposition) {
        let mut waiting: BTreeMap<(String, String), u64> = BTreeMap::new();
        for grace in &self.graces {
            let is_due = grace.due_at <= self.read_at;
            // Texts from GitHub or from a failure must not become a label.
            let reason = grace.reason.as_deref().filter(|reason| is_due && !reason.contains(' '));
            let state = match (is_due, reason) {
                (false, _) => "running",
                (true, Some(reason)) => reason,
                (true, None) => "due",
            };
            *waiting.entry((grace.repo.name.to_string(), state.to_owned())).or_default() += 1;
        }
        let mut graces = page.family(
            "canonry_graces",
            MetricKind::Gauge,
            "Announced closes by state: running, due, or delayed by the reason in `state`.",
        );
        for ((repo, state), count) in &waiting {
            graces.sample(&[("repo", repo), ("state", state)], *count as f64);
        }
        let mut brakes = page.family(
            "canonry_brake",
            MetricKind::Gauge,
            "1 where Canonry is paused (`pause`) or automatic closes are stopped (`breaker`).",
        );
        for (repo, kind) in &self.brakes {
            brakes.sample(&[("repo", &repo.to_string()), ("kind", kind.as_str())], 1.0);
        }
        let mut objections = page.family(
            "canonry_close_objections_total",
            MetricKind::Counter,
            "Closes by Canonry that somebody objected to.",
        );
        for (repo, count) in &self.objections {
            objections.sample(&[("repo", &repo.to_string())], *count as f64);
        }
    }

    fn expose_models(&self, page: &mut Exposition) {
        let figures: [Figure; 5] = [
            ("canonry_llm_calls_total", "Questions to models.", |totals| totals.calls as f64),
            ("canonry_llm_failed_calls_total", "Calls of models that failed.", |totals| totals.failed as f64),
            ("canonry_llm_input_tokens_total", "Tokens that models read.", |totals| totals.input_tokens as f64),
            ("canonry_llm_output_tokens_total", "Tokens that models wrote.", |totals| totals.output_tokens as f64),
            ("canonry_llm_cost_usd_total", "What models cost in US dollars, where the price is known.", |totals| {
                totals.cost_usd
            }),
        ];
        for (name, help, value) in figures {
            let mut family = page.family(name, MetricKind::Counter, help);
            for totals in &self.llm {
                let repo = totals.repo.as_ref().map(RepoName::to_string).unwrap_or_default();
                let labels = [("repo", repo.as_str()), ("provider", &totals.provider), ("model", &totals.model)];
                family.sample(&labels, value(totals));
            }
        }
    }
}
