//! Reads comments on a diff and the conversations they started.

use canonry_domain::GithubId;

use super::find_write::{COMMENT_GONE, same_text};
use super::progress::Event;
use super::write_job::WriteJob;
use crate::api::{RestReviewComment, RestReviewThread, RestUser, ThreadComment};
use crate::http::error::GitHubError;

/// Why a conversation is not resolved if another account wrote in it or started it.
pub const THREAD_NOT_OURS: &str = "somebody else takes part in the conversation";

/// Why a conversation is not resolved if GitHub does not allow it.
pub const THREAD_FORBIDDEN: &str = "GitHub does not allow this account to resolve the conversation";

/// Why a conversation is not resolved if its first comment was deleted.
pub const THREAD_GONE: &str = "the conversation is gone";

pub(super) enum Conversation {
    Open(String),
    Resolved,
    NotOurs,
    Gone,
}

/// A comment on the diff that is to get another text.
pub(super) enum CommentToEdit {
    Ours(Box<RestReviewComment>),
    /// Why it must not be changed.
    Untouchable(&'static str),
}

impl Conversation {
    pub(super) fn seen(self) -> Event {
        match self {
            Self::Open(_) => Event::SawAbsent,
            Self::Resolved => Event::SawThere { objected: false },
            Self::NotOurs => Event::SawAgainst(THREAD_NOT_OURS.to_owned()),
            Self::Gone => Event::SawAgainst(THREAD_GONE.to_owned()),
        }
    }
}

impl WriteJob<'_> {
    /// The conversation that a comment of ours started.
    pub(super) async fn conversation(&self, comment: GithubId) -> Result<Conversation, GitHubError> {
        let threads = self.outbox.github.review_threads(&self.entry.repo.name, self.entry.number).await?;
        let began = |thread: &RestReviewThread| thread.comments.first().is_some_and(|first| first.id == comment);
        let Some(thread) = threads.into_iter().find(began) else { return Ok(Conversation::Gone) };
        if thread.is_resolved {
            return Ok(Conversation::Resolved);
        }
        // The account alone does not decide: the token may be a person's, who also replies in our conversations.
        let wrote = |comment: &ThreadComment| self.outbox.wrote_as(comment.author.as_ref(), &comment.body);
        let alone = thread.comments.iter().all(wrote);
        Ok(if alone && !thread.more_comments { Conversation::Open(thread.id) } else { Conversation::NotOurs })
    }

    /// Whether a comment on the diff has the wanted text.
    pub(super) async fn find_review_comment_edit(&self, id: GithubId, body: &str) -> Result<Event, GitHubError> {
        Ok(match self.own_review_comment(id).await? {
            CommentToEdit::Ours(comment) if same_text(&comment.body, &self.with_own_markers(&comment, body)) => {
                Event::SawThere { objected: false }
            }
            CommentToEdit::Ours(_) => Event::SawAbsent,
            CommentToEdit::Untouchable(reason) => Event::SawAgainst(reason.to_owned()),
        })
    }

    /// A comment on the diff, if the outbox wrote it.
    pub(super) async fn own_review_comment(&self, id: GithubId) -> Result<CommentToEdit, GitHubError> {
        match self.outbox.github.review_comment(&self.entry.repo.name, id).await {
            Ok(comment) if self.outbox.wrote_review_comment(&comment) => Ok(CommentToEdit::Ours(Box::new(comment))),
            Ok(_) => Ok(CommentToEdit::Untouchable("the comment is not ours")),
            Err(GitHubError::NotFound { .. } | GitHubError::Gone { .. }) => {
                Ok(CommentToEdit::Untouchable(COMMENT_GONE))
            }
            Err(error) => Err(error),
        }
    }

    /// A new text for a comment, with its present markers.
    pub(super) fn with_own_markers(&self, comment: &RestReviewComment, body: &str) -> String {
        let outbox = self.outbox;
        let author = comment.user.as_ref().and_then(RestUser::to_login);
        let own = |author| outbox.signer.find_with_texts(&comment.body, &author, &outbox.own);
        let markers: Vec<&str> = author.map(own).unwrap_or_default().into_iter().map(|(_, text)| text).collect();
        format!("{}\n\n{}", body.trim_end(), markers.join("\n"))
    }
}
