//! Logs once that something has stopped working, and once that it works again.

use std::fmt::Display;

/// Something that a loop tries again and again.
#[derive(Debug)]
pub(crate) struct Outage {
    what: &'static str,
    lasts: bool,
}

impl Outage {
    /// Starts in the working state.
    pub(crate) const fn new(what: &'static str) -> Self {
        Self { what, lasts: false }
    }

    pub(crate) fn over(&mut self) {
        if std::mem::take(&mut self.lasts) {
            tracing::info!(what = self.what, "it works again");
        }
    }

    pub(crate) fn failed(&mut self, error: &dyn Display) {
        if self.lasts {
            tracing::debug!(what = self.what, %error, "still failing");
        } else {
            tracing::error!(what = self.what, %error, "failed; retrying until it works");
        }
        self.lasts = true;
    }
}
