//! What a failure means for its job: another try, a wait, or the end.

use canonry_domain::redact;
use canonry_github::GitHubError;
use canonry_github::outbox::OutboxError;
use canonry_review::MaintainershipError;
use canonry_store::StoreError;
use canonry_triage::{ClosingError, DetectError, GraceError, IdentifyError, SyncError, TriageError, UndoError};

use crate::jobs::job_handler::JobError;

const MOST_WORDS: usize = 400;

/// An error as text that may be stored: one line, of limited length, without secrets.
pub(crate) fn in_words(error: &dyn std::error::Error) -> String {
    let line: String = error
        .to_string()
        .chars()
        .map(|character| if character.is_control() { ' ' } else { character })
        .take(MOST_WORDS)
        .collect();
    redact(&line)
}

impl From<StoreError> for JobError {
    fn from(error: StoreError) -> Self {
        Self::Retry(in_words(&error))
    }
}

impl From<GitHubError> for JobError {
    fn from(error: GitHubError) -> Self {
        let words = in_words(&error);
        match error {
            GitHubError::RateLimited { until } => Self::Postpone { reason: words, until },
            // The operator may replace a refused key while the job waits.
            GitHubError::Unauthorized { .. } => Self::Unavailable(words),
            error if error.is_passing() => Self::Unavailable(words),
            // GitHub sometimes forbids what it allows a minute later, and permissions are sometimes granted late.
            GitHubError::Forbidden { .. } | GitHubError::BadAnswer { .. } => Self::Retry(words),
            _ => Self::Hopeless(words),
        }
    }
}

impl From<IdentifyError> for JobError {
    fn from(error: IdentifyError) -> Self {
        match error {
            IdentifyError::GitHub(error) => error.into(),
            IdentifyError::Store(error) => error.into(),
            error => Self::Hopeless(in_words(&error)),
        }
    }
}

impl From<SyncError> for JobError {
    fn from(error: SyncError) -> Self {
        match error {
            SyncError::Identify(error) => error.into(),
            SyncError::GitHub(error) => error.into(),
            SyncError::Store(error) => error.into(),
        }
    }
}

impl From<MaintainershipError> for JobError {
    fn from(error: MaintainershipError) -> Self {
        match error {
            MaintainershipError::GitHub(error) => error.into(),
            MaintainershipError::Store(error) => error.into(),
        }
    }
}

impl From<GraceError> for JobError {
    fn from(error: GraceError) -> Self {
        match error {
            GraceError::Store(error) => error.into(),
            GraceError::Outbox(error) => error.into(),
        }
    }
}

impl From<UndoError> for JobError {
    fn from(error: UndoError) -> Self {
        match error {
            UndoError::NothingToUndo(words) => Self::Hopeless(words),
            UndoError::Ended(error) => error.into(),
        }
    }
}

impl From<ClosingError> for JobError {
    fn from(error: ClosingError) -> Self {
        match error {
            ClosingError::Store(error) => error.into(),
            ClosingError::Outbox(error) => error.into(),
            ClosingError::Identify(error) => error.into(),
            ClosingError::Busy(words) => Self::Unavailable(words),
        }
    }
}

impl From<OutboxError> for JobError {
    fn from(error: OutboxError) -> Self {
        match error {
            OutboxError::GitHub(error) => error.into(),
            OutboxError::Store(error) => error.into(),
            error => Self::Retry(in_words(&error)),
        }
    }
}

impl From<TriageError> for JobError {
    fn from(error: TriageError) -> Self {
        match error {
            TriageError::Detect(DetectError::GitHub(error)) => error.into(),
            TriageError::Detect(DetectError::Store(error)) | TriageError::Store(error) => error.into(),
            TriageError::Outbox(error) => error.into(),
            TriageError::Detect(
                error @ (DetectError::Unknown { .. }
                | DetectError::OtherType { .. }
                | DetectError::UnknownFiling { .. }),
            ) => Self::Hopeless(in_words(&error)),
            TriageError::Detect(error @ DetectError::TooFewEmbedded { .. }) => Self::Retry(in_words(&error)),
            // A model's message may quote the text it was given, so it is not repeated.
            TriageError::JudgeFailed { repo, number, .. } => {
                Self::Retry(format!("the judge gave no usable answer about {repo} #{number}"))
            }
            TriageError::Detect(DetectError::Embed(_)) | TriageError::Embed(_) => {
                Self::Retry("the embedder failed".to_owned())
            }
            TriageError::Analyze(_) => Self::Retry("the extractor of intent cards failed".to_owned()),
            TriageError::Detect(DetectError::Retrieval(_)) => {
                Self::Retry("the neighbours could not be searched".to_owned())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use canonry_github::GitHubError;

    use super::JobError;

    #[test]
    fn what_passes_is_waited_for_and_only_what_stays_so_is_given_up() {
        let (what, message) = ("/repos/tide/pool".to_owned(), "no".to_owned());
        let waits = [
            GitHubError::Network { host: "api.github.com".to_owned(), detail: "refused".to_owned() },
            GitHubError::Unavailable { what: what.clone(), status: 502, tries: 2 },
            GitHubError::Unauthorized { credential: "the token", advice: "make a new one" },
        ];
        for error in waits {
            assert!(matches!(JobError::from(error), JobError::Unavailable(_)));
        }
        let forbidden = GitHubError::Forbidden { what: what.clone(), message: message.clone(), needs: None, has: None };
        assert!(matches!(JobError::from(forbidden), JobError::Retry(_)));
        assert!(matches!(JobError::from(GitHubError::Gone { what, message }), JobError::Hopeless(_)));
        let until = "2026-03-01T00:00:00Z".parse().expect("valid");
        assert!(
            matches!(JobError::from(GitHubError::RateLimited { until }), JobError::Postpone { until: at, .. } if at == until)
        );
    }
}
