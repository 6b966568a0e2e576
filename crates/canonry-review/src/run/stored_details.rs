//! Reads the details of a stored review beyond its counts, for showing it later.

use canonry_domain::review::{CheckConclusion, CountedFinding, ReviewCounts, check_conclusion, scope_in_words};
use canonry_store::{SightingCount, StoredReview};

use crate::output::gaps_of;
use crate::run::record::{ReviewDetailsJson, reason_of};
use crate::run::report::{Coverage, ModelUse, ReviewerRun};

#[derive(Debug, Clone, PartialEq)]
pub struct StoredDetails {
    pub coverage: Coverage,
    pub reviewers: Vec<ReviewerRun>,
    pub hidden_patterns: usize,
    pub model: Option<ModelUse>,
    /// Why it read what it read, as a sentence without a full stop; `None` for a reason that this version does not
    /// know.
    pub scope: Option<String>,
    /// The conclusion of its check run; `None` for the same reason.
    pub conclusion: Option<CheckConclusion>,
}

impl StoredDetails {
    /// Reads the details of a review with its counts of findings; `None` if another version of Canonry stored them in
    /// another form.
    pub fn of(review: &StoredReview, told: &[SightingCount]) -> Option<Self> {
        let details: ReviewDetailsJson = serde_json::from_value(review.reviewers.clone()).ok()?;
        let reason = reason_of(&review.reason, details.since);
        let counts = ReviewCounts::of(told.iter().flat_map(|alike| {
            let one = CountedFinding {
                status: alike.status,
                severity: alike.severity,
                shown: alike.shown,
                hidden_by: alike.hidden_by.as_ref(),
            };
            std::iter::repeat_n(one, usize::try_from(alike.times).unwrap_or_default())
        }));
        let gaps = gaps_of(&details.reviewers, &details.coverage);
        Some(Self {
            scope: reason.as_ref().map(scope_in_words),
            conclusion: reason.as_ref().map(|reason| check_conclusion(&counts, &gaps, reason)),
            coverage: details.coverage,
            reviewers: details.reviewers,
            hidden_patterns: details.hidden_patterns,
            model: details.model,
        })
    }
}
