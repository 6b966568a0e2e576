//! Finds out which part of an entry is already on GitHub.

use canonry_domain::{GithubId, WriteOrigin, announce_the_same_close};
use jiff::Timestamp;

use super::find_thread::{Conversation, THREAD_FORBIDDEN};
use super::progress::{Act, Event, Hold, Phase, Progress, Verdict};
use super::receipt::WrittenComment;
use super::write::{ReactTo, Write};
use super::write_job::WriteJob;
use crate::api::{
    AppSlug, CHECK_NAME, CheckRunWrite, ReactionContent, ReactionSubject, RestCheckRun, RestComment, RestReviewComment,
    RestTimelineEvent, RestUser,
};
use crate::auth::credentials::Scope;
use crate::http::error::GitHubError;

/// The drift kind for an item that another account has closed.
const SOURCE_CLOSED: &str = "drift:source_closed";

/// Why an edit is refused if its comment was deleted: the value of [`canonry_store::OutboxEntry::reason`].
pub const COMMENT_GONE: &str = "the comment is gone";

/// Why a comment is refused if GitHub already has one under its key that announces something else.
const OTHER_COMMENT: &str = "Canonry has already posted another comment there";

impl WriteJob<'_> {
    /// Searches for what may have been sent.
    pub(super) async fn find_sent(&self, progress: &Progress) -> Event {
        let seen = match (&progress.phase, &progress.draft, &self.write) {
            (Phase::Listing { .. }, Some(draft), Write::Review(review)) => self.list_review(draft, review).await,
            _ if progress.act == Act::Comment && !progress.is_edit() => {
                self.own_comments().await.map(Event::SawComments)
            }
            _ => self.find_change(progress).await,
        };
        match seen {
            Ok(event) => event,
            Err(error) => self.unreadable(&error).await,
        }
    }

    /// What must be known before a first send: labels, states and texts are read before they are set, and a close is
    /// not announced on a closed item. `None` if nothing prevents sending.
    pub(super) async fn check_before_sending(&self, progress: &Progress) -> Option<Event> {
        let seen = match (progress.act, &self.write) {
            (Act::Comment, _) if progress.is_edit() => Ok(Event::SawAbsent),
            (Act::Comment, _) if self.outbox.may_have_forgotten && progress.unsure == 0 => self.find_forgotten().await,
            (Act::Comment, Write::Close(_)) => self
                .is_open()
                .await
                .map(|open| if open { Event::SawAbsent } else { Event::Refused(SOURCE_CLOSED.to_owned()) }),
            (Act::Comment, _) => Ok(Event::SawAbsent),
            // A draft can be submitted or deleted only once, so nothing has to be known before: GitHub itself refuses
            // the second time.
            (Act::Set | Act::Correct, Write::Review(_)) => Ok(Event::SawAbsent),
            (Act::Draft | Act::Set | Act::Correct, _) => self.find_change(progress).await,
        };
        match seen {
            Ok(Event::SawAbsent) => None,
            Ok(event) => Some(event),
            Err(error) => Some(self.unreadable(&error).await),
        }
    }

    /// Searches for a comment that was sent before the database was lost or replaced by an older copy. One that names
    /// another target than ours would is left alone, and nothing is closed because of it. The status of a review may be
    /// about an earlier head: it is edited.
    async fn find_forgotten(&self) -> Result<Event, GitHubError> {
        let found = self.own_texts().await?;
        Ok(match found.first() {
            None if matches!(self.write, Write::Close(_)) && !self.is_open().await? => {
                Event::Refused(SOURCE_CLOSED.to_owned())
            }
            None => Event::SawAbsent,
            Some((_, text)) if !self.says_the_same(text) => Event::Refused(OTHER_COMMENT.to_owned()),
            Some((comment, text)) if self.is_outdated_status(text) => Event::SawOutdated(*comment),
            Some(_) => Event::SawComments(found.into_iter().map(|(comment, _)| comment).collect()),
        })
    }

    /// Whether a comment has the consequence that ours would have. The date of an announced close may differ: it counts
    /// from when the comment was written.
    fn says_the_same(&self, text: &str) -> bool {
        let ours = self.comment_text(Act::Comment);
        match self.write {
            Write::Close(_) => same_text(without_marker(text), without_marker(&ours)),
            _ => announce_the_same_close(text, &ours),
        }
    }

    fn is_outdated_status(&self, text: &str) -> bool {
        let ours = self.comment_text(Act::Comment);
        self.entry.source.origin == WriteOrigin::ReviewSummary
            && !same_text(without_marker(text), without_marker(&ours))
    }

    async fn find_change(&self, progress: &Progress) -> Result<Event, GitHubError> {
        let there = |there: bool| if there { Event::SawThere { objected: false } } else { Event::SawAbsent };
        if let Write::Review(_) = &self.write {
            return self.find_review(progress).await;
        }
        if progress.act == Act::Correct || progress.is_edit() {
            let wanted = self.comment_text(progress.act);
            return self.find_comment_edit(progress.comment.map(|comment| comment.id), Some(&wanted)).await;
        }
        match &self.write {
            Write::Label { name } => Ok(there(self.has_label(name).await?)),
            Write::Unlabel { name } => Ok(there(!self.has_label(name).await?)),
            Write::Reopen => Ok(there(self.is_open().await?)),
            Write::Close(_) => self.find_close(progress).await,
            Write::EditComment { .. } => {
                let wanted = self.comment_text(Act::Set);
                self.find_comment_edit(self.edited, Some(&wanted)).await
            }
            Write::DeleteComment { .. } => self.find_comment_edit(self.edited, None).await,
            Write::CheckRun(run) => {
                let runs = self.own_check_runs(run).await?;
                Ok(there(!runs.is_empty() && runs.iter().all(|shown| run.is_shown_by(shown))))
            }
            Write::React { on, content } => Ok(there(self.has_reacted(*on, *content).await?)),
            Write::EditReviewComment { comment, body } => self.find_review_comment_edit(*comment, body).await,
            Write::ResolveThread { comment } => match self.conversation(*comment).await {
                Err(GitHubError::Forbidden { .. }) => Ok(Event::SawAgainst(THREAD_FORBIDDEN.to_owned())),
                conversation => conversation.map(Conversation::seen),
            },
            Write::Comment { .. } | Write::Reply { .. } | Write::Review(_) => Ok(Event::SawAbsent),
        }
    }

    /// Our own comments on the item, or on its diff, with the entry's marker, oldest first.
    async fn own_comments(&self) -> Result<Vec<WrittenComment>, GitHubError> {
        Ok(self.own_texts().await?.into_iter().map(|(comment, _)| comment).collect())
    }

    /// The same comments with their texts.
    async fn own_texts(&self) -> Result<Vec<(WrittenComment, String)>, GitHubError> {
        let (github, repo, number) = (&self.outbox.github, &self.entry.repo.name, self.entry.number);
        let mut found: Vec<(WrittenComment, String)> = match &self.write {
            Write::Reply { .. } => {
                let comments = github.review_comments(repo, number).all().await?;
                let ours = comments.into_iter().filter(|comment| self.is_this(comment.user.as_ref(), &comment.body));
                ours.map(|comment| (written_on_diff(&comment), comment.body)).collect()
            }
            _ => {
                let comments = github.comments(repo, number, None).all().await?;
                let ours = comments.into_iter().filter(|comment| self.is_this(comment.user.as_ref(), &comment.body));
                ours.map(|comment| (written(&comment), comment.body)).collect()
            }
        };
        found.sort_by_key(|(comment, _)| comment.id);
        Ok(found)
    }

    /// Whether this entry wrote a text.
    pub(super) fn is_this(&self, author: Option<&RestUser>, text: &str) -> bool {
        let author = author.and_then(RestUser::to_login);
        author.is_some_and(|author| self.outbox.signer.carries(text, &author, &self.outbox.own, &self.marker))
    }

    /// Our check runs with the key of this one. There are two if a request was carried out late.
    pub(super) async fn own_check_runs(&self, run: &CheckRunWrite) -> Result<Vec<RestCheckRun>, GitHubError> {
        let mut runs = self.outbox.github.check_runs(&self.entry.repo.name, &run.head).all().await?;
        let own = self.outbox.own.to_string();
        let ours = |app: &AppSlug| format!("{}[bot]", app.slug).eq_ignore_ascii_case(&own);
        runs.retain(|shown| {
            shown.name == CHECK_NAME
                && shown.external_id.as_ref() == Some(&run.external_id)
                && shown.app.as_ref().is_none_or(ours)
        });
        Ok(runs)
    }

    async fn has_reacted(&self, on: ReactTo, content: ReactionContent) -> Result<bool, GitHubError> {
        let reactions = match self.outbox.github.reactions(&self.entry.repo.name, self.subject(on)).all().await {
            // A lagging replica does not know a young comment yet. Reacting to a deleted comment is refused.
            Err(GitHubError::NotFound { .. }) => return Ok(false),
            reactions => reactions?,
        };
        let own = |user: &RestUser| user.to_login().is_some_and(|login| login == self.outbox.own);
        Ok(reactions
            .iter()
            .any(|reaction| reaction.content == content.as_str() && reaction.user.as_ref().is_some_and(own)))
    }

    pub(super) fn subject(&self, on: ReactTo) -> ReactionSubject {
        match on {
            ReactTo::IssueComment(id) => ReactionSubject::Comment(id),
            ReactTo::ReviewComment(id) => ReactionSubject::ReviewComment(id),
            ReactTo::Item => ReactionSubject::Item(self.entry.number),
        }
    }

    /// Whether a comment has the wanted text; with `wanted` `None`, whether it is deleted.
    async fn find_comment_edit(&self, id: Option<GithubId>, wanted: Option<&str>) -> Result<Event, GitHubError> {
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

    /// Whether our close is there. The comment was sent first, so a close of ours that is not older than the comment is
    /// this one, by GitHub's own clock.
    async fn find_close(&self, progress: &Progress) -> Result<Event, GitHubError> {
        let outbox = self.outbox;
        let item = outbox.github.issue(&self.entry.repo.name, self.entry.number).await?;
        let open = item.state == "open";
        let against = || Event::SawAgainst(SOURCE_CLOSED.to_owned());
        if progress.unsure == 0 && !outbox.may_have_forgotten {
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
            // One of the two answers lags; which one decides whether a person objected.
            let reason = "GitHub shows the item as open, but its timeline shows it as closed".to_owned();
            return Ok(Event::LookFailed { hold: Hold::Try, reason });
        }
        Ok(Event::SawThere { objected: reopened })
    }

    /// The event for a read that failed.
    pub(super) async fn unreadable(&self, error: &GitHubError) -> Event {
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

pub(super) fn written_on_diff(comment: &RestReviewComment) -> WrittenComment {
    WrittenComment { id: GithubId(comment.id), created_at: comment.created_at }
}

fn without_marker(text: &str) -> &str {
    text.split("<!-- canonry:").next().unwrap_or_default()
}

/// GitHub may trim white space at the ends and change line ends.
pub(super) fn same_text(one: &str, other: &str) -> bool {
    one.trim().lines().eq(other.trim().lines())
}
