//! Computes the thresholds of a repository and of its components from the settings and the log.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::learning::beta::variance;
use crate::learning::prediction_tally::PredictionTally;
use crate::learning::threshold_rule::rule_on;
use crate::{
    Component, CountedLessons, CurrentThreshold, LearningEntry, OutcomeCounts, RepoName, ThresholdReason,
    ThresholdRule, ThresholdSettings, text_enum,
};

/// The minimum number of outcomes of a repository before its components get their own thresholds.
const REPOSITORY_OUTCOMES: u64 = 100;
/// The minimum number of outcomes of a component with its own threshold.
const COMPONENT_OUTCOMES: u64 = 20;
/// A move of more points than this is reported.
const TOLD_FROM: u8 = 5;

/// A threshold and its evidence, for a repository or one of its components.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThresholdState {
    pub rule: ThresholdRule,
    pub current: CurrentThreshold,
    pub source: ThresholdSource,
    /// α of the Beta distribution. For `precision-target` it is that of the precision at the current threshold and
    /// above, or at the configured one if Canonry is silent. For the rules of means it is that of all predictions,
    /// with their prior.
    pub alpha: f64,
    pub beta: f64,
    #[serde(flatten)]
    pub counts: OutcomeCounts,
    pub reason: ThresholdReason,
}

text_enum! {
    pub enum ThresholdSource: "a source of a threshold" {
        Configured = "configured",
        Learned = "learned",
    }
}

impl ThresholdState {
    fn of(settings: &ThresholdSettings, tally: &PredictionTally) -> Self {
        let ruling = rule_on(settings, tally);
        let source = match ruling.reason {
            ThresholdReason::Lowered { .. }
            | ThresholdReason::Raised { .. }
            | ThresholdReason::NoLevel { .. }
            | ThresholdReason::FromMean { .. } => ThresholdSource::Learned,
            ThresholdReason::NotSure { .. }
            | ThresholdReason::TooFewWrong { .. }
            | ThresholdReason::NoLower { .. }
            | ThresholdReason::TooFewPredictions { .. } => ThresholdSource::Configured,
        };
        Self {
            rule: settings.rule,
            current: ruling.current,
            source,
            alpha: ruling.alpha,
            beta: ruling.beta,
            counts: tally.counts(),
            reason: ruling.reason,
        }
    }

    /// The variance of the Beta distribution: small if there is much evidence.
    pub fn variance(&self) -> f64 {
        variance(self.alpha, self.beta)
    }
}

/// The thresholds of a repository: its own, and those of the components that have enough outcomes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Thresholds {
    pub repository: ThresholdState,
    /// The thresholds of components; a component that is missing here has the repository's threshold.
    pub components: BTreeMap<Component, ThresholdState>,
}

impl Thresholds {
    /// The state that applies to an item with this component, or without one.
    pub fn governing(&self, component: Option<&Component>) -> &ThresholdState {
        component.and_then(|component| self.components.get(component)).unwrap_or(&self.repository)
    }
}

/// Learns the thresholds from the log. The order of the log does not matter, and there is no other input: a stored
/// state always equals this result.
pub fn learn_thresholds<'a>(
    settings: &ThresholdSettings,
    log: impl IntoIterator<Item = &'a LearningEntry>,
) -> Thresholds {
    learn_from_counts(settings, log.into_iter().map(CountedLessons::from))
}

/// The same from the counts of a log: thresholds depend on nothing else.
pub fn learn_from_counts(settings: &ThresholdSettings, counts: impl IntoIterator<Item = CountedLessons>) -> Thresholds {
    let mut repository = PredictionTally::default();
    let mut components: BTreeMap<Component, PredictionTally> = BTreeMap::new();
    for CountedLessons { kind, level, component, times } in counts {
        repository.add(kind, level, times);
        if let Some(component) = component {
            components.entry(component).or_default().add(kind, level, times);
        }
    }
    if repository.counts().total < REPOSITORY_OUTCOMES {
        components.clear();
    }
    components.retain(|_, tally| tally.counts().total >= COMPONENT_OUTCOMES);
    Thresholds {
        repository: ThresholdState::of(settings, &repository),
        components: components
            .into_iter()
            .map(|(component, tally)| {
                let state = ThresholdState::of(settings, &tally);
                (component, state)
            })
            .collect(),
    }
}

/// A move of a threshold that is reported to people.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ThresholdAdjusted {
    pub repo: RepoName,
    /// `None` for the repository itself.
    pub component: Option<Component>,
    /// The former threshold; null if silent.
    pub previous_threshold: CurrentThreshold,
    /// The current threshold; null if silent.
    pub new_threshold: CurrentThreshold,
    pub alpha: f64,
    pub beta: f64,
    pub sample_count: u64,
}

/// The moves of more than 5 points, and those into and out of silence.
///
/// A component that has just got or lost its own threshold is compared with the repository's threshold on the other
/// side, because that applied to its items.
pub fn threshold_adjustments(repo: &RepoName, before: &Thresholds, after: &Thresholds) -> Vec<ThresholdAdjusted> {
    let components: BTreeSet<&Component> = before.components.keys().chain(after.components.keys()).collect();
    std::iter::once(None)
        .chain(components.into_iter().map(Some))
        .filter_map(|component| {
            let (before, after) = (before.governing(component), after.governing(component));
            moved_far(before.current, after.current).then(|| ThresholdAdjusted {
                repo: repo.clone(),
                component: component.cloned(),
                previous_threshold: before.current,
                new_threshold: after.current,
                alpha: after.alpha,
                beta: after.beta,
                sample_count: after.counts.total,
            })
        })
        .collect()
}

fn moved_far(before: CurrentThreshold, after: CurrentThreshold) -> bool {
    match (before.threshold(), after.threshold()) {
        (Some(before), Some(after)) => before.get().abs_diff(after.get()) > TOLD_FROM,
        (None, None) => false,
        _ => true,
    }
}
