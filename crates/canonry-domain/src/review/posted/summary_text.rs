//! Describes the result of a review in plain text, without colours and markup, for terminals and for comments.

use std::collections::BTreeMap;

use crate::review::{FindingStatus, HiddenBy, ScopeReason, Severity, ShownAs};
use crate::text::counted::counted;

/// The maximum number of configured patterns that are named one by one: more would hide the rest of the sentence.
const PATTERNS_NAMED: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountedFinding<'a> {
    pub status: FindingStatus,
    pub severity: Severity,
    /// Where the finding is shown; a fixed finding that no review showed is suppressed.
    pub shown: ShownAs,
    pub hidden_by: Option<&'a HiddenBy>,
}

/// The number of findings of each kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReviewCounts {
    pub inline: usize,
    pub details: usize,
    pub low_confidence: usize,
    pub suppressed: usize,
    /// The number of shown findings that are new; `back` counts those that were fixed before and are back.
    pub new: usize,
    pub back: usize,
    /// The number of fixed findings that no review showed: nobody waits for the news.
    pub quietly_fixed: usize,
    pub by_severity: BTreeMap<Severity, usize>,
    pub by_status: BTreeMap<FindingStatus, usize>,
    pub hidden_by: BTreeMap<HiddenBy, usize>,
}

impl ReviewCounts {
    /// Counts findings. A fixed finding counts only as fixed.
    pub fn of<'a>(findings: impl IntoIterator<Item = CountedFinding<'a>>) -> Self {
        let mut counts = Self::default();
        for finding in findings {
            *counts.by_status.entry(finding.status).or_default() += 1;
            if finding.status == FindingStatus::Fixed {
                counts.quietly_fixed += usize::from(finding.shown == ShownAs::Suppressed);
                continue;
            }
            match finding.shown {
                ShownAs::Inline => counts.inline += 1,
                ShownAs::Details => counts.details += 1,
                ShownAs::LowConfidence => counts.low_confidence += 1,
                ShownAs::Suppressed => {
                    counts.suppressed += 1;
                    if let Some(by) = finding.hidden_by {
                        *counts.hidden_by.entry(by.clone()).or_default() += 1;
                    }
                    continue;
                }
            }
            *counts.by_severity.entry(finding.severity).or_default() += 1;
            counts.new += usize::from(finding.status == FindingStatus::New);
            counts.back += usize::from(finding.status == FindingStatus::Reopened);
        }
        counts
    }

    pub fn shown(&self) -> usize {
        self.inline + self.details + self.low_confidence
    }

    /// The fixed findings that a review showed before.
    pub fn fixed(&self) -> usize {
        self.with_status(FindingStatus::Fixed) - self.quietly_fixed
    }

    /// The findings that the change is not answerable for.
    pub fn out_of_scope(&self) -> usize {
        self.hidden_by.get(&HiddenBy::Scope).copied().unwrap_or_default()
    }

    pub fn with_status(&self, status: FindingStatus) -> usize {
        self.by_status.get(&status).copied().unwrap_or_default()
    }

    pub fn with_severity(&self, severity: Severity) -> usize {
        self.by_severity.get(&severity).copied().unwrap_or_default()
    }
}

/// The parts of a review that failed or were skipped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReviewGaps {
    pub reviewers: usize,
    /// The number of reviewers that failed or whose output could not be used completely.
    pub troubled_reviewers: usize,
    /// The number of files that should have been read and were not.
    pub skipped_files: usize,
    /// Nothing but reports that do not list their files covers the change, so that nobody knows whether it was read.
    pub none_listed: bool,
}

/// The most important result, in one sentence without a full stop.
///
/// If reviewers failed or files were skipped, the sentence does not report "no findings" without mentioning that.
pub fn review_headline(counts: &ReviewCounts, gaps: &ReviewGaps, reason: &ScopeReason) -> String {
    let shown = counts.shown();
    if shown > 0 {
        let severities: Vec<String> =
            counts.by_severity.iter().rev().map(|(severity, count)| format!("{count} {severity}")).collect();
        return format!("{}: {}", number_of(shown, "finding"), severities.join(", "));
    }
    let is_over = matches!(reason, ScopeReason::NoChangesSince(_));
    if gaps.reviewers == 0 && !is_over {
        return "Not reviewed: no reviewer ran".to_owned();
    }
    if let Some(gaps) = gaps_in_words(gaps) {
        return format!("No findings, but the review is incomplete: {gaps}");
    }
    let unlisted = if gaps.none_listed { "; the report does not say which files it read" } else { "" };
    match counts.suppressed - counts.out_of_scope() {
        0 if counts.suppressed > 0 => format!("No findings on the changed lines{unlisted}"),
        0 => format!("No findings{unlisted}"),
        suppressed => format!("No findings shown; {} hidden{unlisted}", number_of(suppressed, "finding")),
    }
}

/// The gaps of the review; `None` if there are none.
pub fn gaps_in_words(gaps: &ReviewGaps) -> Option<String> {
    let mut parts = Vec::new();
    match (gaps.troubled_reviewers, gaps.reviewers) {
        (0, _) => {}
        (1, 1) => parts.push("the only reviewer had problems".to_owned()),
        (troubled, all) => parts.push(format!("{troubled} of {} had problems", number_of(all, "reviewer"))),
    }
    match gaps.skipped_files {
        0 => {}
        1 => parts.push("1 file was not read".to_owned()),
        files => parts.push(format!("{} were not read", number_of(files, "file"))),
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// What changed since the last review; `None` if no earlier finding is fixed or shown.
pub fn since_last_review(counts: &ReviewCounts) -> Option<String> {
    let fixed = counts.fixed();
    let still_open = counts.shown() - counts.new - counts.back;
    if fixed + still_open + counts.back == 0 {
        return None;
    }
    let parts = [(counts.new, "new"), (fixed, "fixed"), (counts.back, "back again"), (still_open, "still open")];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}"));
    Some(format!("Since the last review: {}.", parts.collect::<Vec<String>>().join(", ")))
}

/// Which changes the review covers, and why.
pub fn scope_in_words(reason: &ScopeReason) -> String {
    match reason {
        ScopeReason::NoPriorReview => "Full review: no earlier review.".to_owned(),
        ScopeReason::PriorShaUnreachable => "Full review: the last reviewed commit is gone.".to_owned(),
        ScopeReason::DiffComputationFailed => {
            "Full review: git could not compare with the last reviewed commit.".to_owned()
        }
        ScopeReason::FullRequested => "Full review, as requested.".to_owned(),
        ScopeReason::IncrementalFrom(sha) => format!("Incremental review: changes since {}.", sha.short()),
        ScopeReason::NoChangesSince(sha) => format!("Incremental review: no changes since {}.", sha.short()),
    }
}

/// How much of a change was read. `unlisted` files are covered by a report alone that does not list its files.
pub fn coverage_in_words(changed: usize, read: usize, lines: u64, unlisted: usize, skipped: usize) -> String {
    let part = |files: usize, what: &str| if files == 0 { String::new() } else { format!("; {files} {what}") };
    let unlisted = part(unlisted, "covered by a report that does not list its files");
    let (read_of, lines) = (number_of(changed, "changed file"), counted(lines, "line"));
    format!("{read} of {read_of} read, {lines}{unlisted}{}.", part(skipped, "skipped"))
}

/// The number of patterns that people's reactions hide; `None` if there are none.
pub fn suppressed_patterns_in_words(patterns: usize) -> Option<String> {
    (patterns > 0).then(|| format!("{} auto-suppressed based on prior feedback", number_of(patterns, "pattern")))
}

/// The number of hidden findings, and what hides them; `None` if there are none. Patterns are inserted as the
/// configuration contains them.
pub fn hidden_in_words(counts: &ReviewCounts) -> Option<String> {
    let old = match counts.out_of_scope() {
        0 => None,
        1 => Some("1 finding off the changed lines or older than the change is not shown.".to_owned()),
        old => {
            Some(format!("{} off the changed lines or older than the change are not shown.", number_of(old, "finding")))
        }
    };
    let sentences: Vec<String> = suppressed_in_words(counts).into_iter().chain(old).collect();
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

/// What people and the settings hide.
fn suppressed_in_words(counts: &ReviewCounts) -> Option<String> {
    let suppressed = counts.suppressed - counts.out_of_scope();
    if suppressed == 0 {
        return None;
    }
    let mut parts = Vec::new();
    let mut patterns = (0, 0);
    for (by, count) in &counts.hidden_by {
        match by {
            HiddenBy::Dismissal => parts.push(format!("{count} dismissed")),
            HiddenBy::Feedback => parts.push(format!("{count} by feedback")),
            HiddenBy::Pattern(pattern) if patterns.0 < PATTERNS_NAMED => {
                parts.push(format!("{count} by pattern \"{pattern}\""));
                patterns.0 += 1;
            }
            HiddenBy::Pattern(_) => patterns.1 += count,
            HiddenBy::Area => parts.push(format!("{count} outside the configured areas")),
            HiddenBy::Severity => parts.push(format!("{count} below the minimum severity")),
            HiddenBy::SecondReading => parts.push(format!("{count} not proven by a second reading")),
            HiddenBy::Scope => {}
        }
    }
    if patterns.1 > 0 {
        parts.push(format!("{} by other patterns", patterns.1));
    }
    let why = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
    Some(format!("{} hidden{why}.", number_of(suppressed, "finding")))
}

/// How many findings of one pattern were fixed; `None` if there were none.
pub fn history_in_words(fixed: u64, total: u64) -> Option<String> {
    (total > 0).then(|| format!("fixed {fixed} of {total} here"))
}

fn number_of(things: usize, noun: &str) -> String {
    counted(things as u64, noun)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Just, Strategy, prop_assert, prop_assert_eq, prop_oneof, proptest};

    use super::{
        CountedFinding, ReviewCounts, ReviewGaps, coverage_in_words, gaps_in_words, hidden_in_words, history_in_words,
        review_headline, scope_in_words, since_last_review, suppressed_patterns_in_words,
    };
    use crate::review::{CommitSha, FindingStatus, HiddenBy, ScopeReason, Severity, ShownAs};

    fn one(status: FindingStatus, severity: Severity, shown: ShownAs) -> CountedFinding<'static> {
        CountedFinding { status, severity, shown, hidden_by: None }
    }

    fn all_read() -> ReviewGaps {
        ReviewGaps { reviewers: 2, ..ReviewGaps::default() }
    }

    fn sha() -> CommitSha {
        "abc1234".repeat(6)[..40].parse().expect("an id")
    }

    #[test]
    fn the_headline_counts_what_is_shown() {
        let counts = ReviewCounts::of([
            one(FindingStatus::New, Severity::Critical, ShownAs::Inline),
            one(FindingStatus::Same, Severity::Minor, ShownAs::Details),
            one(FindingStatus::Moved, Severity::Minor, ShownAs::LowConfidence),
            one(FindingStatus::New, Severity::Major, ShownAs::Suppressed),
            one(FindingStatus::Fixed, Severity::Major, ShownAs::Inline),
        ]);
        let headline = review_headline(&counts, &all_read(), &ScopeReason::NoPriorReview);
        assert_eq!(headline, "3 findings: 1 critical, 2 minor");
        assert_eq!((counts.with_severity(Severity::Minor), counts.with_severity(Severity::Major)), (2, 0));
        let one_alone = ReviewCounts::of([one(FindingStatus::Reopened, Severity::Major, ShownAs::Inline)]);
        assert_eq!(review_headline(&one_alone, &all_read(), &ScopeReason::NoChangesSince(sha())), "1 finding: 1 major");
    }

    #[test]
    fn nothing_found_is_said_with_what_is_not_known() {
        let nothing = ReviewCounts::default();
        let hidden = ReviewCounts::of([one(FindingStatus::New, Severity::Minor, ShownAs::Suppressed)]);
        let first = ScopeReason::NoPriorReview;
        let gaps = |reviewers, troubled_reviewers, skipped_files| ReviewGaps {
            reviewers,
            troubled_reviewers,
            skipped_files,
            none_listed: false,
        };
        for (counts, gaps, reason, headline) in [
            (&nothing, gaps(2, 0, 0), &first, "No findings"),
            (&hidden, gaps(2, 0, 0), &first, "No findings shown; 1 finding hidden"),
            (&nothing, gaps(0, 0, 0), &first, "Not reviewed: no reviewer ran"),
            (
                &nothing,
                gaps(1, 1, 0),
                &first,
                "No findings, but the review is incomplete: the only reviewer had problems",
            ),
            (
                &hidden,
                gaps(3, 1, 2),
                &first,
                "No findings, but the review is incomplete: 1 of 3 reviewers had problems, 2 files were not read",
            ),
            (&nothing, gaps(0, 0, 0), &ScopeReason::NoChangesSince(sha()), "No findings"),
        ] {
            assert_eq!(review_headline(counts, &gaps, reason), headline);
        }
        assert_eq!(gaps_in_words(&gaps(1, 0, 1)).as_deref(), Some("1 file was not read"));
        assert_eq!(gaps_in_words(&gaps(1, 0, 0)), None);
    }

    #[test]
    fn what_changed_since_the_last_review_is_counted() {
        let counts =
            ReviewCounts::of(FindingStatus::ALL.iter().map(|status| one(*status, Severity::Minor, ShownAs::Inline)));
        assert_eq!(
            since_last_review(&counts).as_deref(),
            Some("Since the last review: 1 new, 1 fixed, 1 back again, 3 still open.")
        );
        let new = ReviewCounts::of([one(FindingStatus::New, Severity::Minor, ShownAs::Inline)]);
        assert_eq!(since_last_review(&new), None);
        // Hidden findings are counted among the suppressed ones.
        let hidden = |status| one(status, Severity::Minor, ShownAs::Suppressed);
        let statuses = [FindingStatus::Same, FindingStatus::Dismissed, FindingStatus::New];
        assert_eq!(since_last_review(&ReviewCounts::of(statuses.map(hidden))), None);
    }

    #[test]
    fn what_hides_findings_is_told() {
        let hidden: Vec<HiddenBy> = [HiddenBy::Dismissal, HiddenBy::Dismissal, HiddenBy::Feedback, HiddenBy::Area]
            .into_iter()
            .chain((0..7).map(|at| HiddenBy::Pattern(format!("p{at}"))))
            .chain([HiddenBy::Severity])
            .collect();
        let counts = ReviewCounts::of(hidden.iter().map(|by| CountedFinding {
            hidden_by: Some(by),
            ..one(FindingStatus::New, Severity::Minor, ShownAs::Suppressed)
        }));
        assert_eq!(
            hidden_in_words(&counts).as_deref(),
            Some(
                "12 findings hidden: 2 dismissed, 1 by feedback, 1 by pattern \"p0\", 1 by pattern \"p1\", 1 by pattern \
                 \"p2\", 1 by pattern \"p3\", 1 by pattern \"p4\", 1 outside the configured areas, 1 below the minimum \
                 severity, 2 by other patterns."
            )
        );
        assert_eq!(hidden_in_words(&ReviewCounts::default()), None);
    }

    #[test]
    fn what_the_change_is_not_answerable_for_is_one_sentence() {
        let old = CountedFinding {
            hidden_by: Some(&HiddenBy::Scope),
            ..one(FindingStatus::New, Severity::Critical, ShownAs::Suppressed)
        };
        let counts = ReviewCounts::of(std::iter::repeat_n(old, 1_162));
        let headline = review_headline(&counts, &all_read(), &ScopeReason::NoPriorReview);
        assert_eq!(headline, "No findings on the changed lines");
        let sentence = "1,162 findings off the changed lines or older than the change are not shown.";
        assert_eq!(hidden_in_words(&counts).as_deref(), Some(sentence));
        let area = CountedFinding { hidden_by: Some(&HiddenBy::Area), ..old };
        let both = ReviewCounts::of([old, area]);
        assert_eq!(
            hidden_in_words(&both).as_deref(),
            Some(
                "1 finding hidden: 1 outside the configured areas. 1 finding off the changed lines or older than the change is not shown."
            )
        );
        let fixed = ReviewCounts::of([CountedFinding { status: FindingStatus::Fixed, hidden_by: None, ..old }]);
        assert_eq!((fixed.fixed(), since_last_review(&fixed)), (0, None));
    }

    #[test]
    fn the_details_in_words() {
        for (reason, words) in [
            (ScopeReason::NoPriorReview, "Full review: no earlier review."),
            (ScopeReason::PriorShaUnreachable, "Full review: the last reviewed commit is gone."),
            (ScopeReason::DiffComputationFailed, "Full review: git could not compare with the last reviewed commit."),
            (ScopeReason::FullRequested, "Full review, as requested."),
            (ScopeReason::IncrementalFrom(sha()), "Incremental review: changes since abc1234."),
            (ScopeReason::NoChangesSince(sha()), "Incremental review: no changes since abc1234."),
        ] {
            assert_eq!(scope_in_words(&reason), words);
        }
        assert_eq!(coverage_in_words(5, 3, 12_345, 0, 2), "3 of 5 changed files read, 12,345 lines; 2 skipped.");
        assert_eq!(coverage_in_words(1, 1, 1, 0, 0), "1 of 1 changed file read, 1 line.");
        assert_eq!(
            coverage_in_words(5, 0, 0, 3, 1),
            "0 of 5 changed files read, 0 lines; 3 covered by a report that does not list its files; 1 skipped."
        );
        let patterns = |count| suppressed_patterns_in_words(count);
        assert_eq!(patterns(3).as_deref(), Some("3 patterns auto-suppressed based on prior feedback"));
        assert_eq!(
            (patterns(1).as_deref(), patterns(0)),
            (Some("1 pattern auto-suppressed based on prior feedback"), None)
        );
        assert_eq!(history_in_words(27, 38).as_deref(), Some("fixed 27 of 38 here"));
        assert_eq!(history_in_words(0, 0), None);
    }

    fn any_finding() -> impl Strategy<Value = CountedFinding<'static>> {
        (
            proptest::sample::select(FindingStatus::ALL),
            proptest::sample::select(Severity::ALL),
            proptest::sample::select(ShownAs::ALL),
        )
            .prop_map(|(status, severity, shown)| one(status, severity, shown))
    }

    proptest! {
        #[test]
        fn every_finding_is_counted_once(findings in proptest::collection::vec(any_finding(), 0..30)) {
            let counts = ReviewCounts::of(findings.iter().copied());
            let fixed = counts.with_status(FindingStatus::Fixed);
            prop_assert_eq!(counts.shown() + counts.suppressed + fixed, findings.len());
            prop_assert_eq!(counts.by_severity.values().sum::<usize>(), counts.shown());
            prop_assert_eq!(counts.by_status.values().sum::<usize>(), findings.len());
        }

        #[test]
        fn a_review_with_gaps_never_reads_like_an_approval(
            findings in proptest::collection::vec(any_finding(), 0..4),
            (reviewers, troubled, skipped) in (0_usize..3, 0_usize..3, 0_usize..3),
            reason in prop_oneof![Just(ScopeReason::NoPriorReview), Just(ScopeReason::NoChangesSince(sha()))],
        ) {
            let gaps = ReviewGaps {
                reviewers,
                troubled_reviewers: troubled.min(reviewers),
                skipped_files: skipped,
                none_listed: false,
            };
            let counts = ReviewCounts::of(findings);
            let headline = review_headline(&counts, &gaps, &reason);
            if counts.shown() == 0 && gaps_in_words(&gaps).is_some() {
                prop_assert!(headline.contains("incomplete") || headline.starts_with("Not reviewed"), "{headline}");
            }
        }
    }
}
