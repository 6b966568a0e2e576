//! Decides whether a finding is about the change or about older code.

use crate::review::{Finding, Hunk, LineRange};

/// The distance from a changed line within which a model still means the change: the context that a diff shows.
const CONTEXT: u32 = 3;

/// How near the lines of a finding are to the change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grounding {
    /// A line of the finding was added or changed or is next to removed lines, or the finding is about the whole
    /// changed file.
    Changed,
    /// A line of the finding is in the context of the diff.
    Near,
    Outside,
}

/// How near lines are to the changes in their file; `None` means the whole file.
pub fn grounding(hunks: &[Hunk], lines: Option<LineRange>) -> Grounding {
    let Some(lines) = lines else { return Grounding::Changed };
    hunks.iter().map(|hunk| nearness(hunk, lines)).min().unwrap_or(Grounding::Outside)
}

/// The tag of a finding whose reviewer named a place that does not exist. Such a finding has no line.
pub const MISPLACED: &str = "misplaced";

/// Whether a finding belongs at its line. A tool reports everything in a file, so only changed lines count. A model
/// was shown the diff, so its finding about a line next to the change is about the change.
pub fn is_grounded(finding: &Finding, grounding: Grounding) -> bool {
    if finding.tags.contains(MISPLACED) {
        return false;
    }
    match grounding {
        Grounding::Changed => true,
        Grounding::Near => finding.witnesses.iter().any(|witness| witness.reviewer.is_model()),
        Grounding::Outside => false,
    }
}

fn nearness(hunk: &Hunk, lines: LineRange) -> Grounding {
    // If lines were only removed, the change is between the line before and the line after.
    let (first, last) = match hunk.new {
        0 => (hunk.new_start, hunk.new_start.saturating_add(1)),
        count => (hunk.new_start, hunk.new_start.saturating_add(count - 1)),
    };
    let reaches = |around: u32| {
        let (first, last) = (first.saturating_sub(around), last.saturating_add(around));
        lines.first <= last && first <= lines.last
    };
    if reaches(0) {
        Grounding::Changed
    } else if reaches(CONTEXT) {
        Grounding::Near
    } else {
        Grounding::Outside
    }
}

#[cfg(test)]
mod tests {
    use super::{Grounding, grounding, is_grounded};
    use crate::review::finding::tests::finding;
    use crate::review::{Hunk, LineRange, ReviewerName};

    #[test]
    fn what_changed_and_what_is_beside_it() {
        // Lines 10 to 12 are new; lines were removed between 40 and 41.
        let hunks = [
            Hunk { old_start: 9, old: 0, new_start: 10, new: 3 },
            Hunk { old_start: 38, old: 4, new_start: 40, new: 0 },
        ];
        for (first, last, expected) in [
            (6, 6, Grounding::Outside),
            (7, 7, Grounding::Near),
            (9, 9, Grounding::Near),
            (10, 10, Grounding::Changed),
            (12, 12, Grounding::Changed),
            (1, 99, Grounding::Changed),
            (15, 15, Grounding::Near),
            (16, 36, Grounding::Outside),
            (40, 40, Grounding::Changed),
            (41, 41, Grounding::Changed),
            (42, 42, Grounding::Near),
            (45, 45, Grounding::Outside),
        ] {
            assert_eq!(grounding(&hunks, LineRange::new(first, last)), expected, "{first}..{last}");
        }
        assert_eq!(grounding(&hunks, None), Grounding::Changed);
        assert_eq!(grounding(&[], LineRange::new(1, 1)), Grounding::Outside);
    }

    #[test]
    fn only_a_model_is_shown_what_is_beside_the_change() {
        let tool = finding("a.rs", 1, ReviewerName::tool("clippy"), "x");
        let model = finding("a.rs", 1, ReviewerName::model(), "x");
        assert!(is_grounded(&tool, Grounding::Changed) && !is_grounded(&tool, Grounding::Near));
        assert!(is_grounded(&model, Grounding::Near) && !is_grounded(&model, Grounding::Outside));
    }
}
