//! Records: what a source says about an item, and how a record merges into the stored item.

use jiff::Timestamp;

use crate::items::record_order::{RecordOrder, record_order};
use crate::{
    ContentVersion, GithubId, Item, ItemNumber, ItemState, ItemType, Login, PullChanges, StateReason, content_hash,
};

/// What one source says about one item.
///
/// `None` means that the source does not say, and the known value stays. If a source can say "there is none", the
/// field has a second layer: `Some(None)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemRecord {
    pub item_type: ItemType,
    pub number: ItemNumber,
    pub github_id: Option<GithubId>,
    pub title: String,
    /// GitHub's null is an empty body.
    pub body: Option<String>,
    pub state: Option<ItemState>,
    pub state_reason: Option<Option<StateReason>>,
    pub merged: Option<bool>,
    pub draft: Option<bool>,
    pub author: Option<Login>,
    pub assignees: Option<Vec<Login>>,
    pub has_milestone: Option<bool>,
    /// Whether only collaborators may comment.
    pub locked: Option<bool>,
    pub labels: Option<Vec<String>>,
    pub comments: Option<u32>,
    pub review_comments: Option<u32>,
    pub created_at: Option<Timestamp>,
    pub updated_at: Option<Timestamp>,
    pub closed_at: Option<Option<Timestamp>>,
    pub url: Option<String>,
    pub duplicate_of: Option<Option<ItemNumber>>,
    pub changes: Option<PullChanges>,
    pub base_branch: Option<String>,
    /// When the record was fetched from GitHub; `None` for a record from a file.
    pub synced_at: Option<Timestamp>,
}

impl ItemRecord {
    /// A record with only the required fields.
    pub fn new(item_type: ItemType, number: ItemNumber, title: impl Into<String>) -> Self {
        Self {
            item_type,
            number,
            github_id: None,
            title: title.into(),
            body: None,
            state: None,
            state_reason: None,
            merged: None,
            draft: None,
            author: None,
            assignees: None,
            has_milestone: None,
            locked: None,
            labels: None,
            comments: None,
            review_comments: None,
            created_at: None,
            updated_at: None,
            closed_at: None,
            url: None,
            duplicate_of: None,
            changes: None,
            base_branch: None,
            synced_at: None,
        }
    }
}

/// How a record changed an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordChange {
    Inserted,
    /// At least one field changed.
    Updated {
        /// Whether the content version increased, so that everything derived from the text is stale.
        content: bool,
    },
    Unchanged,
    /// The record describes an earlier moment than the known item, so it was ignored.
    Older,
    /// It is unclear whether the record or the known item is newer, so the record was ignored: the item must be
    /// fetched from GitHub.
    Unordered,
}

/// An item after a record was merged into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergedItem {
    pub item: Item,
    pub change: RecordChange,
}

/// Merges a record into the known item, if there is one, and returns the item as it is now.
///
/// A record that was written before the known item changes nothing: an import of last month's file must not restore
/// last month's text. Neither does a record that may have been written before.
pub fn merge_record(known: Option<&Item>, record: ItemRecord) -> MergedItem {
    merge(known, record, |order| order)
}

/// Merges GitHub's answer to a request that was sent after `seen` was read from the store.
///
/// If the known item is still `seen`, everything known was recorded before the request, so the answer is newer.
/// Otherwise the answer is merged like any other record.
pub fn merge_answer(known: Option<&Item>, seen: Option<&Item>, answer: ItemRecord) -> MergedItem {
    merge(known, answer, |order| match order {
        RecordOrder::Unclear if known == seen => RecordOrder::Later,
        order => order,
    })
}

/// Merges a webhook's record. A webhook may be delivered again after the item was deleted or moved, so only a record
/// that is newer than that restores the item.
pub fn merge_webhook(known: Option<&Item>, record: ItemRecord) -> MergedItem {
    match known {
        Some(known) if known.gone.is_some() && record.updated_at <= known.last_synced_at => {
            MergedItem { item: known.clone(), change: RecordChange::Older }
        }
        _ => merge_record(known, record),
    }
}

fn merge(known: Option<&Item>, record: ItemRecord, settled: impl FnOnce(RecordOrder) -> RecordOrder) -> MergedItem {
    let record = storable(record);
    let Some(known) = known else {
        return MergedItem { item: first_seen(record), change: RecordChange::Inserted };
    };
    let left_aside = match settled(record_order(known, &record)) {
        RecordOrder::Later => None,
        RecordOrder::Earlier => Some(RecordChange::Older),
        RecordOrder::Unclear => Some(RecordChange::Unordered),
    };
    if let Some(change) = left_aside {
        return MergedItem { item: known.clone(), change };
    }
    let item = updated(known, record);
    let change = if item.content_version != known.content_version {
        RecordChange::Updated { content: true }
    } else if same_facts(&item, known) {
        RecordChange::Unchanged
    } else {
        RecordChange::Updated { content: false }
    };
    MergedItem { item, change }
}

/// PostgreSQL cannot store U+0000 in a text. Both engines store the replacement character instead, so that their
/// hashes agree.
fn storable(mut record: ItemRecord) -> ItemRecord {
    let mut clean = |text: &mut String| {
        if text.contains('\0') {
            *text = text.replace('\0', "\u{fffd}");
        }
    };
    clean(&mut record.title);
    record.body.iter_mut().for_each(&mut clean);
    record.url.iter_mut().for_each(&mut clean);
    record.base_branch.iter_mut().for_each(&mut clean);
    record.labels.iter_mut().flatten().for_each(&mut clean);
    if let Some(changes) = &mut record.changes {
        clean(&mut changes.diff);
        changes.files.iter_mut().for_each(&mut clean);
    }
    record
}

/// Compares two items without the time of the last fetch: fetching an item again does not change it.
fn same_facts(item: &Item, known: &Item) -> bool {
    let mut comparable = item.clone();
    comparable.last_synced_at = known.last_synced_at;
    comparable == *known
}

fn first_seen(record: ItemRecord) -> Item {
    let closed_at = record.closed_at.flatten();
    let merged = record.merged.unwrap_or(false);
    let ended = closed_at.is_some() || merged;
    let body = record.body.unwrap_or_default();
    Item {
        content_hash: content_hash(record.item_type, &record.title, &body),
        content_version: ContentVersion::FIRST,
        item_type: record.item_type,
        number: record.number,
        github_id: record.github_id,
        title: record.title,
        body,
        state: record.state.unwrap_or(if ended { ItemState::Closed } else { ItemState::Open }),
        state_reason: record.state_reason.flatten(),
        merged,
        draft: record.draft.unwrap_or(false),
        author: record.author,
        assignees: record.assignees,
        has_milestone: record.has_milestone,
        locked: record.locked,
        labels: record.labels.unwrap_or_default(),
        comments: record.comments.unwrap_or(0),
        review_comments: record.review_comments.unwrap_or(0),
        created_at: record.created_at,
        updated_at: record.updated_at,
        closed_at,
        url: record.url,
        duplicate_of: record.duplicate_of.flatten(),
        changes: record.changes,
        base_branch: record.base_branch,
        last_synced_at: record.synced_at,
        gone: None,
    }
}

fn updated(known: &Item, record: ItemRecord) -> Item {
    let body = record.body.unwrap_or_else(|| known.body.clone());
    let hash = content_hash(known.item_type, &record.title, &body);
    let version = if hash == known.content_hash { known.content_version } else { known.content_version.next() };
    let state = record.state.unwrap_or(known.state);
    // An item that is open again has no closing date and no reason or target of its last close, even if the source
    // does not say so.
    let reopened = state == ItemState::Open && known.state == ItemState::Closed;
    let kept_closed_at = if reopened { None } else { known.closed_at };
    let kept_reason = if reopened { None } else { known.state_reason };
    let kept_target = if reopened { None } else { known.duplicate_of };
    // A pull request may be retargeted until it is merged, as one on top of another is when that is merged.
    let is_base_final = known.merged || record.merged != Some(true);
    let kept_base = known.base_branch.clone().filter(|_| is_base_final);
    Item {
        item_type: known.item_type,
        number: known.number,
        github_id: record.github_id.or(known.github_id),
        title: record.title,
        body,
        state,
        state_reason: record.state_reason.unwrap_or(kept_reason),
        merged: record.merged.unwrap_or(known.merged),
        draft: record.draft.unwrap_or(known.draft),
        author: record.author.or_else(|| known.author.clone()),
        assignees: record.assignees.or_else(|| known.assignees.clone()),
        has_milestone: record.has_milestone.or(known.has_milestone),
        locked: record.locked.or(known.locked),
        labels: record.labels.unwrap_or_else(|| known.labels.clone()),
        comments: record.comments.unwrap_or(known.comments),
        review_comments: record.review_comments.unwrap_or(known.review_comments),
        created_at: record.created_at.or(known.created_at),
        updated_at: record.updated_at.or(known.updated_at),
        closed_at: record.closed_at.unwrap_or(kept_closed_at),
        url: record.url.or_else(|| known.url.clone()),
        duplicate_of: record.duplicate_of.unwrap_or(kept_target),
        changes: record.changes.or_else(|| known.changes.clone()),
        base_branch: record.base_branch.or(kept_base),
        content_hash: hash,
        content_version: version,
        // An answer may be merged after the answer to a later request.
        last_synced_at: known.last_synced_at.max(record.synced_at),
        // A source that describes an item has seen it: the item is back, or was never gone.
        gone: None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};

    use super::{ItemRecord, RecordChange, merge_record};
    use crate::{ItemNumber, ItemState, ItemType, StateReason, parse_moment};

    fn record(title: &str) -> ItemRecord {
        ItemRecord::new(ItemType::Issue, ItemNumber::new(7).expect("valid"), title)
    }

    #[test]
    fn labels_leave_the_version_alone_and_a_body_does_not() {
        let first = merge_record(None, ItemRecord { body: Some("a".into()), ..record("t") });
        assert_eq!((first.change, first.item.content_version.get()), (RecordChange::Inserted, 1));

        let labelled = merge_record(Some(&first.item), ItemRecord { labels: Some(vec!["bug".into()]), ..record("t") });
        assert_eq!(
            (labelled.change, labelled.item.content_version.get()),
            (RecordChange::Updated { content: false }, 1)
        );
        assert_eq!(labelled.item.body, "a");

        let edited = merge_record(Some(&labelled.item), ItemRecord { body: Some("b".into()), ..record("t") });
        assert_eq!((edited.change, edited.item.content_version.get()), (RecordChange::Updated { content: true }, 2));
        assert_eq!(edited.item.labels, ["bug"]);
    }

    #[test]
    fn an_older_record_brings_nothing_back() {
        let at = |text: &str| Some(parse_moment(text).expect("valid"));
        let known = merge_record(None, ItemRecord { updated_at: at("2026-02-02"), ..record("new") }).item;
        let merged = merge_record(Some(&known), ItemRecord { updated_at: at("2026-02-01"), ..record("old") });
        assert_eq!((merged.change, merged.item), (RecordChange::Older, known));
    }

    #[test]
    fn reopening_clears_what_the_closing_left() {
        let closed = merge_record(
            None,
            ItemRecord {
                state: Some(ItemState::Closed),
                state_reason: Some(Some(StateReason::Duplicate)),
                closed_at: Some(Some(parse_moment("2026-02-01").expect("valid"))),
                duplicate_of: Some(ItemNumber::new(3).ok()),
                ..record("t")
            },
        )
        .item;
        assert!(closed.duplicate_of.is_some());
        let open = merge_record(Some(&closed), ItemRecord { state: Some(ItemState::Open), ..record("t") }).item;
        assert_eq!((open.closed_at, open.state_reason, open.duplicate_of), (None, None, None));
    }

    #[test]
    fn a_merge_forgets_the_base_that_it_does_not_name() {
        let pull = |merged: bool, base: Option<&str>| ItemRecord {
            item_type: ItemType::Pr,
            merged: Some(merged),
            base_branch: base.map(str::to_owned),
            ..record("t")
        };
        let open = merge_record(None, pull(false, Some("feature"))).item;
        let base_after = |record: ItemRecord| merge_record(Some(&open), record).item.base_branch;
        assert_eq!(base_after(pull(false, None)).as_deref(), Some("feature"));
        assert_eq!(base_after(pull(true, None)), None);
        let merged = merge_record(Some(&open), pull(true, Some("main"))).item;
        assert_eq!(merge_record(Some(&merged), pull(true, None)).item.base_branch.as_deref(), Some("main"));
    }

    #[test]
    fn nul_is_shown_as_the_replacement_character() {
        let told = ItemRecord { body: Some("\0".into()), labels: Some(vec!["x\0".into()]), ..record("a\0b") };
        let item = merge_record(None, told).item;
        assert_eq!(
            (item.title.as_str(), item.body.as_str(), item.labels[0].as_str()),
            ("a\u{fffd}b", "\u{fffd}", "x\u{fffd}")
        );
    }

    #[test]
    fn unknown_and_nobody_are_told_apart() {
        let unknown = merge_record(None, record("t")).item;
        assert_eq!(unknown.assignees, None);
        let nobody = merge_record(Some(&unknown), ItemRecord { assignees: Some(Vec::new()), ..record("t") }).item;
        assert_eq!(nobody.assignees, Some(Vec::new()));
        let still = merge_record(Some(&nobody), record("t")).item;
        assert_eq!(still.assignees, Some(Vec::new()));
    }

    fn records() -> impl Strategy<Value = ItemRecord> {
        let body = prop_oneof![
            Just(None),
            Just(Some("a".to_owned())),
            Just(Some("b\r\n".to_owned())),
            Just(Some("b".to_owned()))
        ];
        let state = prop_oneof![Just(None), Just(Some(ItemState::Open)), Just(Some(ItemState::Closed))];
        (body, state, any::<Option<u8>>(), "[tu]").prop_map(|(body, state, comments, title)| ItemRecord {
            body,
            state,
            comments: comments.map(u32::from),
            ..record(&title)
        })
    }

    proptest! {
        #[test]
        fn the_version_grows_exactly_with_the_hash(first in records(), later in proptest::collection::vec(records(), 0..12)) {
            let mut item = merge_record(None, first).item;
            for record in later {
                let merged = merge_record(Some(&item), record);
                let grew = merged.item.content_version != item.content_version;
                prop_assert_eq!(grew, merged.item.content_hash != item.content_hash);
                prop_assert!(merged.item.content_version.get() - item.content_version.get() <= 1);
                item = merged.item;
            }
        }

        #[test]
        fn taking_a_record_in_twice_changes_nothing(first in records(), second in records()) {
            let known = merge_record(None, first).item;
            let once = merge_record(Some(&known), second.clone()).item;
            let twice = merge_record(Some(&once), second);
            prop_assert_eq!(twice.change, RecordChange::Unchanged);
            prop_assert_eq!(twice.item, once);
        }
    }
}
