//! `simulate-learning`: shows where each learning rule moves the threshold of repositories whose precision is known.

use canonry_domain::{CurrentThreshold, Probability, Threshold, ThresholdRule, ThresholdSettings, learn_thresholds};
use serde::Serialize;

use crate::lab::synthetic_repository::{RepositoryKind, SyntheticRepository};

/// The number of outcomes after which a bad repository should be silent.
pub(crate) const EARLY: usize = 50;

/// How far a precision may be from the wanted one to count as near it, as a share of it.
const NEAR: f64 = 0.1;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimulationOptions {
    /// The number of repositories; the four kinds take turns.
    pub repositories: usize,
    pub outcomes: usize,
    pub seed: u64,
}

/// The result of a simulation.
#[derive(Debug, Clone, PartialEq)]
pub struct LearningSimulation {
    pub options: SimulationOptions,
    pub configured: Threshold,
    /// The precision that `precision-target` aims at.
    pub wanted: Probability,
    pub repositories: Vec<SimulatedRepository>,
    pub curves: Vec<LearningCurve>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SimulatedRepository {
    /// Such as `crossing-2`.
    pub repository: String,
    pub kind: RepositoryKind,
    /// The threshold at which its precision is the wanted one, if there is one.
    pub crosses_at: Option<Threshold>,
}

/// The thresholds of one rule on one repository.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LearningCurve {
    pub repository: String,
    pub kind: RepositoryKind,
    pub rule: ThresholdRule,
    /// The threshold after different numbers of outcomes; the last point is after all of them.
    pub points: Vec<LearningPoint>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LearningPoint {
    /// The number of outcomes so far.
    pub outcomes: usize,
    /// The threshold in force; null if silent.
    pub threshold: CurrentThreshold,
    /// The repository's true precision at that threshold and time; null if silent.
    pub precision: Option<f64>,
}

/// The results of one rule on all repositories of a kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RuleSummary {
    pub kind: RepositoryKind,
    pub rule: ThresholdRule,
    pub repositories: usize,
    /// How many were silent after 50 outcomes; `None` if there were fewer outcomes.
    pub silent_early: Option<usize>,
    pub silent: usize,
    /// The median of the final thresholds; silence counts as the highest.
    pub median_threshold: CurrentThreshold,
    /// The mean of the final true precisions, without silent repositories.
    pub mean_precision: Option<f64>,
    /// How many were not silent in the end and had a precision within a tenth of the wanted one.
    pub near_wanted: usize,
}

/// Runs every rule on every repository. The same options always give the same result.
pub fn simulate_learning(options: SimulationOptions) -> LearningSimulation {
    let settings = ThresholdSettings::default();
    let mut repositories = Vec::with_capacity(options.repositories);
    let mut curves = Vec::with_capacity(options.repositories * ThresholdRule::ALL.len());
    let kinds = RepositoryKind::ALL.into_iter().cycle();
    for (number, kind) in kinds.take(options.repositories).enumerate() {
        let synthetic = SyntheticRepository::new(kind, options.seed, number as u64, settings.wanted.get());
        let name = format!("{}-{}", kind.as_str(), number / RepositoryKind::ALL.len() + 1);
        for rule in ThresholdRule::ALL {
            let settings = ThresholdSettings { rule: *rule, ..settings };
            let points = points(&synthetic, &settings, options.outcomes);
            curves.push(LearningCurve { repository: name.clone(), kind, rule: *rule, points });
        }
        repositories.push(SimulatedRepository { repository: name, kind, crosses_at: synthetic.crosses_at });
    }
    LearningSimulation { options, configured: settings.configured, wanted: settings.wanted, repositories, curves }
}

fn points(repository: &SyntheticRepository, settings: &ThresholdSettings, outcomes: usize) -> Vec<LearningPoint> {
    let history = repository.clone().history(outcomes);
    let point = |seen: usize| {
        let threshold = learn_thresholds(settings, &history[..seen]).repository.current;
        let time = seen as f64 / outcomes.max(1) as f64;
        let precision = threshold.threshold().map(|threshold| repository.precision(threshold, time));
        LearningPoint { outcomes: seen, threshold, precision }
    };
    looks(outcomes).into_iter().map(point).collect()
}

/// After how many outcomes to observe: each time about half as many more as the time before.
fn looks(outcomes: usize) -> Vec<usize> {
    const PER_DECADE: [usize; 6] = [10, 15, 20, 30, 50, 70];
    let decades = (0..).map_while(|power| 10_usize.checked_pow(power));
    let looks = decades.flat_map(|decade| PER_DECADE.map(|look| look.saturating_mul(decade)));
    let looks = looks.take_while(|look| *look < outcomes);
    let mut looks: Vec<usize> = std::iter::once(0).chain(looks).chain([outcomes]).collect();
    looks.dedup();
    looks
}

impl LearningSimulation {
    /// The results of each rule on each kind, by kind.
    pub fn summary(&self) -> Vec<RuleSummary> {
        let pairs =
            RepositoryKind::ALL.into_iter().flat_map(|kind| ThresholdRule::ALL.iter().map(move |rule| (kind, *rule)));
        pairs.filter_map(|(kind, rule)| self.summary_of(kind, rule)).collect()
    }

    pub fn curves_of(&self, kind: RepositoryKind, rule: ThresholdRule) -> impl Iterator<Item = &LearningCurve> {
        self.curves.iter().filter(move |curve| curve.kind == kind && curve.rule == rule)
    }

    fn summary_of(&self, kind: RepositoryKind, rule: ThresholdRule) -> Option<RuleSummary> {
        let curves: Vec<&LearningCurve> = self.curves_of(kind, rule).collect();
        let ends: Vec<LearningPoint> = curves.iter().filter_map(|curve| curve.points.last().copied()).collect();
        let median_threshold = median(ends.iter().map(|end| end.threshold))?;
        let early = |curve: &&LearningCurve| curve.points.iter().copied().find(|point| point.outcomes == EARLY);
        let early: Vec<LearningPoint> = curves.iter().filter_map(early).collect();
        let silent = |points: &[LearningPoint]| points.iter().filter(|point| point.precision.is_none()).count();
        let precisions: Vec<f64> = ends.iter().filter_map(|end| end.precision).collect();
        let wanted = self.wanted.get();
        Some(RuleSummary {
            kind,
            rule,
            repositories: curves.len(),
            silent_early: (!early.is_empty()).then(|| silent(&early)),
            silent: silent(&ends),
            median_threshold,
            mean_precision: mean(&precisions),
            near_wanted: precisions.iter().filter(|share| (*share - wanted).abs() <= NEAR * wanted).count(),
        })
    }

    /// What the figures say about each rule, in plain sentences.
    pub fn conclusions(&self) -> Vec<String> {
        let summary = self.summary();
        let of = |rule: &ThresholdRule, kind| summary.iter().find(|row| row.rule == *rule && row.kind == kind);
        let conclusion = |rule: &ThresholdRule| {
            let mut parts = Vec::new();
            if let Some(bad) = of(rule, RepositoryKind::Bad) {
                let early = bad.silent_early.map(|count| format!(", {count} of them after {EARLY} outcomes"));
                parts.push(match bad.mean_precision {
                    None => format!(
                        "stopped commenting in all {} repositories with mostly wrong predictions{}",
                        bad.repositories,
                        early.unwrap_or_default()
                    ),
                    Some(precision) => format!(
                        "{} on bad repositories ({} of {} silent), where {} of suggestions are right",
                        stands(bad.median_threshold),
                        bad.silent,
                        bad.repositories,
                        share(Some(precision))
                    ),
                });
            }
            if let Some(crossing) = of(rule, RepositoryKind::Crossing) {
                parts.push(format!(
                    "near the wanted {} on {} of {} whose precision crosses it",
                    share(Some(self.wanted.get())),
                    crossing.near_wanted,
                    crossing.repositories
                ));
            }
            if let Some(good) = of(rule, RepositoryKind::Good) {
                parts.push(format!("{} on good ones", stands(good.median_threshold)));
            }
            if let Some(drifting) = of(rule, RepositoryKind::Drifting) {
                parts.push(format!("{} on those that were good and turned bad", stands(drifting.median_threshold)));
            }
            format!("{rule}: {}.", parts.join("; "))
        };
        ThresholdRule::ALL.iter().map(conclusion).collect()
    }
}

fn stands(current: CurrentThreshold) -> String {
    match current {
        CurrentThreshold::From(threshold) => format!("at {threshold}"),
        CurrentThreshold::Silent => "silent".to_owned(),
    }
}

/// The median; of an even number of values, the lower one.
pub(crate) fn median<T: Ord + Copy>(values: impl Iterator<Item = T>) -> Option<T> {
    let mut values: Vec<T> = values.collect();
    values.sort_unstable();
    values.get(values.len().saturating_sub(1) / 2).copied()
}

pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// A share in percent; `None` is a dash.
pub(crate) fn share(share: Option<f64>) -> String {
    share.map_or_else(|| "–".to_owned(), |share| format!("{:.0} %", share * 100.0))
}

#[cfg(test)]
mod tests {
    use canonry_domain::{CurrentThreshold, Threshold, ThresholdRule};

    use super::{LearningSimulation, RuleSummary, SimulationOptions, looks, simulate_learning};
    use crate::lab::synthetic_repository::RepositoryKind;

    fn simulation(repositories: usize) -> LearningSimulation {
        simulate_learning(SimulationOptions { repositories, outcomes: 1_000, seed: 1 })
    }

    fn row(simulation: &LearningSimulation, kind: RepositoryKind, rule: ThresholdRule) -> RuleSummary {
        let rows = simulation.summary();
        rows.into_iter().find(|row| row.kind == kind && row.rule == rule).expect("every kind and rule")
    }

    fn at(points: u8) -> CurrentThreshold {
        CurrentThreshold::From(Threshold::new(points).expect("in bounds"))
    }

    #[test]
    fn the_default_rule_falls_silent_where_nothing_is_right() {
        let simulation = simulation(400);
        let bad = row(&simulation, RepositoryKind::Bad, ThresholdRule::PrecisionTarget);
        assert_eq!((bad.repositories, bad.silent), (100, 100));
        assert!(bad.silent_early >= Some(80), "{bad:?}");
        let drifting = row(&simulation, RepositoryKind::Drifting, ThresholdRule::PrecisionTarget);
        assert!(drifting.median_threshold > at(85), "{drifting:?}");
        let good = row(&simulation, RepositoryKind::Good, ThresholdRule::PrecisionTarget);
        assert_eq!(good.silent, 0);
        assert!(good.median_threshold < at(70), "{good:?}");
    }

    #[test]
    fn the_default_rule_converges_where_the_curve_crosses_the_wanted_precision() {
        let crossing = row(&simulation(400), RepositoryKind::Crossing, ThresholdRule::PrecisionTarget);
        assert!(crossing.near_wanted >= 90, "{crossing:?}");
        assert!(crossing.mean_precision.is_some_and(|mean| (0.76..=0.88).contains(&mean)), "{crossing:?}");
    }

    #[test]
    fn the_mean_drifts_the_wrong_way_and_its_complement_to_no_precision() {
        let simulation = simulation(120);
        for (rule, bad, good) in [(ThresholdRule::BetaMean, 50, 90), (ThresholdRule::BetaComplement, 80, 50)] {
            let row = |kind| row(&simulation, kind, rule);
            let [on_bad, on_good] = [RepositoryKind::Bad, RepositoryKind::Good].map(|kind| row(kind).median_threshold);
            match rule {
                ThresholdRule::BetaMean => assert!(on_bad == at(bad) && on_good >= at(good), "{on_bad} {on_good}"),
                _ => assert!(on_bad >= at(bad) && on_good == at(good), "{on_bad} {on_good}"),
            }
            assert_eq!(row(RepositoryKind::Bad).silent, 0);
            let crossing = row(RepositoryKind::Crossing);
            assert!(crossing.near_wanted * 2 < crossing.repositories, "{crossing:?}");
        }
    }

    #[test]
    fn a_seed_gives_the_same_again_and_more_repositories_change_none() {
        let (small, large) = (simulation(6), simulation(9));
        assert_eq!(small, simulation(6));
        assert_eq!(small.curves[..], large.curves[..small.curves.len()]);
        let other = simulate_learning(SimulationOptions { seed: 2, ..small.options });
        assert_ne!(small.curves, other.curves);
    }

    #[test]
    fn looks_are_dense_early_and_end_at_the_end() {
        assert_eq!(looks(0), [0]);
        assert_eq!(looks(7), [0, 7]);
        assert_eq!(looks(100), [0, 10, 15, 20, 30, 50, 70, 100]);
        assert_eq!(looks(1_000)[6..], [70, 100, 150, 200, 300, 500, 700, 1_000]);
    }
}
