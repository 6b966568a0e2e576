//! Decides whether a verdict about a new item is posted on GitHub, and gives the reason if not.

use crate::{CurrentThreshold, Similarity, TriageMode, TriageReason, Verdict};

/// Whether a verdict is posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CommentDecision {
    Speak,
    /// The verdict is only recorded.
    Silent(TriageReason),
}

/// Decides whether a verdict is posted: in a mode that comments, for both verdicts that name a target, at or above the
/// threshold.
///
/// A verdict without a judge's answer is never posted; see [`crate::triage_failed`].
pub fn decide_comment(
    mode: TriageMode,
    verdict: Verdict,
    score: Option<Similarity>,
    current: CurrentThreshold,
) -> CommentDecision {
    let silent = match (verdict, score) {
        _ if !mode.speaks() => TriageReason::Mode,
        (Verdict::NotDuplicate, _) => TriageReason::NotDuplicate,
        (Verdict::Duplicate | Verdict::MaybeDuplicate, None) => TriageReason::NoScore,
        (Verdict::Duplicate | Verdict::MaybeDuplicate, Some(score)) => match current {
            CurrentThreshold::Silent => TriageReason::FallenSilent,
            CurrentThreshold::From(_) if !current.admits(score) => TriageReason::BelowThreshold,
            CurrentThreshold::From(_) => return CommentDecision::Speak,
        },
    };
    CommentDecision::Silent(silent)
}

#[cfg(test)]
mod tests {
    use super::{CommentDecision, TriageReason, decide_comment};
    use crate::{CurrentThreshold, Similarity, Threshold, TriageMode, Verdict};

    #[test]
    fn spoken_from_the_threshold_on_in_modes_that_speak() {
        let from_85 = CurrentThreshold::From(Threshold::default());
        let silent = CurrentThreshold::Silent;
        let no = CommentDecision::Silent;
        for (mode, verdict, score, current, expected) in [
            (TriageMode::Suggest, Verdict::Duplicate, Some(0.85), from_85, CommentDecision::Speak),
            (TriageMode::Grace, Verdict::MaybeDuplicate, Some(0.9), from_85, CommentDecision::Speak),
            (TriageMode::Suggest, Verdict::MaybeDuplicate, Some(0.8499), from_85, no(TriageReason::BelowThreshold)),
            (TriageMode::Suggest, Verdict::Duplicate, Some(1.0), silent, no(TriageReason::FallenSilent)),
            (TriageMode::Suggest, Verdict::Duplicate, None, from_85, no(TriageReason::NoScore)),
            (TriageMode::Suggest, Verdict::NotDuplicate, Some(1.0), from_85, no(TriageReason::NotDuplicate)),
            (TriageMode::Suggest, Verdict::NotDuplicate, None, silent, no(TriageReason::NotDuplicate)),
            (TriageMode::Shadow, Verdict::Duplicate, Some(1.0), from_85, no(TriageReason::Mode)),
            (TriageMode::Off, Verdict::Duplicate, Some(1.0), from_85, no(TriageReason::Mode)),
        ] {
            let score = score.map(|score| Similarity::new(score).expect("in range"));
            assert_eq!(decide_comment(mode, verdict, score, current), expected, "{mode} {verdict} {score:?} {current}");
        }
    }
}
