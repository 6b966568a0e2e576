//! What a backtest means for a maintainer, in plain sentences.

use canonry_domain::Interval;
use canonry_retrieval::RetrievalMode;

use crate::lab::backtest::Backtest;
use crate::lab::backtest_verdicts::VerdictPoint;

/// Fewer replayed duplicates than this say little: with twenty, a share is known within 20 percentage points.
const FEW: usize = 20;
/// The score from which Canonry comments, unless a repository sets `triage.duplicateThreshold`.
const DEFAULT_THRESHOLD: f64 = 0.85;
/// The highest threshold that the settings allow.
const HIGHEST_THRESHOLD: f64 = 0.95;

impl Backtest {
    /// The default threshold, and what it would have meant in this repository.
    pub fn default_point(&self) -> &VerdictPoint {
        self.verdicts.at(DEFAULT_THRESHOLD)
    }

    /// What to know before trusting the figures, one sentence each.
    pub fn cautions(&self) -> Vec<String> {
        let counts = &self.counts;
        let mut cautions = Vec::new();
        if self.is_weak() {
            cautions.push(format!(
                "Only {} past duplicates could be replayed, so the figures are uncertain.",
                counts.duplicates_replayed
            ));
        }
        for (item_type, measures) in self.by_type.iter().filter(|_| !self.is_weak()) {
            if measures.queries < FEW {
                cautions.push(format!(
                    "Only {} of them are {}s, so the figures for those alone are uncertain.",
                    measures.queries,
                    item_type.in_words()
                ));
            }
        }
        if counts.duplicates_without_earlier > 0 {
            cautions.push(format!(
                "{} of {} known duplicates were left out: the database has no earlier item that they duplicate.",
                counts.duplicates_without_earlier, counts.duplicates_known
            ));
        }
        if counts.items_without_vector > 0 {
            cautions.push(format!(
                "{} of {} items have no vector and cannot be found; {} of them are duplicates that were not replayed. Run `canonry embed --repo {} --only-changed`.",
                counts.items_without_vector, counts.items, counts.duplicates_without_vector, self.repo
            ));
        }
        if !self.calibrated && self.options.mode != RetrievalMode::Lexical {
            cautions.push(format!(
                "Scores are the model's raw cosines, so the default thresholds do not apply; run `canonry calibrate --repo {}` with the same embedder.",
                self.repo
            ));
        }
        if !self.mistakes.is_empty() {
            cautions.push(format!("{} of the truth file could not be used as written.", lines(self.mistakes.len())));
        }
        cautions
    }

    pub fn method(&self) -> String {
        let counts = &self.counts;
        let truth = if self.from_truth_file { "the truth file names" } else { "people closed as duplicates" };
        let sample = if counts.duplicates_replayed < counts.duplicates {
            format!("a sample of {} of the {} items that {truth}", counts.duplicates_replayed, counts.duplicates)
        } else {
            format!("all {} items that {truth}", counts.duplicates)
        };
        let others = if counts.others_replayed < counts.others {
            format!(
                "a sample of {} of {} other items, each counted {:.1} times so that duplicates are as rare as they really are",
                counts.others_replayed,
                counts.others,
                counts.others as f64 / counts.others_replayed.max(1) as f64
            )
        } else {
            format!("all {} other items", counts.others)
        };
        format!(
            "Replayed {sample} and {others}, each against the items created before it, open or closed, without its labels, state or closing. \
            A verdict is: the first neighbour's score is at least the threshold. It is right when that neighbour is an earlier member of the item's cluster; \
            duplicates that nobody linked count as wrong, so precision is a lower bound. Templates and word frequencies are those of today's items. \
            Intervals are 95 % confidence intervals: by resampling for recall and MRR, by Wilson's and Donner and Zou's methods for shares; seed {}.",
            self.options.seed
        )
    }

    /// What to do next, one or two sentences each.
    pub fn recommendation(&self) -> Vec<String> {
        let found = self.retrieval.recall_at_10;
        let mut advice = vec![format!(
            "The earlier item is among the first ten neighbours of a new duplicate {} ({}).",
            times(found.value),
            percent(found)
        )];
        advice.push(match &self.verdicts.meets_wanted {
            Some(point) => self.speak_at(point),
            None => self.stay_silent(),
        });
        advice.push(
            "Do not close anything automatically yet: similarity alone is no reason to close. Read the suggestions for some weeks, and let a judge and a person confirm each close."
                .to_owned(),
        );
        if self.is_weak() {
            advice.push("Run the backtest again when more duplicates are known. Until then, trust the worst misses more than the figures.".to_owned());
        }
        advice
    }

    fn speak_at(&self, point: &VerdictPoint) -> String {
        let threshold = point.threshold.get();
        let precision = point.precision.expect("invariant: a threshold that meets a precision has answers");
        let meaning = format!(
            "Suggestions at {:.0} % and above would have been right {} ({}). Canonry would have commented on {} of 1,000 new items and named the right earlier item of {:.0} % of the duplicates.",
            threshold * 100.0,
            times(precision.value),
            percent(precision),
            rounded(point.per_thousand),
            point.recall.value * 100.0,
        );
        if precision.low < self.verdicts.wanted_precision / 2.0 {
            return format!("{meaning} The true share may be far lower, so keep `triage.mode: shadow`.");
        }
        if threshold > HIGHEST_THRESHOLD {
            return format!(
                "{meaning} That is above the highest `triage.duplicateThreshold`, so keep `triage.mode: shadow`."
            );
        }
        format!(
            "{meaning} To get this, set `triage.mode: suggest` and `triage.duplicateThreshold: {:.0}`.",
            threshold * 100.0
        )
    }

    fn stay_silent(&self) -> String {
        let default = self.default_point();
        let there = match default.precision {
            Some(precision) => format!(
                "at the default of {:.0} % suggestions would have been right {} ({})",
                DEFAULT_THRESHOLD * 100.0,
                times(precision.value),
                percent(precision)
            ),
            None => format!("at the default of {:.0} % there would have been no suggestion", DEFAULT_THRESHOLD * 100.0),
        };
        format!(
            "No threshold would have been right {} here; {there}. Keep `triage.mode: shadow`, which records suggestions and posts none.",
            times(self.verdicts.wanted_precision)
        )
    }

    fn is_weak(&self) -> bool {
        self.counts.duplicates_replayed < FEW
    }
}

/// A share in words, such as "4 times in 5".
fn times(share: f64) -> String {
    const FRACTIONS: [(u32, u32); 10] =
        [(1, 10), (1, 5), (1, 4), (1, 3), (1, 2), (2, 3), (3, 4), (4, 5), (9, 10), (19, 20)];
    if share < 0.05 {
        return "almost never".to_owned();
    }
    if share > 0.975 {
        return "almost always".to_owned();
    }
    let far = |(part, whole): &(u32, u32)| (f64::from(*part) / f64::from(*whole) - share).abs();
    let nearest = FRACTIONS.iter().min_by(|one, other| far(one).total_cmp(&far(other)));
    let (part, whole) = nearest.expect("invariant: there are fractions");
    let about = if far(&(*part, *whole)) < 0.005 { "" } else { "about " };
    if *part == 1 { format!("{about}once in {whole}") } else { format!("{about}{part} times in {whole}") }
}

/// A share with its confidence interval, in percent.
pub(crate) fn percent(share: Interval) -> String {
    format!("{:.0} %, between {:.0} and {:.0} %", share.value * 100.0, share.low * 100.0, share.high * 100.0)
}

fn rounded(count: f64) -> String {
    if count < 1.0 { "fewer than 1".to_owned() } else { format!("{count:.0}") }
}

fn lines(count: usize) -> String {
    if count == 1 { "1 line".to_owned() } else { format!("{count} lines") }
}

#[cfg(test)]
mod tests {
    use super::times;

    #[test]
    fn shares_are_said_as_people_say_them() {
        for (share, said) in [
            (0.0, "almost never"),
            (0.1, "once in 10"),
            (0.22, "about once in 5"),
            (0.5, "once in 2"),
            (0.8, "4 times in 5"),
            (0.81, "about 4 times in 5"),
            (0.96, "about 19 times in 20"),
            (1.0, "almost always"),
        ] {
            assert_eq!(times(share), said);
        }
    }
}
