//! Writes the answer to `why`: why Canonry commented on an item or did not.

use jiff::Timestamp;

use crate::{
    CurrentThreshold, FixKind, FixMatch, ItemNumber, ItemType, OnlineGuardrail, OnlineReason, OverrideKind, PairFact,
    TriageMode, Verdict, evidence_sentences,
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
    pub threshold: CurrentThreshold,
    pub is_said: bool,
    pub reason: &'a str,
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
            _ => "A person ruled: this one stays open.".to_owned(),
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
        return format!("No open {} is the same: {}.", said.item_type.in_words(), gate_in_words(said.gate));
    };
    let found = match said.verdict {
        Verdict::Duplicate => format!("This looks like the same problem as #{target}."),
        Verdict::MaybeDuplicate => format!("This may be the same problem as #{target}."),
        Verdict::NotDuplicate => {
            return format!("#{target} comes closest, but is not the same: {}.", gate_in_words(said.gate));
        }
    };
    with_action(found, said.done.as_ref())
}

/// The finding, and whether Canonry commented because of it.
fn with_action(found: String, done: Option<&WhyActions<'_>>) -> String {
    let Some(done) = done else { return found };
    let commented = match done.threshold {
        _ if done.is_said => "Canonry commented because the match is above this repository's threshold.".to_owned(),
        CurrentThreshold::Silent => {
            "Canonry did not comment because too many suggestions were wrong in this repository.".to_owned()
        }
        CurrentThreshold::From(_) if !done.mode.speaks() => {
            format!("Canonry does not comment in the mode `{}`.", done.mode)
        }
        CurrentThreshold::From(_) => format!("Canonry did not comment because {}.", silence_in_words(done.reason)),
    };
    format!("{found} {commented}")
}

fn gate_in_words(gate: &str) -> String {
    let words = match gate.parse() {
        Ok(OnlineReason::Override) => "a person ruled so",
        Ok(OnlineReason::NoContent) => "it has no text besides its template",
        Ok(OnlineReason::NoCandidates) => "nothing is similar enough",
        Ok(OnlineReason::InvalidJudgeResponse) => "the judge gave no usable answer",
        Ok(OnlineReason::ModelNotDuplicate) => "the judge found a difference",
        Ok(OnlineReason::Related(relation)) => relation.in_words(),
        Ok(OnlineReason::Guardrail(OnlineGuardrail::KindMismatch(_))) => "one is a bug, the other a feature request",
        Ok(OnlineReason::Guardrail(OnlineGuardrail::CandidateGapTooSmall)) => "another one is as close",
        Ok(OnlineReason::Guardrail(OnlineGuardrail::UnprovenJudge)) => "the judge is not proven here yet",
        Ok(OnlineReason::Guardrail(OnlineGuardrail::SecondReading)) => "a second reading did not confirm it",
        Ok(OnlineReason::Guardrail(_)) => "not everything matches",
        Ok(OnlineReason::BelowMaybeThreshold | OnlineReason::DuplicateLowRetrievalSupport) => {
            "they are not similar enough"
        }
        Ok(OnlineReason::LowConfidenceDuplicate) => "the judge is not sure enough",
        Ok(OnlineReason::Duplicate) => "the judge found no difference",
        Err(_) => return plain_reason(gate),
    };
    words.to_owned()
}

fn silence_in_words(reason: &str) -> String {
    let words = match reason {
        "below_threshold" => "the match is below this repository's threshold",
        "comment_deleted" => "somebody deleted its comment",
        "cooldown" => "its last comment here is too recent",
        "over_budget" => "the budget for models is spent",
        "no_prices" => "the model's prices are not configured",
        "no_score" => "the match has no score",
        _ => return plain_reason(reason),
    };
    words.to_owned()
}

/// Stored reasons without a sentence of their own are words joined by underscores.
fn plain_reason(reason: &str) -> String {
    let plain = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | ' ' | '-');
    reason.chars().filter(|character| plain(*character)).collect::<String>().replace('_', " ")
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::{WhyActions, WhyItem, WhyVerdict, why_text};
    use crate::text::public_text::{assert_readable, words_in_sight};
    use crate::{
        CurrentThreshold, FixKind, FixMatch, ItemNumber, ItemType, OverrideKind, PairFact, Similarity, Threshold,
        TriageMode, Verdict,
    };

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
            done: Some(WhyActions {
                mode: TriageMode::Suggest,
                threshold: CurrentThreshold::From(Threshold::new(85).expect("in range")),
                is_said: true,
                reason: "above_threshold",
            }),
        }
    }

    #[test]
    fn what_was_said_is_explained() {
        let facts = [PairFact::Name("E12".to_owned())];
        let said = WhyVerdict { facts: &facts, ..found(Verdict::Duplicate) };
        let due = "2026-03-01T10:00:00Z".parse().expect("a moment");
        let why = WhyItem { said: Some(said), closing: Some((due, number(12))), ..WhyItem::default() };
        assert_snapshot!(why_text(&why), @"
        This looks like the same problem as #12. Canonry commented because the match is above this repository's threshold. It will be closed as a duplicate of #12 on 1 Mar, 10:00 UTC, unless somebody objects.

        Both mention `E12`.

        > Both stop at the same wave.
        ");
    }

    #[test]
    fn every_reason_is_short_and_readable() {
        let gates = [
            "no_candidates",
            "model_not_duplicate",
            "online_strict_guardrail:unproven_judge",
            "of_another_version",
            "series",
            "follow_up",
        ];
        let reasons = ["below_threshold", "comment_deleted", "cooldown", "over_budget", "no_prices", "no_score"];
        for verdict in [Verdict::Duplicate, Verdict::MaybeDuplicate, Verdict::NotDuplicate] {
            for (gate, reason) in gates.into_iter().flat_map(|gate| reasons.map(|reason| (gate, reason))) {
                for is_said in [true, false] {
                    let mut said = WhyVerdict { gate, reasoning: "", ..found(verdict) };
                    said.done = said.done.map(|done| WhyActions { reason, is_said, ..done });
                    let text = why_text(&WhyItem { said: Some(said), ..WhyItem::default() });
                    assert_readable(&text);
                    assert!(words_in_sight(&text) <= 30 && !text.contains('_'), "{text}");
                }
            }
        }
    }

    #[test]
    fn a_fix_is_explained() {
        for (kind, is_said) in [(FixKind::Fixed, true), (FixKind::PossibleRegression, false)] {
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
            said.done = said.done.map(|done| WhyActions { is_said, reason: "below_threshold", ..done });
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
        let silent = |mode, reason| {
            let mut said = found(Verdict::MaybeDuplicate);
            said.reasoning = "";
            said.done = said.done.map(|done| WhyActions { mode, reason, is_said: false, ..done });
            why_text(&WhyItem { said: Some(said), ..WhyItem::default() })
        };
        assert_snapshot!(silent(TriageMode::Shadow, "mode"), @"This may be the same problem as #12. Canonry does not comment in the mode `shadow`.");
        assert_snapshot!(silent(TriageMode::Suggest, "comment_deleted"), @"This may be the same problem as #12. Canonry did not comment because somebody deleted its comment.");
        let nothing = WhyVerdict { target: None, gate: "no_candidates", reasoning: "", ..found(Verdict::NotDuplicate) };
        assert_snapshot!(why_text(&WhyItem { said: Some(nothing), ..WhyItem::default() }), @"No open issue is the same: nothing is similar enough.");
        assert_snapshot!(why_text(&WhyItem::default()), @"Canonry has not compared this with other items yet.");
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
        assert_snapshot!(why_text(&why), @"This looks like the same problem as #12. Canonry commented because the match is above this repository's threshold. A person ruled: not the same as #12. A person ruled: this one stays open. Canonry closed it as a duplicate of #12 on 1 Mar 2026.");
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
