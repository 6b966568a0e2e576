//! What a review has to say, before it is put into any format.

use canonry_domain::RepoName;
use canonry_domain::review::{
    CodeExcerpt, CommitSha, Confidence, FindingStatus, HiddenBy, LineRange, RepoPath, ReviewMode, ReviewSubject,
    ScopeReason, ShownAs, Sighting,
};
pub use canonry_store::PatternHistory;
use canonry_store::{FindingId, ReviewId};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq)]
pub struct ReviewReport {
    pub review: Option<ReviewId>,
    pub repo: RepoName,
    pub subject: ReviewSubject,
    pub base: CommitSha,
    pub head: CommitSha,
    pub reason: ScopeReason,
    /// The findings, the gravest and surest first; fixed ones come last.
    pub findings: Vec<ReportedFinding>,
    pub coverage: Coverage,
    pub reviewers: Vec<ReviewerRun>,
    /// How many patterns are hidden because people keep rejecting them.
    pub hidden_patterns: usize,
    pub notes: Vec<String>,
    pub model: Option<ModelUse>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ReportedFinding {
    pub id: Option<FindingId>,
    pub sighting: Sighting,
    /// The flagged code as it is at the head.
    pub excerpt: Option<CodeExcerpt>,
    pub shown: ShownAs,
    pub hidden_by: Option<HiddenBy>,
    pub confidence: Confidence,
    pub grounded: bool,
    /// Whether a comment at its line says it already.
    pub said_inline: bool,
    /// Where it was when it was last seen, if it moved since.
    pub moved_from: Option<(RepoPath, Option<LineRange>)>,
    /// What became of earlier findings of its pattern in this repository.
    pub history: Option<PatternHistory>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    pub files_changed: usize,
    /// Files that somebody read; one that is gone is read when somebody looked at what went.
    pub files_read: usize,
    pub lines_read: u64,
    pub skipped: Vec<SkippedFile>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedFile {
    pub path: RepoPath,
    pub why: String,
    /// Whether a reviewer could have read it and did not.
    pub gap: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewerRun {
    /// Its name: `builtin`, `llm`, or the name of a tool, a report or a program.
    pub name: String,
    pub findings: usize,
    /// How many of the files that were read it looked at.
    pub files: usize,
    /// What went wrong with it and leaves a gap, in sentences.
    pub problems: Vec<String>,
    /// What else is worth telling of it, in sentences.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelUse {
    pub model: String,
    pub calls: u32,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// What that cost, in US dollars; `None` when no price is known.
    pub cost_usd: Option<f64>,
}

impl ReviewReport {
    pub fn mode(&self) -> ReviewMode {
        self.reason.mode()
    }

    pub fn standing(&self) -> impl Iterator<Item = &ReportedFinding> {
        self.findings.iter().filter(|one| !one.is_fixed() && one.shown != ShownAs::Suppressed)
    }

    pub fn fixed(&self) -> impl Iterator<Item = &ReportedFinding> {
        self.findings.iter().filter(|one| one.is_fixed())
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
