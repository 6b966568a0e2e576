//! The commands, one file each: its arguments, and the one function that it calls and prints.

use anyhow::Result;

use crate::context::Context;
use crate::report::Report;

mod analyze_intent;
mod backtest;
mod calibrate;
mod candidates;
mod completions;
mod config;
mod demo;
mod doctor;
mod embed;
mod export;
mod import;
mod init;
mod maintainers;
mod man;
mod reference;
mod refresh;
mod search;
mod show;
mod sync;

/// Lists the commands once: a line makes the variant that clap parses and the call that runs it.
macro_rules! commands {
    ($($variant:ident => $module:ident,)+) => {
        /// What to do.
        #[derive(Debug, clap::Subcommand)]
        pub(crate) enum Command {
            $($variant($module::Args),)+
        }

        impl Command {
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
    Backtest => backtest,
    Calibrate => calibrate,
    Maintainers => maintainers,
    Config => config,
    Completions => completions,
    Man => man,
    Reference => reference,
}
