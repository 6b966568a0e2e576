//! Whether the judge answered, derived from the deciding check, so that the verdict and each run of an item's page
//! agree.

use canonry_domain::{DecisionGate, OnlineGate};
use canonry_store::{StoredDecision, StoredTriageRecord};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JudgePart {
    /// The judge gave an answer that the gates could check.
    Answer,
    /// The judge was asked and gave no usable answer.
    NoAnswer,
    NotAsked(&'static str),
}

impl JudgePart {
    pub(crate) fn of_record(stored: &StoredTriageRecord) -> Self {
        let record = &stored.record;
        match OnlineGate::that_decided(&record.reason) {
            Some(OnlineGate::Ruling) => Self::NotAsked(RULED),
            Some(OnlineGate::Neighbours) => Self::NotAsked("no open item is similar enough"),
            Some(OnlineGate::UsableAnswer) => Self::NoAnswer,
            Some(_) => Self::Answer,
            None if record.confidence.is_some() || !record.reasoning.is_empty() => Self::Answer,
            None => Self::NoAnswer,
        }
    }

    pub(crate) fn of_decision(decision: &StoredDecision) -> Self {
        match DecisionGate::that_decided(decision.origin, decision.status, decision.reason.as_deref()) {
            Some(DecisionGate::Ruling) => Self::NotAsked(RULED),
            Some(DecisionGate::Candidates) => Self::NotAsked("nothing is similar enough"),
            Some(DecisionGate::EnoughText) => Self::NotAsked("the text is too short or too vague"),
            Some(DecisionGate::NoEdgeYet) => Self::NotAsked("it is already a known duplicate"),
            Some(DecisionGate::UsableAnswer) => Self::NoAnswer,
            Some(_) => Self::Answer,
            None if decision.model_is_duplicate.is_some() => Self::Answer,
            None => Self::NoAnswer,
        }
    }

    /// The text if there is no answer to show.
    pub(crate) fn without_answer(self) -> String {
        match self {
            Self::Answer => String::new(),
            Self::NoAnswer => "The judge gave no usable answer.".to_owned(),
            Self::NotAsked(why) => format!("The judge was not asked: {why}."),
        }
    }
}

const RULED: &str = "a person ruled";
