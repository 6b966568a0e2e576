//! The repositories whose drafts anybody may check: those that the operator named, while they are public on GitHub.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use canonry_domain::RepoName;
use canonry_github::{GitHub, GitHubError};
use canonry_store::Repo;
use jiff::{SignedDuration, Timestamp};

/// How long GitHub's answer counts: strangers see a repository that becomes private for this much longer.
const BELIEVED: SignedDuration = SignedDuration::from_mins(5);
/// How long the last yes counts while GitHub does not answer.
const BELIEVED_WITHOUT_ANSWER: SignedDuration = SignedDuration::from_hours(1);

pub(crate) struct PublicChecks {
    named: Vec<RepoName>,
    answers: Mutex<HashMap<RepoName, (Timestamp, bool)>>,
}

impl PublicChecks {
    pub(crate) fn new(named: Vec<RepoName>) -> Self {
        Self { named, answers: Mutex::default() }
    }

    /// Whether the operator named the repository.
    pub(crate) fn includes(&self, name: &RepoName) -> bool {
        self.named.iter().any(|named| named.key() == name.key())
    }

    /// Whether the repository is public on GitHub. A service without credentials cannot ask; there the operator's word counts.
    pub(crate) async fn is_public(&self, github: Option<&GitHub>, repo: &Repo, now: Timestamp) -> bool {
        let Some(github) = github else { return true };
        let earlier = self.lock().get(&repo.name).map(|(at, answer)| (at.duration_until(now).abs(), *answer));
        if let Some((_, answer)) = earlier.filter(|(age, _)| *age < BELIEVED) {
            return answer;
        }
        let answer = match github.repo(&repo.name).await {
            // Another repository may have the name by now.
            Ok(found) => !found.private && repo.github_id.is_none_or(|id| id == found.github_id()),
            Err(GitHubError::NotFound { .. }) => false,
            Err(error) => {
                tracing::warn!(repo = %repo.name, %error, "GitHub did not say whether the repository is public");
                return earlier.is_some_and(|(age, answer)| answer && age < BELIEVED_WITHOUT_ANSWER);
            }
        };
        self.lock().insert(repo.name.clone(), (now, answer));
        answer
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RepoName, (Timestamp, bool)>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
