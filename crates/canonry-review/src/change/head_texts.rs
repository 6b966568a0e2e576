//! Contains the texts of files at the head of a change.

use canonry_boxed::boxed;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use canonry_domain::review::{CodeIndex, CommitSha, RepoPath};

use crate::change::blobs::{BlobContent, LARGEST};
use crate::change::file_change::{ChangeKind, ContentKind, FileChange};
use crate::change::git::{Git, GitError};
use crate::reviewers::FileToRead;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeadTexts {
    texts: BTreeMap<RepoPath, String>,
    bytes: HashMap<RepoPath, u64>,
    /// Why files were not read, and whether a reviewer could have read something in them.
    unread: HashMap<RepoPath, (String, bool)>,
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
        let (sizes, read) = (git.sizes(&asked).await?, git.contents(&asked).await?);
        let mut texts = Self::default();
        for (path, id) in ids {
            texts.bytes.extend(sizes.get(id).map(|bytes| (path.clone(), *bytes)));
            let unread = match read.get(id) {
                Some(BlobContent::Text(text)) => {
                    texts.texts.insert(path.clone(), text.clone());
                    continue;
                }
                Some(BlobContent::Media(name)) => (format!("it is {name}"), false),
                Some(BlobContent::Unreadable(why)) => (format!("it {why}"), true),
                None => (not_fetched(sizes.get(id).copied()), true),
            };
            texts.unread.insert(path.clone(), unread);
        }
        Ok(texts)
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
            self.unread.extend(more.unread);
        }
        Ok(())
    }

    pub fn get(&self, path: &RepoPath) -> Option<&str> {
        self.texts.get(path).map(String::as_str)
    }

    /// Why a file was not read, and whether that leaves a gap; `None` if it was read or is not in the head.
    pub(crate) fn unread(&self, path: &RepoPath) -> Option<&(String, bool)> {
        self.unread.get(path)
    }

    pub fn file<'a>(&'a self, change: &'a FileChange) -> FileToRead<'a> {
        FileToRead { change, text: self.get(&change.path), bytes: self.bytes.get(&change.path).copied() }
    }

    pub fn index(&self) -> CodeIndex<'_> {
        CodeIndex::new(self.texts.iter().map(|(path, text)| (path, text.as_str())))
    }
}

/// Why a blob has no content here.
pub(crate) fn not_fetched(bytes: Option<u64>) -> String {
    match bytes {
        Some(bytes) if bytes > LARGEST => {
            format!("it is too large: {} kB, and at most {} kB are read", bytes / 1_000, LARGEST / 1_000)
        }
        Some(_) => "the change has more text than is read in one review".to_owned(),
        None => "its content could not be read".to_owned(),
    }
}
