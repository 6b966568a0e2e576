//! Decides how much of a change a review reads: everything, or what changed since the last completed review.

use canonry_boxed::boxed;
use std::collections::{BTreeMap, BTreeSet};

use canonry_domain::counted;
use canonry_domain::review::{CommitSha, FileMaps, LineMap, RepoPath, ReviewerName, ScopeReason};

use crate::change::commits::CommitsError;
use crate::change::fetch::FetchedRepository;
use crate::change::file_change::{ChangeKind, FileChange};
use crate::change::git::{Git, GitError};

/// The beginning of the note that base and head are compared without a merge base.
pub(crate) const WITHOUT_MERGE_BASE: &str = "there is no common ancestor";

/// The repository that is read: a user's clone, or a fetched repository that can be deepened.
#[derive(Debug, Clone)]
pub enum Repository {
    /// A user's clone; nothing is fetched into it.
    Local(Git),
    Fetched(FetchedRepository),
}

impl Repository {
    pub fn git(&self) -> &Git {
        match self {
            Self::Local(git) => git,
            Self::Fetched(fetched) => fetched.git(),
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct ScopeRequest<'a> {
    pub base: &'a CommitSha,
    pub head: &'a CommitSha,
    pub last: Option<&'a CommitSha>,
    pub full: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewScope {
    pub reason: ScopeReason,
    /// All changed files since the merge base.
    pub changes: Vec<FileChange>,
    pub read: BTreeSet<RepoPath>,
    /// The difference between the head of the last completed review and this head, if it is known.
    pub since: Option<Vec<FileChange>>,
    pub notes: Vec<String>,
}

/// Decides what a review reads. The only error is a change that cannot be read at all: any other failure makes the
/// review a full one.
#[boxed]
pub async fn find_scope(repository: &Repository, request: ScopeRequest<'_>) -> Result<ReviewScope, CommitsError> {
    let git = repository.git();
    let mut notes = Vec::new();
    let from = match parting(repository, request, &mut notes).await {
        Some(parting) => parting,
        None => {
            notes.push(no_merge_base(git, request).await);
            request.base.clone()
        }
    };
    let changes = git.changes(&from, request.head).await?;
    let (since, trouble) = match request.last {
        Some(last) => differences_since(repository, last, request.head, &mut notes).await,
        None => (None, ScopeReason::NoPriorReview),
    };
    let all: BTreeSet<RepoPath> = changes.iter().map(|change| change.path.clone()).collect();
    let (reason, read) = match (request.full, request.last, &since) {
        (true, _, _) => (ScopeReason::FullRequested, all),
        (false, Some(last), Some(since)) => {
            let touched: BTreeSet<&RepoPath> = since.iter().map(|change| &change.path).collect();
            let read: BTreeSet<RepoPath> = all.into_iter().filter(|path| touched.contains(path)).collect();
            let reason = if read.is_empty() { ScopeReason::NoChangesSince } else { ScopeReason::IncrementalFrom };
            (reason(last.clone()), read)
        }
        _ => (trouble, all),
    };
    Ok(ReviewScope { reason, changes, read, since, notes })
}

/// Says that the two commits are compared as they are. Nobody expects that of a review of a change.
async fn no_merge_base(git: &Git, request: ScopeRequest<'_>) -> String {
    let (base, head) = (request.base.short(), request.head.short());
    if git.is_empty(request.base).await {
        return format!("{head} has no base to compare with: all its files count as new");
    }
    let way_out = match git.is_shallow().await {
        true => "; this history is shallow, fetch all of it to compare with the common ancestor",
        false => "",
    };
    format!(
        "{WITHOUT_MERGE_BASE} of {base} and {head}: the two trees are compared, and every difference counts as the change{way_out}"
    )
}

/// The merge base of the change. A history that is too short is deepened once.
async fn parting(repository: &Repository, request: ScopeRequest<'_>, notes: &mut Vec<String>) -> Option<CommitSha> {
    let (base, head) = (request.base, request.head);
    let asked = repository.git().merge_base(base, head).await;
    if let Ok(Some(parting)) = asked {
        return Some(parting);
    }
    if let Repository::Fetched(fetched) = repository {
        if let Err(error) = fetched.deepen(base, head).await {
            notes.push(format!("failed to {error}"));
        }
        if let Ok(Some(parting)) = fetched.git().merge_base(base, head).await {
            return Some(parting);
        }
    }
    if let Err(error) = asked {
        notes.push(format!("failed to {error}"));
    }
    None
}

/// The difference since the last review, or the reason why it is unknown.
async fn differences_since(
    repository: &Repository,
    last: &CommitSha,
    head: &CommitSha,
    notes: &mut Vec<String>,
) -> (Option<Vec<FileChange>>, ScopeReason) {
    let git = repository.git();
    let mut is_here = git.has_commit(last).await.unwrap_or(false);
    if !is_here && let Repository::Fetched(fetched) = repository {
        match fetched.get_commit("fetch the commit that was reviewed last", last).await {
            Ok(()) => is_here = git.has_commit(last).await.unwrap_or(false),
            Err(error) => notes.push(format!("failed to {error}")),
        }
    }
    if !is_here {
        return (None, ScopeReason::PriorShaUnreachable);
    }
    match git.changes(last, head).await {
        Ok(since) => (Some(since), ScopeReason::IncrementalFrom(last.clone())),
        Err(error) => {
            notes.push(format!("failed to {error}"));
            (None, ScopeReason::DiffComputationFailed)
        }
    }
}

#[boxed]
impl ReviewScope {
    /// Adds what the last review did not see because it compared its head with another base: files and lines that were
    /// not part of the change then and are part of it now, although they did not change in between.
    pub(crate) async fn add_changes_hidden_by_base(&mut self, git: &Git, base: &CommitSha, head: &CommitSha) {
        let Some(since) = &self.since else { return };
        let touched: BTreeSet<&RepoPath> = since.iter().map(|change| &change.path).collect();
        let from = git.merge_base(base, head).await.ok().flatten().unwrap_or_else(|| base.clone());
        let before = git.changes(&from, head).await.unwrap_or_else(|error| {
            self.notes.push(format!("everything is read: failed to {error}"));
            Vec::new()
        });
        let before: BTreeMap<&RepoPath, &FileChange> = before.iter().map(|change| (&change.path, change)).collect();
        let was_seen = |change: &&FileChange| {
            let lines = |change: &FileChange| change.added.iter().cloned().collect::<BTreeSet<(u32, String)>>();
            before
                .get(&change.path)
                .is_some_and(|then| then.kind == change.kind && lines(then).is_superset(&lines(change)))
        };
        let unread = self.changes.iter().filter(|change| !self.read.contains(&change.path));
        let hidden = unread.filter(|change| !touched.contains(&change.path) && !was_seen(change));
        let hidden: BTreeSet<RepoPath> = hidden.map(|change| change.path.clone()).collect();
        if hidden.is_empty() {
            return;
        }
        self.notes.push(format!(
            "the last review compared with another base ({}): {} that it did not see in full {} read too",
            base.short(),
            counted(hidden.len() as u64, "file"),
            if hidden.len() == 1 { "is" } else { "are" },
        ));
        self.read.extend(hidden);
        if let ScopeReason::NoChangesSince(last) = &self.reason {
            self.reason = ScopeReason::IncrementalFrom(last.clone());
        }
    }

    pub fn files_read(&self) -> impl Iterator<Item = &FileChange> {
        self.changes.iter().filter(|change| self.read.contains(&change.path))
    }

    /// Maps the files of earlier findings to this head. `read` lists which reviewer read which file in this run.
    pub async fn file_maps(
        &self,
        git: &Git,
        head: &CommitSha,
        earlier: &BTreeSet<RepoPath>,
        read: BTreeSet<(ReviewerName, RepoPath)>,
    ) -> Result<FileMaps, GitError> {
        let since = self.since.as_deref().unwrap_or_default();
        let renames = since.iter().filter(|change| change.kind == ChangeKind::Renamed);
        let renamed: BTreeMap<RepoPath, RepoPath> =
            renames.map(|change| (change.path_before().clone(), change.path.clone())).collect();
        let mapped = since.iter().filter(|change| matches!(change.kind, ChangeKind::Modified | ChangeKind::Renamed));
        let lines: BTreeMap<RepoPath, LineMap> =
            mapped.map(|change| (change.path_before().clone(), change.line_map())).collect();
        let now = |path: &RepoPath| renamed.get(path).unwrap_or(path).clone();
        let paths: Vec<RepoPath> = earlier.iter().map(now).collect();
        let there = git.files_at(head, &paths.iter().collect::<Vec<_>>()).await?;
        let in_change: BTreeSet<&RepoPath> = self
            .changes
            .iter()
            .filter(|change| change.kind != ChangeKind::Deleted)
            .map(|change| &change.path)
            .collect();
        let touched: BTreeSet<&RepoPath> = since.iter().map(|change| &change.path).collect();
        // A file that was reset to its content in the base still exists, but nothing in it is part of the change any
        // more. If the difference since the last review is unknown, the present change decides.
        let is_put_back =
            |path: &RepoPath| !in_change.contains(path) && (self.since.is_none() || touched.contains(path));
        let is_gone = |path: &RepoPath| !there.contains_key(path) || is_put_back(path);
        let gone = earlier.iter().zip(&paths).filter(|(_, now)| is_gone(now)).map(|(path, _)| path.clone()).collect();
        Ok(FileMaps { renamed, lines, gone, read, was_pushed: false })
    }
}
