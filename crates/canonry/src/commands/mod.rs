//! The commands, one file each in the groups that `--help` shows: its arguments, and the one function that it calls
//! and prints.

use anyhow::Result;

use crate::output::logging::LogFormat;
use crate::output::report::Report;
use crate::session::context::Context;

mod operate;
mod review;
mod start;
mod triage;

/// Lists the commands once: a line makes the variant that clap parses and the call that runs it.
macro_rules! commands {
    ($($variant:ident => $group:ident::$module:ident,)+) => {
        /// What to do.
        #[derive(Debug, clap::Subcommand)]
        pub(crate) enum Command {
            $($variant($group::$module::Args),)+
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
                    $(Self::$variant(args) => $group::$module::run(args, context).await,)+
                }
            }
        }
    };
}

commands! {
    Demo => start::demo,
    Init => start::init,
    Doctor => start::doctor,
    Sync => start::sync,
    Refresh => start::refresh,
    Import => start::import,
    Export => start::export,
    Show => triage::show,
    AnalyzeIntent => triage::analyze_intent,
    Embed => triage::embed,
    Candidates => triage::candidates,
    Search => triage::search,
    Judge => triage::judge,
    Canonicalize => triage::canonicalize,
    PlanClose => triage::plan_close,
    Plan => triage::plan,
    ApplyClose => triage::apply_close,
    UndoClose => triage::undo_close,
    Override => triage::overrides,
    Dedupe => triage::dedupe,
    DetectNew => triage::detect_new,
    JudgeAudit => triage::judge_audit,
    ReportAudit => triage::report_audit,
    Backtest => triage::backtest,
    Thresholds => triage::thresholds,
    SimulateLearning => triage::simulate_learning,
    Calibrate => triage::calibrate,
    Review => review::review_change,
    Why => review::why,
    Feedback => review::feedback,
    Stats => review::stats,
    Trends => review::trends,
    Maintainers => operate::maintainers,
    Pause => operate::pause,
    Resume => operate::resume,
    Serve => operate::serve,
    Deliveries => operate::deliveries,
    Jobs => operate::jobs,
    Purge => operate::purge,
    Config => start::config,
    Completions => start::completions,
    Man => start::man,
    Reference => start::reference,
}
