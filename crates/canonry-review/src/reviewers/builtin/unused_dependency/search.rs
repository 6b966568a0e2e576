//! Reads the crates whose manifests gain a dependency, at the head of a change and through git.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use canonry_domain::review::{Category, CommitSha, LineRange, RepoPath, Severity};

use super::super::place::FilePlace;
use super::super::reading::{FileToRead, Remark};
use super::cargo_manifest::{CargoManifest, DeclaredDependency};
use super::crate_code::{CrateCode, CrateFile};
use super::new_dependency::ManifestChange;
use crate::change::blobs::{LARGEST, TreeEntry, TreeEntryKind};
use crate::change::file_change::{ChangeKind, FileChange};
use crate::change::git::{Git, GitError};
use crate::change::scope::ReviewScope;
use crate::findings::reviewer_answer::RawFinding;
use crate::reviewers::collect::parting;
use crate::reviewers::llm::written_by;

const RULE: &str = "unused-dependency";

/// The manifests of a change that are compared; more of them are a reorganisation.
const MOST_MANIFESTS: usize = 50;

/// The Rust files that are read for one change. In a clone all of them are here; elsewhere each has to be fetched first.
const MOST_FILES_HERE: usize = 5_000;
const MOST_FILES_ELSEWHERE: usize = 500;

/// The size of these files together.
const MOST_BYTES: u64 = 64 * 1024 * 1024;

/// The folders in which cargo looks for code; a link there leads to code of another folder.
const CODE_FOLDERS: [&str; 4] = ["src", "tests", "examples", "benches"];

/// Finds the dependencies that the change adds and no code names. Whatever cannot be read is left out: this rule is
/// silent rather than wrong, and a change without it is reviewed all the same.
pub(crate) async fn find_unused_dependencies(
    git: &Git,
    base: &CommitSha,
    head: &CommitSha,
    files: &[FileToRead<'_>],
) -> Vec<RawFinding> {
    let manifests = files.iter().filter(|file| may_add_dependencies(file.change)).copied();
    let manifests: Vec<FileToRead<'_>> = manifests.filter(|file| file.text.is_some()).take(MOST_MANIFESTS).collect();
    if manifests.is_empty() {
        return Vec::new();
    }
    let from = parting(git, base, head).await;
    let remarks = match remarks(git, &from, head, &manifests).await {
        Ok(remarks) => remarks,
        Err(error) => {
            tracing::debug!(%error, "new dependencies are not checked");
            Vec::new()
        }
    };
    remarks.into_iter().map(|remark| remark.into_finding(RULE)).collect()
}

/// The manifests of the change that have to be read again although they did not change since the last review: the code
/// that uses their dependencies changed, or the manifest of a workspace.
pub(crate) fn manifests_to_recheck(scope: &ReviewScope) -> BTreeSet<RepoPath> {
    let since = scope.since.iter().flatten().flat_map(|change| [&change.path, change.path_before()]);
    let touched: BTreeSet<&RepoPath> =
        since.filter(|path| path.as_str().ends_with(".rs") || path.file_name() == "Cargo.toml").collect();
    let is_touched = |manifest: &RepoPath| {
        let folder = folder_of(manifest);
        touched.iter().any(|path| path.as_str().starts_with(folder) || path.file_name() == "Cargo.toml")
    };
    let unread = scope.changes.iter().filter(|change| !scope.read.contains(&change.path));
    let manifests = unread.filter(|change| may_add_dependencies(change)).map(|change| &change.path);
    manifests.filter(|path| is_touched(path)).cloned().collect()
}

/// A new crate is not searched: its code may follow. In samples and in code of others nobody looks for such things.
fn may_add_dependencies(change: &FileChange) -> bool {
    let place = FilePlace::of(&change.path);
    change.path.file_name() == "Cargo.toml"
        && matches!(change.kind, ChangeKind::Modified | ChangeKind::Renamed)
        && change.is_readable()
        && !place.is_test
        && !place.is_sample
        && written_by(&change.path).is_none()
}

async fn remarks(
    git: &Git,
    from: &CommitSha,
    head: &CommitSha,
    manifests: &[FileToRead<'_>],
) -> Result<Vec<Remark>, GitError> {
    let paths: Vec<&RepoPath> = manifests.iter().map(|file| file.change.path_before()).collect();
    let before = read_manifests(git, &git.files_at(from, &paths).await?.into_iter().collect()).await?;
    let mut search = CrateSearch {
        git,
        head,
        tree: None,
        files_left: if git.fetches() { MOST_FILES_ELSEWHERE } else { MOST_FILES_HERE },
        bytes_left: MOST_BYTES,
    };
    let mut remarks = Vec::new();
    for file in manifests {
        let Some(text) = file.text else { continue };
        let (Some(before), Some(now)) = (before.get(file.change.path_before()), CargoManifest::read(text)) else {
            continue;
        };
        let added = file.change.added.iter().map(|(line, _)| *line).collect();
        let change = ManifestChange { before, now: &now, text, added: &added };
        if !change.new_names().is_empty() {
            let unused = search.unused(&file.change.path, &change).await?;
            remarks.extend(unused.iter().map(|one| remark(&file.change.path, one)));
        }
    }
    Ok(remarks)
}

async fn read_manifests(
    git: &Git,
    files: &BTreeMap<RepoPath, String>,
) -> Result<BTreeMap<RepoPath, CargoManifest>, GitError> {
    let ids: Vec<&str> = files.values().map(String::as_str).collect();
    let texts = git.texts(&ids).await?;
    let read = files.iter().filter_map(|(path, id)| Some((path.clone(), CargoManifest::read(texts.get(id)?)?)));
    Ok(read.collect())
}

/// Reads crates at the head, within the limits of one change.
struct CrateSearch<'a> {
    git: &'a Git,
    head: &'a CommitSha,
    /// What the head contains, once it was asked for.
    tree: Option<Vec<TreeEntry>>,
    files_left: usize,
    bytes_left: u64,
}

impl CrateSearch<'_> {
    /// The new dependencies that the crate of this manifest does not use.
    async fn unused(
        &mut self,
        manifest: &RepoPath,
        change: &ManifestChange<'_>,
    ) -> Result<Vec<DeclaredDependency>, GitError> {
        let tree = match self.tree.take() {
            Some(tree) => tree,
            None => self.git.tree(self.head).await?,
        };
        let unused = self.unused_in(&tree, manifest, change).await;
        self.tree = Some(tree);
        unused
    }

    async fn unused_in(
        &mut self,
        tree: &[TreeEntry],
        manifest: &RepoPath,
        change: &ManifestChange<'_>,
    ) -> Result<Vec<DeclaredDependency>, GitError> {
        let is_inherited = change.new_names().iter().any(|one| one.is_inherited);
        let workspace = match is_inherited && !change.now.names_workspace {
            true => self.workspace_of(tree, manifest).await?,
            false => None,
        };
        let mut candidates = change.candidates(workspace.as_ref());
        if candidates.is_empty() {
            return Ok(candidates);
        }
        let folder = folder_of(manifest);
        let files = rust_files(tree, folder).unwrap_or_default();
        let texts = self.texts_within_limits(&files).await?.unwrap_or_default();
        let files = files.iter().filter_map(|file| {
            Some(CrateFile { path: file.path.as_str().strip_prefix(folder)?, text: texts.get(&file.id)? })
        });
        match CrateCode::of(change.now, files.collect()) {
            Some(code) => candidates.retain(|one| !code.names(&one.name)),
            None => candidates.clear(),
        }
        Ok(candidates)
    }

    /// The manifest of the workspace that a crate belongs to: the nearest one, in its folder or above.
    async fn workspace_of(&self, tree: &[TreeEntry], manifest: &RepoPath) -> Result<Option<CargoManifest>, GitError> {
        let folder = folder_of(manifest);
        let is_above =
            |entry: &&TreeEntry| entry.path.file_name() == "Cargo.toml" && folder.starts_with(folder_of(&entry.path));
        let above = tree.iter().filter(|entry| entry.kind == TreeEntryKind::File).filter(is_above);
        let above: BTreeMap<RepoPath, String> = above.map(|entry| (entry.path.clone(), entry.id.clone())).collect();
        let mut read = read_manifests(self.git, &above).await?;
        let mut nearest_first: Vec<RepoPath> = above.into_keys().collect();
        nearest_first.sort_by_key(|path| std::cmp::Reverse(path.as_str().len()));
        for path in nearest_first {
            match read.remove(&path) {
                Some(manifest) if manifest.is_workspace => return Ok(Some(manifest)),
                Some(_) => {}
                // It may be the workspace.
                None => return Ok(None),
            }
        }
        Ok(None)
    }

    /// The texts of all these files by their blobs; `None` if one cannot be read or they are too many.
    async fn texts_within_limits(&mut self, files: &[&TreeEntry]) -> Result<Option<HashMap<String, String>>, GitError> {
        let Some(files_left) = self.files_left.checked_sub(files.len()) else { return Ok(None) };
        self.files_left = files_left;
        let ids: BTreeSet<&str> = files.iter().map(|file| file.id.as_str()).collect();
        let ids: Vec<&str> = ids.into_iter().collect();
        let sizes = self.git.sizes(&ids).await?;
        let Some(bytes_left) = self.bytes_left.checked_sub(sizes.values().sum()) else { return Ok(None) };
        self.bytes_left = bytes_left;
        if sizes.len() < ids.len() || sizes.values().any(|bytes| *bytes > LARGEST) {
            return Ok(None);
        }
        let texts = self.git.texts(&ids).await?;
        Ok((texts.len() == ids.len()).then_some(texts))
    }
}

/// The Rust files of the crate in a folder, without the crates below it; `None` if some of its code is not here.
fn rust_files<'t>(tree: &'t [TreeEntry], folder: &str) -> Option<Vec<&'t TreeEntry>> {
    let below: Vec<(&TreeEntry, &str)> =
        tree.iter().filter_map(|entry| Some((entry, entry.path.as_str().strip_prefix(folder)?))).collect();
    let crates: BTreeSet<&str> = below
        .iter()
        .filter_map(|(_, path)| path.strip_suffix("Cargo.toml"))
        .filter(|path| path.ends_with('/'))
        .collect();
    let is_own = |path: &str| !path.match_indices('/').any(|(at, _)| crates.contains(&path[..=at]));
    let mut files = Vec::new();
    for (entry, path) in below.into_iter().filter(|(_, path)| is_own(path)) {
        let is_rust = path.ends_with(".rs");
        let has_code = is_rust || CODE_FOLDERS.contains(&path.split('/').next().unwrap_or_default());
        match entry.kind {
            TreeEntryKind::File if is_rust => files.push(entry),
            TreeEntryKind::Symlink if has_code => return None,
            TreeEntryKind::Submodule => return None,
            TreeEntryKind::File | TreeEntryKind::Symlink => {}
        }
    }
    Some(files)
}

/// The folder of a file with its last `/`; empty for the root.
fn folder_of(path: &RepoPath) -> &str {
    path.as_str().strip_suffix(path.file_name()).unwrap_or_default()
}

fn remark(path: &RepoPath, unused: &DeclaredDependency) -> Remark {
    Remark {
        path: path.clone(),
        lines: LineRange::new(unused.line, unused.line),
        title: "A dependency is not used",
        message: format!(
            "The change adds `{}`, and no Rust file of this crate names it. Remove it, or add the code that uses it.",
            unused.name
        ),
        severity: Severity::Medium,
        category: Category::Style,
    }
}

#[cfg(test)]
mod tests {
    use canonry_domain::review::RepoPath;

    use super::{folder_of, rust_files};
    use crate::change::blobs::{TreeEntry, TreeEntryKind};

    fn files(folder: &str, entries: &[(&str, TreeEntryKind)]) -> Option<Vec<String>> {
        let path = |text: &str| RepoPath::exact(text).expect("a path");
        let tree: Vec<TreeEntry> =
            entries.iter().map(|(text, kind)| TreeEntry { path: path(text), id: String::new(), kind: *kind }).collect();
        Some(rust_files(&tree, folder)?.iter().map(|entry| entry.path.as_str().to_owned()).collect())
    }

    #[test]
    fn the_files_of_a_crate() {
        use TreeEntryKind::{File, Submodule, Symlink};
        let tree = [
            ("Cargo.toml", File),
            ("LICENSE", Symlink),
            ("build.rs", File),
            ("crates/a/Cargo.toml", File),
            ("crates/a/src/lib.rs", File),
            ("crates/a/fuzz/Cargo.toml", File),
            ("crates/a/fuzz/a.rs", File),
            ("crates/ab/src/lib.rs", File),
            ("src/a/b.rs", File),
            ("src/a/b.txt", File),
        ];
        assert_eq!(files("", &tree).expect("read"), ["build.rs", "crates/ab/src/lib.rs", "src/a/b.rs"]);
        assert_eq!(files("crates/a/", &tree).expect("read"), ["crates/a/src/lib.rs"]);
        for unread in [("src/more", Symlink), ("tests/a.rs", Symlink), ("a.rs", Symlink), ("data", Submodule)] {
            assert_eq!(files("", &[&tree[..], &[unread]].concat()), None, "{unread:?}");
        }
        assert!(files("crates/a/", &[&tree[..], &[("crates/a/fuzz/b.rs", Symlink)]].concat()).is_some());
        assert_eq!(
            ["Cargo.toml", "a/b/Cargo.toml"].map(|path| folder_of(&path.parse().expect("a path")).to_owned()),
            ["", "a/b/"]
        );
    }
}
