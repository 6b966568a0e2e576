//! The clone in the current folder: its repository, its branch, and its uncommitted changes.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use canonry_domain::RepoName;
use canonry_domain::review::{CommitSha, ReviewSubject};
use canonry_review::{CommitsError, Git, GitError, LocalChange};
use sha2::{Digest as _, Sha256};

use crate::output::exit::WrongUsage;

/// A clone with a history. Nothing in it is ever changed: neither branches nor the index nor files.
#[derive(Debug)]
pub(crate) struct LocalClone {
    git: Git,
    /// The root folder; `None` for a bare repository.
    root: Option<PathBuf>,
    folder: PathBuf,
}

/// The commit to review, and notes about it.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) sha: CommitSha,
    /// Whether the tracked files are as the commit has them.
    pub(crate) is_clean: bool,
    pub(crate) notes: Vec<String>,
}

impl LocalClone {
    /// The clone that contains this folder.
    pub(crate) async fn find(folder: &Path) -> Result<Self> {
        if !folder.is_dir() {
            bail!(WrongUsage(format!("there is no folder {}; name a clone with --work-tree", folder.display())));
        }
        let git = Git::new(folder);
        match ask(&git, "look for a repository", &["rev-parse", "--git-dir"]).await {
            Ok(_) => {}
            Err(GitError::Refused { said, .. }) if said.contains("not a git repository") => bail!(
                "{} is not in a git repository; go to a clone, or name one with --work-tree DIR",
                folder.canonicalize().unwrap_or_else(|_| folder.to_owned()).display()
            ),
            Err(error) => return Err(failed(&error)),
        }
        let top = ask(&git, "find the top of the clone", &["rev-parse", "--show-toplevel"]).await.ok();
        let root = top.filter(|top| !top.is_empty()).map(PathBuf::from);
        // Git runs in the root folder, so that paths and globs mean the same in every subfolder.
        let git = root.as_deref().map_or(git, Git::new);
        Ok(Self { git, root, folder: folder.to_owned() })
    }

    pub(crate) fn git(&self) -> &Git {
        &self.git
    }

    /// The root folder; `None` for a bare repository.
    pub(crate) fn root(&self) -> Option<&Path> {
        self.root.as_deref()
    }

    /// The current folder relative to the root; `None` at the root.
    pub(crate) fn folder_in_it(&self) -> Option<String> {
        let (folder, root) = (self.folder.canonicalize().ok()?, self.root.as_deref()?.canonicalize().ok()?);
        let below = folder.strip_prefix(root).ok()?.to_str()?;
        (!below.is_empty()).then(|| below.to_owned())
    }

    /// The repository on GitHub of which this is a clone, or `local/FOLDER-` and some digits. The digits distinguish
    /// it from other clones in folders of that name: lessons from one must not appear in another.
    pub(crate) async fn repo_name(&self) -> RepoName {
        self.names().await.swap_remove(0)
    }

    /// Every possible name of the repository, the most likely first.
    pub(crate) async fn names(&self) -> Vec<RepoName> {
        let mut names = self.names_on_github().await;
        let folder = self.root.as_deref().unwrap_or(&self.folder);
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        names.push(local_name(&name, &folder.to_string_lossy()));
        names
    }

    /// The repositories on GitHub that its remotes name, that of `origin` first.
    pub(crate) async fn names_on_github(&self) -> Vec<RepoName> {
        self.remotes_on_github().await.into_iter().map(|(_, name)| name).collect()
    }

    /// The remotes that name a repository on GitHub, `origin` first.
    pub(crate) async fn remotes_on_github(&self) -> Vec<(String, RepoName)> {
        let mut named = Vec::new();
        for remote in self.remotes().await {
            let url = ask(&self.git, "read a remote's address", &["remote", "get-url", "--", &remote]).await;
            named.extend(url.ok().and_then(|url| name_on_github(&url)).map(|name| (remote, name)));
        }
        named
    }

    /// The remotes, `origin` first, because a clone comes from there.
    async fn remotes(&self) -> Vec<String> {
        let listed = ask(&self.git, "list remotes", &["remote"]).await.unwrap_or_default();
        let mut remotes: Vec<String> = listed.lines().map(str::to_owned).collect();
        remotes.sort_by_key(|remote| remote != "origin");
        remotes
    }

    /// The commit that a name refers to, or an error that says what to do.
    pub(crate) async fn commit(&self, option: &str, name: &str) -> Result<CommitSha> {
        match self.git.commit(name).await {
            Ok(sha) => Ok(sha),
            Err(CommitsError::Unknown { name }) => {
                bail!("the clone has no commit {name:?}; run `git fetch`, or name another one with {option}")
            }
            Err(error) => Err(anyhow!("failed to {error}")),
        }
    }

    /// The commit to compare with. What comes before a first commit, such as `HEAD^` of one, is a commit without files.
    pub(crate) async fn base(&self, name: &str) -> Result<CommitSha> {
        let parent_of = ["^", "~1", "~"].iter().find_map(|end| name.strip_suffix(end));
        if let Some(child) = parent_of
            && let Ok(child) = self.git.commit(child).await
            && self.git.parents(&child).await.is_ok_and(|parents| parents.is_empty())
        {
            return self.git.empty_commit().await.map_err(|error| anyhow!("failed to {error}"));
        }
        self.commit("--base", name).await
    }

    /// The branch of a name, such as `main` of `origin/main`; `None` for another commit.
    pub(crate) async fn branch(&self, name: &str) -> Option<String> {
        let asked = ["rev-parse", "--symbolic-full-name", "--end-of-options", name];
        let full = ask(&self.git, "find the branch", &asked).await.unwrap_or_default();
        // Some versions of git also print `--end-of-options` itself.
        let full = full.lines().last().unwrap_or_default();
        let remote = || Some(full.strip_prefix("refs/remotes/")?.split_once('/')?.1);
        full.strip_prefix("refs/heads/").or_else(remote).map(str::to_owned)
    }

    /// The checked-out commit, if it is a merge of `head`: a CI checks that out and lints it.
    pub(crate) async fn checked_out_merge(&self, head: &CommitSha) -> Option<CommitSha> {
        let checked_out = self.git.commit("HEAD").await.ok()?;
        let parents = self.git.parents(&checked_out).await.ok()?;
        (parents.len() > 1 && parents.contains(head)).then_some(checked_out)
    }

    /// The branch into which changes are merged, with its name: the remote's default branch, else `main` or `master`.
    pub(crate) async fn default_base(&self) -> Result<(CommitSha, &'static str)> {
        for name in ["refs/remotes/origin/HEAD", "main", "origin/main", "master", "origin/master"] {
            match self.git.commit(name).await {
                Ok(sha) => return Ok((sha, name)),
                Err(CommitsError::Unknown { .. }) => {}
                Err(error) => return Err(anyhow!("failed to {error}")),
            }
        }
        bail!(WrongUsage("there is no branch main or master; name the base with --base REV".to_owned()))
    }

    /// The subject of a review: the branch of the head. A commit that is on no branch has a separate review.
    pub(crate) async fn subject(&self, head: Option<&str>, sha: &CommitSha, notes: &mut Vec<String>) -> ReviewSubject {
        if let Some(branch) = self.branch(head.unwrap_or("HEAD")).await {
            return ReviewSubject::Branch(branch);
        }
        notes.push(
            "the head is on no branch, so findings are not tracked across pushes; name the pull request with --pr or the branch \
             with --head"
                .to_owned(),
        );
        ReviewSubject::Branch(sha.short().to_owned())
    }

    /// The current commit together with the uncommitted changes of tracked files, as a commit that is on no branch.
    /// `mark` distinguishes two runs, and it cannot be guessed.
    pub(crate) async fn head_with_changes(&self, mark: &str) -> Result<Head> {
        let sha = match self.git.commit("HEAD").await {
            Ok(sha) => sha,
            Err(CommitsError::Unknown { .. }) => {
                bail!("the clone has no commit yet; commit something first, or review what is staged with --staged")
            }
            Err(error) => return Err(anyhow!("failed to {error}")),
        };
        let mut notes = Vec::new();
        if self.root.is_none() {
            return Ok(Head { sha, is_clean: true, notes });
        }
        let mut is_clean = false;
        let changed = match self.stashed(mark).await {
            Ok(made) if made.is_empty() => {
                is_clean = true;
                None
            }
            // Git makes a merge of the current commit and the index; a change has one commit more.
            Ok(made) => Some(self.git.commit_tree(&format!("{made}^{{tree}}"), Some(&sha)).await)
                .transpose()
                .map_err(|error| anyhow!("failed to {error}"))?,
            Err(error) => {
                notes.push(format!("uncommitted changes are not part of this review: {error}"));
                None
            }
        };
        if changed.is_some() {
            notes.push("uncommitted changes of tracked files are part of this review".to_owned());
        }
        let others = ["ls-files", "--others", "--exclude-standard", "--directory", "--no-empty-directory", "-z"];
        let untracked = ask(&self.git, "list untracked files", &others).await.unwrap_or_default();
        match untracked.split_terminator('\0').count() {
            0 => {}
            1 => notes.push("one untracked file or folder is not part of it; `git add` it first".to_owned()),
            count => notes.push(format!("{count} untracked files or folders are not part of it; `git add` them first")),
        }
        Ok(Head { sha: changed.unwrap_or(sha), is_clean, notes })
    }

    /// What the next commit would change: the current commit, or one without files if there is none, and a commit of the
    /// index, which is on no branch.
    pub(crate) async fn staged(&self, mark: &str) -> Result<(CommitSha, CommitSha)> {
        let before = match self.git.commit("HEAD").await {
            Ok(sha) => Some(sha),
            Err(CommitsError::Unknown { .. }) => None,
            Err(error) => return Err(anyhow!("failed to {error}")),
        };
        let copy = self.copied_index(mark).await.context("nothing is staged; `git add` something first")?;
        if let Some(index) = std::env::var_os("GIT_INDEX_FILE").map(PathBuf::from).filter(|index| index.is_file()) {
            // Git gives a hook of `git commit FILE` another index than the clone's.
            tokio::fs::copy(&index, &copy.0).await.context("the file that GIT_INDEX_FILE names cannot be read")?;
        }
        let git = self.git.clone().with_index(&copy.0);
        let tree = ask(&git, "read what is staged", &["write-tree"]).await.map_err(|error| failed(&error))?;
        let fails = |error: CommitsError| anyhow!("failed to {error}");
        let head = self.git.commit_tree(&tree, before.as_ref()).await.map_err(fails)?;
        let base = match before {
            Some(before) => before,
            None => self.git.empty_commit().await.map_err(fails)?,
        };
        Ok((base, head))
    }

    /// A copy of the index: git may rewrite it.
    async fn copied_index(&self, mark: &str) -> Result<IndexCopy> {
        let index = ask(&self.git, "find the index", &["rev-parse", "--path-format=absolute", "--git-path", "index"]);
        let index = index.await.map_err(|error| failed(&error))?;
        let copy = IndexCopy(std::env::temp_dir().join(format!("canonry-{mark}.index")));
        tokio::fs::copy(&index, &copy.0).await.context("the index cannot be read")?;
        Ok(copy)
    }

    /// A commit of the uncommitted changes; empty if there are none. It only creates objects: branches, the stash and
    /// the files stay as they are, and so does the index, because git gets a copy that it may rewrite.
    async fn stashed(&self, mark: &str) -> Result<String> {
        let copy = self.copied_index(mark).await?;
        // Filters that the clone's settings name would otherwise run on its files.
        let git = self.git.without_filters().await.map_err(|error| failed(&error))?.with_index(&copy.0);
        ask(&git, "read the uncommitted changes", &["stash", "create"]).await.map_err(|error| failed(&error))
    }
}

/// A file that is deleted when this is dropped.
struct IndexCopy(PathBuf);

impl Drop for IndexCopy {
    fn drop(&mut self) {
        // A leftover in the temporary folder does no harm.
        let _ = std::fs::remove_file(&self.0);
    }
}

async fn ask(git: &Git, what: &'static str, arguments: &[&str]) -> Result<String, GitError> {
    Ok(String::from_utf8_lossy(&git.ask(what, arguments).await?).trim_end_matches(['\n', '\r']).to_owned())
}

fn failed(error: &GitError) -> anyhow::Error {
    anyhow!("failed to {error}")
}

/// The repository in a remote's URL, if it is a URL of GitHub.
fn name_on_github(address: &str) -> Option<RepoName> {
    let address = address.trim();
    let (host, path) = match address.split_once("://") {
        Some((_, rest)) => {
            let (host, path) = rest.split_once('/')?;
            // User and port are not part of the name.
            let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
            (host.split(':').next().unwrap_or(host), path)
        }
        None => {
            let (host, path) = address.split_once(':')?;
            (host.rsplit_once('@').map_or(host, |(_, host)| host), path)
        }
    };
    let host = host.to_ascii_lowercase();
    // The host of GitHub Enterprise usually begins with `github.`, and hosted ones end with ghe.com.
    let on_github = host == "github.com"
        || host.starts_with("github.")
        || host.ends_with(".github.com")
        || host.ends_with(".ghe.com");
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    path.parse().ok().filter(|_| on_github)
}

/// `local/FOLDER`, with characters replaced that a repository's name cannot contain.
fn local_name(folder: &str, path: &str) -> RepoName {
    let fits = |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_' | '.');
    let name: String = folder.chars().take(90).map(|character| if fits(character) { character } else { '-' }).collect();
    let name = if name.chars().all(|character| character == '.') { "clone" } else { &name };
    let digest = Sha256::digest(path.as_bytes());
    let digits = canonry_domain::hex_digits(&digest[..3]);
    format!("local/{name}-{digits}").parse().expect("invariant: made of what a name may hold")
}

/// Reads the change between two commits, such as `main..HEAD`, of the clone in this folder.
pub(crate) async fn change_in(range: &str) -> Result<LocalChange> {
    let usage = || WrongUsage(format!("{range:?} is no change; write BASE..HEAD, for example main..HEAD"));
    let (base, head) = range.split_once("..").ok_or_else(usage)?;
    let head = head.trim_start_matches('.');
    if base.is_empty() {
        bail!(usage());
    }
    let clone = LocalClone::find(Path::new(".")).await.context("--diff needs a clone of the repository")?;
    let base = clone.commit("--diff", base).await?;
    let head = clone.commit("--diff", if head.is_empty() { "HEAD" } else { head }).await?;
    let change = clone.git().local_change(&base, &head).await.map_err(|error| anyhow!("failed to {error}"))?;
    if change.changes.is_empty() {
        bail!(WrongUsage(format!("there is no change in {range}; name two commits that differ")));
    }
    Ok(change)
}

#[cfg(test)]
mod tests {
    use super::{local_name, name_on_github};

    #[test]
    fn addresses_of_github_name_a_repository() {
        for (address, name) in [
            ("https://github.com/octo/cat.git", Some("octo/cat")),
            ("https://github.com/octo/cat/", Some("octo/cat")),
            ("https://x-access-token:ghs_abc@github.com/octo/cat", Some("octo/cat")),
            ("git@github.com:octo/cat.git", Some("octo/cat")),
            ("ssh://git@ssh.github.com:443/octo/cat.git", Some("octo/cat")),
            ("https://github.example.com/octo/cat", Some("octo/cat")),
            ("https://octo.ghe.com/octo/cat.git", Some("octo/cat")),
            ("https://gitlab.com/octo/cat.git", None),
            ("https://notgithub.com/octo/cat.git", None),
            ("https://github.com/octo", None),
            ("https://github.com/octo/cat/tree/main", None),
            ("../cat.git", None),
            ("/srv/git/cat.git", None),
            ("file:///srv/github.com/cat.git", None),
            ("", None),
        ] {
            assert_eq!(name_on_github(address).map(|name| name.to_string()).as_deref(), name, "{address}");
        }
    }

    #[test]
    fn every_folder_has_a_name() {
        for (folder, name) in [
            ("cat", "local/cat-a3d9ac"),
            ("my clone (2)", "local/my-clone--2--a3d9ac"),
            ("猫", "local/--a3d9ac"),
            ("..", "local/clone-a3d9ac"),
            ("", "local/clone-a3d9ac"),
        ] {
            assert_eq!(local_name(folder, "/srv").to_string(), name, "{folder}");
        }
        assert_eq!(local_name(&"x".repeat(300), "/srv").name().len(), 97);
        assert_ne!(local_name("cat", "/one/cat"), local_name("cat", "/other/cat"));
    }
}
