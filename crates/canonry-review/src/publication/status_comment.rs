//! Writes the comment that replaces the check run if there are no check runs: posted once, then edited in place.
//!
//! If there are check runs, a summary comment of an earlier version is edited once to say where the summaries are now.

use canonry_domain::review::{CommitSha, RETIRED_SUMMARY, not_reviewed_comment};
use canonry_domain::{WriteKey, WriteOrigin, redact_shown};
use canonry_github::outbox::{COMMENT_GONE, Write};
use canonry_store::{OutboxState, ReviewId};

use super::publish::{Publication, PublicationEnd, PublicationStop, ReviewPost};
use super::pull_writes::PullWrites;
use super::quoted;
use super::texts::SummaryParts;
use crate::run::report::ReviewReport;

/// How often one call starts again because the comment was deleted.
const MOST_ROUNDS: usize = 3;

/// The limit in characters of the reason why there is no review: the quoted reason fits above the longest status.
const WHY: usize = 300;

/// The starts of the keys for a new comment and for an edit.
struct SummaryKeys {
    /// `None` if only an existing comment is edited.
    comment: Option<WriteKey>,
    edit: WriteKey,
}

impl Publication<'_> {
    /// Writes how the review ended, unless a posted review contains that. Returns whether the text changed, and what
    /// could not be written.
    pub(super) async fn say_status(
        &self,
        writes: &mut PullWrites,
        report: &ReviewReport,
        run: ReviewId,
        parts: &SummaryParts,
        post: &ReviewPost,
    ) -> Result<(bool, Option<String>), PublicationStop> {
        let is_posted = matches!(post, ReviewPost::New | ReviewPost::Known);
        let text = parts.status(report, self.handle, is_posted);
        let keys = self.keys()?;
        let under = SummaryKeys {
            comment: (!is_posted).then(|| keys.of_run(WriteOrigin::ReviewSummary, run)),
            edit: keys.of_run(WriteOrigin::ReviewSummaryEdit, run),
        };
        self.say_under(writes, &text, under).await
    }

    /// Retires the summary comment of an earlier version, if there is one. Returns whether it was edited now, and what
    /// could not be written.
    pub(super) async fn retire_summary(
        &self,
        writes: &mut PullWrites,
        run: ReviewId,
    ) -> Result<(bool, Option<String>), PublicationStop> {
        let edit = self.keys()?.of_run(WriteOrigin::ReviewSummaryEdit, run);
        self.say_under(writes, RETIRED_SUMMARY, SummaryKeys { comment: None, edit }).await
    }

    /// Writes that a commit could not be reviewed.
    pub(super) async fn say_not_reviewed(
        &self,
        head: &CommitSha,
        why: &str,
        attempt: &str,
    ) -> Result<(), PublicationStop> {
        let keys = self.keys()?;
        let mut writes = self.load_writes().await?;
        let last = writes.last_reviews_summary();
        let text = not_reviewed_comment(head, &quoted::line(why, WHY), self.handle, last);
        let under = SummaryKeys {
            comment: Some(keys.not_reviewed(WriteOrigin::ReviewSummary, head.as_str(), attempt)),
            edit: keys.not_reviewed(WriteOrigin::ReviewSummaryEdit, head.as_str(), attempt),
        };
        let (_, trouble) = self.say_under(&mut writes, &text, under).await?;
        if let Some(trouble) = trouble {
            tracing::warn!(repo = %self.repo.name, number = %self.number, trouble, "the failure of a review is not posted");
        }
        Ok(())
    }

    async fn say_under(
        &self,
        writes: &mut PullWrites,
        text: &str,
        under: SummaryKeys,
    ) -> Result<(bool, Option<String>), PublicationStop> {
        // Redacted as the outbox stores it, so that an equal text is recognized.
        let body = redact_shown(text);
        let mut ended = None;
        for _ in 0..MOST_ROUNDS {
            let (key, write, is_on_its_way) = match writes.standing_summary() {
                Some(standing) if standing.text == Some(body.as_str()) => {
                    let entry = &standing.last.entry;
                    let Some(write) = standing.last.write.clone().filter(|_| entry.state != OutboxState::Sent) else {
                        return Ok((false, None));
                    };
                    // The same text is already in the outbox and not yet sent: this call sends it.
                    (entry.write_key(), write, true)
                }
                Some(standing) => {
                    let edit = Write::EditComment { comment_key: standing.key.to_owned(), body: body.clone() };
                    (writes.next_key(&under.edit), edit, false)
                }
                None => {
                    let Some(comment) = &under.comment else { return Ok((false, None)) };
                    (writes.next_key(comment), Write::Comment { body: body.clone() }, false)
                }
            };
            let reason = match self.see_through(writes, &key, write).await? {
                PublicationEnd::Sent(_) => return Ok((true, None)),
                PublicationEnd::Not(reason) => reason,
            };
            let goes_on = is_on_its_way || reason == COMMENT_GONE;
            ended = Some(reason);
            if !goes_on {
                break;
            }
        }
        Ok((false, ended.map(|reason| format!("the status comment: {reason}"))))
    }
}
