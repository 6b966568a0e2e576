//! Decides for which files a tool's silence counts.

use std::collections::BTreeSet;

use canonry_domain::review::{RepoPath, ReviewerName};

use crate::findings::reviewer_answer::ReviewerAnswer;

pub(crate) struct ToolAnswer<'a> {
    pub(crate) heard: &'a mut ReviewerAnswer,
    /// The name of a program; a report contains the names of its tools.
    pub(crate) program: Option<ReviewerName>,
    /// Whether the tool missed the last review.
    pub(crate) is_behind: bool,
}

/// Limits the files that tools count as having read, if they do not list them.
///
/// A linter often runs on changed files only and reports nothing about the others. So its silence counts in files that
/// changed since the last review (in the whole change, if it missed that review) and in files that it reports on. If
/// another report of the same tool is damaged, that report may contain what this one does not: then nothing counts as
/// read. The same applies to every report if it is unknown which tool the damaged report belongs to.
pub(crate) fn bound_reads(
    tools: &mut [ToolAnswer<'_>],
    since: Option<&BTreeSet<RepoPath>>,
    changed: &BTreeSet<RepoPath>,
) {
    let mut distrusted: BTreeSet<ReviewerName> = BTreeSet::new();
    let mut is_any_unknown = false;
    for tool in tools.iter().filter(|tool| !tool.heard.problems.is_empty()) {
        distrusted.extend(tool.program.clone());
        distrusted.extend(tool.heard.read.iter().map(|(reviewer, _)| reviewer.clone()));
        distrusted.extend(tool.heard.reported.iter().map(|one| one.reviewer.clone()));
        is_any_unknown |= tool.program.is_none() && tool.heard.read.is_empty();
    }
    for tool in tools {
        let is_report = tool.program.is_none();
        let doubted = |reviewer: &ReviewerName| distrusted.contains(reviewer) || (is_report && is_any_unknown);
        tool.heard.read.retain(|(reviewer, files)| files.is_some() || !doubted(reviewer));
        for (reviewer, files) in tool.heard.read.iter_mut().filter(|(_, files)| files.is_none()) {
            let spoken_of = tool.heard.reported.iter().filter(|one| one.reviewer == *reviewer).map(|one| &one.path);
            let whole = (tool.is_behind || since.is_none()).then_some(changed);
            let bounded = spoken_of.chain(since.into_iter().flatten()).chain(whole.into_iter().flatten());
            *files = Some(bounded.cloned().collect());
        }
    }
}
