//! The commands, one file each: its arguments, and the one function that it calls and prints.

use anyhow::Result;

use crate::context::Context;
use crate::logging::LogFormat;
use crate::report::Report;

mod analyze_intent;
mod apply_close;
mod backtest;
mod calibrate;
mod candidates;
mod canonicalize;
mod completions;
mod config;
mod dedupe;
mod deliveries;
mod demo;
mod detect_new;
mod doctor;
mod embed;
mod export;
mod feedback;
mod import;
mod init;
mod jobs;
mod judge;
mod judge_audit;
mod maintainers;
mod man;
mod overrides;
mod pause;
mod plan;
mod plan_close;
mod purge;
mod reference;
mod refresh;
mod report_audit;
mod resume;
mod review;
mod search;
mod serve;
mod show;
mod show_grace;
mod show_judgement;
mod show_learning;
mod simulate_learning;
mod stats;
mod sync;
mod thresholds;
mod trends;
mod undo_close;
mod why;

/// Lists the commands once: a line makes the variant that clap parses and the call that runs it.
macro_rules! commands {
    ($($variant:ident => $module:ident,)+) => {
        /// What to do.
        #[derive(Debug, clap::Subcommand)]
        pub(crate) enum Command {
            $($variant($module::Args),)+
        }

        impl Command {
            /// Whether it ends by itself when it is told to, and says how it ended.
            pub(crate) const fn ends_when_told(&self) -> bool {
                matches!(self, Self::Serve(_) | Self::Demo(_))
            }

            /// Whether it is asked for the JSON document in another way than by `--json`.
            pub(crate) fn prints_json(&self) -> bool {
                matches!(self, Self::Review(args) if args.prints_json())
            }

            /// How its log is written, where it is a service's log.
            pub(crate) const fn service_log(&self) -> Option<LogFormat> {
                match self {
                    Self::Serve(args) => Some(args.log_format()),
                    _ => None,
                }
            }

            /// Does it.
            pub(crate) async fn run(self, context: &Context) -> Result<Report> {
                match self {
                    $(Self::$variant(args) => $module::run(args, context).await,)+
                }
            }
        }
    };
}

commands! {
    Demo => demo,
    Init => init,
    Doctor => doctor,
    Sync => sync,
    Refresh => refresh,
    Import => import,
    Export => export,
    Show => show,
    AnalyzeIntent => analyze_intent,
    Embed => embed,
    Candidates => candidates,
    Search => search,
    Judge => judge,
    Canonicalize => canonicalize,
    PlanClose => plan_close,
    Plan => plan,
    ApplyClose => apply_close,
    UndoClose => undo_close,
    Override => overrides,
    Dedupe => dedupe,
    DetectNew => detect_new,
    JudgeAudit => judge_audit,
    ReportAudit => report_audit,
    Backtest => backtest,
    Thresholds => thresholds,
    SimulateLearning => simulate_learning,
    Calibrate => calibrate,
    Review => review,
    Why => why,
    Feedback => feedback,
    Stats => stats,
    Trends => trends,
    Maintainers => maintainers,
    Pause => pause,
    Resume => resume,
    Serve => serve,
    Deliveries => deliveries,
    Jobs => jobs,
    Purge => purge,
    Config => config,
    Completions => completions,
    Man => man,
    Reference => reference,
}
