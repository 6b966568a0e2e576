//! What a repository wants of reviews: the settings file of its default branch, whatever a change says.

use canonry_config::{RepoConfig, SETTINGS_FILE, SettingsSection, parse};
use canonry_store::Repo;

use crate::handlers::repo_settings::settings_text;
use crate::jobs::job_handler::JobError;
use crate::service::Service;

/// Settings, and what was wrong with them.
#[derive(Debug, Clone)]
pub(crate) struct ReviewWishes {
    /// The settings, with defaults wherever the file says nothing or nothing usable.
    pub(crate) config: RepoConfig,
    /// What was wrong, in sentences for the details of a review.
    pub(crate) notes: Vec<String>,
    /// Whether the section `review` could be read, or is not there.
    pub(crate) readable: bool,
}

/// The settings as they are now; while GitHub is down the last ones hold.
pub(crate) async fn review_settings(service: &Service, repo: &Repo) -> Result<ReviewWishes, JobError> {
    Ok(wishes_of(settings_text(service, repo).await?.as_deref()))
}

fn wishes_of(text: Option<&str>) -> ReviewWishes {
    let parsed = parse(text.unwrap_or_default());
    ReviewWishes {
        notes: parsed.problems.iter().map(|problem| format!("{SETTINGS_FILE}: {problem}")).collect(),
        readable: !parsed.fell_back(SettingsSection::Review),
        config: parsed.config,
    }
}

#[cfg(test)]
mod tests {
    use super::wishes_of;

    #[test]
    fn a_mistake_is_told_and_a_file_without_any_sense_wants_nothing() {
        let no_file = wishes_of(None);
        assert!(no_file.readable && no_file.notes.is_empty() && !no_file.config.review.enabled);
        let elsewhere = wishes_of(Some("review: {enabled: true}\ntriage: {mode: loud}"));
        assert!(elsewhere.readable && elsewhere.config.review.enabled && elsewhere.notes.len() == 1);
        for senseless in ["- a list", "{", "just words", "review: {enabled: true, maxComments: 99}", "reviews: {}"] {
            let wishes = wishes_of(Some(senseless));
            assert!(!wishes.readable && !wishes.config.review.enabled && wishes.notes.len() == 1, "{senseless}");
        }
    }
}
