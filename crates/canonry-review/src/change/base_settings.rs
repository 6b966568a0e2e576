//! Reads a repository's settings from the base commit of a change.

use canonry_boxed::boxed;
use canonry_config::{MAX_FILE_BYTES, RepoConfig, SETTINGS_FILE, parse_bytes};
use canonry_domain::review::{CommitSha, RepoPath};

use crate::change::git::{Git, GitError};

#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReadSettings {
    /// The settings; a setting that is missing or invalid in the file has its default.
    pub config: RepoConfig,
    pub notes: Vec<String>,
    pub has_file: bool,
}

/// Reads the settings file of the base commit. The head's file is never used: a change must not silence its own review.
/// The defaults apply if there is no file or git fails.
#[boxed]
pub async fn read_settings(git: &Git, base: &CommitSha) -> ReadSettings {
    match settings_file(git, base).await {
        Ok(None) => ReadSettings::default(),
        Ok(Some(bytes)) => {
            let parsed = parse_bytes(&bytes);
            let notes = parsed.problems.iter().map(|problem| format!("{SETTINGS_FILE}: {problem}")).collect();
            ReadSettings { config: parsed.config, notes, has_file: true }
        }
        Err(error) => ReadSettings {
            notes: vec![format!("{SETTINGS_FILE} is not used, so the defaults apply: failed to {error}")],
            ..ReadSettings::default()
        },
    }
}

async fn settings_file(git: &Git, base: &CommitSha) -> Result<Option<Vec<u8>>, GitError> {
    let path = RepoPath::exact(SETTINGS_FILE).expect("invariant: the settings file's name is a path");
    if !git.files_at(base, &[&path]).await?.contains_key(&path) {
        return Ok(None);
    }
    let blobs = git.blobs_at(base, &[&path]).await?;
    // The file exists but cannot be read. That is an error, not a repository without settings.
    let blob = blobs.get(&path).ok_or(GitError::NotHere { what: "read the settings" })?;
    // One byte more than the limit, so that the parser reports that the file is too large.
    if blob.bytes > MAX_FILE_BYTES as u64 {
        return Ok(Some(vec![b' '; MAX_FILE_BYTES + 1]));
    }
    git.ask("read the settings", &["cat-file", "blob", &blob.id]).await.map(Some)
}
