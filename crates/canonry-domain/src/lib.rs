#![doc = include_str!("../README.md")]

mod adjudication;
mod answer_fields;
mod apply_forecast;
mod audit;
mod audit_sample;
mod audit_simulation;
mod beta;
mod beta_rules;
mod boilerplate;
mod breaker;
mod bug_feature;
mod canonical;
mod clock_skew;
mod close_plan;
mod closing_evidence;
mod closing_text;
mod cluster;
mod component;
mod content;
mod counted;
mod decision;
mod drift;
mod duplicate_text;
mod earlier_close;
mod edge;
mod english;
mod fenced;
mod gate_trail;
mod gates;
mod grace;
mod human_override;
mod import_line;
mod intent_answer;
mod intent_card;
mod intent_changes;
mod intent_evidence;
mod intent_local;
mod intent_sections;
mod issue_outcome;
mod item;
mod item_record;
mod judge_answer;
mod judge_proof;
mod judge_structure;
mod judged_item;
mod linked_issues;
mod login;
mod maintainers;
mod markdown;
pub mod mention;
mod moment;
mod next_move;
mod online_verdict;
mod ordered_scores;
mod outcome_event;
mod plan_age;
mod plan_input;
mod precision_target;
mod prediction;
mod prediction_tally;
pub mod printable;
mod pull_changes;
mod record_order;
mod reliability;
mod repo_name;
pub mod review;
mod row_word;
mod score;
mod score_gap;
mod secret_scan;
mod share;
mod shown_secrets;
mod since;
mod skip_reason;
mod speaking;
mod suggestion_text;
mod template_text;
mod threshold;
mod threshold_reason;
mod threshold_rule;
mod threshold_state;
mod token_vectors;
mod triage_lesson;
mod triage_mode;
mod vague;
mod words;

pub use adjudication::{
    AdjudicationCase, AdjudicationWord, CountedAnswers, PeoplesWord, VerdictLevel, VerdictShare, adjudication_sample,
};
pub use apply_forecast::{ApplyForecast, apply_forecast};
pub use audit::{AuditClass, AuditTally, LaneResult, LaneStatus, audit_class};
pub use audit_sample::audit_sample;
pub use audit_simulation::{
    AuditCandidate, AuditItem, ClassChange, Simulation, TighterGates, audit_candidates, changed_by, simulate_audit,
    sweep_audit,
};
pub use boilerplate::{Boilerplate, BoilerplateLearner, has_content};
pub use breaker::{BREAKER_DAYS, BREAKER_WINDOW, pulls_breaker};
pub use bug_feature::bug_feature_mismatch;
pub use canonical::{PairItem, may_close_towards};
pub use clock_skew::{CLOCK_TOLERANCE, clock_trouble, do_clocks_agree};
pub use close_plan::{
    ClosePath, ClosePlan, ClusterPlan, FlatRow, PlanRow, PlanRules, RowVerdict, StaleItem, TargetPolicy,
    has_protected_label, plan_closes,
};
pub use closing_text::{
    ClosingText, POSSIBLE_DUPLICATE, UndoReason, back_link_comment, closing_comment, comment_if_refused,
    repointed_comment, undo_comment,
};
pub use cluster::{Cluster, clusters};
pub use component::Component;
pub use content::{BODY_LIMIT, ContentHash, TEXT_LIMIT, TITLE_LIMIT, content_hash, normalise_text, raw_text};
pub use counted::counted;
pub use decision::{DecisionOrigin, DecisionStatus, Ruled};
pub use drift::{DriftKind, ItemSnapshot, LiveItem, RowRefusal, RowSnapshot, drift};
pub use duplicate_text::named_duplicate;
pub use earlier_close::EarlierClose;
pub use edge::Edge;
pub use english::likely_english;
pub use gate_trail::{Gate, GateMark, OnlineGate, gate_trail, online_trail};
pub use gates::{GateRules, gate_answer, gate_before_judge};
pub use grace::{
    GraceBegan, GraceCandidate, GraceEnd, GraceFacts, breaker_comment, called_off, grace_end, left_open,
    may_announce_close,
};
pub use human_override::{Override, OverrideKind, Rulings};
pub use import_line::{ImportError, ImportLine, parse_import_value};
pub use intent_answer::{
    CARD_ENTRY_LIMIT, CARD_LIST_LIMIT, CARD_TEXT_LIMIT, CardError, intent_card_schema, parse_intent_card,
};
pub use intent_card::{
    CARD_PROMPT_VERSION, CARD_RENDER_VERSION, CARD_SCHEMA_VERSION, ChangeIntent, EvidenceFact, EvidenceSource,
    Extractor, IntentCard, IntentSource, render as render_intent_card,
};
pub use intent_local::extract_locally;
pub use issue_outcome::{IssueOutcome, Outcome, OutcomeEvidence, issue_outcome};
pub use item::{ContentVersion, GithubId, Gone, InvalidNumber, Item, ItemNumber, ItemState, ItemType, StateReason};
pub use item_record::{Change, ItemRecord, Merged, merge_answer, merge_record};
pub use judge_answer::{
    InvalidAnswer, JUDGE_PROMPT_VERSION, JudgeAnswer, REASONING_LIMIT, judge_answer_schema, parse_judge_answer,
};
pub use judge_proof::{JudgeProof, LEAST_PROVEN_PRECISION, LEAST_PROVING_ANSWERS, is_accepted_answer_right};
pub use judge_structure::{Certainty, PathMatch, Relation, RootCauseMatch, ScopeRelation, Structure, structural_veto};
pub use judged_item::{GateCandidate, JudgedItem, PairScores};
pub use linked_issues::fixed_issues;
pub use login::{InvalidLogin, Login};
pub use maintainers::Maintainers;
pub use moment::{InvalidMoment, month_of, parse_moment, whole_micros};
pub use next_move::{MOST_IN_A_ROW, NextMove, next_lowering, next_raise};
pub use online_verdict::{OnlineThresholds, OnlineVerdict, STRONG_RETRIEVAL, Verdict, is_judged, online_verdict};
pub use ordered_scores::ordered_scores;
pub use outcome_event::{
    EventBy, HUMAN_LABEL, OutcomeEvent, OutcomeKind, closed_as_duplicate, discovered_event, explains_closing,
    reason_given_at,
};
pub use plan_age::{DAILY_LIMIT_WINDOW, PLAN_LIFETIME, PlanAge, is_too_old, plan_age};
pub use plan_input::{PlanInput, PlanItem};
pub use prediction::{CountedLessons, LearningEntry, Lesson, LessonKind, Prediction, Truth};
pub use prediction_tally::OutcomeCounts;
pub use pull_changes::PullChanges;
pub use reliability::{CurvePoint, LessonPeriod, LevelShare, posterior_band, reliability, threshold_curve};
pub use repo_name::{InvalidRepoName, RepoName};
pub use row_word::{ONLY_EXCLUDE, is_word_taken};
pub use score::{InvalidScore, Probability, Similarity};
pub use score_gap::{SCORE_GAP, gap_too_small};
pub use secret_scan::{FoundSecret, SecretKind, redact, scan_secrets};
pub use share::{Share, ShareInterval};
pub use shown_secrets::{redact_shown, scan_shown_secrets};
pub use since::{InvalidSince, Since};
pub use skip_reason::SkipReason;
pub use speaking::{Speaking, WhySilent, speaking};
pub use suggestion_text::{ClosesIn, SimilarItem, Suggestion, ruled_apart_text, suggestion_text, withdrawn_text};
pub use threshold::{CurrentThreshold, InvalidThreshold, Threshold};
pub use threshold_reason::{Evidence, Lacking, Obstacle, ThresholdReason};
pub use threshold_rule::{ThresholdRule, ThresholdSettings};
pub use threshold_state::{
    ThresholdAdjusted, ThresholdSource, ThresholdState, Thresholds, learn_from_counts, learn_thresholds,
    threshold_adjustments,
};
pub use token_vectors::{InvalidTokenVectors, TokenVectors};
pub use triage_lesson::{
    CommentReactions, PastTriage, Said, can_teach, counted_triage, last_triage, lesson_of, reacted_triage,
    triage_failed,
};
pub use triage_mode::TriageMode;
pub use vague::is_too_vague;
pub use words::UnknownWord;
