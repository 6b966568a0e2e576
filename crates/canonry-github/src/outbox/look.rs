//! Looking at GitHub: what of an entry is there already?

use canonry_domain::GithubId;
use jiff::Timestamp;

use super::progress::{Act, Event, Hold, Progress, Verdict, WrittenComment};
use super::work::Job;
use super::write::Write;
use crate::api::{RestComment, RestTimelineEvent, RestUser};
use crate::auth::Scope;
use crate::error::GitHubError;

/// The drift kind for an item that somebody else has closed.
const SOURCE_CLOSED: &str = "drift:source_closed";

/// Why an edit is refused whose comment somebody deleted: [`canonry_store::OutboxEntry::reason`] says so then.
pub const COMMENT_GONE: &str = "the comment is gone";

impl Job<'_> {
    /// Looks for what may have been sent.
    pub(super) async fn look(&self, progress: &Progress) -> Event {
        let seen = match progress.act {
            Act::Comment => self.own_comments().await.map(Event::SawComments),
            Act::Set | Act::Correct => self.look_at_set(progress).await,
        };
        match seen {
            Ok(event) => event,
            Err(error) => self.unreadable(&error).await,
        }
    }

    /// What must be known before a first send: set-like things are read, then set, and nothing is said
    /// about closing what is closed. `None` when nothing stands against sending.
    pub(super) async fn look_before_sending(&self, progress: &Progress) -> Option<Event> {
        let seen = match (progress.act, &self.write) {
            (Act::Comment, Write::Close(_)) => self
                .is_open()
                .await
                .map(|open| if open { Event::SawAbsent } else { Event::Refused(SOURCE_CLOSED.to_owned()) }),
            (Act::Comment, _) => Ok(Event::SawAbsent),
            (Act::Set | Act::Correct, _) => self.look_at_set(progress).await,
        };
        match seen {
            Ok(Event::SawAbsent) => None,
            Ok(event) => Some(event),
            Err(error) => Some(self.unreadable(&error).await),
        }
    }

    async fn look_at_set(&self, progress: &Progress) -> Result<Event, GitHubError> {
        let there = |there: bool| if there { Event::SawThere { objected: false } } else { Event::SawAbsent };
        if progress.act == Act::Correct {
            let wanted = self.comment_text(Act::Correct);
            return self.look_at_comment(progress.comment.map(|comment| comment.id), Some(&wanted)).await;
        }
        match &self.write {
            Write::Label { name } => Ok(there(self.has_label(name).await?)),
            Write::Unlabel { name } => Ok(there(!self.has_label(name).await?)),
            Write::Reopen => Ok(there(self.is_open().await?)),
            Write::Close(_) => self.look_at_close(progress).await,
            Write::EditComment { .. } => {
                let wanted = self.comment_text(Act::Set);
                self.look_at_comment(self.edited, Some(&wanted)).await
            }
            Write::DeleteComment { .. } => self.look_at_comment(self.edited, None).await,
            Write::Comment { .. } => Ok(Event::SawAbsent),
        }
    }

    /// Our own comments on the item that carry the entry's marker, oldest first.
    async fn own_comments(&self) -> Result<Vec<WrittenComment>, GitHubError> {
        let outbox = self.outbox;
        let comments = outbox.github.comments(&self.entry.repo.name, self.entry.number, None).all().await?;
        let ours = |comment: &RestComment| {
            let author = comment.user.as_ref().and_then(RestUser::to_login);
            author.is_some_and(|author| outbox.signer.carries(&comment.body, &author, &outbox.own, &self.marker))
        };
        let mut found: Vec<WrittenComment> = comments.iter().filter(|comment| ours(comment)).map(written).collect();
        found.sort_by_key(|comment| comment.id);
        Ok(found)
    }

    /// Whether a comment says what it shall say; with `wanted` `None`, whether it is gone.
    async fn look_at_comment(&self, id: Option<GithubId>, wanted: Option<&str>) -> Result<Event, GitHubError> {
        let Some(id) = id else {
            return Ok(Event::SawAgainst("the comment was never written".to_owned()));
        };
        let repo = &self.entry.repo.name;
        let github = &self.outbox.github;
        let url = github.url(&["repos", repo.owner(), repo.name(), "issues", "comments", &id.0.to_string()], &[]);
        let comment: RestComment = match github.get_json(&Scope::Repo(repo.clone()), url).await {
            Ok(comment) => comment,
            Err(GitHubError::NotFound { .. } | GitHubError::Gone { .. }) => {
                return Ok(match wanted {
                    Some(_) => Event::SawAgainst(COMMENT_GONE.to_owned()),
                    None => Event::SawThere { objected: false },
                });
            }
            Err(error) => return Err(error),
        };
        let author = comment.user.as_ref().and_then(RestUser::to_login);
        if author.is_none_or(|author| author != self.outbox.own) {
            return Ok(Event::SawAgainst("the comment is not ours".to_owned()));
        }
        let says = wanted.is_some_and(|wanted| same_text(&comment.body, wanted));
        Ok(if says { Event::SawThere { objected: false } } else { Event::SawAbsent })
    }

    async fn has_label(&self, name: &str) -> Result<bool, GitHubError> {
        let labels = self.outbox.github.item_labels(&self.entry.repo.name, self.entry.number).all().await?;
        Ok(labels.iter().any(|label| label.name.to_lowercase() == name.to_lowercase()))
    }

    async fn is_open(&self) -> Result<bool, GitHubError> {
        let item = self.outbox.github.issue(&self.entry.repo.name, self.entry.number).await?;
        Ok(item.state == "open")
    }

    /// Whether our close is there. The comment went first, so a close of ours that is not older than the
    /// comment is this one, by GitHub's own clock.
    async fn look_at_close(&self, progress: &Progress) -> Result<Event, GitHubError> {
        let outbox = self.outbox;
        let item = outbox.github.issue(&self.entry.repo.name, self.entry.number).await?;
        let open = item.state == "open";
        let against = || Event::SawAgainst(SOURCE_CLOSED.to_owned());
        if progress.unsure == 0 {
            return Ok(if open { Event::SawAbsent } else { against() });
        }
        let own = |user: Option<&RestUser>| user.and_then(RestUser::to_login).is_some_and(|login| login == outbox.own);
        let since = progress.comment.and_then(|comment| comment.created_at).unwrap_or(Timestamp::MIN);
        let timeline = outbox.github.timeline(&self.entry.repo.name, self.entry.number).all().await?;
        let is_our_close = |event: &RestTimelineEvent| {
            event.event == "closed" && own(event.actor.as_ref()) && event.created_at.is_none_or(|at| at >= since)
        };
        let Some(closed) = timeline.iter().position(is_our_close) else {
            return Ok(match (open, own(item.closed_by.as_ref())) {
                (true, _) => Event::SawAbsent,
                (false, true) => Event::SawThere { objected: false },
                (false, false) => against(),
            });
        };
        let reopened = timeline[closed..].iter().any(|event| event.event == "reopened");
        if open && !reopened {
            // One of the two answers lags; which one decides whether somebody objects.
            let reason = "GitHub shows both an open item and its close".to_owned();
            return Ok(Event::LookFailed { hold: Hold::Try, reason });
        }
        Ok(Event::SawThere { objected: reopened })
    }

    /// What a failed reading means for the entry.
    async fn unreadable(&self, error: &GitHubError) -> Event {
        let reason = error.to_string();
        match error {
            GitHubError::Moved { .. } if self.learn_new_name().await => {
                Event::LookFailed { hold: Hold::Until(self.outbox.now()), reason }
            }
            GitHubError::NotFound { .. } | GitHubError::Gone { .. } | GitHubError::Moved { .. } => {
                Event::ItemGone(Verdict::Refuse(reason))
            }
            error => Event::LookFailed { hold: Hold::of(error), reason },
        }
    }
}

pub(super) fn written(comment: &RestComment) -> WrittenComment {
    WrittenComment { id: GithubId(comment.id), created_at: comment.created_at }
}

/// GitHub may cut white space at the ends and change line ends.
fn same_text(one: &str, other: &str) -> bool {
    one.trim().lines().eq(other.trim().lines())
}
