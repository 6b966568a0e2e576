//! Computes the confidence of a finding from observable signs.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::review::{Category, PatternFeedback, Severity};

/// The confidence of a finding, 0 to 100.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Confidence(u8);

impl Confidence {
    pub const fn get(self) -> u8 {
        self.0
    }

    fn within_bounds(points: i64) -> Self {
        Self(u8::try_from(points.clamp(0, 100)).expect("invariant: clamped"))
    }
}

impl fmt::Display for Confidence {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} %", self.0)
    }
}

/// The observable facts about a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConfidenceSigns {
    pub severity: Severity,
    pub category: Category,
    /// Whether a second reviewer reports the finding, or people accepted a very similar one.
    pub confirmed: bool,
    pub feedback: PatternFeedback,
}

/// What each sign adds to or subtracts from the confidence, beginning at [`ConfidenceParts::START`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ConfidenceParts {
    pub severity: i64,
    pub category: i64,
    pub confirmed: i64,
    pub feedback: i64,
}

impl ConfidenceParts {
    /// The base value of every finding.
    pub const START: i64 = 50;

    pub fn of(signs: ConfidenceSigns) -> Self {
        let severity = match signs.severity {
            Severity::Critical => 30,
            Severity::Major => 20,
            Severity::Medium => 10,
            Severity::Minor => 0,
        };
        let category = match signs.category {
            Category::Security => 15,
            Category::Correctness => 10,
            Category::Performance => 5,
            Category::Style => -5,
            Category::Documentation => -10,
        };
        Self {
            severity,
            category,
            confirmed: if signs.confirmed { 10 } else { 0 },
            feedback: 10 * i64::from(signs.feedback.thumbs_up) - 20 * i64::from(signs.feedback.thumbs_down),
        }
    }
}

/// The confidence that follows from the signs. Feedback is applied last, and to visible findings too.
pub fn confidence(signs: ConfidenceSigns) -> Confidence {
    let parts = ConfidenceParts::of(signs);
    let observed =
        Confidence::within_bounds(ConfidenceParts::START + parts.severity + parts.category + parts.confirmed);
    Confidence::within_bounds(i64::from(observed.0) + parts.feedback)
}

#[cfg(test)]
mod tests {
    use super::{Confidence, ConfidenceSigns, confidence};
    use crate::review::{Category, PatternFeedback, Severity};

    #[test]
    fn every_sign_counts() {
        let plain = ConfidenceSigns {
            severity: Severity::Medium,
            category: Category::Style,
            confirmed: false,
            feedback: PatternFeedback::default(),
        };
        let with = |thumbs_up, thumbs_down| PatternFeedback { thumbs_up, thumbs_down, ..PatternFeedback::default() };
        for (signs, expected) in [
            (plain, 55),
            (ConfidenceSigns { confirmed: true, ..plain }, 65),
            (ConfidenceSigns { feedback: with(1, 0), ..plain }, 65),
            (ConfidenceSigns { feedback: with(0, 1), ..plain }, 35),
            (ConfidenceSigns { feedback: with(0, 9), ..plain }, 0),
            (
                ConfidenceSigns {
                    severity: Severity::Critical,
                    category: Category::Security,
                    confirmed: true,
                    ..plain
                },
                100,
            ),
            (
                // The sum of 105 is capped at 100 before the negative feedback is subtracted.
                ConfidenceSigns {
                    severity: Severity::Critical,
                    category: Category::Security,
                    confirmed: true,
                    feedback: with(0, 1),
                },
                80,
            ),
            (ConfidenceSigns { severity: Severity::Minor, category: Category::Documentation, ..plain }, 40),
        ] {
            assert_eq!(confidence(signs).get(), expected, "{signs:?}");
        }
        assert_eq!(Confidence::within_bounds(72).to_string(), "72 %");
    }
}
