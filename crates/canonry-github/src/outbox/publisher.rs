//! Stores writes in the outbox, and sends them.

use canonry_boxed::boxed;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use canonry_domain::{ItemNumber, Login, WriteKey};
use canonry_store::{
    NewOutboxEntry, OutboxEntry, OutboxId, OutboxScope, OutboxState, RepoId, Store, StoreError, WritePriority,
};
use jiff::{SignedDuration, Timestamp};

use super::checkpoint::{Checkpoint, Point};
use super::progress::OutOfPlace;
use super::recheck::Recheck;
use super::write::Write;
use super::write_job::{LEASE, WriteJob};
use crate::api::{RestComment, RestReview, RestReviewComment, RestUser};
use crate::auth::secret::Secret;
use crate::http::client::GitHub;
use crate::http::error::GitHubError;
use crate::http::rate_budget::WaitReason;
use crate::outbox::process_mark::{is_process_gone, process_mark};
use crate::text::marker::{InvalidMarker, MarkerSigner};

/// How often it is checked whether another worker has ended, and the pause between two checks.
const LOOKS: u32 = 20;
const LOOK: SignedDuration = SignedDuration::from_secs(1);

/// Why the outbox could not do its work. Stored writes are kept.
#[derive(Debug, thiserror::Error)]
pub enum OutboxError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// GitHub did not return our account.
    #[error(transparent)]
    GitHub(#[from] GitHubError),
    #[error("the write cannot be stored: {0}")]
    Key(#[from] InvalidMarker),
    #[error("the outbox has no such entry")]
    Unknown,
    #[error("the work was ended between two steps ({0:?}); it goes on when it is started again")]
    Stopped(Point),
    /// A bug: the state machine met an impossible event.
    #[error(transparent)]
    OutOfPlace(#[from] OutOfPlace),
}

/// Every write to GitHub goes through the outbox.
#[derive(Clone)]
pub struct Outbox {
    pub(super) store: Store,
    pub(super) github: GitHub,
    pub(super) signer: MarkerSigner,
    /// Whether the digests of markers are stored, because their secret is not.
    pub(super) notes_markers: bool,
    /// Whether the database may be older than what is on GitHub, so that a comment is searched for before its first
    /// send too.
    pub(super) may_have_forgotten: bool,
    pub(super) own: Login,
    checkpoint: Checkpoint,
}

#[boxed]
impl Outbox {
    /// Opens the outbox of a store. The first time, `fresh_secret` becomes the secret that signs markers: it must be
    /// random.
    pub async fn open(store: Store, github: GitHub, fresh_secret: [u8; 32]) -> Result<Self, OutboxError> {
        let secret = store.outbox().marker_secret(fresh_secret, github.now()).await?;
        let signer = MarkerSigner::new(Secret::new(&STANDARD_NO_PAD.encode(secret)));
        Self::signing_with(signer, false, store, github).await
    }

    /// Opens the outbox without a secret in the database, for a database that others can read: `secret` signs instead,
    /// for the lifetime of the outbox. The next outbox recognizes the signed markers by their digests.
    pub async fn open_with_secret(store: Store, github: GitHub, secret: Secret) -> Result<Self, OutboxError> {
        store.outbox().delete_marker_secret().await?;
        let signer = MarkerSigner::new(secret).knowing(store.outbox().issued_markers().await?);
        Self::signing_with(signer, true, store, github).await
    }

    /// Opens the outbox of a database that is kept elsewhere between two runs, where others can read it and where it may
    /// get lost: without a secret in the database, and expecting that GitHub has comments of which the database knows
    /// nothing. Without a `secret`, which must be the same in every run, the account alone shows whose a comment is.
    pub async fn open_portable(store: Store, github: GitHub, secret: Option<Secret>) -> Result<Self, OutboxError> {
        store.outbox().delete_marker_secret().await?;
        let signer = match secret {
            Some(secret) => MarkerSigner::new(secret).knowing(store.outbox().issued_markers().await?),
            None => {
                let fresh: [u8; 32] = rand::random();
                MarkerSigner::new(Secret::new(&STANDARD_NO_PAD.encode(fresh))).trusting_account()
            }
        };
        let outbox = Self::signing_with(signer, false, store, github).await?;
        Ok(Self { may_have_forgotten: true, ..outbox })
    }

    async fn signing_with(
        signer: MarkerSigner,
        notes_markers: bool,
        store: Store,
        github: GitHub,
    ) -> Result<Self, OutboxError> {
        let own = github.own_login().await?;
        let checkpoint: Checkpoint = Arc::new(|_| ControlFlow::Continue(()));
        let may_have_forgotten = false;
        let outbox = Self { store, github, signer, notes_markers, may_have_forgotten, own, checkpoint };
        outbox.release_leases_of_gone_processes().await?;
        Ok(outbox)
    }

    /// Sets the checkpoint that is called between two steps.
    #[must_use]
    pub fn with_checkpoint(self, checkpoint: Checkpoint) -> Self {
        Self { checkpoint, ..self }
    }

    pub fn own_login(&self) -> &Login {
        &self.own
    }

    /// Whether the outbox wrote a comment. The account alone does not decide: the token may be a person's, who writes
    /// comments too.
    pub fn wrote(&self, comment: &RestComment) -> bool {
        self.wrote_text(comment.user.as_ref(), &comment.body)
    }

    /// Whether the outbox wrote a comment on a diff.
    pub fn wrote_review_comment(&self, comment: &RestReviewComment) -> bool {
        self.wrote_text(comment.user.as_ref(), &comment.body)
    }

    /// Whether the outbox wrote a review under this key.
    pub fn wrote_review(&self, review: &RestReview, key: &str) -> bool {
        let (author, body) = (review.user.as_ref().and_then(RestUser::to_login), review.body.as_deref());
        author.is_some_and(|author| {
            self.signer.find(body.unwrap_or_default(), &author, &self.own).iter().any(|marker| marker.key() == key)
        })
    }

    fn wrote_text(&self, author: Option<&RestUser>, text: &str) -> bool {
        self.wrote_as(author.and_then(RestUser::to_login).as_ref(), text)
    }

    pub(super) fn wrote_as(&self, author: Option<&Login>, text: &str) -> bool {
        author.is_some_and(|author| !self.signer.find(text, author, &self.own).is_empty())
    }

    /// Stores a write, to be sent later. A key that was used before returns the earlier entry, and nothing is written
    /// twice. A text with a secret is refused at once, and stored without the secret.
    pub async fn enqueue(
        &self,
        repo: RepoId,
        number: ItemNumber,
        key: &WriteKey,
        write: Write,
    ) -> Result<OutboxEntry, OutboxError> {
        let priority = if write == Write::Reopen { WritePriority::Correction } else { WritePriority::Ordinary };
        self.enqueue_as(priority, repo, number, key, write).await
    }

    /// Stores a write that undoes something; it is sent before all ordinary writes.
    pub async fn enqueue_correction(
        &self,
        repo: RepoId,
        number: ItemNumber,
        key: &WriteKey,
        write: Write,
    ) -> Result<OutboxEntry, OutboxError> {
        self.enqueue_as(WritePriority::Correction, repo, number, key, write).await
    }

    async fn enqueue_as(
        &self,
        priority: WritePriority,
        repo: RepoId,
        number: ItemNumber,
        key: &WriteKey,
        write: Write,
    ) -> Result<OutboxEntry, OutboxError> {
        let kind = write.kind();
        write.check_keys(&key.text)?;
        let refused = write.forbidden(&self.signer, &self.own);
        let payload = serde_json::to_value(write.storable()).expect("invariant: plain data");
        let new = NewOutboxEntry { repo, number, kind, key, payload: &payload, refused: refused.as_deref() };
        Ok(self.store.outbox().enqueue_as(&new, priority, self.now()).await?)
    }

    /// Sends an entry, and the entries of its item before it. All waits together take at most as long as the client may
    /// wait. Returns the entry's state then: still pending if it takes longer.
    pub async fn publish(&self, id: OutboxId, recheck: &dyn Recheck) -> Result<OutboxEntry, OutboxError> {
        let (start, mut told) = (self.now(), None);
        let give_up = start.saturating_add(self.github.options().longest_wait).unwrap_or(Timestamp::MAX);
        let mut looks = 0;
        loop {
            let entry = self.store.outbox().get(id).await?.ok_or(OutboxError::Unknown)?;
            if entry.state != OutboxState::Pending {
                return Ok(entry);
            }
            let scope = OutboxScope::Item(entry.repo.id, entry.number);
            if self.work_on_next(scope, recheck).await? {
                continue;
            }
            let now = self.now();
            let is_at_work = self.store.outbox().is_sending(scope, now).await?;
            if is_at_work && self.release_leases_of_gone_processes().await? {
                continue;
            }
            // A lease lasts for minutes, and most writes take a second: its owner is about to end.
            if looks < LOOKS && is_at_work {
                looks += 1;
                self.github.options().clock.beat(LOOK).await;
                continue;
            }
            let next = self.store.outbox().next_moment(scope).await?.unwrap_or(now);
            if next > now && next > give_up {
                return Ok(entry);
            }
            // Another worker may be about to end; it is not checked more often than each second.
            let until = next.max(now + SignedDuration::from_secs(1));
            tracing::debug!(%until, waiting_for = entry.reason, "the outbox waits");
            let reason = if is_at_work { WaitReason::WriteLease } else { WaitReason::Write };
            if told != Some((reason, next)) {
                told = Some((reason, next));
                self.github.tell_wait(reason, until);
            }
            self.github.options().clock.sleep_until(until).await;
        }
    }

    /// Processes all entries that are due and returns when the next one is due.
    pub async fn publish_due(&self, recheck: &dyn Recheck) -> Result<Option<Timestamp>, OutboxError> {
        while self.work_on_next(OutboxScope::All, recheck).await? {}
        Ok(self.store.outbox().next_moment(OutboxScope::All).await?)
    }

    /// Processes one write that a service may send unattended, which a close never is; `false` if none is due. Several
    /// workers may do so at once: each processes another item.
    pub async fn publish_unattended(&self, recheck: &dyn Recheck) -> Result<bool, OutboxError> {
        self.work_on_next(OutboxScope::Unattended, recheck).await
    }

    /// Claims one entry and processes it to its end or its next wait; `false` if none can be claimed now.
    async fn work_on_next(&self, scope: OutboxScope, recheck: &dyn Recheck) -> Result<bool, OutboxError> {
        let now = self.now();
        let owner = format!("{}:{:032x}", process_mark(), rand::random::<u128>());
        let Some(entry) = self.store.outbox().claim(scope, &owner, now, now + LEASE).await? else {
            return Ok(false);
        };
        WriteJob::run(self, entry, owner, recheck).await?;
        Ok(true)
    }

    /// Releases the leases of killed processes of this machine. Their sends are in doubt then, as after an expired
    /// lease, and are searched for on GitHub before they are sent again.
    async fn release_leases_of_gone_processes(&self) -> Result<bool, OutboxError> {
        let mut released = false;
        for owner in self.store.outbox().lease_owners(self.now()).await? {
            if is_process_gone(&owner) {
                released |= self.store.outbox().release_leases(&owner).await? > 0;
            }
        }
        Ok(released)
    }

    pub(super) fn now(&self) -> Timestamp {
        self.github.now()
    }

    pub(super) fn pass(&self, point: Point) -> Result<(), OutboxError> {
        match (self.checkpoint)(point) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(OutboxError::Stopped(point)),
        }
    }
}

impl fmt::Debug for Outbox {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Outbox").field("own", &self.own).finish_non_exhaustive()
    }
}
