//! Logs on stderr: warnings, and more on request; for a service in a format that programs can read.

use std::panic::PanicHookInfo;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// The environment variable that overrides `--verbose` and `--quiet`. It uses the usual filter syntax, such as
/// `canonry_store=debug`.
const FILTER_VARIABLE: &str = "CANONRY_LOG";

/// How the log of a service is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// One JSON object a line.
    Json,
    /// Lines for people.
    Text,
}

/// Starts the log. Called once, before anything can log. `service` is the log format of a command that runs until it is
/// stopped.
pub(crate) fn start(verbose: u8, quiet: bool, service: Option<LogFormat>) {
    let level = match (quiet, verbose, service) {
        (true, ..) => LevelFilter::ERROR,
        (false, 0, None) => LevelFilter::WARN,
        (false, 1, None) | (false, 0, Some(_)) => LevelFilter::INFO,
        (false, ..) => LevelFilter::DEBUG,
    };
    let default = match service {
        // The database driver reports every slow statement as a warning and every statement as debug.
        None => format!("{level},sqlx=error"),
        // Only Canonry's own lines are known to contain no untrusted text; messages of model providers may quote such
        // text.
        Some(_) => format!("error,canonry={level},canonry_models={}", level.min(LevelFilter::INFO)),
    };
    let filter = std::env::var(FILTER_VARIABLE)
        .ok()
        .and_then(|text| EnvFilter::try_new(text).ok())
        .unwrap_or_else(|| EnvFilter::new(default));
    let stderr = || anstream::AutoStream::auto(std::io::stderr());
    let log = tracing_subscriber::registry().with(filter);
    match service {
        None => {
            let lines = tracing_subscriber::fmt::layer().with_writer(stderr).with_target(verbose > 1).without_time();
            log.with(lines).init();
        }
        // A line that cannot be written is lost: an error message about it would be written to the same full disk, and
        // panic.
        Some(LogFormat::Text) => {
            log.with(tracing_subscriber::fmt::layer().with_writer(stderr).log_internal_errors(false)).init();
        }
        Some(LogFormat::Json) => {
            let lines = tracing_subscriber::fmt::layer().json().flatten_event(true).with_current_span(true);
            log.with(lines.with_span_list(false).with_writer(std::io::stderr).log_internal_errors(false)).init();
        }
    }
    if service.is_some() {
        std::panic::set_hook(Box::new(log_panic));
    }
}

/// Logs where a task panicked, but not the panic's message: the message quotes the text it failed on, which may be
/// untrusted.
fn log_panic(info: &PanicHookInfo<'_>) {
    let place = info.location().map(ToString::to_string).unwrap_or_default();
    tracing::error!(place, "a task panicked");
}
