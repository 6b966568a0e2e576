//! Writes the answer to `why`: why Canonry commented on an item or did not.

use jiff::Timestamp;

use crate::duplicates::suggestion_text::same;
use crate::duplicates::triage_reason::plain_reason;
use crate::{
    ActionReason, FixKind, FixMatch, ItemNumber, ItemType, OnlineGuardrail, OnlineReason, OverrideKind, PairFact,
    TriageMode, TriageReason, Verdict, evidence_sentences,
};

/// The data for the answer. The caller has quoted the reasoning, which is inserted as it is.
#[derive(Debug, Clone, Default)]
pub struct WhyItem<'a> {
    /// The result of the last comparison; `None` if there was none.
    pub said: Option<WhyVerdict<'a>>,
    pub rulings: Vec<(OverrideKind, Option<ItemNumber>)>,
    /// When the item will be closed, and as a duplicate of which item.
    pub closing: Option<(Timestamp, ItemNumber)>,
    /// The target of the last announced or ruled close, and why it did not happen, in words that follow "because".
    pub left_open: Option<(ItemNumber, &'a str)>,
    /// When Canonry last closed the item, and as a duplicate of which item.
    pub closed: Option<(Timestamp, ItemNumber)>,
    pub is_paused: bool,
    /// The breaker is tripped: too many people objected to closes in the repository.
    pub is_breaker_in_force: bool,
}

/// The result of the comparison of an item with the others.
#[derive(Debug, Clone)]
pub struct WhyVerdict<'a> {
    pub item_type: ItemType,
    pub verdict: Verdict,
    pub target: Option<ItemNumber>,
    pub gate: &'a str,
    pub reasoning: &'a str,
    pub facts: &'a [PairFact],
    /// The closed report with the same problem, and its fix.
    pub fix: Option<&'a FixMatch>,
    /// The resulting actions; `None` if nothing was decided.
    pub done: Option<WhyActions<'a>>,
}

/// The actions that followed from a verdict.
#[derive(Debug, Clone)]
pub struct WhyActions<'a> {
    pub mode: TriageMode,
    pub comment: WhyComment,
    pub reason: &'a ActionReason,
}

/// Canonry's comment on the item, seen from the last comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyComment {
    /// There is none, and none was wanted.
    Unwanted,
    /// It is not on GitHub, or not yet.
    Unsent,
    Posted,
    /// An earlier comparison led to it, and it stands although this comparison would lead to none.
    Earlier,
    Withdrawn,
    /// Posted, and people deleted it.
    Deleted,
}

pub fn why_text(why: &WhyItem<'_>) -> String {
    let mut parts = vec![match &why.said {
        Some(said) => about(said),
        None => "Canonry has not compared this with other items yet.".to_owned(),
    }];
    for (kind, other) in &why.rulings {
        parts.push(match (kind, other) {
            (OverrideKind::Duplicate, Some(other)) => format!("A person ruled: the same as #{other}."),
            (OverrideKind::NotDuplicate, Some(other)) => format!("A person ruled: not the same as #{other}."),
            (OverrideKind::Excluded, Some(other)) => {
                format!("A person ruled: not to be closed as a duplicate of #{other}.")
            }
            _ => "A person ruled that this item stays open.".to_owned(),
        });
    }
    if let Some((due, target)) = why.closing {
        let due = due.strftime("%-d %b, %H:%M UTC");
        parts.push(format!("It will be closed as a duplicate of #{target} on {due}, unless somebody objects."));
    }
    if let Some((target, because)) = why.left_open {
        parts.push(format!("It was not closed as a duplicate of #{target} because {because}."));
    }
    if let Some((at, target)) = why.closed {
        let at = at.strftime("%-d %b %Y");
        parts.push(format!("Canonry closed it as a duplicate of #{target} on {at}."));
    }
    if why.is_paused {
        parts.push("Canonry is paused in this repository.".to_owned());
    }
    if why.is_breaker_in_force {
        parts.push("Automatic closes are off here: too many were wrong.".to_owned());
    }
    let mut text = parts.join(" ");
    if let Some(evidence) = why.said.as_ref().and_then(|said| evidence_sentences(said.facts)) {
        text.push_str(&format!("\n\n{evidence}"));
    }
    if let Some(said) = why.said.as_ref().filter(|said| said.target.is_some() && !said.reasoning.is_empty()) {
        text.push_str(&format!("\n\n> {}", said.reasoning));
    }
    text
}

fn about(said: &WhyVerdict<'_>) -> String {
    if let Some(FixMatch { kind, report, fix, .. }) = said.fix {
        let found = match kind {
            FixKind::Fixed => format!("This may be the same problem as #{report}, which #{fix} fixed."),
            FixKind::PossibleRegression => format!("This may be a regression of #{report}, which #{fix} fixed."),
        };
        return with_action(found, said.done.as_ref());
    }
    let Some(target) = said.target else {
        let found = format!("No open {} is the same: {}.", said.item_type.in_words(), gate_in_words(said.gate));
        return with_remains(found, said.done.as_ref());
    };
    let found = match said.verdict {
        Verdict::Duplicate => format!("This looks like {} as #{target}.", same(said.item_type)),
        Verdict::MaybeDuplicate => format!("This may be {} as #{target}.", same(said.item_type)),
        Verdict::NotDuplicate => {
            let found = format!("#{target} comes closest, but is not the same: {}.", gate_in_words(said.gate));
            return with_remains(found, said.done.as_ref());
        }
    };
    with_action(found, said.done.as_ref())
}

/// The finding, and whether Canonry commented because of it.
fn with_action(found: String, done: Option<&WhyActions<'_>>) -> String {
    let Some(done) = done else { return found };
    let is_mode = *done.reason == TriageReason::Mode;
    let why = if is_mode { format!("the mode is `{}`", done.mode).into() } else { done.reason.in_words() };
    let commented = match done.comment {
        WhyComment::Posted => {
            format!("Canonry commented because {}.", TriageReason::AboveThreshold.in_words())
        }
        WhyComment::Earlier => {
            format!("Canonry's earlier comment stands. Canonry would not comment now because {why}.")
        }
        WhyComment::Withdrawn if *done.reason == TriageReason::NoLongerPredicted => {
            format!("Canonry withdrew its earlier comment because {why}.")
        }
        WhyComment::Withdrawn => {
            format!("Canonry withdrew its earlier comment and did not comment again because {why}.")
        }
        WhyComment::Deleted => "Canonry commented, and somebody deleted the comment.".to_owned(),
        WhyComment::Unsent => "Canonry's comment is not posted.".to_owned(),
        WhyComment::Unwanted if is_mode => format!("Canonry does not comment in the mode `{}`.", done.mode),
        WhyComment::Unwanted => format!("Canonry did not comment because {why}."),
    };
    format!("{found} {commented}")
}

/// The finding that nothing is the same, and what is left of an earlier comment.
fn with_remains(found: String, done: Option<&WhyActions<'_>>) -> String {
    match done.map(|done| done.comment) {
        Some(WhyComment::Earlier) => format!("{found} Canonry's earlier comment still stands."),
        Some(WhyComment::Withdrawn) => format!("{found} Canonry withdrew its earlier comment."),
        _ => found,
    }
}

/// Why a new item got its verdict, by the stored reason.
pub fn gate_in_words(gate: &str) -> String {
    let words = match gate.parse() {
        Ok(OnlineReason::Override) => "a person ruled so",
        Ok(OnlineReason::NoContent) => "it has no text besides its template",
        Ok(OnlineReason::NoCandidates) => "nothing is similar enough",
        Ok(OnlineReason::InvalidJudgeResponse) => "the judge gave no usable answer",
        Ok(OnlineReason::ModelNotDuplicate) => "the judge found a difference",
        Ok(OnlineReason::ControlFailed) => "the model said yes about an unrelated text too",
        Ok(OnlineReason::Related(relation)) => relation.in_words(),
        Ok(OnlineReason::Guardrail(OnlineGuardrail::KindMismatch(_))) => "one is a bug, the other a feature request",
        Ok(OnlineReason::Guardrail(OnlineGuardrail::CandidateGapTooSmall)) => "another item is just as similar",
        Ok(OnlineReason::Guardrail(OnlineGuardrail::UnprovenJudge)) => "the judge is not proven here yet",
        Ok(OnlineReason::Guardrail(OnlineGuardrail::SecondReading)) => "a second reading did not confirm it",
        Ok(OnlineReason::Guardrail(OnlineGuardrail::NoSharedEvidence)) => {
            "they share no error, stack frame or name in code"
        }
        Ok(OnlineReason::Guardrail(OnlineGuardrail::Structure(_) | OnlineGuardrail::NotAllSame(_))) => {
            "the judge did not confirm the same problem, cause and scope"
        }
        Ok(OnlineReason::BelowMaybeThreshold | OnlineReason::DuplicateLowRetrievalSupport) => {
            "they are not similar enough"
        }
        Ok(OnlineReason::LowConfidenceDuplicate) => "the judge is not sure enough",
        Ok(OnlineReason::Duplicate) => "the judge found no difference",
        Err(_) => return plain_reason(gate),
    };
    words.to_owned()
}

#[cfg(test)]
mod tests {
    use canonry_testkit::public_text::{assert_readable, words_in_sight};
    use insta::assert_snapshot;

    use super::{WhyActions, WhyComment, WhyItem, WhyVerdict, why_text};
    use crate::{
        ActionReason, FixKind, FixMatch, ItemNumber, ItemType, OverrideKind, PairFact, Similarity, TriageMode,
        TriageReason, Verdict,
    };

    const ABOVE: ActionReason = ActionReason::Rule(TriageReason::AboveThreshold);
    const BELOW: ActionReason = ActionReason::Rule(TriageReason::BelowThreshold);
    const COMMENTS: [WhyComment; 6] = [
        WhyComment::Unwanted,
        WhyComment::Unsent,
        WhyComment::Posted,
        WhyComment::Earlier,
        WhyComment::Withdrawn,
        WhyComment::Deleted,
    ];

    fn number(number: i64) -> ItemNumber {
        ItemNumber::new(number).expect("positive")
    }

    fn found(verdict: Verdict) -> WhyVerdict<'static> {
        WhyVerdict {
            item_type: ItemType::Issue,
            verdict,
            target: Some(number(12)),
            gate: "accepted",
            reasoning: "Both stop at the same wave.",
            facts: &[],
            fix: None,
            done: Some(WhyActions { mode: TriageMode::Suggest, comment: WhyComment::Posted, reason: &ABOVE }),
        }
    }

    #[test]
    fn what_was_said_is_explained() {
        let facts = [PairFact::Name("E12".to_owned())];
        let said = WhyVerdict { facts: &facts, ..found(Verdict::Duplicate) };
        let due = "2026-03-01T10:00:00Z".parse().expect("a moment");
        let why = WhyItem { said: Some(said), closing: Some((due, number(12))), ..WhyItem::default() };
        assert_snapshot!(why_text(&why), @"
        This looks like the same problem as #12. Canonry commented because the match is at or above this repository's threshold. It will be closed as a duplicate of #12 on 1 Mar, 10:00 UTC, unless somebody objects.

        Both mention `E12`.

        > Both stop at the same wave.
        ");
    }

    #[test]
    fn every_reason_is_short_and_readable() {
        let gates = [
            "no_candidates",
            "model_not_duplicate",
            "control_failed",
            "online_strict_guardrail:unproven_judge",
            "of_another_version",
            "series",
            "follow_up",
        ];
        let reasons: Vec<ActionReason> = TriageReason::ALL.iter().map(|reason| (*reason).into()).collect();
        for verdict in [Verdict::Duplicate, Verdict::MaybeDuplicate, Verdict::NotDuplicate] {
            for (gate, reason) in gates.into_iter().flat_map(|gate| reasons.iter().map(move |reason| (gate, reason))) {
                for comment in COMMENTS {
                    let mut said = WhyVerdict { gate, reasoning: "", ..found(verdict) };
                    said.done = said.done.map(|done| WhyActions { reason, comment, ..done });
                    let text = why_text(&WhyItem { said: Some(said), ..WhyItem::default() });
                    assert_readable(&text);
                    assert!(words_in_sight(&text) <= 30 && !text.contains('_'), "{text}");
                }
            }
        }
    }

    #[test]
    fn a_fix_is_explained() {
        for (kind, comment) in
            [(FixKind::Fixed, WhyComment::Posted), (FixKind::PossibleRegression, WhyComment::Unwanted)]
        {
            let merged_at = "2026-03-01T10:00:00Z".parse().expect("a moment");
            let (score, confidence, release) = (Similarity::ONE, None, None);
            let fix = FixMatch { kind, report: number(12), score, confidence, fix: number(31), merged_at, release };
            let mut said = WhyVerdict {
                target: None,
                gate: "no_candidates",
                reasoning: "",
                fix: Some(&fix),
                ..found(Verdict::NotDuplicate)
            };
            said.done = said.done.map(|done| WhyActions { comment, reason: &BELOW, ..done });
            let text = why_text(&WhyItem { said: Some(said), ..WhyItem::default() });
            assert_readable(&text);
            assert!(words_in_sight(&text) <= 30, "{text}");
            let (begins, ends) = match kind {
                FixKind::Fixed => {
                    ("This may be the same problem as #12, which #31 fixed. Canonry commented", "threshold.")
                }
                FixKind::PossibleRegression => {
                    ("This may be a regression of #12, which #31 fixed. Canonry did not", "threshold.")
                }
            };
            assert!(text.starts_with(begins) && text.ends_with(ends), "{text}");
        }
    }

    #[test]
    fn silence_is_explained() {
        let silent = |mode, reason: TriageReason| {
            let (mut said, reason) = (found(Verdict::MaybeDuplicate), reason.into());
            said.reasoning = "";
            let comment = WhyComment::Unwanted;
            said.done = Some(WhyActions { mode, reason: &reason, comment });
            why_text(&WhyItem { said: Some(said), ..WhyItem::default() })
        };
        assert_snapshot!(silent(TriageMode::Shadow, TriageReason::Mode), @"This may be the same problem as #12. Canonry does not comment in the mode `shadow`.");
        assert_snapshot!(silent(TriageMode::Suggest, TriageReason::CommentDeleted), @"This may be the same problem as #12. Canonry did not comment because somebody deleted Canonry's comment.");
        let nothing = WhyVerdict { target: None, gate: "no_candidates", reasoning: "", ..found(Verdict::NotDuplicate) };
        assert_snapshot!(why_text(&WhyItem { said: Some(nothing), ..WhyItem::default() }), @"No open issue is the same: nothing is similar enough.");
        assert_snapshot!(why_text(&WhyItem::default()), @"Canonry has not compared this with other items yet.");
        let pull = WhyVerdict { item_type: ItemType::Pr, reasoning: "", ..found(Verdict::MaybeDuplicate) };
        let text = why_text(&WhyItem { said: Some(pull), ..WhyItem::default() });
        assert!(text.starts_with("This may be the same change as #12. Canonry commented"), "{text}");
    }

    #[test]
    fn what_became_of_an_earlier_comment_is_explained() {
        let text = |verdict, comment, reason: TriageReason| {
            let (mut said, reason) = (found(verdict), reason.into());
            said.reasoning = "";
            said.done = Some(WhyActions { mode: TriageMode::Shadow, comment, reason: &reason });
            why_text(&WhyItem { said: Some(said), ..WhyItem::default() })
        };
        let maybe = |comment, reason| text(Verdict::MaybeDuplicate, comment, reason);
        assert_snapshot!(maybe(WhyComment::Earlier, TriageReason::BelowThreshold), @"This may be the same problem as #12. Canonry's earlier comment stands. Canonry would not comment now because the match is below this repository's threshold.");
        assert_snapshot!(maybe(WhyComment::Earlier, TriageReason::FallenSilent), @"This may be the same problem as #12. Canonry's earlier comment stands. Canonry would not comment now because too many suggestions were wrong in this repository.");
        assert_snapshot!(maybe(WhyComment::Earlier, TriageReason::OverBudget), @"This may be the same problem as #12. Canonry's earlier comment stands. Canonry would not comment now because the budget for models is spent.");
        assert_snapshot!(maybe(WhyComment::Earlier, TriageReason::Mode), @"This may be the same problem as #12. Canonry's earlier comment stands. Canonry would not comment now because the mode is `shadow`.");
        assert_snapshot!(maybe(WhyComment::Withdrawn, TriageReason::NoLongerPredicted), @"This may be the same problem as #12. Canonry withdrew its earlier comment because the match has changed.");
        assert_snapshot!(maybe(WhyComment::Withdrawn, TriageReason::BelowThreshold), @"This may be the same problem as #12. Canonry withdrew its earlier comment and did not comment again because the match is below this repository's threshold.");
        assert_snapshot!(maybe(WhyComment::Deleted, TriageReason::AboveThreshold), @"This may be the same problem as #12. Canonry commented, and somebody deleted the comment.");
        assert_snapshot!(maybe(WhyComment::Unsent, TriageReason::AboveThreshold), @"This may be the same problem as #12. Canonry's comment is not posted.");
        let none = |comment| text(Verdict::NotDuplicate, comment, TriageReason::NotDuplicate);
        assert!(none(WhyComment::Earlier).ends_with(" Canonry's earlier comment still stands."));
        assert!(none(WhyComment::Withdrawn).ends_with(" Canonry withdrew its earlier comment."));
    }

    #[test]
    fn rulings_and_closes_are_told() {
        let at = "2026-03-01T10:00:00Z".parse().expect("a moment");
        let why = WhyItem {
            said: Some(WhyVerdict { reasoning: "", ..found(Verdict::Duplicate) }),
            rulings: vec![(OverrideKind::NotDuplicate, Some(number(12))), (OverrideKind::Canonical, None)],
            closed: Some((at, number(12))),
            ..WhyItem::default()
        };
        assert_snapshot!(why_text(&why), @"This looks like the same problem as #12. Canonry commented because the match is at or above this repository's threshold. A person ruled: not the same as #12. A person ruled that this item stays open. Canonry closed it as a duplicate of #12 on 1 Mar 2026.");
    }

    #[test]
    fn what_holds_back_is_told() {
        let why = WhyItem {
            left_open: Some((number(12), "somebody commented")),
            is_paused: true,
            is_breaker_in_force: true,
            ..WhyItem::default()
        };
        assert_snapshot!(why_text(&why), @"Canonry has not compared this with other items yet. It was not closed as a duplicate of #12 because somebody commented. Canonry is paused in this repository. Automatic closes are off here: too many were wrong.");
    }
}
