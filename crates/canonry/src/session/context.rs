//! The context of every command: the time, the run's id, and the verbosity.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use jiff::Timestamp;

use crate::options::run_id::RunId;
use crate::output::moments;
use crate::output::numbers::thousands;

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

    /// A progress line on stderr for a command that may take minutes. Without a terminal it is a plain line every ten
    /// seconds, so that a log shows that the command is alive.
    pub(crate) fn progress(&self, what: &str) -> CommandProgress {
        let now = Instant::now();
        let is_plain = !self.quiet && !std::io::stderr().is_terminal();
        CommandProgress { bar: self.counter(what), is_plain, began: now, said: Mutex::new(now) }
    }
}

/// The time between two plain lines, unless `CANONRY_PROGRESS_SECONDS` says otherwise.
const PLAIN_EVERY: Duration = Duration::from_secs(10);

/// The progress of a long command.
#[derive(Debug)]
pub(crate) struct CommandProgress {
    bar: ProgressBar,
    is_plain: bool,
    began: Instant,
    said: Mutex<Instant>,
}

impl CommandProgress {
    pub(crate) fn bar(&self) -> &ProgressBar {
        &self.bar
    }

    /// Shows how many of `what` are done, and of how many if that is known.
    pub(crate) fn update(&self, what: &str, done: u64, total: Option<u64>) {
        self.bar.set_message(what.to_owned());
        self.bar.set_position(done);
        if let Some(total) = total.filter(|total| self.bar.length() != Some(*total)) {
            let template = "{spinner} {msg}: {human_pos} of {human_len} ({per_sec}, {eta} left)";
            self.bar.set_length(total);
            self.bar.set_style(ProgressStyle::with_template(template).expect("invariant: a constant template"));
        }
        let every = std::env::var("CANONRY_PROGRESS_SECONDS").ok().and_then(|seconds| seconds.trim().parse().ok());
        let Ok(mut said) = self.said.lock() else { return };
        if self.is_plain && said.elapsed() >= every.map_or(PLAIN_EVERY, Duration::from_secs) {
            *said = Instant::now();
            // A log that cannot be written is no reason to stop.
            let _ = writeln!(std::io::stderr().lock(), "{}", plain_line(what, done, total, self.began.elapsed()));
        }
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// `items embedded: 512 of 15,815, about 4 min left`.
fn plain_line(what: &str, done: u64, total: Option<u64>, elapsed: Duration) -> String {
    let Some(total) = total else { return format!("{what}: {}", thousands(done)) };
    let line = format!("{what}: {} of {}", thousands(done), thousands(total));
    let left = elapsed.as_secs_f64() * total.saturating_sub(done) as f64 / done.max(1) as f64;
    match left as u64 {
        _ if done == 0 || done >= total => line,
        seconds @ 0..90 => format!("{line}, about {seconds} s left"),
        seconds @ 90..5_400 => format!("{line}, about {} min left", seconds.div_ceil(60)),
        seconds => format!("{line}, about {} h left", seconds.div_ceil(3_600)),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::plain_line;

    #[test]
    fn a_plain_line_says_how_much_is_left() {
        let line = |done, total, seconds| plain_line("items embedded", done, total, Duration::from_secs(seconds));
        assert_eq!(line(512, Some(15_815), 10), "items embedded: 512 of 15,815, about 5 min left");
        assert_eq!(line(900, Some(1_000), 90), "items embedded: 900 of 1,000, about 10 s left");
        assert_eq!(line(1, Some(10_000), 10), "items embedded: 1 of 10,000, about 28 h left");
        assert_eq!(line(0, Some(10), 10), "items embedded: 0 of 10");
        assert_eq!(line(10, Some(10), 10), "items embedded: 10 of 10");
        assert_eq!(line(512, None, 10), "items embedded: 512");
    }
}
