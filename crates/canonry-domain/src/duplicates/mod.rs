//! Duplicate detection: scores, gates, decisions, rulings, clusters, and the comments on a new item.

pub(crate) mod bug_feature;
pub(crate) mod canonical;
pub(crate) mod cluster;
pub(crate) mod comment_decision;
pub(crate) mod decision;
pub(crate) mod edge;
pub(crate) mod fixes;
pub(crate) mod gate_reason;
pub(crate) mod gate_trail;
pub(crate) mod gates;
pub(crate) mod human_override;
pub(crate) mod judged_item;
pub(crate) mod library_code;
pub(crate) mod online_verdict;
pub(crate) mod ordered_scores;
pub(crate) mod pair_fact;
pub(crate) mod relations;
pub(crate) mod score;
pub(crate) mod score_gap;
pub(crate) mod suggestion_text;
pub(crate) mod token_vectors;
pub(crate) mod triage_mode;
pub(crate) mod triage_reason;
pub(crate) mod vague;

pub use bug_feature::bug_feature_mismatch;
pub use canonical::{PairItem, may_close_towards};
pub use cluster::{Cluster, clusters};
pub use comment_decision::{CommentDecision, decide_comment};
pub use decision::{DecisionOrigin, DecisionStatus, GateDecision};
pub use edge::Edge;
pub use fixes::*;
pub use gate_reason::{GateReason, KindMismatch, OnlineGuardrail, OnlineReason};
pub use gate_trail::{DecisionGate, GateMark, OnlineGate, gate_trail, online_trail};
pub use gates::{GateRules, gate_answer, gate_before_judge};
pub use human_override::{Override, OverrideKind, Rulings};
pub use judged_item::{GateCandidate, ItemOrigin, JudgedItem, PairScores};
pub use library_code::{is_failure_header, is_failure_helper, is_library_code};
pub use online_verdict::{OnlineThresholds, OnlineVerdict, STRONG_RETRIEVAL, Verdict, is_judged, online_verdict};
pub use ordered_scores::ordered_scores;
pub use pair_fact::{PairFact, evidence_sentences};
pub use relations::{PairRelation, SENT_TWICE_HOURS, pair_relation};
pub use score::{InvalidScore, Probability, Similarity};
pub use score_gap::{SCORE_GAP, gap_too_small};
pub use suggestion_text::{
    DESCRIPTION_RECEIVED, DESCRIPTION_REQUEST, SuggestionComment, announce_the_same_close, cancelled_close_text,
    corrected_announcement, ruled_apart_text, suggestion_text, withdrawn_text,
};
pub use token_vectors::{InvalidTokenVectors, TokenVectors};
pub use triage_mode::TriageMode;
pub use triage_reason::{ActionReason, TriageReason};
pub use vague::is_too_vague;
