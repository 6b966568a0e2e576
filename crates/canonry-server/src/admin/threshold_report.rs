//! The thresholds of a repository as JSON, for the command line and the API.

use canonry_boxed::boxed;
use canonry_domain::{
    Component, CurrentThreshold, Probability, Threshold, ThresholdReason, ThresholdRule, ThresholdSource,
    ThresholdState, Thresholds,
};
use canonry_store::{Repo, Store, StoreError};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

/// The number of adjustments in a report; the log has all of them.
const ADJUSTMENTS: u32 = 20;

/// Thresholds, their evidence, and their adjustments.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ThresholdReport {
    pub settings: ReportedSettings,
    /// The repository's own threshold, then those of its components by name.
    pub thresholds: Vec<ReportedThreshold>,
    /// The latest changes of more than 5 points, and into and out of silence; the newest first.
    pub adjustments: Vec<ReportedAdjustment>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ReportedSettings {
    pub rule: ThresholdRule,
    /// The threshold in use until another is learned.
    pub configured: Threshold,
    /// The share of predictions that should be right.
    pub wanted_precision: Probability,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReportedThreshold {
    /// The component; null for the repository itself.
    pub component: Option<Component>,
    /// The score, times 100, at which Canonry begins to comment; null if it is silent.
    pub current: CurrentThreshold,
    pub source: ThresholdSource,
    pub rule: ThresholdRule,
    pub alpha: f64,
    pub beta: f64,
    pub variance: f64,
    pub total: u64,
    pub confirmed: u64,
    pub false_positives: u64,
    pub missed: u64,
    /// Items without a prediction that were not duplicates.
    pub true_negatives: u64,
    pub reason: String,
    pub evidence: ThresholdReason,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReportedAdjustment {
    pub at: Timestamp,
    /// The component; null for the repository itself.
    pub component: Option<Component>,
    /// The threshold before; null if silent.
    pub previous_threshold: CurrentThreshold,
    /// The threshold after; null if silent.
    pub new_threshold: CurrentThreshold,
    pub alpha: f64,
    pub beta: f64,
    pub sample_count: u64,
}

#[boxed]
pub async fn threshold_report(store: &Store, repo: &Repo) -> Result<ThresholdReport, StoreError> {
    let settings = store.learning().threshold_settings(repo.id).await?;
    let thresholds = store.learning().thresholds(repo.id).await?;
    let adjustments = store.learning().threshold_adjustments(repo.id, ADJUSTMENTS).await?;
    Ok(ThresholdReport {
        settings: ReportedSettings {
            rule: settings.rule,
            configured: settings.configured,
            wanted_precision: settings.wanted,
        },
        thresholds: reported(&thresholds),
        adjustments: adjustments
            .into_iter()
            .map(|stored| ReportedAdjustment {
                at: stored.at,
                component: stored.adjusted.component,
                previous_threshold: stored.adjusted.previous_threshold,
                new_threshold: stored.adjusted.new_threshold,
                alpha: stored.adjusted.alpha,
                beta: stored.adjusted.beta,
                sample_count: stored.adjusted.sample_count,
            })
            .collect(),
    })
}

impl ThresholdReport {
    pub fn stats(&self) -> Value {
        let outcomes = self.thresholds.first().map_or(0, |repository| repository.total);
        json!({ "outcomes": outcomes, "components": self.thresholds.len().saturating_sub(1) })
    }
}

fn reported(thresholds: &Thresholds) -> Vec<ReportedThreshold> {
    let components = thresholds.components.iter().map(|(component, state)| (Some(component), state));
    std::iter::once((None, &thresholds.repository))
        .chain(components)
        .map(|(component, state)| one(component, state))
        .collect()
}

fn one(component: Option<&Component>, state: &ThresholdState) -> ReportedThreshold {
    ReportedThreshold {
        component: component.cloned(),
        current: state.current,
        source: state.source,
        rule: state.rule,
        alpha: state.alpha,
        beta: state.beta,
        variance: state.variance(),
        total: state.counts.total,
        confirmed: state.counts.confirmed,
        false_positives: state.counts.false_positives,
        missed: state.counts.missed,
        true_negatives: state.counts.true_negatives,
        reason: state.reason.to_string(),
        evidence: state.reason.clone(),
    }
}
