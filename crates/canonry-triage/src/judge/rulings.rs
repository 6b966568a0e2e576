//! Stores a person's ruling about a pair of items, from the command line or from a comment.

use canonry_boxed::boxed;
use canonry_domain::{ItemNumber, ItemType, Login, Override, OverrideKind};
use canonry_store::{NewOverride, Repo, Store, StoreError};
use jiff::Timestamp;

/// Why no ruling was stored.
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
    /// Who it is, if known: the command line does not know it.
    pub by: Option<&'a Login>,
}

/// Rules about two items of one type: the first is a duplicate of the second, the two are not duplicates of each
/// other, or the first must not be closed as a duplicate of the second, nor of anything in its cluster.
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

/// Whether people ruled something contrary about an item since then: about the pair, or, for a duplicate ruling,
/// about what the item is a duplicate of. A late ruling to the contrary is then outdated.
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
        // An exclusion contradicts only that its item is to be closed, and lifting one says nothing about the pair.
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
    // Repeating a ruling replaces it, at the same time; GitHub's times have whole seconds.
    Ok(disagreed.as_second() > since.as_second() && agreed < disagreed)
}
