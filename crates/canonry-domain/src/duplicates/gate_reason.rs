//! The reasons why a gate stopped a candidate set or the verdict about a new item; they are stored as text.

use std::fmt;
use std::str::FromStr;

use crate::{DecisionGate, InvalidAnswer, OnlineGate, PairRelation, UnknownText, text_enum};

const INVALID_RESPONSE: &str = "invalid_response:";
const MISMATCH: &str = "bug_feature_mismatch:";
const GUARDRAIL: &str = "online_strict_guardrail:";
const STRUCTURAL_KEYS: [&str; 5] = ["certainty=", "relation=", "root_cause_match=", "scope_relation=", "path_match="];

text_enum! {
    /// Which of two items reports a bug while the other requests a feature.
    pub enum KindMismatch: "a mismatch of kinds" {
        BugVsFeature = "bug_vs_feature",
        FeatureVsBug = "feature_vs_bug",
    }
}

/// Why a candidate set did not become an edge.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum GateReason {
    /// A person ruled that the source is not a duplicate of any candidate.
    RuledOut,
    /// The source or the target has no text of its own, only the text of a template.
    NoContent,
    NoCandidates,
    SourceTooVague,
    ExistingEdge,
    /// The judge's answer was malformed or named an item that is not a candidate.
    InvalidResponse(InvalidAnswer),
    /// The two are related in a way that shows that they are no duplicates.
    Related(PairRelation),
    /// The part of the answer that contradicts its yes, as `key=value`.
    Structure(String),
    TargetNotOpen,
    KindMismatch(KindMismatch),
    BelowMinEdge,
    /// Another candidate has nearly the same score.
    CandidateGapTooSmall,
    /// A second reading, with the two exchanged, did not confirm the first.
    SecondReading,
    /// A model said yes, and nothing else shows that the two are the same.
    NoSharedEvidence,
}

/// The reasons that are stored as a fixed text.
static PLAIN_GATE_REASONS: [(GateReason, &str); 10] = [
    (GateReason::RuledOut, "override:not_duplicate"),
    (GateReason::NoContent, "no_content"),
    (GateReason::NoCandidates, "no_candidates"),
    (GateReason::SourceTooVague, "source_too_vague"),
    (GateReason::ExistingEdge, "existing_edge"),
    (GateReason::TargetNotOpen, "target_not_open"),
    (GateReason::BelowMinEdge, "below_min_edge"),
    (GateReason::CandidateGapTooSmall, "candidate_gap_too_small"),
    (GateReason::SecondReading, "second_reading"),
    (GateReason::NoSharedEvidence, "no_shared_evidence"),
];

impl GateReason {
    pub fn is_stored_as(&self, text: Option<&str>) -> bool {
        text.and_then(|text| text.parse::<Self>().ok()).as_ref() == Some(self)
    }

    /// Why a pair that passed all gates was refused after all.
    pub const fn objection_in_words(&self) -> Option<&'static str> {
        match self {
            Self::SecondReading => Some("a second reading did not confirm it"),
            Self::NoSharedEvidence => Some("the two texts share no error, stack frame or name in code"),
            _ => None,
        }
    }

    pub const fn gate(&self) -> DecisionGate {
        match self {
            Self::RuledOut => DecisionGate::Ruling,
            Self::NoCandidates => DecisionGate::Candidates,
            Self::NoContent | Self::SourceTooVague => DecisionGate::EnoughText,
            Self::ExistingEdge => DecisionGate::NoEdgeYet,
            Self::InvalidResponse(_) => DecisionGate::UsableAnswer,
            Self::Related(_) => DecisionGate::Unrelated,
            Self::Structure(_) => DecisionGate::Structure,
            Self::TargetNotOpen => DecisionGate::TargetOpen,
            Self::KindMismatch(_) => DecisionGate::SameKind,
            Self::BelowMinEdge => DecisionGate::Confidence,
            Self::CandidateGapTooSmall => DecisionGate::Gap,
            // Only what every gate accepted is checked once more.
            Self::SecondReading | Self::NoSharedEvidence => DecisionGate::Accept,
        }
    }
}

impl fmt::Display for GateReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidResponse(kind) => write!(formatter, "{INVALID_RESPONSE}{kind}"),
            Self::Related(relation) => formatter.write_str(relation.as_str()),
            Self::Structure(keys) => formatter.write_str(keys),
            Self::KindMismatch(kinds) => write!(formatter, "{MISMATCH}{kinds}"),
            plain => formatter.write_str(plain_text(&PLAIN_GATE_REASONS, plain)),
        }
    }
}

impl FromStr for GateReason {
    type Err = UnknownText;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(kind) = text.strip_prefix(INVALID_RESPONSE) {
            return Ok(Self::InvalidResponse(kind.parse()?));
        }
        if let Some(kinds) = text.strip_prefix(MISMATCH) {
            return Ok(Self::KindMismatch(kinds.parse()?));
        }
        if is_structural(text) {
            return Ok(Self::Structure(text.to_owned()));
        }
        if let Ok(relation) = text.parse() {
            return Ok(Self::Related(relation));
        }
        plain_value(&PLAIN_GATE_REASONS, text)
    }
}

/// The reason for the verdict about a new item.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum OnlineReason {
    /// A person ruled that the item is a duplicate.
    Override,
    NoContent,
    /// No open neighbour is near enough to be judged.
    NoCandidates,
    /// The judge gave no usable answer.
    InvalidJudgeResponse,
    ModelNotDuplicate,
    /// A model that said yes said yes about an unrelated text too.
    ControlFailed,
    /// The two are related in a way that shows that they are no duplicates.
    Related(PairRelation),
    BelowMaybeThreshold,
    Guardrail(OnlineGuardrail),
    LowConfidenceDuplicate,
    DuplicateLowRetrievalSupport,
    Duplicate,
}

/// Why a new item is not called a duplicate although the judge said yes, however sure it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum OnlineGuardrail {
    /// The part of the answer that contradicts its yes, as `key=value`.
    Structure(String),
    KindMismatch(KindMismatch),
    /// The first key that does not mean "the same", as `key=value`.
    NotAllSame(String),
    CandidateGapTooSmall,
    UnprovenJudge,
    /// A second reading, with the two exchanged, did not confirm the first.
    SecondReading,
    /// A model said yes, and nothing else shows that the two are the same.
    NoSharedEvidence,
}

static PLAIN_ONLINE_REASONS: [(OnlineReason, &str); 14] = [
    (OnlineReason::Override, "override"),
    (OnlineReason::NoContent, "no_content"),
    (OnlineReason::NoCandidates, "no_candidates"),
    (OnlineReason::InvalidJudgeResponse, "invalid_judge_response"),
    (OnlineReason::ModelNotDuplicate, "model_not_duplicate"),
    (OnlineReason::ControlFailed, "control_failed"),
    (OnlineReason::BelowMaybeThreshold, "below_maybe_threshold"),
    (OnlineReason::LowConfidenceDuplicate, "low_confidence_duplicate"),
    (OnlineReason::DuplicateLowRetrievalSupport, "duplicate_low_retrieval_support"),
    (OnlineReason::Duplicate, "duplicate"),
    (OnlineReason::Guardrail(OnlineGuardrail::CandidateGapTooSmall), "online_strict_guardrail:candidate_gap_too_small"),
    (OnlineReason::Guardrail(OnlineGuardrail::UnprovenJudge), "online_strict_guardrail:unproven_judge"),
    (OnlineReason::Guardrail(OnlineGuardrail::SecondReading), "online_strict_guardrail:second_reading"),
    (OnlineReason::Guardrail(OnlineGuardrail::NoSharedEvidence), "online_strict_guardrail:no_shared_evidence"),
];

impl OnlineReason {
    pub fn is_stored_as(&self, text: &str) -> bool {
        text.parse::<Self>().ok().as_ref() == Some(self)
    }

    pub const fn gate(&self) -> OnlineGate {
        match self {
            Self::Override => OnlineGate::Ruling,
            Self::NoContent => OnlineGate::EnoughText,
            Self::NoCandidates => OnlineGate::Neighbours,
            Self::InvalidJudgeResponse | Self::ControlFailed => OnlineGate::UsableAnswer,
            Self::ModelNotDuplicate => OnlineGate::SaidYes,
            Self::Related(_) => OnlineGate::Unrelated,
            Self::BelowMaybeThreshold => OnlineGate::MaybeConfidence,
            Self::LowConfidenceDuplicate => OnlineGate::DuplicateConfidence,
            Self::DuplicateLowRetrievalSupport => OnlineGate::Alike,
            Self::Duplicate => OnlineGate::Duplicate,
            Self::Guardrail(OnlineGuardrail::Structure(_)) => OnlineGate::Structure,
            Self::Guardrail(OnlineGuardrail::KindMismatch(_)) => OnlineGate::SameKind,
            Self::Guardrail(OnlineGuardrail::NotAllSame(_)) => OnlineGate::AllSame,
            Self::Guardrail(OnlineGuardrail::CandidateGapTooSmall) => OnlineGate::Gap,
            Self::Guardrail(OnlineGuardrail::UnprovenJudge) => OnlineGate::ProvenJudge,
            // Only what every gate accepted is checked once more.
            Self::Guardrail(OnlineGuardrail::SecondReading | OnlineGuardrail::NoSharedEvidence) => {
                OnlineGate::Duplicate
            }
        }
    }
}

impl fmt::Display for OnlineReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Guardrail(OnlineGuardrail::Structure(keys) | OnlineGuardrail::NotAllSame(keys)) => {
                write!(formatter, "{GUARDRAIL}{keys}")
            }
            Self::Guardrail(OnlineGuardrail::KindMismatch(kinds)) => write!(formatter, "{GUARDRAIL}{MISMATCH}{kinds}"),
            Self::Related(relation) => formatter.write_str(relation.as_str()),
            plain => formatter.write_str(plain_text(&PLAIN_ONLINE_REASONS, plain)),
        }
    }
}

impl FromStr for OnlineReason {
    type Err = UnknownText;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Some(which) = text.strip_prefix(GUARDRAIL) else {
            let related = text.parse().map(Self::Related);
            return related.or_else(|_| plain_value(&PLAIN_ONLINE_REASONS, text));
        };
        if let Some(kinds) = which.strip_prefix(MISMATCH) {
            return Ok(Self::Guardrail(OnlineGuardrail::KindMismatch(kinds.parse()?)));
        }
        if !is_structural(which) {
            return plain_value(&PLAIN_ONLINE_REASONS, text);
        }
        // A veto for an absent key, or for the scope, always names a second key as well.
        let is_alone = !which.contains(',') && (which.ends_with("=absent") || which.starts_with("scope_relation="));
        let keys = which.to_owned();
        Ok(Self::Guardrail(match is_alone {
            true => OnlineGuardrail::NotAllSame(keys),
            false => OnlineGuardrail::Structure(keys),
        }))
    }
}

fn is_structural(text: &str) -> bool {
    STRUCTURAL_KEYS.iter().any(|key| text.starts_with(key))
}

fn plain_text<R: PartialEq>(reasons: &[(R, &'static str)], reason: &R) -> &'static str {
    let found = reasons.iter().find(|(plain, _)| plain == reason);
    found.map(|(_, text)| *text).expect("invariant: a reason without parts is in its table")
}

fn plain_value<R: Clone>(reasons: &[(R, &'static str)], text: &str) -> Result<R, UnknownText> {
    let found = reasons.iter().find(|(_, plain)| *plain == text);
    let known =
        || UnknownText::new(text, "a reason of a gate", &reasons.iter().map(|(_, text)| *text).collect::<Vec<_>>());
    found.map(|(reason, _)| reason.clone()).ok_or_else(known)
}
