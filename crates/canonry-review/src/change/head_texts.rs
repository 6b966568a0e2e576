//! Contains the texts of files at the head of a change.

use canonry_boxed::boxed;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use canonry_domain::review::{CodeIndex, CommitSha, RepoPath};

use crate::change::file_change::{ChangeKind, ContentKind, FileChange};
use crate::change::git::{Git, GitError};
use crate::reviewers::FileToRead;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeadTexts {
    texts: BTreeMap<RepoPath, String>,
    bytes: HashMap<RepoPath, u64>,
}

#[boxed]
impl HeadTexts {
    /// Reads the changed files and the `others`. Files that are not text, too large or missing are left out.
    pub async fn read<'a>(
        git: &Git,
        head: &CommitSha,
        changes: impl IntoIterator<Item = &'a FileChange>,
        others: &BTreeSet<RepoPath>,
    ) -> Result<Self, GitError> {
        // A submodule points at a commit of another repository, which cannot be reached here.
        let is_file =
            |change: &&FileChange| change.kind != ChangeKind::Deleted && change.content != ContentKind::Submodule;
        let there = changes.into_iter().filter(is_file);
        let changed: BTreeMap<&RepoPath, &FileChange> = there.map(|change| (&change.path, change)).collect();
        let ids = changed.iter().filter_map(|(path, change)| Some((*path, change.blob.as_deref()?)));
        let others: Vec<&RepoPath> = others.iter().filter(|path| !changed.contains_key(path)).collect();
        let files = git.files_at(head, &others).await?;
        let found = files.iter().map(|(path, id)| (path, id.as_str()));
        let ids: Vec<(&RepoPath, &str)> = ids.chain(found).collect();
        let asked: BTreeSet<&str> = ids.iter().map(|(_, id)| *id).collect();
        let asked: Vec<&str> = asked.into_iter().collect();
        let (sizes, read) = (git.sizes(&asked).await?, git.texts(&asked).await?);
        let texts = ids.iter().filter_map(|(path, id)| Some(((*path).clone(), read.get(*id)?.clone())));
        let bytes = ids.iter().filter_map(|(path, id)| Some(((*path).clone(), *sizes.get(*id)?)));
        Ok(Self { texts: texts.collect(), bytes: bytes.collect() })
    }

    pub(crate) async fn read_more(
        &mut self,
        git: &Git,
        head: &CommitSha,
        others: &BTreeSet<RepoPath>,
    ) -> Result<(), GitError> {
        let unread: BTreeSet<RepoPath> =
            others.iter().filter(|path| !self.bytes.contains_key(*path)).cloned().collect();
        if !unread.is_empty() {
            let more = Self::read(git, head, [], &unread).await?;
            self.texts.extend(more.texts);
            self.bytes.extend(more.bytes);
        }
        Ok(())
    }

    pub fn get(&self, path: &RepoPath) -> Option<&str> {
        self.texts.get(path).map(String::as_str)
    }

    pub fn file<'a>(&'a self, change: &'a FileChange) -> FileToRead<'a> {
        FileToRead { change, text: self.get(&change.path), bytes: self.bytes.get(&change.path).copied() }
    }

    pub fn index(&self) -> CodeIndex<'_> {
        CodeIndex::new(self.texts.iter().map(|(path, text)| (path, text.as_str())))
    }
}
