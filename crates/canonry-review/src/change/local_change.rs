//! Reads a local change in the form of a pull request: its messages, paths and changed lines.

use canonry_boxed::boxed;
use canonry_domain::PullChanges;
use canonry_domain::review::CommitSha;

use crate::change::git::{Git, GitError};

/// A change in a clone that may become a pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalChange {
    /// The messages of its commits, oldest first.
    pub messages: String,
    pub changes: PullChanges,
}

#[boxed]
impl Git {
    /// Reads the change from where `head` left `base`, as a pull request would show it.
    pub async fn local_change(&self, base: &CommitSha, head: &CommitSha) -> Result<LocalChange, GitError> {
        let fork = self.merge_base(base, head).await?;
        let fork = fork.as_ref().unwrap_or(base);
        let patch = self.patch(fork, head).await?;
        let span = format!("{fork}..{head}");
        // The clone's configuration could name a program that checks signatures, and another encoding.
        let log = ["log", "--no-show-signature", "--encoding=UTF-8", "--reverse", "--format=%B", &span, "--"];
        let messages = self.ask("read the messages of the commits", &log).await?;
        Ok(LocalChange {
            messages: String::from_utf8_lossy(&messages).into_owned(),
            changes: PullChanges::of_patches(changed_files(&String::from_utf8_lossy(&patch)).into_iter()),
        })
    }
}

/// The files of a patch, each with its path and its hunks.
pub fn changed_files(patch: &str) -> Vec<(&str, &str)> {
    let is_start = |at: &usize| *at == 0 || patch.as_bytes().get(at - 1) == Some(&b'\n');
    let starts: Vec<usize> = patch.match_indices("diff --git ").map(|(at, _)| at).filter(is_start).collect();
    let ends = starts.iter().skip(1).copied().chain([patch.len()]);
    let parts = starts.iter().zip(ends).map(|(start, end)| &patch[*start..end]);
    parts
        .filter_map(|part| {
            let (header, hunks) = part.split_at(part.find("\n@@").unwrap_or(part.len()));
            // A name with a space ends with a tab; one with special characters is quoted.
            let named = |mark: &str, side: &str| {
                let name = header.lines().find_map(|line| line.strip_prefix(mark))?.trim_end_matches('\t');
                name.trim_matches('"').strip_prefix(side)
            };
            // A binary file has no such lines.
            let of_header = || header.lines().next()?.rsplit_once(" b/").map(|(_, path)| path);
            let path = named("+++ ", "b/").or_else(|| named("--- ", "a/")).or_else(of_header)?;
            Some((path, hunks))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::changed_files;

    #[test]
    fn a_patch_is_divided_into_files() {
        let patch = "diff --git a/a.rs b/a.rs\n--- a/a.rs\n+++ b/a.rs\n@@ -1 +1 @@\n-one\n+two diff --git x\n\
            diff --git a/old.rs b/old.rs\ndeleted file mode 100644\n--- a/old.rs\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n\
            diff --git a/b.png b/b.png\nBinary files differ\n\
            diff --git \"a/q\\\"t\" \"b/q\\\"t\"\n--- \"a/q\\\"t\"\n+++ \"b/q\\\"t\"\n@@ -1 +1 @@\n+x\n\
            diff --git a/my file b/my file\n--- a/my file\t\n+++ b/my file\t\n@@ -1 +1 @@\n+x\n";
        let files = changed_files(patch);
        assert_eq!((files.len(), files[2]), (5, ("b.png", "")), "{files:?}");
        assert_eq!((files[3].0, files[4].0), ("q\\\"t", "my file"), "{files:?}");
        assert_eq!((files[0].0, files[1].0), ("a.rs", "old.rs"));
        assert!(files[0].1.contains("+two diff --git x") && !files[0].1.contains("+++"), "{files:?}");
    }
}
