//! Whether a verdict about a new item is said on GitHub, and why not.

use crate::duplicates::online_verdict::Verdict;
use crate::duplicates::score::Similarity;
use crate::duplicates::triage_mode::TriageMode;
use crate::learning::threshold::CurrentThreshold;
use crate::text_enum;

/// Whether a verdict is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Speaking {
    Speak,
    /// It is only recorded.
    Silent(WhySilent),
}

text_enum! {
    /// Why a verdict is only recorded.
    pub enum WhySilent: "a reason to be silent" {
        Mode = "mode",
        NotDuplicate = "not_duplicate",
        /// The selected target has no score to hold against the threshold.
        NoScore = "no_score",
        BelowThreshold = "below_threshold",
        /// Too many suggestions were wrong here, at every level.
        FallenSilent = "fallen_silent",
    }
}

/// Whether a verdict is said: in a mode that speaks, for both verdicts that name a target, from the threshold on.
///
/// A verdict that no judge's answer stands behind is never said; see [`crate::triage_failed`].
pub fn speaking(mode: TriageMode, verdict: Verdict, score: Option<Similarity>, current: CurrentThreshold) -> Speaking {
    let silent = match (verdict, score) {
        _ if !mode.speaks() => WhySilent::Mode,
        (Verdict::NotDuplicate, _) => WhySilent::NotDuplicate,
        (Verdict::Duplicate | Verdict::MaybeDuplicate, None) => WhySilent::NoScore,
        (Verdict::Duplicate | Verdict::MaybeDuplicate, Some(score)) => match current {
            CurrentThreshold::Silent => WhySilent::FallenSilent,
            CurrentThreshold::From(_) if !current.admits(score) => WhySilent::BelowThreshold,
            CurrentThreshold::From(_) => return Speaking::Speak,
        },
    };
    Speaking::Silent(silent)
}

#[cfg(test)]
mod tests {
    use super::{Speaking, WhySilent, speaking};
    use crate::duplicates::online_verdict::Verdict;
    use crate::duplicates::score::Similarity;
    use crate::duplicates::triage_mode::TriageMode;
    use crate::learning::threshold::{CurrentThreshold, Threshold};

    #[test]
    fn spoken_from_the_threshold_on_in_modes_that_speak() {
        let from_85 = CurrentThreshold::From(Threshold::default());
        let silent = CurrentThreshold::Silent;
        let no = Speaking::Silent;
        for (mode, verdict, score, current, expected) in [
            (TriageMode::Suggest, Verdict::Duplicate, Some(0.85), from_85, Speaking::Speak),
            (TriageMode::Grace, Verdict::MaybeDuplicate, Some(0.9), from_85, Speaking::Speak),
            (TriageMode::Suggest, Verdict::MaybeDuplicate, Some(0.8499), from_85, no(WhySilent::BelowThreshold)),
            (TriageMode::Suggest, Verdict::Duplicate, Some(1.0), silent, no(WhySilent::FallenSilent)),
            (TriageMode::Suggest, Verdict::Duplicate, None, from_85, no(WhySilent::NoScore)),
            (TriageMode::Suggest, Verdict::NotDuplicate, Some(1.0), from_85, no(WhySilent::NotDuplicate)),
            (TriageMode::Suggest, Verdict::NotDuplicate, None, silent, no(WhySilent::NotDuplicate)),
            (TriageMode::Shadow, Verdict::Duplicate, Some(1.0), from_85, no(WhySilent::Mode)),
            (TriageMode::Off, Verdict::Duplicate, Some(1.0), from_85, no(WhySilent::Mode)),
        ] {
            let score = score.map(|score| Similarity::new(score).expect("in range"));
            assert_eq!(speaking(mode, verdict, score, current), expected, "{mode} {verdict} {score:?} {current}");
        }
    }
}
