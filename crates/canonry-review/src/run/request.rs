//! Describes what has to be reviewed, and by which reviewers.

use std::path::{Path, PathBuf};

use canonry_config::{RepoConfig, ReviewSettings, Reviewer};
use canonry_domain::RepoName;
use canonry_domain::review::{CommitSha, ReviewSubject};
use canonry_store::RepoId;
use jiff::Timestamp;

use crate::change::scope::Repository;
use crate::reviewers::CommandReviewer;
use crate::reviewers::llm::LlmReviewBudget;

#[derive(Debug, Clone, Copy)]
pub struct ReviewRequest<'a> {
    pub repo: RepoId,
    pub name: &'a RepoName,
    pub subject: &'a ReviewSubject,
    pub repository: &'a Repository,
    /// The folder with the repository's files for other programs: reports contain paths in it, and commands run in it.
    pub root: Option<&'a Path>,
    pub base: &'a CommitSha,
    /// The target branch, if it is known: against another branch the same commit is another change.
    pub base_branch: Option<&'a str>,
    pub head: &'a CommitSha,
    /// When this head was requested, such as by a push: of two heads the one that was requested later is newer,
    /// whichever starts first.
    pub asked_at: Timestamp,
    /// Whether a person requested this review: it runs even if the same head was reviewed before.
    pub requested: bool,
    pub full: bool,
    pub settings: &'a RepoConfig,
    /// What its author wrote about the change, if it is a pull request.
    pub description: Option<&'a PullDescription>,
    /// Notes of the caller, for the details.
    pub notes: &'a [String],
    pub reviewers: &'a [ReviewerChoice],
    /// The commit whose lines the reports name.
    pub linted: LintedCommit<'a>,
    /// Reports in SARIF about the base: what they contain is older than the change.
    pub base_reports: &'a [PathBuf],
    /// The subject under which the base branch is reviewed, if it has a name.
    pub base_ledger: Option<&'a ReviewSubject>,
    pub llm_budget: LlmReviewBudget,
    /// The owner of the run: a name that no other process has.
    pub owner: &'a str,
}

impl ReviewRequest<'_> {
    pub(crate) fn names_bots(&self) -> bool {
        !self.settings.review.referee.bots.is_empty()
    }
}

/// The title and the text of a pull request. They are written by a stranger and shown to a model as data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PullDescription {
    pub title: String,
    pub body: String,
}

/// The commit whose lines the reports name. A CI often lints the merge of the head with its base, where other lines
/// come before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LintedCommit<'a> {
    /// The head itself, such as the files of a clone with their uncommitted changes.
    Head,
    /// This commit, whatever a report says.
    Given(&'a CommitSha),
    /// The commit that a report itself names, else the one that is checked out, else the head.
    Reported { checkout: Option<&'a CommitSha> },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReviewerChoice {
    Builtin,
    Llm,
    Sarif(PathBuf),
    Rdjson(PathBuf),
    Command(CommandReviewer),
    /// A reviewer that the settings name and that is not available: a review without it is incomplete.
    Missing(Reviewer),
}

/// The reviewers that the settings name, and the available reports and programs, which are always used. A reviewer that
/// is wanted and not available is included as missing.
pub fn choose_reviewers(settings: &ReviewSettings, at_hand: &[ReviewerChoice]) -> Vec<ReviewerChoice> {
    let mut chosen = Vec::new();
    for wanted in &settings.reviewers {
        match wanted {
            Reviewer::Builtin => chosen.push(ReviewerChoice::Builtin),
            Reviewer::Llm => chosen.push(ReviewerChoice::Llm),
            Reviewer::Sarif | Reviewer::Rdjson | Reviewer::Command => {
                if !at_hand.iter().any(|one| one.kind() == *wanted) {
                    chosen.push(ReviewerChoice::Missing(*wanted));
                }
            }
        }
    }
    for one in at_hand {
        if !chosen.contains(one) {
            chosen.push(one.clone());
        }
    }
    chosen
}

impl ReviewerChoice {
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Missing(_))
    }

    /// A name that stays the same from run to run, although tools change their names and reports are rewritten.
    pub(crate) fn called(&self) -> String {
        match self {
            Self::Builtin => "builtin".to_owned(),
            Self::Llm => "llm".to_owned(),
            Self::Sarif(path) | Self::Rdjson(path) => {
                path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
            }
            Self::Command(command) => command.name().as_str().to_owned(),
            Self::Missing(reviewer) => word(*reviewer).to_owned(),
        }
    }

    pub(crate) fn is_report(&self) -> bool {
        matches!(self, Self::Sarif(_) | Self::Rdjson(_))
    }

    /// Whether its answer is about the whole change, whatever has to be read.
    pub(crate) fn is_heard_whole(&self) -> bool {
        !matches!(self, Self::Builtin | Self::Llm)
    }

    fn kind(&self) -> Reviewer {
        match self {
            Self::Builtin => Reviewer::Builtin,
            Self::Llm => Reviewer::Llm,
            Self::Sarif(_) => Reviewer::Sarif,
            Self::Rdjson(_) => Reviewer::Rdjson,
            Self::Command(_) => Reviewer::Command,
            Self::Missing(reviewer) => *reviewer,
        }
    }
}

fn word(reviewer: Reviewer) -> &'static str {
    match reviewer {
        Reviewer::Builtin => "builtin",
        Reviewer::Llm => "llm",
        Reviewer::Sarif => "sarif",
        Reviewer::Rdjson => "rdjson",
        Reviewer::Command => "command",
    }
}

#[cfg(test)]
mod tests {
    use canonry_config::{ReviewSettings, Reviewer};

    use super::{ReviewerChoice, choose_reviewers};

    #[test]
    fn settings_and_what_is_at_hand_decide_together() {
        let settings = ReviewSettings {
            reviewers: vec![Reviewer::Builtin, Reviewer::Sarif, Reviewer::Rdjson],
            ..ReviewSettings::default()
        };
        let report = ReviewerChoice::Sarif("lint.sarif".into());
        let chosen = choose_reviewers(&settings, std::slice::from_ref(&report));
        assert_eq!(chosen, [ReviewerChoice::Builtin, ReviewerChoice::Missing(Reviewer::Rdjson), report]);
    }
}
