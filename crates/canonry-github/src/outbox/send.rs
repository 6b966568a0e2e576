//! Sends one act of an entry, once.

use std::time::Duration;

use canonry_domain::GithubId;

use super::draft_review::OTHER_WORDS;
use super::find_thread::{CommentToEdit, Conversation, THREAD_FORBIDDEN, THREAD_GONE, THREAD_NOT_OURS};
use super::find_write::{written, written_on_diff};
use super::progress::{Act, Draft, Event, Hold, Phase, Progress};
use super::write::Write;
use super::write_job::WriteJob;
use crate::api::{CheckRunWrite, IssuePatch};
use crate::http::error::GitHubError;
use crate::http::write::WriteError;

/// The limit for a send, including the request for a token. The lease is longer, so that no other worker processes the
/// entry while its request is running.
pub(super) const SEND_LIMIT: Duration = Duration::from_secs(120);

impl WriteJob<'_> {
    pub(super) async fn send(&self, progress: &Progress) -> Event {
        match tokio::time::timeout(SEND_LIMIT, self.send_act(progress)).await {
            Ok(event) => event,
            Err(_) => Event::NoAnswer("no answer in time".to_owned()),
        }
    }

    async fn send_act(&self, progress: &Progress) -> Event {
        let (github, repo, number) = (&self.outbox.github, &self.entry.repo.name, self.entry.number);
        if let Phase::Twin { twin, .. } = &progress.phase {
            let deleted = match &self.write {
                Write::Reply { .. } => github.delete_review_comment(repo, twin.id).await,
                _ => github.delete_comment(repo, twin.id).await,
            };
            return match deleted {
                Ok(()) | Err(WriteError::Refused { status: 404 | 410, .. }) => Event::TwinGone,
                Err(WriteError::Refused { status, message }) if status != 401 => {
                    tracing::error!(%repo, %number, comment = twin.id.0, status, reason = message, "a comment stands there twice");
                    Event::TwinStays
                }
                Err(error) => self.unsent(&error).await,
            };
        }
        let sent = match (progress.act, &self.write) {
            (Act::Draft, Write::Review(review)) => return self.draft_review(review).await,
            (Act::Set, Write::Review(_)) => self.submit(progress.draft.as_ref()).await,
            (Act::Correct, Write::Review(_)) => return self.clean_up(progress.draft.as_ref()).await,
            (Act::Set, Write::CheckRun(run)) => return self.check_run(run).await,
            (Act::Set, Write::React { on, content }) => {
                github.create_reaction(repo, self.subject(*on), *content).await.map(|_| Event::Done(None))
            }
            (Act::Set, Write::EditReviewComment { comment, body }) => return self.edit_on_diff(*comment, body).await,
            (Act::Set, Write::ResolveThread { comment }) => return self.resolve(*comment).await,
            (Act::Comment, Write::Reply { to, .. }) => return self.reply(*to).await,
            (Act::Comment, _) if progress.is_edit() => {
                self.edit(progress.comment.map(|comment| comment.id), Act::Comment).await
            }
            (Act::Comment, _) => {
                let sent = github.create_comment(repo, number, &self.comment_text(Act::Comment)).await;
                sent.map(|comment| Event::Done(Some(written(&comment))))
            }
            (Act::Correct, _) => self.edit(progress.comment.map(|comment| comment.id), Act::Correct).await,
            (Act::Set, Write::EditComment { .. }) => self.edit(self.edited, Act::Set).await,
            (Act::Set, Write::DeleteComment { .. }) => match self.edited {
                Some(id) => taken_away(github.delete_comment(repo, id).await),
                None => Ok(Event::Refused("the comment was never written".to_owned())),
            },
            (Act::Set, Write::Label { name }) => {
                github.add_labels(repo, number, &[name.as_str()]).await.map(|_| Event::Done(None))
            }
            (Act::Set, Write::Unlabel { name }) => taken_away(github.remove_label(repo, number, name).await),
            (Act::Set, Write::Close(close)) => self.patch(close.close_as.patch()).await,
            (Act::Set, Write::Reopen) => self.patch(IssuePatch::reopen()).await,
            (Act::Set, Write::Comment { .. } | Write::Reply { .. }) => {
                Ok(Event::Refused("a comment cannot be set".to_owned()))
            }
            (Act::Draft, _) => Ok(Event::Refused("only a review can be a draft".to_owned())),
        };
        match sent {
            Ok(event) => event,
            Err(error) => self.unsent(&error).await,
        }
    }

    async fn edit(&self, id: Option<GithubId>, act: Act) -> Result<Event, WriteError> {
        let Some(id) = id else { return Ok(Event::Refused("the comment was never written".to_owned())) };
        let edited = self.outbox.github.edit_comment(&self.entry.repo.name, id, &self.comment_text(act)).await;
        edited.map(|comment| Event::Done(Some(written(&comment))))
    }

    async fn patch(&self, patch: IssuePatch) -> Result<Event, WriteError> {
        let patched = self.outbox.github.patch_issue(&self.entry.repo.name, self.entry.number, patch).await;
        patched.map(|_| Event::Done(None))
    }

    /// Submits the draft, which makes it visible. A draft is submitted once: GitHub refuses the second time.
    async fn submit(&self, draft: Option<&Draft>) -> Result<Event, WriteError> {
        let Some(draft) = draft else { return Ok(Event::DraftGone("there is no draft".to_owned())) };
        let (repo, number, body) = (&self.entry.repo.name, self.entry.number, self.comment_text(Act::Set));
        // No person writes with an App's account, and nothing must come between the last check and the submission.
        let is_app = self.outbox.github.is_app();
        match if is_app { Ok(false) } else { self.holds_other_words(draft.review).await } {
            Ok(false) => {}
            Ok(true) => return Ok(Event::NotSent { hold: Hold::Try, reason: OTHER_WORDS.to_owned() }),
            Err(event) => return Ok(event),
        }
        match self.outbox.github.submit_review(repo, number, draft.review, &body).await {
            Ok(_) => Ok(Event::Done(None)),
            Err(error @ WriteError::Refused { status: 404 | 410, .. }) => Ok(Event::DraftGone(error.to_string())),
            Err(error @ WriteError::Refused { status: 422, .. }) => Ok(Event::NotThere(error.to_string())),
            Err(error) => Err(error),
        }
    }

    /// Creates the check run, or updates the existing ones to the same content.
    async fn check_run(&self, run: &CheckRunWrite) -> Event {
        let (github, repo) = (&self.outbox.github, &self.entry.repo.name);
        let shown = match self.own_check_runs(run).await {
            Ok(shown) => shown,
            Err(error) => return self.unasked(&error).await,
        };
        let mut sent = Ok(());
        if shown.is_empty() {
            sent = github.create_check_run(repo, run).await.map(drop);
        }
        for other in shown.iter().filter(|shown| !run.is_shown_by(shown)) {
            if sent.is_ok() {
                sent = github.update_check_run(repo, GithubId(other.id), run).await.map(drop);
            }
        }
        match sent {
            Ok(()) => Event::Done(None),
            Err(error) => self.unsent(&error).await,
        }
    }

    /// Replies in a conversation. GitHub requires the comment that started it.
    async fn reply(&self, to: GithubId) -> Event {
        let (github, repo) = (&self.outbox.github, &self.entry.repo.name);
        let first = match github.review_comment(repo, to).await {
            Ok(comment) => comment.in_reply_to_id.map_or(to, GithubId),
            // A lagging replica does not know a young comment yet. Replying to a deleted comment is refused.
            Err(GitHubError::NotFound { .. }) => to,
            Err(error) => return self.unasked(&error).await,
        };
        let text = self.comment_text(Act::Comment);
        match github.reply_to_review_comment(repo, self.entry.number, first, &text).await {
            Ok(comment) => Event::Done(Some(written_on_diff(&comment))),
            Err(error) => self.unsent(&error).await,
        }
    }

    async fn edit_on_diff(&self, id: GithubId, body: &str) -> Event {
        let comment = match self.own_review_comment(id).await {
            Ok(CommentToEdit::Ours(comment)) => comment,
            Ok(CommentToEdit::Untouchable(reason)) => return Event::Refused(reason.to_owned()),
            Err(error) => return self.unasked(&error).await,
        };
        let text = self.with_own_markers(&comment, body);
        match self.outbox.github.edit_review_comment(&self.entry.repo.name, id, &text).await {
            Ok(comment) => Event::Done(Some(written_on_diff(&comment))),
            Err(error) => self.unsent(&error).await,
        }
    }

    async fn resolve(&self, comment: GithubId) -> Event {
        let thread = match self.conversation(comment).await {
            Ok(Conversation::Open(thread)) => thread,
            Ok(Conversation::Resolved) => return Event::Done(None),
            Ok(Conversation::NotOurs) => return Event::Refused(THREAD_NOT_OURS.to_owned()),
            Ok(Conversation::Gone) => return Event::Refused(THREAD_GONE.to_owned()),
            Err(error) => return self.unasked(&error).await,
        };
        match self.outbox.github.resolve_thread(&self.entry.repo.name, &thread).await {
            Ok(()) => Event::Done(None),
            Err(WriteError::Refused { status: 403, .. }) => Event::Refused(THREAD_FORBIDDEN.to_owned()),
            Err(WriteError::Refused { status: 404 | 410, .. }) => Event::Refused(THREAD_GONE.to_owned()),
            Err(error) => self.unsent(&error).await,
        }
    }

    pub(super) async fn unsent(&self, error: &WriteError) -> Event {
        let reason = error.to_string();
        match error {
            WriteError::NotSent(why) => Event::NotSent { hold: Hold::of(why), reason },
            // A token that is not accepted says nothing about the write: a new one may come soon.
            WriteError::Refused { status: 401, .. } => Event::NotSent { hold: Hold::Outage, reason },
            WriteError::Refused { status: 300..=399, .. } if self.learn_new_name().await => {
                Event::NotSent { hold: Hold::Until(self.outbox.now()), reason }
            }
            WriteError::Refused { .. } => Event::Refused(reason),
            WriteError::Ambiguous { .. } => Event::NoAnswer(reason),
        }
    }
}

/// A 404 may mean that another account was faster, or that we have no permission: a read tells which.
fn taken_away(answer: Result<(), WriteError>) -> Result<Event, WriteError> {
    match answer {
        Err(error @ WriteError::Refused { status: 404 | 410, .. }) => Ok(Event::NotThere(error.to_string())),
        answer => answer.map(|()| Event::Done(None)),
    }
}
