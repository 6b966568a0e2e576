//! Real git behind an emulated repository: a bare repository in a temporary folder, used through `git`.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use tempfile::TempDir;

/// The stand-in for a missing parent.
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
/// Allows fetching any commit by its SHA, allows partial fetches by a filter, and hides the branches of forks.
const CONFIG: &str = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n\
    [uploadpack]\n\tallowAnySHA1InWant = true\n\tallowFilter = true\n\
    [transfer]\n\thideRefs = refs/forks\n[gc]\n\tauto = 0\n";

/// A bare repository. Its clones share the folder; objects are only ever added.
#[derive(Debug, Clone)]
pub struct GitRepository {
    folder: Arc<TempDir>,
}

pub(crate) struct CommitParts<'parts> {
    pub(crate) branch: &'parts str,
    pub(crate) parent: Option<&'parts str>,
    pub(crate) author: &'parts str,
    /// Seconds since 1970.
    pub(crate) at: i64,
    pub(crate) message: &'parts str,
    pub(crate) files: Vec<(&'parts str, &'parts [u8])>,
}

impl GitRepository {
    /// An empty repository; a bare one is simple enough to write directly.
    pub(crate) fn empty(default_branch: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("emulated-git-").tempdir().expect("a temporary folder");
        for inner in ["objects", "refs/heads"] {
            fs::create_dir_all(folder.path().join(inner)).expect("a folder of the repository");
        }
        fs::write(folder.path().join("HEAD"), format!("ref: refs/heads/{default_branch}\n")).expect("HEAD is written");
        fs::write(folder.path().join("config"), CONFIG).expect("the configuration is written");
        Self { folder: Arc::new(folder) }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Commits a tree onto a branch, whatever the branch contained before, and returns the SHA.
    pub(crate) fn commit(&self, parts: &CommitParts<'_>) -> String {
        let reference = reference(parts.branch);
        let who = format!("{0} <{0}@users.example.com> {1} +0000", parts.author, parts.at);
        let mut stream = format!(
            "commit {reference}\nmark :1\nauthor {who}\ncommitter {who}\ndata {}\n{}\n",
            parts.message.len(),
            parts.message
        )
        .into_bytes();
        if let Some(parent) = parts.parent {
            stream.extend(format!("from {parent}\n").into_bytes());
        }
        stream.extend(b"deleteall\n");
        for (path, bytes) in &parts.files {
            stream.extend(format!("M 100644 inline {}\ndata {}\n", quoted(path), bytes.len()).into_bytes());
            stream.extend_from_slice(bytes);
            stream.push(b'\n');
        }
        stream.extend(b"get-mark :1\ndone\n");
        text(&self.git(&["fast-import", "--quiet", "--force", "--done"], &stream))
    }

    /// Points a reference (`refs/pull/7/head`) to a commit.
    pub(crate) fn point(&self, reference: &str, sha: &str) {
        let file = self.path().join(reference);
        fs::create_dir_all(file.parent().expect("invariant: a reference has a folder")).expect("a folder of refs");
        fs::write(file, format!("{sha}\n")).expect("the reference is written");
    }

    pub(crate) fn forget_branch(&self, branch: &str) {
        let file = self.path().join(reference(branch));
        fs::remove_file(file).expect("the branch has a reference of its own");
    }

    /// The merge base of two commits; the first commit if they share nothing.
    pub(crate) fn merge_base(&self, first: &str, second: &str) -> String {
        let found = self.try_git(&["merge-base", first, second], &[], None);
        found.map_or_else(|_| first.to_owned(), |output| text(&output))
    }

    /// The commits from one commit to another, oldest first, without the first.
    pub(crate) fn between(&self, from: &str, to: &str) -> Vec<String> {
        let output = self.git(&["rev-list", "--reverse", &format!("{from}..{to}")], &[]);
        text(&output).lines().map(str::to_owned).collect()
    }

    /// The changes between two commits (`None` is the empty tree) with `context` lines of context: a list of paths
    /// that ends with two NULs, then the patches in the same order.
    pub(crate) fn diff(&self, from: Option<&str>, to: &str, context: u8) -> Vec<u8> {
        let context = format!("-U{context}");
        let arguments = ["diff-tree", "-r", "-p", "--raw", "-z", "-M", "--full-index", &context];
        self.git(&[&arguments[..], &[from.unwrap_or(EMPTY_TREE), to]].concat(), &[])
    }

    pub(crate) fn tree(&self, commit: &str) -> String {
        text(&self.git(&["rev-parse", &format!("{commit}^{{tree}}")], &[]))
    }

    pub(crate) fn file_at(&self, commit: &str, path: &str) -> Option<Vec<u8>> {
        self.try_git(&["cat-file", "blob", &format!("{commit}:{path}")], &[], None).ok()
    }

    /// The answer of `git upload-pack` to one request.
    pub(crate) fn upload_pack(&self, advertise: bool, protocol: Option<&str>, input: &[u8]) -> Result<Vec<u8>, String> {
        let mut arguments = vec!["upload-pack", "--stateless-rpc", "--timeout=20"];
        if advertise {
            arguments.push("--advertise-refs");
        }
        arguments.push(".");
        self.try_git(&arguments, input, protocol)
    }

    fn git(&self, arguments: &[&str], input: &[u8]) -> Vec<u8> {
        self.try_git(arguments, input, None).unwrap_or_else(|error| panic!("git {}: {error}", arguments.join(" ")))
    }

    /// Git runs without any user's settings, so SHAs and diffs are the same on every machine.
    fn try_git(&self, arguments: &[&str], input: &[u8], protocol: Option<&str>) -> Result<Vec<u8>, String> {
        let mut command = Command::new("git");
        command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command.env("GIT_DIR", self.path()).env("HOME", self.path()).env("GIT_CONFIG_NOSYSTEM", "1").env("LC_ALL", "C");
        if let Some(protocol) = protocol {
            command.env("GIT_PROTOCOL", protocol);
        }
        command.current_dir(self.path()).args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("git does not start: {error}"))?;
        let stdin = child.stdin.take();
        let output = std::thread::scope(|scope| {
            // A separate thread writes, because both pipes may be full at once.
            scope.spawn(move || {
                // If git ends early, it reports the reason on stderr.
                let _ = stdin.map(|mut stdin| stdin.write_all(input));
            });
            child.wait_with_output()
        });
        let output = output.map_err(|error| error.to_string())?;
        if output.status.success() {
            Ok(output.stdout)
        } else {
            Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
        }
    }
}

/// A path as fast-import reads it, whatever characters it has.
fn quoted(path: &str) -> String {
    format!("\"{}\"", path.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

/// A branch's reference; `mallory:fix` is a branch of a fork, which the list of branches hides.
fn reference(branch: &str) -> String {
    match branch.split_once(':') {
        Some((owner, name)) => format!("refs/forks/{owner}/{name}"),
        None => format!("refs/heads/{branch}"),
    }
}

fn text(output: &[u8]) -> String {
    String::from_utf8_lossy(output).trim().to_owned()
}
