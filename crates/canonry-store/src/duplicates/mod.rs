//! Candidates, verdicts, clusters, and the rulings of people about them.

pub(crate) mod adjudications;
pub(crate) mod candidate_sets;
pub(crate) mod canonicals;
pub(crate) mod cluster_members;
pub(crate) mod cluster_pages;
pub(crate) mod edge_succession;
pub(crate) mod judge_audits;
pub(crate) mod judge_decisions;
pub(crate) mod latest_verdicts;
pub(crate) mod overrides;
pub(crate) mod triage_actions;
pub(crate) mod triage_records;

pub use adjudications::{
    Adjudication, AdjudicationFilter, AdjudicationId, AdjudicationKind, CaseAnswer, SampleProgress,
};
pub use candidate_sets::{CandidateMember, CandidateSet, NewCandidateSet, Representation, SetFilter, SetStatus};
pub use cluster_pages::{ClusterFilter, ClusterKey, ClusterRow, ClusterTotals, NewestClusterPlan};
pub use edge_succession::ANSWER_LIMIT;
pub use judge_audits::{AuditFilter, AuditRun, AuditedItem, NewAudit, StoredJudge};
pub use judge_decisions::{DecidedCandidate, DecisionId, NewDecision, StoredDecision};
pub use latest_verdicts::LatestTriage;
pub use overrides::NewOverride;
pub use triage_actions::{StoredTriageAction, TriageAction, TriageActionKind};
pub use triage_records::{NewTriageRecord, StoredTriageRecord, TriageCandidate};
