//! The one summary comment of a pull request: written once, then edited in place.

use canonry_domain::redact_shown;
use canonry_domain::review::{CommitSha, incomplete_comment};
use canonry_github::outbox::{COMMENT_GONE, Write};
use canonry_store::ReviewId;

use super::keys::Keys;
use super::publish::{Ended, Publication, PublicationError, Stop};
use super::quoted;
use super::said_before::{last_reviews_summary, standing_summary, write_of};

/// How often it is begun anew in one go because the comment turns out to be gone.
const MOST_ROUNDS: usize = 3;

/// Characters of why there is no review: quoted they fit above the longest summary.
const WHY: usize = 300;

/// Which keys the summary is said under: what a new comment's and an edit's begin with.
struct Under {
    comment: String,
    edit: String,
}

impl Publication<'_> {
    /// Makes the summary say this; whether it said something else before, and what could not be written.
    pub(super) async fn say_summary(&self, text: &str, run: ReviewId) -> Result<(bool, Option<String>), Stop> {
        let keys = self.keys()?;
        let under = Under { comment: keys.of_run("summary", run), edit: keys.of_run("summary-edit", run) };
        self.say_under(&keys, text, under).await
    }

    /// Makes it say that a commit could not be reviewed.
    pub(super) async fn say_not_reviewed(&self, head: &CommitSha, why: &str, attempt: &str) -> Result<(), Stop> {
        let keys = self.keys()?;
        let entries = self.store.outbox_entries(self.repo.id, self.number).await?;
        let last = last_reviews_summary(&keys, &entries);
        let text = incomplete_comment(head, &quoted::line(why, WHY), self.handle, last.as_deref());
        let under = Under {
            comment: keys.not_reviewed("summary", head.as_str(), attempt),
            edit: keys.not_reviewed("summary-edit", head.as_str(), attempt),
        };
        let (_, trouble) = self.say_under(&keys, &text, under).await?;
        if let Some(trouble) = trouble {
            tracing::warn!(repo = %self.repo.name, number = %self.number, trouble, "nobody is told that a review failed");
        }
        Ok(())
    }

    async fn say_under(&self, keys: &Keys, text: &str, under: Under) -> Result<(bool, Option<String>), Stop> {
        // As the outbox keeps it, so that the same text is known to be the same.
        let body = redact_shown(text);
        let mut ended = None;
        for _ in 0..MOST_ROUNDS {
            let entries = self.store.outbox_entries(self.repo.id, self.number).await?;
            let (begins, write) = match standing_summary(keys, &entries) {
                Some(standing) if standing.text.as_deref() == Some(&body) && standing.is_sent => {
                    return Ok((false, None));
                }
                Some(standing) if standing.text.as_deref() == Some(&body) => {
                    // It is on its way: whoever looks after it ends here.
                    let entry = self.store.outbox_entry(standing.last).await?;
                    let entry = entry.ok_or(PublicationError::NotPublishable("an entry of the outbox vanished"))?;
                    let Some(write) = write_of(&entry) else { return Ok((false, None)) };
                    match self.see_through(&entry.key, write).await? {
                        Ended::Sent(_) => return Ok((true, None)),
                        Ended::Not(reason) => ended = Some(reason),
                    }
                    continue;
                }
                Some(standing) => (&under.edit, Write::EditComment { comment_key: standing.key, body: body.clone() }),
                None => (&under.comment, Write::Comment { body: body.clone() }),
            };
            match self.see_through(&self.next_key(begins).await?, write).await? {
                Ended::Sent(_) => return Ok((true, None)),
                Ended::Not(reason) => {
                    let is_gone = reason == COMMENT_GONE;
                    ended = Some(reason);
                    if !is_gone {
                        break;
                    }
                }
            }
        }
        Ok((false, ended.map(|reason| format!("the summary: {reason}"))))
    }
}
