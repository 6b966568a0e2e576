//! Searches every commit of a change for credentials: what a later commit removes is in the history all the same.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use canonry_domain::review::{CodeHash, CommitSha, LEAKED_CREDENTIAL_RULE, RepoPath, ReviewerName};

use super::credentials::credentials;
use super::reading::{FileToRead, ReadFile, Remark};
use crate::change::blobs::BlobContent;
use crate::change::commits::{CommitsError, empty_tree};
use crate::change::file_change::{ChangeKind, ContentKind, FileChange};
use crate::change::git::Git;
use crate::change::head_texts::not_fetched;
use crate::findings::reviewer_answer::{RawFinding, ReviewerAnswer};
use crate::run::SkippedFile;

/// The commits that are searched; longer branches are merged in parts or squashed.
const MOST_COMMITS: usize = 500;

/// The time for all of them: one takes some ten milliseconds, and seconds where its files must be fetched.
const TIME: Duration = Duration::from_secs(60);

/// Searches the commits between the merge base and the head. Credentials that `changes`, the whole change, still adds
/// are left to the rule for the head. Also returns the files of these commits that could not be searched.
pub(crate) async fn search_commits(
    git: &Git,
    base: &CommitSha,
    head: &CommitSha,
    changes: &[FileChange],
) -> (ReviewerAnswer, Vec<SkippedFile>) {
    let standing: BTreeSet<&str> = changes.iter().flat_map(|one| &one.added).map(|(_, line)| line.trim()).collect();
    let at_head = changes.iter().filter_map(|one| one.blob.as_deref()).collect();
    let mut search = CommitSearch { git, base, standing, at_head, found: BTreeMap::new(), unread: BTreeMap::new() };
    let mut answer = ReviewerAnswer::default();
    match search.all(head).await {
        Ok(unsearched) => answer.problems.extend(unsearched),
        Err(error) => answer.problems.push(format!("the commits were not searched for credentials: failed to {error}")),
    }
    answer.reported = search.found.into_values().collect();
    let gap = |(path, why)| SkippedFile { path, why, gap: true, in_history: true };
    (answer, search.unread.into_iter().map(gap).collect())
}

struct CommitSearch<'a> {
    git: &'a Git,
    base: &'a CommitSha,
    standing: BTreeSet<&'a str>,
    /// The blobs of the whole change: what cannot be read of them is reported for the head.
    at_head: BTreeSet<&'a str>,
    found: BTreeMap<(RepoPath, CodeHash), RawFinding>,
    /// Why files were not searched.
    unread: BTreeMap<RepoPath, String>,
}

impl CommitSearch<'_> {
    /// Searches the commits; returns what was not searched, as sentences.
    async fn all(&mut self, head: &CommitSha) -> Result<Vec<String>, CommitsError> {
        let commits = self.git.commits_between(self.base, head, MOST_COMMITS + 1).await?;
        // One commit is the whole change, which is searched anyway.
        if commits.len() < 2 {
            return Ok(Vec::new());
        }
        let is_shallow = self.git.is_shallow().await;
        let begun = Instant::now();
        let mut unsearched = Vec::new();
        if commits.len() > MOST_COMMITS {
            unsearched.push(format!("only the last {MOST_COMMITS} commits were searched for credentials"));
        }
        // The oldest first: the commit that added a credential is named.
        for (at, (commit, parents)) in commits.iter().take(MOST_COMMITS).rev().enumerate() {
            if begun.elapsed() > TIME {
                let left = commits.len().min(MOST_COMMITS) - at;
                unsearched.push(format!("{left} commits were not searched for credentials: it took too long"));
                break;
            }
            // Where the history ends, a commit looks as if it had added everything. The later ones are searched.
            if parents.is_empty() && is_shallow {
                unsearched.push(format!(
                    "{} was not searched for credentials: its history is not here; fetch all of it",
                    commit.short()
                ));
                continue;
            }
            self.one(commit, parents).await?;
        }
        Ok(unsearched)
    }

    async fn one(&mut self, commit: &CommitSha, parents: &[CommitSha]) -> Result<(), CommitsError> {
        let root: CommitSha = empty_tree(commit).parse().expect("invariant: the id of the empty tree");
        let (mut changes, unsearched) = self.changes(parents.first().unwrap_or(&root), commit).await?;
        // A merge itself adds only what none of its parents has.
        for parent in parents.iter().skip(1) {
            let (others, _) = self.changes(parent, commit).await?;
            let other: BTreeSet<(&RepoPath, &(u32, String))> =
                others.iter().flat_map(|one| one.added.iter().map(move |line| (&one.path, line))).collect();
            let touched: BTreeSet<&RepoPath> = others.iter().map(|one| &one.path).collect();
            changes.retain(|change| touched.contains(&change.path));
            for change in &mut changes {
                let path = change.path.clone();
                change.added.retain(|line| other.contains(&(&path, line)));
            }
        }
        self.note_unread(commit, &changes, &unsearched);
        for change in changes {
            let remarks = credentials(&ReadFile::of(FileToRead { change: &change, text: None, bytes: None }));
            if remarks.iter().all(|remark| self.still_stands(&change, remark).is_none()) {
                continue;
            }
            // Whether a line is in a test is seen in the whole file.
            let texts = match change.blob.as_deref() {
                Some(blob) => self.git.texts(&[blob]).await?,
                None => continue,
            };
            let text = texts.values().next().map(String::as_str);
            for remark in credentials(&ReadFile::of(FileToRead { change: &change, text, bytes: None })) {
                if let Some(line) = self.still_stands(&change, &remark) {
                    let code = CodeHash::of([line]);
                    let place = (change.path.clone(), code.clone());
                    self.found.entry(place).or_insert_with(|| past(commit, remark, code));
                }
            }
        }
        Ok(())
    }

    /// What a commit changes, and why some of its blobs cannot be searched. Git shows no lines of a file that was binary
    /// before the commit or is after it: of a text that follows, such as UTF-8 after UTF-16, all lines count as added.
    async fn changes(
        &self,
        parent: &CommitSha,
        commit: &CommitSha,
    ) -> Result<(Vec<FileChange>, HashMap<String, String>), CommitsError> {
        let mut changes = self.git.changes(parent, commit).await?;
        let blobs = self.blobs_without_lines(&changes).await?;
        let ids: Vec<&str> = blobs.iter().map(String::as_str).collect();
        let (sizes, contents) = (self.git.sizes(&ids).await?, self.git.contents(&ids).await?);
        let mut unsearched = HashMap::new();
        for change in changes.iter_mut().filter(|change| has_no_lines(change)) {
            let Some(blob) = change.blob.clone().filter(|blob| blobs.contains(blob)) else { continue };
            let why = match contents.get(&blob) {
                Some(BlobContent::Text(text)) => {
                    change.added = (1..).zip(text.lines().map(str::to_owned)).collect();
                    change.content = ContentKind::Text;
                    continue;
                }
                Some(BlobContent::Media(_)) => continue,
                Some(BlobContent::Unreadable(why)) => format!("it {why}"),
                None => not_fetched(sizes.get(&blob).copied()),
            };
            unsearched.insert(blob, why);
        }
        Ok((changes, unsearched))
    }

    /// The new blobs in which git shows no lines. Those of the head are reported for the head, and those of the base are
    /// older than the change.
    async fn blobs_without_lines(&self, changes: &[FileChange]) -> Result<BTreeSet<String>, CommitsError> {
        let without = changes.iter().filter(|one| has_no_lines(one) && one.kind != ChangeKind::Deleted);
        let without: Vec<(&FileChange, &str)> = without
            .filter_map(|one| Some((one, one.blob.as_deref()?)))
            .filter(|(_, blob)| !self.at_head.contains(blob))
            .collect();
        let paths: Vec<&RepoPath> = without.iter().flat_map(|(one, _)| [&one.path, one.path_before()]).collect();
        let at_base: BTreeSet<String> = self.git.files_at(self.base, &paths).await?.into_values().collect();
        Ok(without.into_iter().filter(|(_, blob)| !at_base.contains(*blob)).map(|(_, blob)| blob.to_owned()).collect())
    }

    fn note_unread(&mut self, commit: &CommitSha, changes: &[FileChange], unsearched: &HashMap<String, String>) {
        for change in changes {
            let Some(why) = change.blob.as_ref().and_then(|blob| unsearched.get(blob)) else { continue };
            let why = format!("commit {} has it, and it was not searched for credentials: {why}", commit.short());
            self.unread.entry(change.path.clone()).or_insert(why);
        }
    }

    /// The line of a remark, unless the change still adds it at the head.
    fn still_stands<'l>(&self, change: &'l FileChange, remark: &Remark) -> Option<&'l str> {
        let first = remark.lines?.first;
        let (_, line) = change.added.iter().find(|(number, _)| *number == first)?;
        (!self.standing.contains(line.trim())).then_some(line.as_str())
    }
}

fn has_no_lines(change: &FileChange) -> bool {
    change.content == ContentKind::Binary
}

fn past(commit: &CommitSha, remark: Remark, code: CodeHash) -> RawFinding {
    let what = remark.message.split(". ").next().unwrap_or_default().trim_start_matches("This looks like ");
    RawFinding {
        reviewer: ReviewerName::builtin(),
        rule: Some(LEAKED_CREDENTIAL_RULE.to_owned()),
        title: remark.title.to_owned(),
        message: format!(
            "Commit {} adds what looks like {what}, and a later commit removes it. It stays in the history: revoke it, or, if \
             the branch was never pushed, rewrite the commit.",
            commit.short()
        ),
        path: remark.path,
        lines: None,
        severity: remark.severity,
        category: remark.category,
        partial: BTreeMap::new(),
        tags: BTreeSet::new(),
        fix: None,
        is_serious: true,
        removed_code: Some(code),
    }
}
