//! Resolves threads: a finding that is fixed, or that a newer comment repeats, needs no open thread.

use canonry_domain::WriteOrigin;
use canonry_domain::review::{CommitSha, FindingStatus, ReviewSubject, fixed_comment, repeated_finding_comment};
use canonry_github::GitHubError;
use canonry_github::outbox::{COMMENT_GONE, THREAD_FORBIDDEN, THREAD_GONE, THREAD_NOT_OURS, Write};
use canonry_store::{FindingId, PostedFinding, PostedThreadState, ReviewId};

use super::publish::{Publication, PublicationEnd, PublicationStop, outspoken_by_newer};
use super::pull_writes::PullWrites;
use crate::run::report::ReviewReport;

enum Settling {
    Done(PostedThreadState),
    Refused(String),
}

/// Why a thread ends.
enum ThreadEnd {
    Fixed,
    SaidAnew,
}

impl Publication<'_> {
    /// Resolves the threads that are over. Returns how many, and what could not be written.
    pub(super) async fn settle_threads(
        &self,
        writes: &mut PullWrites,
        report: &ReviewReport,
        run: ReviewId,
        posted: &[PostedFinding],
    ) -> Result<(usize, Vec<String>), PublicationStop> {
        let open: Vec<&PostedFinding> = posted.iter().filter(|row| row.settled.is_none()).collect();
        if open.is_empty() {
            return Ok((0, Vec::new()));
        }
        let ledger = self.store.review().ledger(self.repo.id, &ReviewSubject::Pull(self.number)).await?;
        let is_fixed = |finding: FindingId| ledger.iter().any(|one| one.id == finding && one.earlier.fixed);
        let said_anew = outspoken_by_newer(posted);
        let mut over = Vec::new();
        for row in open {
            match (is_fixed(row.finding), said_anew.contains(&row.comment)) {
                (true, _) => over.push((row, ThreadEnd::Fixed)),
                (false, true) => over.push((row, ThreadEnd::SaidAnew)),
                (false, false) => {}
            }
        }
        let can_resolve = !over.is_empty() && self.can_read_conversations().await;
        let (mut settled, mut refused) = (0, Vec::new());
        for (row, because) in over {
            match self.settle(writes, report, run, row, because, can_resolve).await? {
                Settling::Done(how) => {
                    let now = self.github.now();
                    let is_new = self.store.findings().settle_posted(self.repo.id, row.comment, how, now).await?;
                    settled += usize::from(is_new);
                }
                Settling::Refused(reason) => refused.push(format!("a thread: {reason}")),
            }
        }
        Ok((settled, refused))
    }

    /// Whether GitHub lists the conversations, without which none can be resolved. A temporary error counts as yes: the
    /// outbox waits until it is over.
    async fn can_read_conversations(&self) -> bool {
        match self.github.review_threads(&self.repo.name, self.number).await {
            Err(error @ (GitHubError::Refused { .. } | GitHubError::BadAnswer { .. })) => {
                tracing::warn!(repo = %self.repo.name, number = %self.number, %error, "threads could not be resolved; their comments were edited instead");
                false
            }
            Ok(_) | Err(_) => true,
        }
    }

    /// Resolves one thread, or edits its comment to say why it is over; `Refused` if neither is possible.
    async fn settle(
        &self,
        writes: &mut PullWrites,
        report: &ReviewReport,
        run: ReviewId,
        row: &PostedFinding,
        because: ThreadEnd,
        can_resolve: bool,
    ) -> Result<Settling, PublicationStop> {
        let (keys, comment) = (self.keys()?, row.comment);
        let reason = if can_resolve {
            let resolve = keys.of_run(WriteOrigin::ReviewResolve, run).numbered(comment.0);
            match self.see_through(writes, &resolve, Write::ResolveThread { comment }).await? {
                PublicationEnd::Sent(_) => return Ok(Settling::Done(PostedThreadState::Resolved)),
                PublicationEnd::Not(reason) => reason,
            }
        } else {
            THREAD_FORBIDDEN.to_owned()
        };
        if [THREAD_NOT_OURS, THREAD_GONE, COMMENT_GONE].contains(&reason.as_str()) {
            return Ok(Settling::Done(PostedThreadState::Left));
        }
        if reason != THREAD_FORBIDDEN {
            return Ok(Settling::Refused(reason));
        }
        let Some(text) = self.text_of(writes, row)? else { return Ok(Settling::Refused(reason)) };
        let body = match because {
            ThreadEnd::Fixed => fixed_comment(&text, &self.fixed_in(report, row.finding).await?),
            ThreadEnd::SaidAnew => repeated_finding_comment(&text, &report.head),
        };
        let settle = keys.of_run(WriteOrigin::ReviewSettle, run).numbered(comment.0);
        Ok(match self.see_through(writes, &settle, Write::EditReviewComment { comment, body }).await? {
            PublicationEnd::Sent(_) => Settling::Done(PostedThreadState::Edited),
            PublicationEnd::Not(reason) if reason == COMMENT_GONE => Settling::Done(PostedThreadState::Left),
            PublicationEnd::Not(reason) => Settling::Refused(reason),
        })
    }

    /// The text of a comment of ours when it was posted.
    fn text_of(&self, writes: &PullWrites, row: &PostedFinding) -> Result<Option<String>, PublicationStop> {
        let key = self.keys()?.comment(row.run, row.finding);
        let mut comments = writes.of_run(WriteOrigin::ReviewPost, row.run).flat_map(|one| match &one.write {
            Some(Write::Review(review)) => review.comments.as_slice(),
            _ => &[],
        });
        Ok(comments.find(|one| one.key == key).map(|one| one.body.clone()))
    }

    /// The commit whose review first found it fixed.
    async fn fixed_in(&self, report: &ReviewReport, finding: FindingId) -> Result<CommitSha, PublicationStop> {
        if report.fixed().any(|one| one.id == Some(finding)) {
            return Ok(report.head.clone());
        }
        let story = self.store.findings().history(finding).await?;
        let fixed = story.iter().rev().find(|one| one.status == FindingStatus::Fixed);
        let review = match fixed {
            Some(fixed) => self.store.review().get(fixed.review).await?,
            None => None,
        };
        Ok(review.map_or_else(|| report.head.clone(), |review| review.head))
    }
}
