//! What a person rules about a pair of items, by the command line or in a comment.

use canonry_boxed::boxed;
use canonry_domain::{ItemNumber, ItemType, Login, Override, OverrideKind};
use canonry_store::{NewOverride, Repo, Store, StoreError};
use jiff::Timestamp;

/// Why nothing was ruled.
#[derive(Debug, thiserror::Error)]
pub enum RulingError {
    #[error("the two items are the same; name two different numbers")]
    Itself,
    /// The store failed, or has no such item.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What a person adds to a ruling.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statement<'a> {
    pub note: Option<&'a str>,
    /// Who it is, where that is known: the command line does not know it.
    pub by: Option<&'a Login>,
}

/// Rules about two items of one type: the first is a duplicate of the second, the two are no duplicates of each other, or the
/// first is not to be closed as a duplicate of the second, nor of anything in its cluster.
#[boxed]
pub async fn rule_pair(
    store: &Store,
    repo: &Repo,
    item_type: ItemType,
    kind: OverrideKind,
    (item, other): (ItemNumber, ItemNumber),
    statement: Statement<'_>,
    now: Timestamp,
) -> Result<Override, RulingError> {
    if item == other {
        return Err(RulingError::Itself);
    }
    let Statement { note, by } = statement;
    Ok(store
        .duplicates()
        .add_override(repo.id, NewOverride { item_type, kind, item, other: Some(other), note, by }, now)
        .await?)
}

/// Whether people ruled something else about an item since then: about the pair, or, where it is to be a duplicate, about
/// what it is a duplicate of. Who arrives late with the contrary has been overtaken.
#[boxed]
pub async fn ruled_since(
    store: &Store,
    repo: &Repo,
    item_type: ItemType,
    kind: OverrideKind,
    (item, other): (ItemNumber, ItemNumber),
    since: Timestamp,
) -> Result<bool, StoreError> {
    let is_pair = |ruled: &Override| {
        (ruled.item, ruled.other) == (item, Some(other)) || (ruled.item, ruled.other) == (other, Some(item))
    };
    let (mut agreed, mut disagreed) = (Timestamp::MIN, Timestamp::MIN);
    for (ruled, removed_at) in store.duplicates().overrides_ever(repo.id, item_type, item).await? {
        // An exclusion contradicts nothing but that its item is to be closed, and to lift one says nothing of the pair.
        let is_exclusion = ruled.kind == OverrideKind::Excluded;
        if is_exclusion && (removed_at.is_some() || kind != OverrideKind::Duplicate || ruled.item != item) {
            continue;
        }
        let same = ruled.kind == kind && is_pair(&ruled) && (kind == OverrideKind::NotDuplicate || ruled.item == item);
        let about = is_pair(&ruled)
            || (kind == OverrideKind::Duplicate && ruled.item == item && ruled.kind != OverrideKind::NotDuplicate);
        match removed_at {
            None if same => agreed = agreed.max(ruled.created_at),
            _ if about => disagreed = disagreed.max(removed_at.unwrap_or(ruled.created_at)),
            _ => {}
        }
    }
    // The same said once more replaces what was said, at the same moment; GitHub tells whole seconds.
    Ok(disagreed.as_second() > since.as_second() && agreed < disagreed)
}
