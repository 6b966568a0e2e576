//! Logs on stderr: warnings, and more when asked.

use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Overrides what `--verbose` and `--quiet` say, in the usual syntax such as `canonry_store=debug`.
const FILTER_VARIABLE: &str = "CANONRY_LOG";

/// Starts the log. Called once, before anything can log.
pub(crate) fn start(verbose: u8, quiet: bool) {
    let level = match (quiet, verbose) {
        (true, _) => LevelFilter::ERROR,
        (false, 0) => LevelFilter::WARN,
        (false, 1) => LevelFilter::INFO,
        (false, _) => LevelFilter::DEBUG,
    };
    let filter = std::env::var(FILTER_VARIABLE)
        .ok()
        .and_then(|text| EnvFilter::try_new(text).ok())
        // The database driver reports every slow statement as a warning and every statement as debug.
        .unwrap_or_else(|| EnvFilter::new(format!("{level},sqlx=error")));
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(|| anstream::AutoStream::auto(std::io::stderr()))
        .with_target(verbose > 1)
        .without_time();
    tracing_subscriber::registry().with(filter).with(lines).init();
}
