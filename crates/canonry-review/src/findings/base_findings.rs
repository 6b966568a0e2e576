//! Compares the findings of a change with those of its base: a report of the base, and the ledger of the base branch.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use canonry_domain::review::{
    CommitSha, FileMaps, Finding, RepoPath, ReviewSubject, ReviewerName, TrackedFinding, track,
};
use canonry_store::{RepoId, Store};

use crate::change::file_change::{ChangeKind, FileChange};
use crate::change::git::Git;
use crate::change::head_texts::HeadTexts;
use crate::findings::reviewer_answer::{ReviewerAnswer, merge_findings};
use crate::reviewers::{read_report, read_sarif};

/// The positions of present findings that the base has with the same code, and of those that it does not have although
/// the same tool read it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct BaseComparison {
    pub(crate) old: BTreeSet<usize>,
    pub(crate) new: BTreeSet<usize>,
}

/// The findings of one commit before the change.
#[derive(Debug)]
pub(crate) struct BaseFindings {
    commit: CommitSha,
    findings: Vec<TrackedFinding>,
    /// The tools whose silence about the commit is known.
    covers: BTreeSet<ReviewerName>,
}

impl BaseFindings {
    /// Reads the reports of the base. A report that does not name its commit is about `merge_base`. What cannot be used
    /// is a problem: then findings that are older than the change count as its own.
    pub(crate) async fn of_reports(
        git: &Git,
        reports: &[PathBuf],
        root: Option<&Path>,
        merge_base: &CommitSha,
        problems: &mut Vec<String>,
    ) -> Vec<Self> {
        let mut found = Vec::new();
        for path in reports {
            let heard = match read_report(path).await {
                Ok(bytes) => read_sarif(&path.display().to_string(), &bytes, root),
                Err(error) => {
                    problems.push(format!("failed to {error}"));
                    continue;
                }
            };
            problems.extend(heard.problems.iter().cloned());
            let named = heard.linted.values().find_map(|revision| revision.parse::<CommitSha>().ok());
            let commit = match named {
                Some(commit) if git.has_commit(&commit).await.unwrap_or(false) => commit,
                _ => merge_base.clone(),
            };
            match Self::at(git, commit, heard).await {
                Ok(one) => found.push(one),
                Err(error) => problems.push(format!("{} is not used: failed to {error}", path.display())),
            }
        }
        found
    }

    async fn at(git: &Git, commit: CommitSha, heard: ReviewerAnswer) -> Result<Self, crate::change::git::GitError> {
        let paths: BTreeSet<RepoPath> = heard.reported.iter().map(|one| one.path.clone()).collect();
        let texts = HeadTexts::read(git, &commit, [], &paths).await?;
        let covers = heard.read.iter().filter(|(_, files)| files.is_none()).map(|(tool, _)| tool.clone()).collect();
        let findings = merge_findings(vec![heard], &texts);
        let findings =
            findings.into_iter().map(|finding| TrackedFinding { finding, fixed: false, dismissals: Vec::new() });
        Ok(Self { commit, findings: findings.collect(), covers })
    }

    /// Reads the open findings of the last review of the base branch, if there is one and its commit is here.
    pub(crate) async fn of_branch(store: &Store, git: &Git, repo: RepoId, branch: &ReviewSubject) -> Option<Self> {
        let last = store.review().list(repo, Some(branch), 1).await.ok()?.into_iter().next()?;
        if !git.has_commit(&last.head).await.unwrap_or(false) {
            return None;
        }
        let ledger = store.review().ledger(repo, branch).await.ok()?;
        let findings = ledger.into_iter().map(|one| one.earlier).filter(|one| !one.fixed).collect();
        Some(Self { commit: last.head, findings, covers: BTreeSet::new() })
    }
}

/// Compares the present findings with those of the base.
pub(crate) async fn compare_with_base(
    git: &Git,
    head: &CommitSha,
    texts: &HeadTexts,
    bases: &[BaseFindings],
    now: &[Finding],
    notes: &mut Vec<String>,
) -> BaseComparison {
    let mut comparison = BaseComparison::default();
    for base in bases {
        let changes = match git.changes(&base.commit, head).await {
            Ok(changes) => changes,
            Err(error) => {
                notes.push(format!("findings at {} are not compared: failed to {error}", base.commit.short()));
                continue;
            }
        };
        let tracked = track(&base.findings, now, &file_maps(&changes), &mut texts.index());
        comparison.old.extend(tracked.followed.iter().filter(|one| one.code_unchanged).map(|one| one.now));
        let is_covered = |at: &usize| now[*at].witnesses.iter().all(|one| base.covers.contains(&one.reviewer));
        comparison.new.extend(tracked.new.into_iter().filter(is_covered));
    }
    comparison.new.retain(|at| !comparison.old.contains(at));
    comparison
}

fn file_maps(changes: &[FileChange]) -> FileMaps {
    let renamed = changes.iter().filter(|change| change.kind == ChangeKind::Renamed);
    let renamed: BTreeMap<RepoPath, RepoPath> =
        renamed.map(|change| (change.path_before().clone(), change.path.clone())).collect();
    let kept = changes.iter().filter(|change| matches!(change.kind, ChangeKind::Modified | ChangeKind::Renamed));
    let lines = kept.map(|change| (change.path_before().clone(), change.line_map())).collect();
    let gone = changes.iter().filter(|change| change.kind == ChangeKind::Deleted);
    FileMaps { renamed, lines, gone: gone.map(|change| change.path.clone()).collect(), ..FileMaps::default() }
}
