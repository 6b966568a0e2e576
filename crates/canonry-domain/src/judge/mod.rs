//! A judge's answer about a pair, and how a judge is measured: audits, adjudication, proof.

pub(crate) mod adjudication;
pub(crate) mod answer;
pub(crate) mod audit;
pub(crate) mod audit_sample;
pub(crate) mod audit_simulation;
pub(crate) mod cascade;
pub(crate) mod proof;
pub(crate) mod quotes;
pub(crate) mod second_reading;
pub(crate) mod structure;
pub(crate) mod verdict_estimate;

pub use adjudication::{
    AdjudicatedAnswer, AdjudicationCase, AdjudicationSummary, CountedAnswers, VerdictLevel, VerdictShare,
    adjudication_sample, reading_order,
};
pub use answer::{
    InvalidAnswer, JUDGE_PROMPT_VERSION, JudgeAnswer, REASONING_LIMIT, judge_answer_schema, parse_judge_answer,
};
pub use audit::{AuditClass, AuditTally, LaneResult, LaneStatus, audit_class};
pub use audit_sample::audit_sample;
pub use audit_simulation::{
    AuditCandidate, AuditItem, AuditSimulation, ClassChange, TighterGates, audit_candidates, changed_by,
    simulate_audit, sweep_audit,
};
pub use cascade::{CascadeRoute, Consequence, SETTLED_NO, cascade_route};
pub use proof::{JudgeProof, LEAST_PROVEN_PRECISION, LEAST_PROVING_ANSWERS, is_accepted_answer_right};
pub use quotes::{AnswerQuotes, is_quoted, quotes_of_answer};
pub use second_reading::is_confirmed;
pub use structure::{Certainty, PathMatch, Relation, RootCauseMatch, ScopeRelation, Structure, structural_veto};
pub use verdict_estimate::{VerdictEstimate, VerdictStratum};
