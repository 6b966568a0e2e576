//! The commands, one file each, in the groups that `--help` shows. A file has the arguments and the one function that
//! the command calls and prints.

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
    ($($name:ident($group:ident) { $($(#[$attribute:meta])? $variant:ident => $folder:ident::$module:ident,)+ })+) => {
        $(
            #[derive(Debug, clap::Subcommand)]
            pub(crate) enum $group {
                $($(#[$attribute])? $variant(Box<$folder::$module::Args>),)+
            }

            impl $group {
                async fn run(self, context: &Context) -> Result<Report> {
                    match self {
                        $(Self::$variant(args) => $folder::$module::run(*args, context).await,)+
                    }
                }
            }
        )+

        /// What to do.
        #[derive(Debug, clap::Subcommand)]
        pub(crate) enum Command {
            $(#[command(flatten)] $name($group),)+
        }

        impl Command {
            pub(crate) async fn run(self, context: &Context) -> Result<Report> {
                match self {
                    $(Self::$name(command) => command.run(context).await,)+
                }
            }

            /// Returns the groups of commands, each with its heading.
            pub(crate) fn groups() -> Vec<(&'static str, clap::Command)> {
                vec![$((
                    stringify!($name),
                    <$group as clap::Subcommand>::augment_subcommands(clap::Command::new("canonry")),
                )),+]
            }
        }
    };
}

commands! {
    Start(StartCommand) {
        Demo => start::demo,
        Init => start::init,
        Doctor => start::doctor,
        Sync => start::sync,
        Refresh => start::refresh,
        Import => start::import,
        Export => start::export,
        Config => start::config,
        Completions => start::completions,
        Man => start::man,
        Reference => start::reference,
    }
    Triage(TriageCommand) {
        Check => triage::check,
        Mcp => triage::mcp,
        Dedupe => triage::dedupe,
        DetectNew => triage::detect_new,
        Show => triage::show,
        Search => triage::search,
        PlanClose => triage::plan_close,
        Plan => triage::plan,
        Apply => triage::apply,
        Undo => triage::undo,
        Override => triage::overrides,
        Canonicalize => triage::canonicalize,
        AnalyzeIntent => triage::analyze_intent,
        Embed => triage::embed,
        Candidates => triage::candidates,
        Judge => triage::judge,
        Backtest => triage::backtest,
        Adjudicate => triage::adjudicate,
        Thresholds => triage::thresholds,
        JudgeAudit => triage::judge_audit,
        ReportAudit => triage::report_audit,
        SimulateLearning => triage::simulate_learning,
        Calibrate => triage::calibrate,
        #[command(hide = true)]
        ApplyClose => triage::apply,
        #[command(hide = true)]
        UndoClose => triage::undo,
    }
    Review(ReviewCommand) {
        Review => review::review_change,
        Why => review::why,
        Feedback => review::feedback,
        Stats => review::stats,
        Trends => review::trends,
    }
    Operate(OperateCommand) {
        Serve => operate::serve,
        Run => operate::run,
        Maintainers => operate::maintainers,
        Pause => operate::pause,
        Resume => operate::resume,
        Jobs => operate::jobs,
        Deliveries => operate::deliveries,
        Purge => operate::purge,
    }
}

impl Command {
    /// Whether the command handles an interruption itself and reports how it ended.
    pub(crate) const fn handles_interruption(&self) -> bool {
        matches!(
            self,
            Self::Operate(OperateCommand::Serve(_) | OperateCommand::Run(_)) | Self::Start(StartCommand::Demo(_))
        )
    }

    /// Whether an option of the command itself requests the JSON document, as `--json` does.
    pub(crate) fn prints_json(&self) -> bool {
        matches!(self, Self::Review(ReviewCommand::Review(args)) if args.prints_json())
    }

    /// The format of the log if the command is a service.
    pub(crate) fn service_log(&self) -> Option<LogFormat> {
        match self {
            Self::Operate(OperateCommand::Serve(args)) => Some(args.log_format()),
            _ => None,
        }
    }
}
