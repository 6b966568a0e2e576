//! Defines the result of a review, before it is put into any format.

use canonry_domain::RepoName;
use canonry_domain::review::{
    CodeExcerpt, CommitSha, Confidence, FindingStatus, HiddenBy, LineRange, RepoPath, ReviewMode, ReviewSubject,
    ScopeReason, ShownAs, Sighting,
};
pub use canonry_store::PatternHistory;
use canonry_store::{FindingId, ReviewId};
use serde::{Deserialize, Serialize};

use crate::referee::RefereeReport;

#[derive(Debug, Clone, PartialEq)]
pub struct ReviewReport {
    pub review: Option<ReviewId>,
    pub repo: RepoName,
    pub subject: ReviewSubject,
    pub base: CommitSha,
    pub head: CommitSha,
    pub reason: ScopeReason,
    /// The findings, most severe and most certain first; fixed ones come last.
    pub findings: Vec<ReportedFinding>,
    pub coverage: Coverage,
    pub reviewers: Vec<ReviewerRun>,
    /// How many patterns are hidden because people keep rejecting them.
    pub hidden_patterns: usize,
    pub notes: Vec<String>,
    pub model: Option<ModelUse>,
    /// Whether the settings name bots whose comments are weighed.
    pub names_bots: bool,
    /// What the comments of other reviewers come to; `None` if they were not read.
    pub referee: Option<RefereeReport>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ReportedFinding {
    pub id: Option<FindingId>,
    pub sighting: Sighting,
    /// The flagged code at the head.
    pub excerpt: Option<CodeExcerpt>,
    pub shown: ShownAs,
    pub hidden_by: Option<HiddenBy>,
    pub confidence: Confidence,
    pub grounded: bool,
    /// Whether an inline comment already contains it.
    pub said_inline: bool,
    /// Where it was when it was last seen, if it moved since.
    pub moved_from: Option<(RepoPath, Option<LineRange>)>,
    /// The outcomes of earlier findings of its pattern in this repository.
    pub history: Option<PatternHistory>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    pub files_changed: usize,
    /// Files that a reviewer read; a deleted file counts if a reviewer saw what was deleted.
    pub files_read: usize,
    /// Files that no reviewer is known to have read, and that a report covers which does not list its files.
    #[serde(default)]
    pub files_unlisted: usize,
    /// Nothing but such reports covers the change, in this review and in earlier ones.
    #[serde(default)]
    pub none_listed: bool,
    pub lines_read: u64,
    pub skipped: Vec<SkippedFile>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedFile {
    pub path: RepoPath,
    pub why: String,
    /// Whether a reviewer could have read it and did not.
    pub gap: bool,
    /// Whether this is about a commit of the change instead of its head: each review searches the present commits.
    #[serde(default)]
    pub in_history: bool,
}

impl SkippedFile {
    /// A file of the head.
    pub(crate) fn new(path: RepoPath, why: impl Into<String>, gap: bool) -> Self {
        Self { path, why: why.into(), gap, in_history: false }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewerRun {
    /// `builtin`, `llm`, or the name of a tool, a report or a program.
    pub name: String,
    pub findings: usize,
    /// How many of the read files it read.
    pub files: usize,
    /// Problems that leave a gap, as sentences.
    pub problems: Vec<String>,
    /// Notes that leave no gap, as sentences.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelUse {
    pub model: String,
    pub calls: u32,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// The cost in US dollars; `None` if no price is known.
    pub cost_usd: Option<f64>,
}

impl ReviewReport {
    pub fn mode(&self) -> ReviewMode {
        self.reason.mode()
    }

    pub fn standing(&self) -> impl Iterator<Item = &ReportedFinding> {
        self.findings.iter().filter(|one| !one.is_fixed() && one.shown != ShownAs::Suppressed)
    }

    /// The fixed findings that a review showed before.
    pub fn fixed(&self) -> impl Iterator<Item = &ReportedFinding> {
        self.findings.iter().filter(|one| one.is_fixed() && one.shown != ShownAs::Suppressed)
    }

    pub fn hidden(&self) -> impl Iterator<Item = &ReportedFinding> {
        self.findings.iter().filter(|one| !one.is_fixed() && one.shown == ShownAs::Suppressed)
    }
}

impl ReportedFinding {
    pub fn is_fixed(&self) -> bool {
        self.sighting.status == FindingStatus::Fixed
    }
}
