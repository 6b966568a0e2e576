//! Experiments on past and synthetic items: backtest, judge audit, simulation of learning.

pub(crate) mod backtest;
pub(crate) mod backtest_advice;
pub(crate) mod backtest_plan;
pub(crate) mod backtest_report;
pub(crate) mod backtest_truth;
pub(crate) mod backtest_verdicts;
pub(crate) mod judge_audit;
pub(crate) mod learning_report;
pub(crate) mod replay_verdicts;
pub(crate) mod simulate_learning;
pub(crate) mod synthetic_repository;
pub(crate) mod verdict_advice;

pub use backtest::{Backtest, BacktestError, BacktestOptions, BacktestTiming, Miss, NamedItem, backtest};
pub use backtest_plan::BacktestCounts;
pub use backtest_report::{GATES, backtest_html};
pub use backtest_truth::{TruthFile, TruthLine, TruthMistake, UnreadableTruth};
pub use backtest_verdicts::{ScoreBand, VerdictPoint, Verdicts};
pub use judge_audit::{AuditOptions, AuditReport, judge_audit};
pub use learning_report::learning_html;
pub use replay_verdicts::{
    JudgedShare, LEVELS, QuestionForecast, ReplayOptions, ReplayedVerdict, VerdictReplay, forecast_questions,
    replay_verdicts,
};
pub use simulate_learning::{
    LearningCurve, LearningPoint, LearningSimulation, RuleSummary, SimulatedRepository, SimulationOptions,
    simulate_learning,
};
pub use synthetic_repository::RepositoryKind;
