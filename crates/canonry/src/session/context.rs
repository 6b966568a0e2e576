//! The context of every command: the time, the run's id, and the verbosity.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use jiff::Timestamp;

use crate::options::run_id::RunId;
use crate::output::moments;

/// The only place where time and randomness enter.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) now: Timestamp,
    pub(crate) run_id: RunId,
    /// The command's name, such as `maintainers set`.
    pub(crate) command: String,
    /// Whether stdout contains one JSON document.
    pub(crate) json: bool,
    /// Whether exact times, hashes and ids are shown.
    pub(crate) verbose: bool,
    /// Whether stderr contains only errors.
    pub(crate) quiet: bool,
}

impl Context {
    /// A stored time for a person: how long ago or the date, and with `--verbose` the exact time.
    pub(crate) fn when(&self, at: Timestamp) -> String {
        if self.verbose { at.to_string() } else { moments::in_words(at, self.now) }
    }

    /// The time of a future event: date, hour and minute, and with `--verbose` the exact time.
    pub(crate) fn due(&self, at: Timestamp) -> String {
        if self.verbose { at.to_string() } else { moments::date_and_time(at) }
    }

    /// A progress line on stderr that counts up; nothing is drawn unless stderr is a terminal.
    pub(crate) fn counter(&self, what: &str) -> ProgressBar {
        let target = if self.quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let style = ProgressStyle::with_template("{spinner} {msg}: {human_pos} ({per_sec}, {elapsed})")
            .expect("invariant: a constant template");
        ProgressBar::with_draw_target(None, target).with_style(style).with_message(what.to_owned())
    }
}
