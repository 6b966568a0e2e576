//! Writes the check run of a commit: in progress during the review, then its conclusion; never green without a review.

use canonry_boxed::boxed;
use std::collections::BTreeMap;

use canonry_domain::review::{CheckConclusion, CommitSha, check_conclusion, how_to_retry};
use canonry_domain::{ItemNumber, WriteKey, WriteOrigin, redact_shown};
use canonry_github::api::{CheckRunWrite, CheckState};
use canonry_github::outbox::Write;
use canonry_store::{OutboxEntry, OutboxState, Repo, ReviewId, Store, StoreError};
use jiff::Timestamp;

use super::publish::{Publication, PublicationEnd, PublicationError, PublicationStop};
use super::pull_writes::{PullWrite, PullWrites};
use super::quoted;
use super::texts::SummaryParts;
use crate::output::{counts, gaps};
use crate::run::report::ReviewReport;

/// The limit of a title in characters: GitHub shows it in one line.
const TITLE: usize = 200;
/// The limit in characters of the reason why a commit was not reviewed.
const WHY: usize = 1_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenCheck {
    pub state: CheckState,
    pub is_sent: bool,
    pub at: Timestamp,
}

/// The last state that was written for a review into the check run of its commit; `None` if no check run was written.
#[boxed]
pub async fn written_check(
    store: &Store,
    repo: &Repo,
    pull: ItemNumber,
    review: ReviewId,
) -> Result<Option<WrittenCheck>, StoreError> {
    let writes = PullWrites::load(store, repo.id, pull).await?;
    let mut checks = writes.of_run(WriteOrigin::ReviewCheck, review).rev();
    let last = checks.find(|one| one.entry.is_sent_or_pending()).and_then(check_of);
    Ok(last.map(|(entry, check)| WrittenCheck {
        state: check.state,
        is_sent: entry.state == OutboxState::Sent,
        at: entry.updated_at,
    }))
}

#[boxed]
impl Publication<'_> {
    /// Marks a commit as being reviewed, if there are check runs. An earlier conclusion of the commit stays until the
    /// review ends, unless this is another change with the same commit, such as against another branch: then the
    /// conclusion was about something else.
    pub async fn begin(&self, head: &CommitSha, is_another_change: bool) -> Result<(), PublicationError> {
        if !self.check_runs {
            return Ok(());
        }
        ignore_stop(self.begin_or_stop(head, is_another_change).await)
    }

    /// Ends every check run of this pull request that is still in progress, because its commit is no longer being
    /// reviewed. `reason` follows a colon in the title; `why` is the sentence below it.
    pub async fn leave(&self, reason: &str, why: &str) -> Result<(), PublicationError> {
        if !self.check_runs {
            return Ok(());
        }
        let mut writes = self.load_writes().await?;
        ignore_stop(self.end_unfinished(&mut writes, None, reason, &quoted::line(why, WHY)).await)
    }

    /// Reports that a commit could not be reviewed, and why: in the check run, which then requires action, or in the
    /// status comment if there are no check runs. The name of the attempt keeps two attempts apart.
    pub async fn could_not(&self, head: &CommitSha, why: &str, attempt: &str) -> Result<(), PublicationError> {
        ignore_stop(match self.check_runs {
            true => self.conclude_not_reviewed(head, why, attempt).await,
            false => self.say_not_reviewed(head, why, attempt).await,
        })
    }

    async fn begin_or_stop(&self, head: &CommitSha, is_another_change: bool) -> Result<(), PublicationStop> {
        let mut writes = self.load_writes().await?;
        self.end_unfinished(&mut writes, Some(head), "a newer commit came first", LEFT).await?;
        let last = checks(&writes).rfind(|(_, check)| check.head == head.as_str());
        let stands = |state| match state {
            CheckState::InProgress => true,
            CheckState::ActionRequired => false,
            CheckState::Success | CheckState::Neutral | CheckState::Failure => !is_another_change,
        };
        if last.is_some_and(|(_, check)| stands(check.state)) {
            return Ok(());
        }
        let begun = self.check(head.as_str(), CheckState::InProgress, "Review in progress", IN_PROGRESS)?;
        self.write_check(&mut writes, &self.keys()?.begin(head.as_str()), begun).await.map(drop)
    }

    async fn end_unfinished(
        &self,
        writes: &mut PullWrites,
        but: Option<&CommitSha>,
        reason: &str,
        why: &str,
    ) -> Result<(), PublicationStop> {
        let title = format!("Not reviewed: {reason}");
        for head in unfinished_checks(writes, but) {
            let left = self.check(&head, CheckState::ActionRequired, &title, why)?;
            self.write_check(writes, &self.keys()?.left(&head), left).await?;
        }
        Ok(())
    }

    async fn conclude_not_reviewed(&self, head: &CommitSha, why: &str, attempt: &str) -> Result<(), PublicationStop> {
        let why = quoted::line(why, WHY);
        let summary = format!("{why}\n\n{}", how_to_retry(self.handle));
        let check =
            self.check(head.as_str(), CheckState::ActionRequired, "Not reviewed: the review failed", &summary)?;
        let mut writes = self.load_writes().await?;
        self.write_check(
            &mut writes,
            &self.keys()?.not_reviewed(WriteOrigin::ReviewCheck, head.as_str(), attempt),
            check,
        )
        .await
        .map(drop)
    }

    /// Writes the conclusion of a review into the check run; returns why it could not be written. If the review could
    /// not be posted, the check does not pass.
    pub(super) async fn conclude_check(
        &self,
        writes: &mut PullWrites,
        report: &ReviewReport,
        run: ReviewId,
        parts: &SummaryParts,
        is_unposted: bool,
    ) -> Result<Option<String>, PublicationStop> {
        let counts = counts(report);
        let state = match check_conclusion(&counts, &gaps(report), &report.reason) {
            _ if is_unposted && counts.shown() > 0 => CheckState::ActionRequired,
            CheckConclusion::Success => CheckState::Success,
            CheckConclusion::Neutral => CheckState::Neutral,
            CheckConclusion::Failure => CheckState::Failure,
            CheckConclusion::ActionRequired => CheckState::ActionRequired,
        };
        let (title, summary) = parts.check_output(report, self.handle);
        let check = self.check(report.head.as_str(), state, &title, &summary)?;
        let trouble = self.write_check(writes, &self.keys()?.of_run(WriteOrigin::ReviewCheck, run), check).await?;
        Ok(trouble.map(|reason| format!("the check run: {reason}")))
    }

    fn check(
        &self,
        head: &str,
        state: CheckState,
        title: &str,
        summary: &str,
    ) -> Result<CheckRunWrite, PublicationError> {
        let keys = self.keys()?;
        Ok(CheckRunWrite {
            head: head.to_owned(),
            external_id: format!("pull/{}/{}/{head}", keys.number, keys.repo.0),
            state,
            title: redact_shown(title).chars().take(TITLE).collect(),
            summary: redact_shown(summary),
            details_url: None,
        })
    }

    /// Writes a check run unless the last one of its commit has the same content and belongs to the same review or
    /// attempt: people may ask GitHub to rerun a check run.
    async fn write_check(
        &self,
        writes: &mut PullWrites,
        begins: &WriteKey,
        check: CheckRunWrite,
    ) -> Result<Option<String>, PublicationStop> {
        let key = match checks(writes).rfind(|(_, one)| one.head == check.head) {
            Some((entry, said)) if *said == check && writes.tries(begins).any(|key| key.text == entry.key) => {
                entry.write_key()
            }
            _ => writes.next_key(begins),
        };
        Ok(match self.see_through(writes, &key, Write::CheckRun(check)).await? {
            PublicationEnd::Sent(_) => None,
            PublicationEnd::Not(reason) => Some(reason),
        })
    }
}

/// The commits except `but` whose check runs are still in progress.
fn unfinished_checks(writes: &PullWrites, but: Option<&CommitSha>) -> Vec<String> {
    let last: BTreeMap<&str, CheckState> =
        checks(writes).map(|(_, check)| (check.head.as_str(), check.state)).collect();
    let but = but.map(CommitSha::as_str);
    let unfinished = last.into_iter().filter(|(head, state)| Some(*head) != but && *state == CheckState::InProgress);
    unfinished.map(|(head, _)| head.to_owned()).collect()
}

fn checks(writes: &PullWrites) -> impl DoubleEndedIterator<Item = (&OutboxEntry, &CheckRunWrite)> {
    writes.living_checks().filter_map(check_of)
}

fn check_of(one: &PullWrite) -> Option<(&OutboxEntry, &CheckRunWrite)> {
    match one.write.as_ref()? {
        Write::CheckRun(check) => Some((&one.entry, check)),
        _ => None,
    }
}

/// Being superseded or having to wait is not an error: the outbox does the rest.
fn ignore_stop(ended: Result<(), PublicationStop>) -> Result<(), PublicationError> {
    match ended {
        Ok(()) | Err(PublicationStop::Superseded | PublicationStop::Waiting { .. }) => Ok(()),
        Err(PublicationStop::Error(error)) => Err(error),
    }
}

const IN_PROGRESS: &str = "This commit is being reviewed.";
const LEFT: &str = "A newer commit came before this one was reviewed.";
