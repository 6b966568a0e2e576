//! Which files a tool's silence is about.

use std::collections::BTreeSet;

use canonry_domain::review::{RepoPath, ReviewerName};

use crate::findings::reviewer_answer::ReviewerAnswer;

pub(crate) struct ToolAnswer<'a> {
    pub(crate) heard: &'a mut ReviewerAnswer,
    /// What a program is called; the tools of a report are named in it.
    pub(crate) program: Option<ReviewerName>,
    /// Whether it missed the last review.
    pub(crate) is_behind: bool,
}

/// Bounds what tools say they read where they do not name it.
///
/// A linter often runs on changed files only, and says nothing about the others: its silence counts in files that came
/// since the last review (in the whole change, where it missed that) and in those that it speaks of. A tool of which
/// another report is damaged may have said there what it does not say here, and so may any, where nobody can tell whose
/// report that is: then nothing counts.
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
