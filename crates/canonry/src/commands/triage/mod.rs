//! Commands to find duplicates, judge and close them, and learn from the outcome.

pub(crate) mod adjudicate;
pub(crate) mod analyze_intent;
pub(crate) mod apply;
pub(crate) mod backtest;
pub(crate) mod calibrate;
pub(crate) mod candidates;
pub(crate) mod canonicalize;
pub(crate) mod check;
pub(crate) mod dedupe;
pub(crate) mod detect_new;
pub(crate) mod embed;
pub(crate) mod judge;
pub(crate) mod judge_audit;
pub(crate) mod mcp;
pub(crate) mod overrides;
pub(crate) mod plan;
pub(crate) mod plan_close;
pub(crate) mod report_audit;
pub(crate) mod search;
pub(crate) mod show;
pub(crate) mod simulate_learning;
pub(crate) mod thresholds;
pub(crate) mod undo;
