//! Publishes a review on GitHub step by step; a repeated call after a crash or a wait continues where it stopped.

use canonry_boxed::boxed;
use std::collections::{BTreeMap, BTreeSet};

use canonry_domain::review::{LineRange, ReviewSubject, ShownAs};
use canonry_domain::{GithubId, ItemNumber, WriteKey, WriteOrigin};
use canonry_github::api::{RestReview, RestReviewComment};
use canonry_github::outbox::{InlineComment, Outbox, OutboxError, Receipt, Recheck, ReviewWrite, Write};
use canonry_github::{GitHub, GitHubError};
use canonry_store::{
    FindingId, OutboxEntry, OutboxId, OutboxScope, OutboxState, PostedFinding, Repo, ReviewId, Store, StoreError,
};
use jiff::{SignedDuration, Timestamp};

use super::commentable::{CommentPlace, CommentableLines};
use super::keys::{PublicationKeys, WriteSubject, finding_of};
use super::pull_writes::PullWrites;
use super::recheck::{SUPERSEDED, latest_review};
use super::said_findings::{SaidFindings, further_key, pointed_key, said_key};
use super::texts::{self, SummaryParts};
use crate::run::report::{ReportedFinding, ReviewReport};

/// The shortest wait before a caller asks again whether the outbox is done.
const LEAST_WAIT: SignedDuration = SignedDuration::from_secs(5);

#[derive(Clone, Copy)]
pub struct Publication<'a> {
    pub store: &'a Store,
    pub github: &'a GitHub,
    pub outbox: &'a Outbox,
    pub repo: &'a Repo,
    pub number: ItemNumber,
    /// Whether check runs can be written; GitHub allows that only to Apps.
    pub check_runs: bool,
    /// The last check before each write.
    pub recheck: &'a dyn Recheck,
    /// The name that commands begin with; `None` if no process listens to commands.
    pub handle: Option<&'a str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PublicationResult {
    Done {
        inline: usize,
        /// Whether a review was posted now, or the status comment changed.
        wrote_summary: bool,
        settled: usize,
        refused: Vec<String>,
    },
    /// A newer commit or review replaced this one; nothing more is written.
    Superseded,
    Waiting {
        until: Timestamp,
        reason: String,
    },
}

/// Why a review could not be published. Repeating is harmless: nothing is written twice.
#[derive(Debug, thiserror::Error)]
pub enum PublicationError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    GitHub(#[from] GitHubError),
    #[error(transparent)]
    Outbox(#[from] OutboxError),
    #[error("publish the review: {0}")]
    NotPublishable(&'static str),
}

pub(super) enum ReviewPost {
    New,
    /// It was posted before.
    Known,
    NothingToSay,
    Refused(String),
}

pub(super) enum PublicationStop {
    Superseded,
    Waiting { until: Timestamp, reason: String },
    Error(PublicationError),
}

impl<E: Into<PublicationError>> From<E> for PublicationStop {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}

pub(super) enum PublicationEnd {
    Sent(Receipt),
    Not(String),
}

#[boxed]
impl Publication<'_> {
    /// Publishes a completed review: one review on GitHub if there is something new, the check run, the resolved
    /// threads. Publishing the same review again changes nothing.
    pub async fn publish(&self, report: &ReviewReport) -> Result<PublicationResult, PublicationError> {
        match self.publish_or_stop(report).await {
            Ok(done) => Ok(done),
            Err(PublicationStop::Superseded) => Ok(PublicationResult::Superseded),
            Err(PublicationStop::Waiting { until, reason }) => Ok(PublicationResult::Waiting { until, reason }),
            Err(PublicationStop::Error(error)) => Err(error),
        }
    }

    async fn publish_or_stop(&self, report: &ReviewReport) -> Result<PublicationResult, PublicationStop> {
        if report.subject != ReviewSubject::Pull(self.number) {
            return Err(PublicationError::NotPublishable("it belongs to another pull request").into());
        }
        let run = report.review.ok_or(PublicationError::NotPublishable("the review is not stored"))?;
        let latest = latest_review(self.store, self.repo.id, self.number).await?;
        if latest.is_some_and(|latest| latest.id != run) {
            return Err(PublicationStop::Superseded);
        }
        let mut writes = self.load_writes().await?;
        let mut refused = Vec::new();
        let given_up = self.note_earlier_posts(&mut writes, run).await?;
        let post = self.post(&mut writes, report, run, &given_up).await?;
        let unposted = match &post {
            ReviewPost::Refused(reason) => Some(reason.as_str()),
            ReviewPost::New | ReviewPost::Known | ReviewPost::NothingToSay => None,
        };
        refused.extend(unposted.map(|reason| format!("the review: {reason}")));
        let said = self.said(&writes, run, &given_up).await?;
        let parts = SummaryParts::read(self.store, self.repo.id, report, &said, &BTreeSet::new(), unposted).await?;
        let (edited, trouble) = match (self.check_runs, unposted) {
            (true, None) => self.retire_summary(&mut writes, run).await?,
            (true, Some(_)) => (false, None),
            (false, _) => self.say_status(&mut writes, report, run, &parts, &post).await?,
        };
        refused.extend(trouble);
        if self.check_runs {
            refused.extend(self.conclude_check(&mut writes, report, run, &parts, unposted.is_some()).await?);
        }
        // Last: people wait for the check, and nobody waits for these.
        let (settled, trouble) = self.settle_threads(&mut writes, report, run, &said.posted).await?;
        refused.extend(trouble);
        let inline = said.posted.iter().filter(|one| one.run == run).count();
        let wrote_summary = edited || matches!(post, ReviewPost::New);
        let done = PublicationResult::Done { inline, wrote_summary, settled, refused };
        tracing::info!(repo = %self.repo.name, number = %self.number, head = report.head.short(), ?done, "a review is published");
        Ok(done)
    }

    async fn said(
        &self,
        writes: &PullWrites,
        run: ReviewId,
        given_up: &BTreeSet<OutboxId>,
    ) -> Result<SaidFindings, StoreError> {
        let posted = self.store.findings().posted_on_pull(self.repo.id, self.number).await?;
        Ok(SaidFindings::new(writes, posted, run, given_up))
    }

    /// Records the comments of earlier reviews whose process died between GitHub's answer and the record, so that they
    /// are not posted again. Returns the failed posts that are on GitHub after all.
    async fn note_earlier_posts(
        &self,
        writes: &mut PullWrites,
        run: ReviewId,
    ) -> Result<BTreeSet<OutboxId>, PublicationStop> {
        let posts: Vec<OutboxEntry> = writes.of_origin(WriteOrigin::ReviewPost).map(|one| one.entry.clone()).collect();
        for entry in posts.iter().filter(|entry| entry.is_sent_or_pending()) {
            let is_own = entry.source.record == Some(run.get());
            let entry = match entry.state {
                OutboxState::Pending if !is_own => self.send(writes, entry.id).await?,
                _ => entry.clone(),
            };
            if entry.state == OutboxState::Pending && !is_own {
                return Err(self.waiting(&entry).await?);
            }
            if let (OutboxState::Sent, Some(WriteSubject::Run(of))) = (entry.state, WriteSubject::of(&entry)) {
                self.note_posted(of, &receipt_of(&entry)).await?;
            }
        }
        let failed: Vec<&OutboxEntry> = posts.iter().filter(|entry| entry.state == OutboxState::Failed).collect();
        if failed.is_empty() { Ok(BTreeSet::new()) } else { self.find_given_up(&failed).await }
    }

    /// Searches for the reviews whose sending failed without an answer: GitHub may have them after all.
    async fn find_given_up(&self, failed: &[&OutboxEntry]) -> Result<BTreeSet<OutboxId>, PublicationStop> {
        let reviews = self.github.reviews(&self.repo.name, self.number).all().await?;
        let there = self.github.review_comments(&self.repo.name, self.number).all().await?;
        let mut standing = BTreeSet::new();
        for entry in failed {
            let is_it = |one: &RestReview| !one.is_pending() && self.outbox.wrote_review(one, &entry.key);
            if reviews.iter().any(is_it) {
                standing.insert(entry.id);
            }
            let (Some(Write::Review(review)), Some(WriteSubject::Run(run))) =
                (Write::of_entry(entry), WriteSubject::of(entry))
            else {
                continue;
            };
            let mut found = Vec::new();
            for said in &review.comments {
                let marker = format!(":{}:", said.key);
                let is_it =
                    |one: &&RestReviewComment| one.body.contains(&marker) && self.outbox.wrote_review_comment(one);
                found.extend(finding_of(&said.key).zip(there.iter().find(is_it).map(|one| GithubId(one.id))));
            }
            self.store.findings().record_posted(self.repo.id, self.number, run, &found, self.github.now()).await?;
        }
        Ok(standing)
    }

    /// Posts the review if it contains anything that no earlier review posted. `given_up` are failed posts that are on
    /// GitHub without a record.
    async fn post(
        &self,
        writes: &mut PullWrites,
        report: &ReviewReport,
        run: ReviewId,
        given_up: &BTreeSet<OutboxId>,
    ) -> Result<ReviewPost, PublicationStop> {
        let mut is_known = false;
        let (key, write) = match writes.of_run(WriteOrigin::ReviewPost, run).next_back() {
            Some(last) if given_up.contains(&last.entry.id) => return Ok(ReviewPost::Known),
            // A refused post is not on GitHub, and a failed post was searched for above.
            Some(last) if last.entry.is_sent_or_pending() => {
                is_known = last.entry.state == OutboxState::Sent;
                let unreadable = PublicationError::NotPublishable("its comments cannot be read back");
                (last.entry.write_key(), last.write.clone().ok_or(unreadable)?)
            }
            _ => match self.review_to_post(writes, report, run, given_up).await? {
                Some(review) => {
                    let begins = self.keys()?.post(run, report.head.as_str());
                    (writes.next_key(&begins), Write::Review(review))
                }
                None => return Ok(ReviewPost::NothingToSay),
            },
        };
        Ok(match self.see_through(writes, &key, write).await? {
            PublicationEnd::Sent(receipt) => {
                self.note_posted(run, &receipt).await?;
                if is_known { ReviewPost::Known } else { ReviewPost::New }
            }
            PublicationEnd::Not(reason) => ReviewPost::Refused(reason),
        })
    }

    /// The review to be posted: an inline comment for each new finding, and a body with all of them. `None` if there is
    /// nothing new.
    async fn review_to_post(
        &self,
        writes: &PullWrites,
        report: &ReviewReport,
        run: ReviewId,
        given_up: &BTreeSet<OutboxId>,
    ) -> Result<Option<ReviewWrite>, PublicationStop> {
        let said = self.said(writes, run, given_up).await?;
        let inline = || report.standing().filter(|one| one.shown == ShownAs::Inline);
        let at_lines: Vec<FindingId> =
            inline().filter(|one| said.stands_at_its_line(one)).filter_map(|one| one.id).collect();
        self.store.findings().mark_posted_inline(run, &at_lines).await?;
        let is_grave =
            |one: &&ReportedFinding| one.shown == ShownAs::Inline || one.sighting.finding.is_removed_credential();
        let is_named_by_others = |one: &ReportedFinding| said.is_named_by_others(one, report);
        let is_unsaid =
            |one: &&ReportedFinding| said.is_unsaid(one) && !(is_named_by_others(one) && said.is_pointed_to(one));
        let unsaid: Vec<&ReportedFinding> = report.standing().filter(is_grave).filter(is_unsaid).collect();
        let further = || report.standing().filter(|one| one.shown == ShownAs::Details);
        if unsaid.is_empty() && further().all(|one| said.is_in_a_list(one, report)) {
            return Ok(None);
        }
        let to_place: Vec<&ReportedFinding> = unsaid.iter().copied().filter(|one| !is_named_by_others(one)).collect();
        let comments = self.comments_to_post(run, &to_place, &said).await?;
        let placed: BTreeSet<FindingId> = comments.iter().filter_map(|one| finding_of(&one.key)).collect();
        let parts = SummaryParts::read(self.store, self.repo.id, report, &said, &placed, None).await?;
        let body = parts.body(report, self.handle);
        let key = |one| if is_named_by_others(one) { pointed_key(one) } else { said_key(one) };
        let listed = report.standing().filter(|one| texts::is_listed(one, &said, &placed)).filter_map(key);
        let said = listed.chain(further().filter_map(further_key)).collect();
        Ok(Some(ReviewWrite { commit: report.head.as_str().to_owned(), body, comments, said }))
    }

    /// The inline comments, on lines where GitHub accepts them.
    async fn comments_to_post(
        &self,
        run: ReviewId,
        unsaid: &[&ReportedFinding],
        said: &SaidFindings,
    ) -> Result<Vec<InlineComment>, PublicationStop> {
        let can_be_placed = |one: &&&ReportedFinding| one.grounded && one.sighting.finding.lines.is_some();
        let mut comments = Vec::new();
        if !unsaid.iter().any(|one| can_be_placed(&one)) {
            return Ok(comments);
        }
        let files = self.github.pull_files(&self.repo.name, self.number).all().await?;
        let commentable = CommentableLines::new(&files);
        for one in unsaid.iter().filter(can_be_placed) {
            let finding = &one.sighting.finding;
            let place = finding.lines.and_then(|lines| commentable.place(&finding.path, lines));
            let (Some(place), Some(id)) = (place, one.id) else { continue };
            let covers_lines = finding.lines == LineRange::new(place.start_line.unwrap_or(place.line), place.line);
            let CommentPlace { line, start_line } = place;
            comments.push(InlineComment {
                key: self.keys()?.comment(run, id),
                path: finding.path.as_str().to_owned(),
                line,
                start_line,
                body: texts::comment_of(one, &said.posted, covers_lines, self.handle),
            });
        }
        Ok(comments)
    }

    async fn note_posted(&self, run: ReviewId, receipt: &Receipt) -> Result<(), PublicationStop> {
        let Some(review) = &receipt.review else { return Ok(()) };
        let posted: Vec<_> =
            review.comments.iter().filter_map(|one| Some((finding_of(&one.key)?, one.comment))).collect();
        let now = self.github.now();
        self.store.findings().record_posted(self.repo.id, self.number, run, &posted, now).await?;
        if !review.left_out.is_empty() {
            tracing::warn!(repo = %self.repo.name, number = %self.number, left_out = review.left_out.len(), "GitHub accepts no comment on some lines; the review's body lists these findings");
        }
        Ok(())
    }

    pub(super) fn keys(&self) -> Result<PublicationKeys, PublicationError> {
        let unknown = PublicationError::NotPublishable("its repository on GitHub is unknown");
        Ok(PublicationKeys { repo: self.repo.github_id.ok_or(unknown)?, number: self.number })
    }

    pub(super) async fn load_writes(&self) -> Result<PullWrites, StoreError> {
        PullWrites::load(self.store, self.repo.id, self.number).await
    }

    /// Stores a write, or finds the stored one, and sends it.
    pub(super) async fn see_through(
        &self,
        writes: &mut PullWrites,
        key: &WriteKey,
        write: Write,
    ) -> Result<PublicationEnd, PublicationStop> {
        let entry = self.outbox.enqueue(self.repo.id, self.number, key, write).await?;
        let entry = self.send(writes, entry.id).await?;
        let reason = || entry.reason.clone().unwrap_or_else(|| "no reason was given".to_owned());
        match entry.state {
            OutboxState::Sent => Ok(PublicationEnd::Sent(receipt_of(&entry))),
            OutboxState::Pending => Err(self.waiting(&entry).await?),
            OutboxState::Refused if entry.reason.as_deref() == Some(SUPERSEDED) => Err(PublicationStop::Superseded),
            OutboxState::Refused | OutboxState::Failed => Ok(PublicationEnd::Not(reason())),
        }
    }

    /// Sends an entry. The outbox keeps the order of a pull request's writes: it sends or refuses earlier pending
    /// entries first, and only in that case the writes have to be reloaded.
    async fn send(&self, writes: &mut PullWrites, id: OutboxId) -> Result<OutboxEntry, PublicationStop> {
        let entry = self.outbox.publish(id, self.recheck).await?;
        if writes.is_another_pending(id) {
            *writes = self.load_writes().await?;
        } else {
            writes.note(entry.clone());
        }
        Ok(entry)
    }

    async fn waiting(&self, entry: &OutboxEntry) -> Result<PublicationStop, StoreError> {
        let next = self.store.outbox().next_moment(OutboxScope::Item(self.repo.id, self.number)).await?;
        let until = next.unwrap_or(entry.not_before).max(self.github.now() + LEAST_WAIT);
        let mut reason = entry.reason.clone();
        if reason.is_none() {
            // The entry waits behind another one, whose reason the outbox has just stored.
            let entries = self.store.outbox().of_item(self.repo.id, self.number).await?;
            reason = entries.into_iter().filter(|one| one.state == OutboxState::Pending).find_map(|one| one.reason);
        }
        let reason = reason.unwrap_or_else(|| "another process is writing".to_owned());
        Ok(PublicationStop::Waiting { until, reason })
    }
}

/// The comments of findings that have several open comments, without the newest of each finding: the newest repeats
/// what they say.
pub(super) fn outspoken_by_newer(posted: &[PostedFinding]) -> BTreeSet<GithubId> {
    let mut newest: BTreeMap<FindingId, &PostedFinding> = BTreeMap::new();
    let mut older = BTreeSet::new();
    for row in posted.iter().filter(|row| row.settled.is_none()) {
        if let Some(before) = newest.insert(row.finding, row) {
            older.insert(before.comment);
        }
    }
    older
}

fn receipt_of(entry: &OutboxEntry) -> Receipt {
    Receipt::of_entry(entry).unwrap_or_default()
}
