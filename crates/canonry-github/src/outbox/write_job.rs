//! Processes one entry: from its present progress to its end, or to the next wait.

use std::error::Error;
use std::ops::ControlFlow;

use canonry_domain::GithubId;
use canonry_store::{OutboxEnd, OutboxEntry, OutboxLease, OutboxState, Reservation, WritePriority};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::checkpoint::Point;
use super::draft_review::Withdrawn;
use super::progress::{Act, End, Event, Hold, Move, Phase, Progress, Verdict};
use super::publisher::{Outbox, OutboxError};
use super::receipt::Receipt;
use super::recheck::{Recheck, Ruling};
use super::send::SEND_LIMIT;
use super::write::{FINDING, Write};
use crate::http::error::GitHubError;
use crate::outbox::pacing::next_write_at;
use crate::text::marker::Marker;

/// Longer than a send can take (see `SEND_LIMIT`): a worker that finds an entry with an expired lease knows that no
/// request for it is running.
pub(super) const LEASE: SignedDuration = SignedDuration::from_mins(5);

/// The shortest pause before a caller that ruled "wait" is asked again.
const LEAST_WAIT: SignedDuration = SignedDuration::from_secs(1);

const PACE_WINDOW: SignedDuration = SignedDuration::from_hours(1);

pub(super) struct WriteJob<'a> {
    pub(super) outbox: &'a Outbox,
    pub(super) entry: OutboxEntry,
    pub(super) write: Write,
    pub(super) marker: Marker,
    pub(super) edited: Option<GithubId>,
    owner: String,
}

/// Whether the loop continues.
type Flow = ControlFlow<(), Progress>;

impl<'a> WriteJob<'a> {
    pub(super) async fn run(
        outbox: &'a Outbox,
        entry: OutboxEntry,
        owner: String,
        recheck: &dyn Recheck,
    ) -> Result<(), OutboxError> {
        outbox.pass(Point::Claimed)?;
        let lease = OutboxLease { id: entry.id, owner: &owner, until: outbox.now() + LEASE };
        let unreadable = |error: &dyn std::fmt::Display| format!("the stored write cannot be read: {error}");
        let write: Write = match serde_json::from_value(entry.payload.clone()) {
            Ok(write) => write,
            Err(error) => return outbox.end(lease, &End::Without(Verdict::Fail(unreadable(&error)))).await,
        };
        write.check_keys(&entry.key)?;
        // Texts are scanned when they are stored; again here, because this is the last check before sending.
        if let Some(reason) = write.forbidden(&outbox.signer, &outbox.own) {
            return outbox.end(lease, &End::Without(Verdict::Refuse(reason))).await;
        }
        let progress: Progress = match entry.step.clone().map(serde_json::from_value).transpose() {
            Ok(step) => step.unwrap_or_else(|| Progress::begin(write.shape())),
            Err(error) => return outbox.end(lease, &End::Without(Verdict::Fail(unreadable(&error)))).await,
        };
        let (marker, edited) = marked_comment(outbox, &entry, &write).await?;
        let job = Self { outbox, entry, write, marker, edited, owner };
        job.go(progress, recheck).await
    }

    async fn go(&self, mut progress: Progress, recheck: &dyn Recheck) -> Result<(), OutboxError> {
        loop {
            let flow = match &progress.phase {
                Phase::Sending => self.store(progress, Event::Died).await?,
                Phase::Doubt { .. } | Phase::Settling { .. } | Phase::Listing { .. } => {
                    let event = self.find_sent(&progress).await;
                    self.outbox.pass(Point::Looked)?;
                    self.store(progress, event).await?
                }
                Phase::Twin { .. } => self.send_stored(progress.clone(), progress).await?,
                Phase::Ready => self.ready(progress, recheck).await?,
            };
            match flow {
                ControlFlow::Continue(next) => progress = next,
                ControlFlow::Break(()) => return Ok(()),
            }
        }
    }

    async fn ready(&self, progress: Progress, recheck: &dyn Recheck) -> Result<Flow, OutboxError> {
        let against = self.check_before_sending(&progress).await;
        self.outbox.pass(Point::Looked)?;
        if let Some(event) = against {
            return self.store(progress, event).await;
        }
        if progress.act != Act::Correct {
            match recheck.recheck(&self.entry, progress.act).await {
                Ok(Ruling::Proceed) => {}
                Ok(Ruling::Refuse { reason }) => return self.store(progress, Event::Refused(reason)).await,
                Ok(Ruling::Wait { until, reason }) => {
                    let soonest = self.outbox.now() + LEAST_WAIT;
                    return self.not_now(progress, Hold::Until(until.max(soonest)), reason).await;
                }
                Err(error) => {
                    let reason = format!("the check before sending failed: {error}");
                    return self.not_now(progress, hold_of(error.as_ref()), reason).await;
                }
            }
            self.outbox.pass(Point::Checked)?;
        }
        let sending = progress.clone().sending();
        self.send_stored(progress, sending).await
    }

    /// Stores that it is being sent, at the pace GitHub asks for, sends it, and stores the result.
    async fn send_stored(&self, before: Progress, sending: Progress) -> Result<Flow, OutboxError> {
        let now = self.outbox.now();
        let lease = self.lease(now);
        let is_review = matches!(self.write, Write::Review(_));
        // Correcting an announced change that did not happen is as urgent as other corrections.
        let priority = if sending.act == Act::Correct { WritePriority::Correction } else { self.entry.priority };
        let pace = |earlier: &[Timestamp]| match sending.act {
            // A draft must not wait for its turn to be submitted: there must be room for both.
            Act::Draft => next_write_at(&[earlier, &[now]].concat(), now, priority),
            _ if is_review => now,
            _ => next_write_at(earlier, now, priority),
        };
        let window = now - PACE_WINDOW;
        match self.outbox.store.outbox().reserve_send(lease, &json(&sending), now, window, pace).await? {
            Reservation::Go => self.outbox.pass(Point::SendStored)?,
            Reservation::LeaseLost => return Ok(ControlFlow::Break(())),
            Reservation::Later(until) => {
                let reason = "waiting to keep the pace that GitHub asks for".to_owned();
                return self.store(before, Event::NotSent { hold: Hold::Until(until), reason }).await;
            }
        }
        if self.outbox.notes_markers {
            let digests: Vec<[u8; 32]> =
                self.markers()?.iter().map(|marker| self.outbox.signer.digest(marker)).collect();
            self.outbox.store.outbox().record_issued_markers(&digests, now).await?;
        }
        let event = self.send(&sending).await;
        self.outbox.pass(Point::Answered)?;
        match event {
            Event::NotSent { hold, reason } => self.not_now(sending, hold, reason).await,
            event => self.store(sending, event).await,
        }
    }

    /// Nothing is sent this time. A draft is deleted instead of waiting: GitHub keeps one for each account, and
    /// whatever a person writes on the pull request in the meantime with that account would become part of ours.
    async fn not_now(&self, progress: Progress, hold: Hold, reason: String) -> Result<Flow, OutboxError> {
        let waits = Event::NotSent { hold, reason: reason.clone() };
        let draft = progress.draft.as_ref().filter(|_| progress.act == Act::Set);
        let Some(draft) = draft else { return self.store(progress, waits).await };
        let event = match tokio::time::timeout(SEND_LIMIT, self.withdraw(draft.review)).await {
            Ok(Ok(Withdrawn::Gone)) => Event::Withdrawn { hold, reason },
            Ok(Ok(Withdrawn::Submitted)) => Event::SawSubmitted(draft.clone()),
            Ok(Ok(Withdrawn::Kept) | Err(_)) | Err(_) => waits,
        };
        self.outbox.pass(Point::Answered)?;
        self.store(progress, event).await
    }

    async fn store(&self, progress: Progress, event: Event) -> Result<Flow, OutboxError> {
        let (outbox, now) = (self.outbox, self.outbox.now());
        let (repo, number, key) = (&self.entry.repo.name, self.entry.number, &self.entry.key);
        tracing::debug!(%repo, %number, key, ?event, "outbox");
        let lease = self.lease(now);
        let ours = match progress.advance(self.write.shape(), event, now)? {
            Move::On(next) => {
                let stored = outbox.store.outbox().record_step(lease, &json(&next), now).await?;
                outbox.pass(Point::StepStored)?;
                return Ok(if stored { ControlFlow::Continue(next) } else { ControlFlow::Break(()) });
            }
            Move::Wait { progress, until, reason } => {
                outbox.store.outbox().postpone(lease, &json(&progress), until, reason.as_deref(), now).await?
            }
            Move::End(end) => {
                outbox.end(lease, &end).await?;
                true
            }
        };
        if !ours {
            tracing::warn!(%repo, %number, key, "another worker has taken over");
        }
        outbox.pass(Point::StepStored)?;
        Ok(ControlFlow::Break(()))
    }

    /// All markers that the write may put into texts.
    fn markers(&self) -> Result<Vec<Marker>, OutboxError> {
        let comments = match &self.write {
            Write::Review(review) => review.comments.as_slice(),
            _ => &[],
        };
        let mut markers = vec![self.marker.clone()];
        for comment in comments {
            markers.push(Marker::new(FINDING, &comment.key)?);
        }
        Ok(markers)
    }

    fn lease(&self, now: Timestamp) -> OutboxLease<'_> {
        OutboxLease { id: self.entry.id, owner: &self.owner, until: now + LEASE }
    }

    /// The text of the comment in an act, with its marker.
    pub(super) fn comment_text(&self, act: Act) -> String {
        let text = match (&self.write, act) {
            (Write::Close(close), Act::Correct) => &close.comment_if_refused,
            (Write::Close(close), _) => &close.comment,
            (Write::Comment { body } | Write::EditComment { body, .. } | Write::Reply { body, .. }, _) => body,
            (Write::Review(review), _) => &review.body,
            _ => "",
        };
        marked(text, &self.outbox.signer.sign(&self.marker))
    }
}

pub(super) fn marked(text: &str, marker: &str) -> String {
    format!("{}\n\n{marker}", text.trim_end()).trim_start_matches('\n').to_owned()
}

impl Outbox {
    pub(super) async fn end(&self, lease: OutboxLease<'_>, end: &End) -> Result<(), OutboxError> {
        let receipt;
        let end = match end {
            End::Sent(sent) => {
                receipt = json(sent);
                OutboxEnd::Sent(&receipt)
            }
            End::Without(Verdict::Refuse(reason)) => OutboxEnd::Refused(reason),
            End::Without(Verdict::Fail(reason)) => OutboxEnd::Failed(reason),
        };
        self.store.outbox().finish(lease, end, self.now()).await?;
        Ok(())
    }
}

/// The marker of the entry's comment; for edits, the marker and the id of the edited comment.
async fn marked_comment(
    outbox: &Outbox,
    entry: &OutboxEntry,
    write: &Write,
) -> Result<(Marker, Option<GithubId>), OutboxError> {
    let (Write::EditComment { comment_key, .. } | Write::DeleteComment { comment_key }) = write else {
        return Ok((Marker::new(entry.kind.as_str(), &entry.key)?, None));
    };
    let origin = outbox.store.outbox().of_key(comment_key).await?;
    let origin = origin.filter(|origin| origin.state == OutboxState::Sent && origin.repo.id == entry.repo.id);
    let Some(origin) = origin else { return Ok((Marker::new(entry.kind.as_str(), comment_key)?, None)) };
    let receipt: Option<Receipt> = origin.answer.and_then(|answer| serde_json::from_value(answer).ok());
    let comment = receipt.and_then(|receipt| receipt.comment).map(|comment| comment.id);
    Ok((Marker::new(origin.kind.as_str(), comment_key)?, comment))
}

/// The hold for a check that failed: trouble on GitHub's side does not count against the write.
fn hold_of(error: &(dyn Error + 'static)) -> Hold {
    let mut chain = std::iter::successors(Some(error), |error| (*error).source());
    chain.find_map(|error| error.downcast_ref::<GitHubError>()).map_or(Hold::Try, Hold::of)
}

fn json<T: serde::Serialize>(value: &T) -> Value {
    serde_json::to_value(value).expect("invariant: plain data")
}
