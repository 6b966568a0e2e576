//! The ends of threads: a finding that is gone, or that a newer comment says, needs no open thread.

use canonry_domain::review::{CommitSha, FindingStatus, ReviewSubject, fixed_comment, said_anew_comment};
use canonry_github::GitHubError;
use canonry_github::outbox::{COMMENT_GONE, InlineComment, THREAD_FORBIDDEN, THREAD_GONE, THREAD_NOT_OURS, Write};
use canonry_store::{FindingId, PostedFinding, ReviewId, Settled};

use super::publish::{Ended, Publication, Stop, outspoken_by_newer};
use super::said_before::write_of;
use crate::run::report::ReviewReport;

/// Why there is nothing more to say in a thread.
enum Because {
    Fixed,
    SaidAnew,
}

impl Publication<'_> {
    /// Ends the threads in which there is nothing more to say; how many, and what could not be written.
    pub(super) async fn settle_threads(
        &self,
        report: &ReviewReport,
        run: ReviewId,
        posted: &[PostedFinding],
    ) -> Result<(usize, Vec<String>), Stop> {
        let open: Vec<&PostedFinding> = posted.iter().filter(|row| row.settled.is_none()).collect();
        if open.is_empty() {
            return Ok((0, Vec::new()));
        }
        let ledger = self.store.review_ledger(self.repo.id, &ReviewSubject::Pull(self.number)).await?;
        let is_fixed = |finding: FindingId| ledger.iter().any(|one| one.id == finding && one.earlier.fixed);
        let said_anew = outspoken_by_newer(posted);
        let mut over = Vec::new();
        for row in open {
            match (is_fixed(row.finding), said_anew.contains(&row.comment)) {
                (true, _) => over.push((row, Because::Fixed)),
                (false, true) => over.push((row, Because::SaidAnew)),
                (false, false) => {}
            }
        }
        let can_resolve = !over.is_empty() && self.can_read_conversations().await;
        let (mut settled, mut refused) = (0, Vec::new());
        for (row, because) in over {
            match self.settle(report, run, row, &because, can_resolve).await? {
                Ok(how) => {
                    let now = self.github.now();
                    let is_new = self.store.settle_posted_finding(self.repo.id, row.comment, how, now).await?;
                    settled += usize::from(is_new);
                }
                Err(reason) => refused.push(format!("a thread: {reason}")),
            }
        }
        Ok((settled, refused))
    }

    /// Whether GitHub lists the conversations, without which none can be resolved. What does not last is no no: the
    /// outbox waits for its end.
    async fn can_read_conversations(&self) -> bool {
        match self.github.review_threads(&self.repo.name, self.number).await {
            Err(error @ (GitHubError::Refused { .. } | GitHubError::BadAnswer { .. })) => {
                tracing::warn!(repo = %self.repo.name, number = %self.number, %error, "threads are not resolved; their comments say that they are over");
                false
            }
            Ok(_) | Err(_) => true,
        }
    }

    /// Ends one thread, or says in its comment why it is over; the reason when neither could be done.
    async fn settle(
        &self,
        report: &ReviewReport,
        run: ReviewId,
        row: &PostedFinding,
        because: &Because,
        can_resolve: bool,
    ) -> Result<Result<Settled, String>, Stop> {
        let (keys, comment) = (self.keys()?, row.comment);
        let reason = if can_resolve {
            let resolve = format!("{}{}", keys.of_run("resolve", run), comment.0);
            match self.see_through(&resolve, Write::ResolveThread { comment }).await? {
                Ended::Sent(_) => return Ok(Ok(Settled::Resolved)),
                Ended::Not(reason) => reason,
            }
        } else {
            THREAD_FORBIDDEN.to_owned()
        };
        if [THREAD_NOT_OURS, THREAD_GONE, COMMENT_GONE].contains(&reason.as_str()) {
            return Ok(Ok(Settled::Left));
        }
        if reason != THREAD_FORBIDDEN {
            return Ok(Err(reason));
        }
        let Some(text) = self.text_of(row).await? else { return Ok(Err(reason)) };
        let body = match because {
            Because::Fixed => fixed_comment(&text, &self.fixed_in(report, row.finding).await?),
            Because::SaidAnew => said_anew_comment(&text, &report.head),
        };
        let settle = format!("{}{}", keys.of_run("settle", run), comment.0);
        Ok(match self.see_through(&settle, Write::EditReviewComment { comment, body }).await? {
            Ended::Sent(_) => Ok(Settled::Edited),
            Ended::Not(reason) if reason == COMMENT_GONE => Ok(Settled::Left),
            Ended::Not(reason) => Err(reason),
        })
    }

    /// What a comment of ours said when it was posted.
    async fn text_of(&self, row: &PostedFinding) -> Result<Option<String>, Stop> {
        let keys = self.keys()?;
        let (begins, key) = (keys.of_run("post", row.run), keys.comment(row.run, row.finding));
        let entries = self.store.outbox_entries(self.repo.id, self.number).await?;
        let written = entries.iter().filter(|entry| entry.key.starts_with(&begins)).filter_map(write_of);
        let comments = written.flat_map(|write| match write {
            Write::Review(review) => review.comments,
            _ => Vec::new(),
        });
        Ok(comments.into_iter().find(|one: &InlineComment| one.key == key).map(|one| one.body))
    }

    /// The commit whose review first found it gone.
    async fn fixed_in(&self, report: &ReviewReport, finding: FindingId) -> Result<CommitSha, Stop> {
        if report.fixed().any(|one| one.id == Some(finding)) {
            return Ok(report.head.clone());
        }
        let story = self.store.finding_story(finding).await?;
        let fixed = story.iter().rev().find(|one| one.status == FindingStatus::Fixed);
        let review = match fixed {
            Some(fixed) => self.store.review(fixed.review).await?,
            None => None,
        };
        Ok(review.map_or_else(|| report.head.clone(), |review| review.head))
    }
}
