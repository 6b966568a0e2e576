//! The report of applying or undoing a plan, row by row.

use canonry_domain::{ItemNumber, ItemType};
use canonry_store::CloseOutcome;

use crate::close::close_writes::WriteEnd;
use crate::close::undo_close::ALREADY_OPEN;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RowResult {
    Applied,
    /// A rule, or a change in the meantime, prevented it.
    Skipped,
    Failed,
    /// It has begun, and continues when the command is run again.
    Pending,
    AlreadyApplied,
    AlreadyUndone,
}

impl RowResult {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Skipped => "skipped",
            Self::Failed => "failed",
            Self::Pending => "pending",
            Self::AlreadyApplied => "already_applied",
            Self::AlreadyUndone => "already_undone",
        }
    }
}

impl From<CloseOutcome> for RowResult {
    fn from(outcome: CloseOutcome) -> Self {
        match outcome {
            CloseOutcome::Applied { .. } => Self::Applied,
            CloseOutcome::Skipped => Self::Skipped,
            CloseOutcome::Failed => Self::Failed,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportedRow {
    pub item_type: ItemType,
    pub number: ItemNumber,
    pub result: RowResult,
    pub reason: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CloseReport {
    pub attempted: u64,
    pub applied: u64,
    /// Rows that a rule, or a change in the meantime, prevented.
    pub skipped: u64,
    pub failed: u64,
    /// Every row that was processed, in the order of the plan.
    pub rows: Vec<ReportedRow>,
    /// Other failures, as text: a back-link, a pointer to a new canonical item.
    pub remarks: Vec<String>,
    /// Rows that were not begun because the run had reached its limit.
    pub unreached: u64,
    /// Rows and links that wait for longer than the run did; the next run continues them.
    pub pending: u64,
    /// Rows that failed this time; the next run retries them.
    pub failing: u64,
    /// Rows that wait for another day, or for a person's approval.
    pub over_daily_limit: u64,
}

impl CloseReport {
    /// The rows of a finished undo whose items could not be reopened.
    pub fn not_opened(&self) -> impl Iterator<Item = &ReportedRow> {
        self.rows.iter().filter(|row| match row.result {
            RowResult::Failed => true,
            RowResult::Skipped => row.reason.as_deref() != Some(ALREADY_OPEN),
            _ => false,
        })
    }

    /// Adds a row that this run processed.
    pub(crate) fn add(&mut self, row: ReportedRow) {
        self.attempted += 1;
        self.add_earlier(row);
    }

    /// Adds a remark about another write that did not succeed. Returns whether the next run has to continue it.
    pub(crate) fn note(&mut self, what: &str, ended: WriteEnd) -> bool {
        match ended {
            WriteEnd::Sent(_) => false,
            WriteEnd::Pending(words) => {
                self.remarks.push(format!("{what} is {words}"));
                self.pending += 1;
                true
            }
            WriteEnd::Refused(words) | WriteEnd::Failed(words) => {
                self.remarks.push(format!("{what} could not be written: {words}"));
                false
            }
        }
    }

    /// Adds a row that an earlier run processed.
    pub(crate) fn add_earlier(&mut self, row: ReportedRow) {
        match row.result {
            RowResult::Applied => self.applied += 1,
            RowResult::Skipped => self.skipped += 1,
            RowResult::Failed | RowResult::Pending => self.failed += 1,
            RowResult::AlreadyApplied | RowResult::AlreadyUndone => {}
        }
        self.rows.push(row);
    }
}
