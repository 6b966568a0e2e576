//! Sending one act of an entry, once.

use std::time::Duration;

use canonry_domain::GithubId;

use super::look::written;
use super::progress::{Act, Event, Hold, Phase, Progress};
use super::work::Job;
use super::write::Write;
use crate::api::IssuePatch;
use crate::write::WriteError;

/// The longest that a send may take, fetching a token included. The lease is longer, so that nobody
/// else works on the entry while its request is under way.
const SEND_LIMIT: Duration = Duration::from_secs(120);

impl Job<'_> {
    pub(super) async fn send(&self, progress: &Progress) -> Event {
        match tokio::time::timeout(SEND_LIMIT, self.send_act(progress)).await {
            Ok(event) => event,
            Err(_) => Event::NoAnswer("no answer in time".to_owned()),
        }
    }

    async fn send_act(&self, progress: &Progress) -> Event {
        let (github, repo, number) = (&self.outbox.github, &self.entry.repo.name, self.entry.number);
        if let Phase::Twin { twin, .. } = &progress.phase {
            return match github.delete_comment(repo, twin.id).await {
                Ok(()) | Err(WriteError::Refused { status: 404 | 410, .. }) => Event::TwinGone,
                Err(WriteError::Refused { status, message }) if status != 401 => {
                    tracing::error!(%repo, %number, comment = twin.id.0, status, reason = message, "a comment stands there twice");
                    Event::TwinStays
                }
                Err(error) => self.unsent(&error).await,
            };
        }
        let sent = match (progress.act, &self.write) {
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
            (Act::Set, Write::Comment { .. }) => Ok(Event::Refused("a comment has nothing to be set".to_owned())),
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

    async fn unsent(&self, error: &WriteError) -> Event {
        let reason = error.to_string();
        match error {
            WriteError::NotSent(why) => Event::NotSent { hold: Hold::of(why), reason },
            // A token that is not accepted says nothing about the write: a new one may be on its way.
            WriteError::Refused { status: 401, .. } => Event::NotSent { hold: Hold::Outage, reason },
            WriteError::Refused { status: 300..=399, .. } if self.learn_new_name().await => {
                Event::NotSent { hold: Hold::Until(self.outbox.now()), reason }
            }
            WriteError::Refused { .. } => Event::Refused(reason),
            WriteError::Ambiguous { .. } => Event::NoAnswer(reason),
        }
    }
}

/// A 404 may say that somebody else was faster, or that we may not: a look tells which.
fn taken_away(answer: Result<(), WriteError>) -> Result<Event, WriteError> {
    match answer {
        Err(error @ WriteError::Refused { status: 404 | 410, .. }) => Ok(Event::NotThere(error.to_string())),
        answer => answer.map(|()| Event::Done(None)),
    }
}
