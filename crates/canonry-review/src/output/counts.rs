//! Counts the findings and gaps of a report.

use std::collections::{BTreeMap, BTreeSet};

use canonry_domain::review::{CountedFinding, RepoPath, ReviewCounts, ReviewGaps};

use crate::run::report::{Coverage, ReviewReport, ReviewerRun};

pub fn counts(report: &ReviewReport) -> ReviewCounts {
    ReviewCounts::of(report.findings.iter().map(|one| CountedFinding {
        status: one.sighting.status,
        severity: one.sighting.finding.severity,
        shown: one.shown,
        hidden_by: one.hidden_by.as_ref(),
    }))
}

pub fn gaps(report: &ReviewReport) -> ReviewGaps {
    gaps_of(&report.reviewers, &report.coverage)
}

pub(crate) fn gaps_of(reviewers: &[ReviewerRun], coverage: &Coverage) -> ReviewGaps {
    let unread = coverage.skipped.iter().filter(|one| one.gap).map(|one| &one.path);
    ReviewGaps {
        reviewers: reviewers.len(),
        troubled_reviewers: reviewers.iter().filter(|one| !one.problems.is_empty()).count(),
        skipped_files: unread.collect::<BTreeSet<_>>().len(),
        none_listed: coverage.none_listed,
    }
}

/// The files that were not read, each once with all its reasons.
pub(crate) fn skipped_files(report: &ReviewReport) -> BTreeMap<&RepoPath, BTreeSet<&str>> {
    let mut files: BTreeMap<&RepoPath, BTreeSet<&str>> = BTreeMap::new();
    for one in &report.coverage.skipped {
        files.entry(&one.path).or_default().insert(&one.why);
    }
    files
}

#[cfg(test)]
mod tests {
    use super::{gaps, skipped_files};
    use crate::output::sample::{report, skipped};

    #[test]
    fn a_gap_is_a_file_that_somebody_could_have_read() {
        let mut report = report(vec![]);
        report.coverage.skipped = vec![
            skipped("image.bin", "it is binary", false),
            skipped("vendor/a.js", "skipped by review.skipPaths", false),
            skipped("b.js", "it is too large", true),
            skipped("b.js", "the model had no room for it", true),
            skipped("b.js", "it is too large", true),
        ];
        assert_eq!(gaps(&report).skipped_files, 1);
        let files: Vec<(&str, usize)> =
            skipped_files(&report).into_iter().map(|(path, why)| (path.as_str(), why.len())).collect();
        assert_eq!(files, [("b.js", 2), ("image.bin", 1), ("vendor/a.js", 1)]);
    }
}
