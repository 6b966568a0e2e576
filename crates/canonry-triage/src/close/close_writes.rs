//! What closing and reopening share: the context, the keys of their writes, and how a write ended.

use canonry_boxed::boxed;
use canonry_domain::{ItemNumber, ItemType, WriteKey, WriteOrigin};
use canonry_github::GitHub;
use canonry_github::outbox::{Outbox, OutboxError, Receipt, Recheck, Write};
use canonry_store::{CloseRunId, OutboxEntry, OutboxState, Repo, Store, StoreError};

use crate::close::close_lease::{CloseLeaseGuard, LeaseError};
use crate::close::close_recheck::NoClose;
use crate::corpus::identify::{IdentifyError, identify, remember};

/// Why a run ended early. What it did until then is stored, and running it again continues from there.
#[derive(Debug, thiserror::Error)]
pub enum ClosingError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Outbox(#[from] OutboxError),
    /// It is not certain that this is the repository whose items are stored.
    #[error(transparent)]
    Identify(#[from] IdentifyError),
    /// Another process works in the repository.
    #[error("{0}")]
    Busy(String),
}

impl From<LeaseError> for ClosingError {
    fn from(error: LeaseError) -> Self {
        match error {
            LeaseError::Store(error) => Self::Store(error),
            LeaseError::Busy(_) => Self::Busy(error.to_string()),
        }
    }
}

/// What a close or reopen needs, including the repository's lease.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CloseContext<'a> {
    pub(crate) store: &'a Store,
    pub(crate) github: &'a GitHub,
    pub(crate) outbox: &'a Outbox,
    pub(crate) lease: &'a CloseLeaseGuard,
    pub(crate) repo: &'a Repo,
}

/// The repository under its current name. Another repository may have the old name now; nothing is written there.
pub(crate) async fn present_repo(store: &Store, github: &GitHub, repo: &Repo) -> Result<Repo, ClosingError> {
    let identified = identify(store, github, &repo.name).await?;
    Ok(remember(store, &repo.name, &identified, github.now()).await?)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RowItem {
    pub(crate) item_type: ItemType,
    pub(crate) number: ItemNumber,
}

/// The state of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WriteEnd {
    Sent(Receipt),
    Refused(String),
    Failed(String),
    /// It waits for longer than this run does.
    Pending(String),
}

impl WriteEnd {
    pub(crate) fn of(entry: &OutboxEntry) -> Self {
        let reason = || entry.reason.clone().unwrap_or_else(|| "the reason is unknown".to_owned());
        match entry.state {
            OutboxState::Sent => Self::Sent(Receipt::of_entry(entry).unwrap_or_default()),
            OutboxState::Refused => Self::Refused(reason()),
            OutboxState::Failed => Self::Failed(reason()),
            OutboxState::Pending => {
                let waits = entry.reason.as_deref().unwrap_or("another worker has it");
                Self::Pending(format!("not finished yet ({waits}); run this again to continue"))
            }
        }
    }
}

impl CloseContext<'_> {
    /// Stores a write and publishes it.
    pub(crate) async fn write(
        &self,
        number: ItemNumber,
        key: &WriteKey,
        write: Write,
    ) -> Result<WriteEnd, OutboxError> {
        self.write_checked(number, key, write, &NoClose(*self)).await
    }

    /// Like `write`, for a text that says that a close is cancelled.
    pub(crate) async fn correct(
        &self,
        number: ItemNumber,
        key: &WriteKey,
        write: Write,
    ) -> Result<WriteEnd, OutboxError> {
        let entry = self.outbox.enqueue_correction(self.repo.id, number, key, write).await?;
        Ok(WriteEnd::of(&self.outbox.publish(entry.id, &NoClose(*self)).await?))
    }

    /// Like `write`, with the caller's own check before each send.
    pub(crate) async fn write_checked(
        &self,
        number: ItemNumber,
        key: &WriteKey,
        write: Write,
        recheck: &dyn Recheck,
    ) -> Result<WriteEnd, OutboxError> {
        let entry = self.outbox.enqueue(self.repo.id, number, key, write).await?;
        Ok(WriteEnd::of(&self.outbox.publish(entry.id, recheck).await?))
    }
}

/// Why a row is not applied, if a person decided so.
pub(crate) const fn left_out(word: Option<bool>, approved_only: bool) -> Option<&'static str> {
    match word {
        Some(false) => Some("excluded"),
        None if approved_only => Some("not approved"),
        _ => None,
    }
}

/// Whether the close of a row has begun and was neither refused nor failed: GitHub may already have it.
#[boxed]
pub async fn has_close_begun(
    store: &Store,
    plan: CloseRunId,
    item_type: ItemType,
    number: ItemNumber,
) -> Result<bool, StoreError> {
    let begun = store.outbox().of_key(&close_key(plan, RowItem { item_type, number }).text).await?;
    Ok(begun.is_some_and(|entry| entry.is_sent_or_pending()))
}

/// How many closes of a plan have begun and not ended. The publisher sends no closes: they continue, or are
/// withdrawn, when the plan is applied again. Until then they block other writes to their items.
#[boxed]
pub async fn closes_begun(store: &Store, repo: &Repo, plan: CloseRunId) -> Result<usize, StoreError> {
    store.outbox().count_pending(repo.id, WriteOrigin::Close, plan.get()).await
}

/// The key of a row's close. A plan closes an item only once, however often it is applied.
pub(crate) fn close_key(plan: CloseRunId, item: RowItem) -> WriteKey {
    row_key(WriteOrigin::Close, plan, item)
}

pub(crate) fn row_key(origin: WriteOrigin, plan: CloseRunId, RowItem { item_type, number }: RowItem) -> WriteKey {
    WriteKey::of_item(origin, plan.get(), item_type, number).with_record(plan.get())
}
