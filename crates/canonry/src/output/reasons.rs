//! Stored reasons as sentences: why a gate refused, why a row was not closed.

use canonry_domain::printable::one_line;
use canonry_domain::{GateReason, OnlineGuardrail, OnlineReason, RowRefusal};

/// Why a row of a plan was not closed, or why an announced close was cancelled.
pub(crate) fn row_reason(reason: &str) -> String {
    reason.parse::<RowRefusal>().map_or_else(|_| spelled_out(reason), |refusal| refusal.in_words().to_owned())
}

/// Why the gates did not accept a judge's answer as an edge.
pub(crate) fn gate_reason(reason: &str) -> String {
    let Ok(reason) = reason.parse::<GateReason>() else { return spelled_out(reason) };
    match reason {
        GateReason::RuledOut => "a person ruled that they are different".to_owned(),
        GateReason::NoContent => NO_CONTENT.to_owned(),
        GateReason::NoCandidates => "no item is similar enough".to_owned(),
        GateReason::SourceTooVague => {
            "the text is too short or too vague to close anything by; `canonry detect-new` compares it".to_owned()
        }
        GateReason::ExistingEdge => "it was judged a duplicate before".to_owned(),
        GateReason::InvalidResponse(kind) => format!("{NO_ANSWER} ({})", kind.to_string().replace('_', " ")),
        GateReason::Related(relation) => relation.in_words().to_owned(),
        GateReason::Structure(keys) => contradiction(&keys),
        GateReason::TargetNotOpen => "the other item is not open".to_owned(),
        GateReason::KindMismatch(_) => MISMATCH.to_owned(),
        GateReason::BelowMinEdge => "the judge's confidence is too low".to_owned(),
        GateReason::CandidateGapTooSmall => NO_GAP.to_owned(),
        GateReason::SecondReading => UNCONFIRMED.to_owned(),
        GateReason::NoSharedEvidence => NO_EVIDENCE.to_owned(),
    }
}

/// Why a new item got its verdict.
pub(crate) fn online_reason(reason: &str) -> String {
    let Ok(reason) = reason.parse::<OnlineReason>() else { return spelled_out(reason) };
    match reason {
        OnlineReason::Override => "a person ruled so".to_owned(),
        OnlineReason::NoContent => NO_CONTENT.to_owned(),
        OnlineReason::NoCandidates => "no open item is similar enough".to_owned(),
        OnlineReason::InvalidJudgeResponse => NO_ANSWER.to_owned(),
        OnlineReason::ModelNotDuplicate => "the judge says that none of the similar items is the same".to_owned(),
        OnlineReason::ControlFailed => {
            "the model said yes about an unrelated text too, so its answer does not count".to_owned()
        }
        OnlineReason::Related(relation) => relation.in_words().to_owned(),
        OnlineReason::Guardrail(OnlineGuardrail::Structure(keys) | OnlineGuardrail::NotAllSame(keys)) => {
            contradiction(&keys)
        }
        OnlineReason::Guardrail(OnlineGuardrail::KindMismatch(_)) => MISMATCH.to_owned(),
        OnlineReason::Guardrail(OnlineGuardrail::CandidateGapTooSmall) => NO_GAP.to_owned(),
        OnlineReason::Guardrail(OnlineGuardrail::UnprovenJudge) => {
            "no audit has proven this judge here; see `canonry judge-audit`".to_owned()
        }
        OnlineReason::Guardrail(OnlineGuardrail::SecondReading) => UNCONFIRMED.to_owned(),
        OnlineReason::Guardrail(OnlineGuardrail::NoSharedEvidence) => NO_EVIDENCE.to_owned(),
        OnlineReason::BelowMaybeThreshold => {
            "the judge's confidence is too low for the verdict \"maybe duplicate\"".to_owned()
        }
        OnlineReason::LowConfidenceDuplicate => "the judge's confidence is too low".to_owned(),
        OnlineReason::DuplicateLowRetrievalSupport => {
            "the judge is sure, but the texts are not similar enough".to_owned()
        }
        OnlineReason::Duplicate => "the judge is sure and every gate passed".to_owned(),
    }
}

const NO_CONTENT: &str = "one of the two is an unfilled template";
const NO_ANSWER: &str = "the judge's answer could not be used";
const MISMATCH: &str = "one reports a bug, the other asks for a feature";
const UNCONFIRMED: &str = "a second reading, with the two exchanged, did not confirm it";
const NO_EVIDENCE: &str = "a model said yes, but the two texts share no error, stack frame, code or quote";
const NO_GAP: &str = "another item is just as similar";

/// The part of the judge's answer that contradicts its yes, from `key=value`.
fn contradiction(keys: &str) -> String {
    let (key, value) = keys.split_once('=').unwrap_or((keys, ""));
    let words = match (key, value) {
        ("certainty", _) => "the judge was not sure",
        ("relation", "related_followup") => "the judge calls it a follow-up of the other item",
        ("relation", "partial_overlap") => "the judge says that they overlap only in part",
        ("relation", _) => "the judge does not call them the same problem",
        ("root_cause_match", _) => "the judge does not see the same root cause",
        ("scope_relation", _) => "the judge does not see the same scope",
        ("path_match", _) => "the judge sees different code paths",
        _ => return format!("the judge's answer contradicts itself ({})", one_line(keys)),
    };
    words.to_owned()
}

/// A reason that this version does not know.
fn spelled_out(reason: &str) -> String {
    one_line(&reason.replace('_', " "))
}

#[cfg(test)]
mod tests {
    use canonry_domain::SkipReason;

    use super::{gate_reason, online_reason, row_reason};

    #[test]
    fn no_reason_is_a_riddle() {
        for reason in ["certainty=unsure", "relation=partial_overlap", "root_cause_match=adjacent", "below_min_edge"] {
            let words = gate_reason(reason);
            assert!(!words.contains(['=', '_']), "{words}");
        }
        assert_eq!(gate_reason("series"), online_reason("series"));
        assert_eq!(online_reason("revert"), "one reverts the other");
        assert_eq!(online_reason("online_strict_guardrail:certainty=unsure"), "the judge was not sure");
        assert_eq!(row_reason("drift:label_added"), canonry_domain::DriftKind::LabelAdded.in_words());
        assert_eq!(row_reason(SkipReason::Pinned.as_str()), SkipReason::Pinned.in_words());
        assert_eq!(row_reason("GitHub_answered 403"), "GitHub answered 403");
    }
}
