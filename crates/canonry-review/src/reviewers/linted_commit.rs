//! Moves the findings of reports from the commit that the tools read to the head of the change.
//!
//! GitHub's CI checks out the merge of the head with its base: whatever the base got since then shifts the lines.

use std::collections::{BTreeMap, BTreeSet};

use canonry_domain::counted;
use canonry_domain::review::{CommitSha, LineRange, RepoPath, ReviewerName};

use crate::change::commits::CommitsError;
use crate::change::file_change::{ChangeKind, FileChange};
use crate::change::head_texts::HeadTexts;
use crate::change::scope::Repository;
use crate::findings::reviewer_answer::{RawFinding, ReviewerAnswer};
use crate::run::request::{LintedCommit, ReviewRequest};

/// Moves the findings of a report to the head. Results on lines that the base added belong to the base and are dropped
/// with a note. What cannot be moved is dropped and leaves a gap.
pub(crate) async fn move_to_head(request: &ReviewRequest<'_>, name: &str, heard: &mut ReviewerAnswer) {
    let tools: BTreeSet<ReviewerName> = heard.reported.iter().map(|one| one.reviewer.clone()).collect();
    for tool in tools {
        let Some(linted) = linted_commit(request, heard, &tool) else { continue };
        let (own, others): (Vec<RawFinding>, Vec<RawFinding>) =
            std::mem::take(&mut heard.reported).into_iter().partition(|one| one.reviewer == tool);
        heard.reported = others;
        let count = own.len();
        match moved(request, &linted, own).await {
            Ok(moved) => {
                heard.reported.extend(moved.findings);
                if moved.of_base > 0 {
                    let results = counted(moved.of_base as u64, "result");
                    heard.notes.push(format!("{name}: {results} of {tool} left out, on lines that only the base has"));
                }
                if moved.lost > 0 {
                    let results = counted(moved.lost as u64, "result");
                    let why = format!("on lines of {} that the head does not have", linted.short());
                    heard.problems.push(format!(
                        "{name}: {results} of {tool} left out, {why}; no finding counts as fixed because of this report"
                    ));
                    heard.read.retain(|(reader, _)| *reader != tool);
                }
            }
            Err(error) => {
                let results = counted(count as u64, "result");
                let what = format!("{tool} checked {}, whose lines differ from the head", linted.short());
                heard.problems.push(format!("{name}: {results} left out: {what}: failed to {error}"));
                heard.read.retain(|(reader, _)| *reader != tool);
            }
        }
    }
}

/// Drops results on lines behind the end of their files: their report is about another commit, which nobody named.
/// Returns how many there were.
pub(crate) fn drop_lines_beyond_the_end(heard: &mut ReviewerAnswer, texts: &HeadTexts) -> usize {
    let before = heard.reported.len();
    let mut ends: BTreeMap<RepoPath, Option<usize>> = BTreeMap::new();
    heard.reported.retain(|one| {
        let end = ends.entry(one.path.clone()).or_insert_with(|| texts.get(&one.path).map(|text| text.lines().count()));
        // A tool may name the line after the last one, where a line end is missing.
        let is_beyond = one.lines.zip(*end).is_some_and(|(lines, end)| lines.first as usize > end + 1);
        !is_beyond || one.reviewer.is_model()
    });
    before - heard.reported.len()
}

/// The commit that a tool read; `None` if that is the head.
fn linted_commit(request: &ReviewRequest<'_>, heard: &ReviewerAnswer, tool: &ReviewerName) -> Option<CommitSha> {
    let linted = match request.linted {
        LintedCommit::Head => None,
        LintedCommit::Given(commit) => Some(commit.clone()),
        LintedCommit::Reported { checkout } => {
            let named = heard.linted.get(tool).and_then(|revision| revision.parse().ok());
            named.or_else(|| checkout.cloned())
        }
    };
    linted.filter(|linted| linted != request.head)
}

#[derive(Default)]
struct MovedFindings {
    findings: Vec<RawFinding>,
    of_base: usize,
    lost: usize,
}

async fn moved(
    request: &ReviewRequest<'_>,
    linted: &CommitSha,
    findings: Vec<RawFinding>,
) -> Result<MovedFindings, CommitsError> {
    let git = request.repository.git();
    if !git.has_commit(linted).await?
        && let Repository::Fetched(fetched) = request.repository
    {
        fetched.get_commit("fetch the commit that was linted", linted).await?;
    }
    let changes = git.changes(linted, request.head).await?;
    let to_head = LineMoves::of(&changes);
    let mut moved = MovedFindings::default();
    let mut unplaced = Vec::new();
    for one in findings {
        match to_head.place(&one) {
            Some((path, lines)) => moved.findings.push(RawFinding { path, lines, ..one }),
            None => unplaced.push(one),
        }
    }
    if unplaced.is_empty() {
        return Ok(moved);
    }
    let mut bases = git.parents(linted).await?;
    bases.push(request.base.clone());
    bases.retain(|base| base != request.head);
    for base in bases {
        if git.has_commit(&base).await? {
            let changes = git.changes(linted, &base).await?;
            let to_base = LineMoves::of(&changes);
            let before = unplaced.len();
            unplaced.retain(|one| to_base.place(one).is_none());
            moved.of_base += before - unplaced.len();
        }
    }
    moved.lost = unplaced.len();
    Ok(moved)
}

/// Where the lines of one commit are in another.
struct LineMoves<'a>(BTreeMap<&'a RepoPath, &'a FileChange>);

impl<'a> LineMoves<'a> {
    fn of(changes: &'a [FileChange]) -> Self {
        // A copy leaves its origin where it was, and a new file comes from nowhere.
        let kept = changes.iter().filter(|one| !matches!(one.kind, ChangeKind::Copied | ChangeKind::Added));
        Self(kept.map(|change| (change.path_before(), change)).collect())
    }

    fn place(&self, one: &RawFinding) -> Option<(RepoPath, Option<LineRange>)> {
        let Some(change) = self.0.get(&one.path) else { return Some((one.path.clone(), one.lines)) };
        if change.kind == ChangeKind::Deleted {
            return None;
        }
        let Some(lines) = one.lines else { return Some((change.path.clone(), None)) };
        let map = change.line_map();
        // Tools report whole functions; the part that is there is enough, but not more than a screen is searched for it.
        let last = lines.last.min(lines.first.saturating_add(200));
        let first = (lines.first..=last).find_map(|line| map.line(line))?;
        let last = map.line(lines.last).unwrap_or(first).max(first);
        Some((change.path.clone(), LineRange::new(first, last)))
    }
}
