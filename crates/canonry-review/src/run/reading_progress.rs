//! Tracks from run to run how much of a change each reviewer has read: a failed or new reviewer has more to read.

use std::collections::{BTreeMap, BTreeSet};

use canonry_domain::counted;
use canonry_domain::review::{RepoPath, ReviewMode};
use serde::{Deserialize, Serialize};

use crate::change::scope::ReviewScope;
use crate::findings::configured_filters::ConfiguredFilters;
use crate::reviewers::manifests_to_recheck;
use crate::run::coverage::is_idle;
use crate::run::request::{ReviewRequest, ReviewerChoice};

/// How much of the change at a head a reviewer has read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReviewerReads {
    All,
    AllBut(BTreeSet<RepoPath>),
    /// Unknown, because the reviewer failed or was not asked.
    Unknown,
}

/// How much each reviewer has read, by its name across runs; a reviewer that is not in the map was never asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct ReadingProgress(BTreeMap<String, ReviewerReads>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Assignment {
    pub(crate) is_asked: bool,
    pub(crate) paths: BTreeSet<RepoPath>,
    /// Whether the reviewer missed the last review, so that its answer is about the whole change.
    pub(crate) is_behind: bool,
}

impl ReadingProgress {
    /// What each reviewer of a request has to read, in their order, with notes for the report. If nothing changed since
    /// the last review, only reviewers with unread files are asked, and reports that come with a requested review: a
    /// linter may have run meanwhile.
    pub(crate) fn assign(
        &self,
        request: &ReviewRequest<'_>,
        scope: &ReviewScope,
        filters: &ConfiguredFilters,
    ) -> (Vec<Assignment>, Vec<String>) {
        let idle = is_idle(&scope.reason);
        let changed = scope.changes.iter().map(|change| &change.path);
        let all: BTreeSet<RepoPath> = changed.filter(|path| !filters.skips(path)).cloned().collect();
        // What a rule reports in a manifest may be about code in other files.
        let manifests = manifests_to_recheck(scope);
        let mut notes = Vec::new();
        let mut assign = |choice: &ReviewerChoice| {
            let name = choice.called();
            // Reports and programs are always about the whole change.
            let is_told = (idle || !choice.is_heard_whole()) && !all.is_empty() && !choice.is_missing();
            let (mut paths, is_behind) = match self.0.get(&name) {
                before if scope.reason.mode() == ReviewMode::Full => {
                    (scope.read.clone(), before == Some(&ReviewerReads::Unknown))
                }
                Some(ReviewerReads::All) => (scope.read.clone(), false),
                Some(ReviewerReads::AllBut(unread)) => {
                    let more: BTreeSet<RepoPath> =
                        unread.intersection(&all).filter(|path| !scope.read.contains(path)).cloned().collect();
                    if !more.is_empty() {
                        let files = counted(more.len() as u64, "file");
                        notes.push(format!("{name} also reads {files} that the last review did not reach"));
                    }
                    (scope.read.union(&more).cloned().collect(), false)
                }
                Some(ReviewerReads::Unknown) => {
                    if is_told {
                        notes.push(format!("{name} reads everything: it did not complete the last review"));
                    }
                    (if is_told { all.clone() } else { scope.read.clone() }, true)
                }
                None => {
                    if is_told {
                        notes.push(format!("{name} reads everything: it is new to this change"));
                    }
                    // Nobody knows what a tool left out that was never asked before.
                    (if is_told { all.clone() } else { scope.read.clone() }, false)
                }
            };
            if *choice == ReviewerChoice::Builtin {
                paths.extend(manifests.iter().filter(|path| all.contains(path)).cloned());
            }
            let is_handed_over = request.requested && choice.is_report();
            // A missing reviewer stays a gap, even if nothing changed.
            let is_asked = !idle || !paths.is_empty() || is_handed_over || choice.is_missing();
            Assignment { is_asked, paths, is_behind }
        };
        let assigned = request.reviewers.iter().map(&mut assign).collect();
        (assigned, notes)
    }

    /// Whether one of these reviewers read a file in an earlier review. A report may not have: it seldom lists its files.
    pub(crate) fn has_read(&self, reviewers: &[ReviewerChoice], path: &RepoPath) -> bool {
        let has_read = |choice: &ReviewerChoice| match self.0.get(&choice.called()) {
            Some(ReviewerReads::All) => true,
            Some(ReviewerReads::AllBut(unread)) => !unread.contains(path),
            Some(ReviewerReads::Unknown) | None => false,
        };
        reviewers.iter().filter(|choice| !choice.is_report()).any(has_read)
    }

    /// The progress after a run. A reviewer that was not asked although something had to be read has missed it.
    pub(crate) fn after(&self, idle: bool, read: impl IntoIterator<Item = (String, ReviewerReads)>) -> Self {
        let missed = |(name, before): (&String, &ReviewerReads)| {
            (name.clone(), if idle { before.clone() } else { ReviewerReads::Unknown })
        };
        let mut now: BTreeMap<String, ReviewerReads> = BTreeMap::new();
        for (name, read) in read {
            // Two reviewers with the same name cannot be told apart.
            let read = if now.get(&name).is_some_and(|other| *other != read) { ReviewerReads::Unknown } else { read };
            now.insert(name, read);
        }
        let mut after: BTreeMap<String, ReviewerReads> = self.0.iter().map(missed).collect();
        after.extend(now);
        Self(after)
    }
}

impl ReviewerReads {
    /// What an asked reviewer has read, by its problems and the files that it left out.
    pub(crate) fn of(problems: &[String], has_read_any: bool, left_out: BTreeSet<RepoPath>) -> Self {
        match (problems.is_empty(), left_out.is_empty()) {
            (true, true) => Self::All,
            (true, false) => Self::AllBut(left_out),
            (false, false) if has_read_any => Self::AllBut(left_out),
            (false, _) => Self::Unknown,
        }
    }

    /// Notes that these files have to be read again.
    pub(crate) fn leave_out(&mut self, paths: &BTreeSet<RepoPath>) {
        match self {
            Self::AllBut(unread) => unread.extend(paths.iter().cloned()),
            Self::All => *self = Self::AllBut(paths.clone()),
            Self::Unknown => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{ReadingProgress, ReviewerReads};

    #[test]
    fn trouble_leaves_everything_open_unless_it_is_known_where() {
        let problem = ["no answer".to_owned()];
        let some = || BTreeSet::from(["a.js".parse().expect("a path")]);
        assert_eq!(ReviewerReads::of(&[], true, BTreeSet::new()), ReviewerReads::All);
        assert_eq!(ReviewerReads::of(&[], false, some()), ReviewerReads::AllBut(some()));
        assert_eq!(ReviewerReads::of(&problem, true, some()), ReviewerReads::AllBut(some()));
        assert_eq!(ReviewerReads::of(&problem, false, some()), ReviewerReads::Unknown);
        assert_eq!(ReviewerReads::of(&problem, true, BTreeSet::new()), ReviewerReads::Unknown);
    }

    #[test]
    fn who_is_not_asked_misses_what_came() {
        let named = |name: &str, read| (name.to_owned(), read);
        let both = [named("builtin", ReviewerReads::All), named("llm", ReviewerReads::All)];
        let before = ReadingProgress::default().after(false, both.clone());
        assert_eq!(before.after(true, []), before);
        let missed = before.after(false, [named("builtin", ReviewerReads::All)]);
        assert_eq!(
            missed,
            ReadingProgress::default().after(false, [both[0].clone(), named("llm", ReviewerReads::Unknown)])
        );
        let twins = [named("lint", ReviewerReads::Unknown), named("lint", ReviewerReads::All)];
        let lint = ReadingProgress::default().after(false, twins);
        assert_eq!(lint, ReadingProgress::default().after(false, [named("lint", ReviewerReads::Unknown)]));
        let stored = serde_json::to_value(&missed).expect("plain values");
        assert_eq!(serde_json::from_value::<ReadingProgress>(stored).expect("read back"), missed);
    }
}
