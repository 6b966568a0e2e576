//! Provides a git repository in a temporary folder.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use canonry_domain::review::{CommitSha, RepoPath};
use canonry_review::{Git, Repository};
use tempfile::TempDir;

pub(crate) struct TestRepository {
    folder: TempDir,
}

impl TestRepository {
    /// An empty repository with a branch `main`.
    pub(crate) fn new() -> Self {
        let repository = Self { folder: tempfile::tempdir().expect("a temporary folder") };
        repository.run(&["init", "--quiet", "--initial-branch=main"]);
        repository
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn git(&self) -> Git {
        Git::new(self.folder())
    }

    pub(crate) fn local(&self) -> Repository {
        Repository::Local(self.git())
    }

    /// Runs git as a developer would, with none of this machine's settings.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .arg("-C")
            .arg(self.folder())
            .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false"])
            .args(["-c", "protocol.file.allow=always", "-c", "core.autocrlf=false"])
            .args(arguments)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_AUTHOR_DATE", "2026-01-02T03:04:05Z")
            .env("GIT_COMMITTER_DATE", "2026-01-02T03:04:05Z")
            .output()
            .expect("git runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {arguments:?}: {said}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    pub(crate) fn path(&self, path: impl AsRef<OsStr>) -> PathBuf {
        self.folder().join(path.as_ref())
    }

    pub(crate) fn write(&self, path: impl AsRef<OsStr>, content: impl AsRef<[u8]>) -> &Self {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().expect("inside the folder")).expect("a folder");
        std::fs::write(path, content).expect("a file");
        self
    }

    /// Writes a file whose name is these bytes.
    pub(crate) fn write_bytes(&self, path: &[u8], content: &str) -> &Self {
        self.write(OsStr::from_bytes(path), content)
    }

    /// Writes a file with numbered lines, each different.
    pub(crate) fn write_lines(&self, path: &str, lines: impl IntoIterator<Item = u32>) -> &Self {
        let text: String = lines.into_iter().map(|line| format!("line {line};\n")).collect();
        self.write(path, text)
    }

    pub(crate) fn commit(&self, message: &str) -> CommitSha {
        self.run(&["add", "--all", "."]);
        self.run(&["commit", "--quiet", "--allow-empty", "--message", message]);
        self.head()
    }

    pub(crate) fn head(&self) -> CommitSha {
        self.run(&["rev-parse", "HEAD"]).parse().expect("a commit's id")
    }

    pub(crate) fn branch(&self, name: &str) -> &Self {
        self.run(&["switch", "--quiet", "--create", name]);
        self
    }

    pub(crate) fn switch(&self, name: &str) -> &Self {
        self.run(&["switch", "--quiet", name]);
        self
    }

    pub(crate) fn url(&self) -> String {
        format!("file://{}", self.folder().display())
    }
}

pub(crate) fn path(text: &str) -> RepoPath {
    RepoPath::exact(text).expect("a path")
}
