#![doc = include_str!("../README.md")]

mod analyze_intent;
mod backtest;
mod backtest_advice;
mod backtest_charts;
mod backtest_plan;
mod backtest_report;
mod backtest_truth;
mod backtest_verdicts;
mod calibrate;
mod candidates;
mod embed;
mod export;
mod identify;
mod import;
mod import_source;
mod neighbourhood;
mod record_reader;
mod refresh_maintainers;
mod search;
mod stored_etags;
mod sweep;
mod sync;
mod sync_outcomes;

pub use analyze_intent::{
    AnalyzeError, AnalyzeFailure, AnalyzeOptions, AnalyzeReport, FailedItem, IntentExtractor, analyze_intent,
};
pub use backtest::{Backtest, BacktestError, BacktestOptions, BacktestTiming, Miss, NamedItem, backtest};
pub use backtest_plan::BacktestCounts;
pub use backtest_report::{GATES, backtest_html};
pub use backtest_truth::{TruthFile, TruthLine, TruthMistake, UnreadableTruth};
pub use backtest_verdicts::{ScoreBand, VerdictPoint, Verdicts};
pub use calibrate::{CalibrateError, CalibrateReport, calibrate};
pub use candidates::{CandidateOptions, CandidatesReport, WrittenSet, candidates};
pub use embed::{EmbedFailure, EmbedOptions, EmbedReport, EmbedRunError, EmbedSource, embed};
pub use export::{ExportFailure, export};
pub use identify::{Identified, IdentifyError, identify};
pub use import::{BadRecord, ERRORS_KEPT, ImportFailure, ImportProgress, ImportReport, import};
pub use import_source::UnusableFile;
pub use neighbourhood::{Neighbourhood, RetrievalError, Wanted};
pub use refresh_maintainers::refresh_maintainers;
pub use search::{FoundItem, SearchError, SearchFor, SearchOptions, search};
pub use sweep::{SweepReport, sweep};
pub use sync::{SyncError, SyncFailure, SyncOptions, SyncReport, sync};
pub use sync_outcomes::{OutcomesReport, sync_outcomes};
