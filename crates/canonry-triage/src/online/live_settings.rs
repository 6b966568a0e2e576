//! Reads a repository's settings as they are on its default branch now.

use canonry_boxed::boxed;
use canonry_config::{MAX_FILE_BYTES, ParsedSettings, SETTINGS_FILE, SettingsSection};
use canonry_domain::TriageMode;
use canonry_github::{GitHub, GitHubError};
use canonry_store::{Repo, Store, StoreError};
use jiff::SignedDuration;

/// How long fetched settings stay valid; a push to the default branch invalidates them at once.
const FRESH: SignedDuration = SignedDuration::from_mins(10);
/// The stored text for a file that exists but cannot be read: a list is not valid settings, so it counts as a mistake
/// and never as a choice.
const UNREADABLE: &str = "- this file cannot be read";

/// Why the current settings are unknown.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the settings could not be fetched: {0}")]
    GitHub(#[source] GitHubError),
}

/// The text of the settings file, fetched if the stored one is too old; `None` if there is no such file.
#[boxed]
pub async fn live_settings(store: &Store, github: &GitHub, repo: &Repo) -> Result<Option<String>, SettingsError> {
    let now = github.now();
    if let Some(kept) = store.repos().settings(repo.id).await?
        && now.duration_since(kept.fetched_at).abs() < FRESH
    {
        return Ok(kept.text);
    }
    let text = match github.default_branch_file(&repo.name, SETTINGS_FILE, MAX_FILE_BYTES).await {
        Ok(file) => file.map(|file| file.text),
        Err(error @ (GitHubError::BadAnswer { .. } | GitHubError::Forbidden { .. })) => {
            tracing::warn!(repo = %repo.name, %error, "the settings cannot be read; nothing is written until they can");
            Some(UNREADABLE.to_owned())
        }
        Err(error) => return Err(SettingsError::GitHub(error)),
    };
    store.repos().write_settings(repo.id, text.as_deref(), now).await?;
    Ok(text)
}

/// The triage mode in these settings. A section with a mistake never comments: its meaning is unknown, and nobody
/// asked for comments.
pub fn triage_mode(settings: &ParsedSettings) -> TriageMode {
    if settings.fell_back(SettingsSection::Triage) { TriageMode::Shadow } else { settings.config.triage.mode }
}

#[cfg(test)]
mod tests {
    use canonry_config::parse;
    use canonry_domain::TriageMode;

    use super::{UNREADABLE, triage_mode};

    #[test]
    fn a_mistake_never_speaks() {
        let mode = |text| triage_mode(&parse(text));
        assert_eq!(mode("triage: {mode: suggest}"), TriageMode::Suggest);
        assert_eq!(mode("triage: {mode: off}"), TriageMode::Off);
        assert_eq!(mode("triage: {mode: grace, cooldownHours: 1}"), TriageMode::Grace);
        for text in ["triage: {mode: suggest, maxCandidates: 99}", "triage: {mode: loud}", UNREADABLE, "{"] {
            assert_eq!(mode(text), TriageMode::Shadow, "{text}");
        }
        // A mistake in another section does not matter.
        assert_eq!(mode("triage: {mode: suggest}\nreview: {maxComments: 0}"), TriageMode::Suggest);
    }
}
