//! Finds what changed between the plan and the close.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::close::plan::same_label;
use crate::{
    ContentHash, GraceEnd, Item, ItemNumber, ItemState, Login, Maintainers, POSSIBLE_DUPLICATE, SkipReason,
    has_protected_label, text_enum,
};

text_enum! {
    /// What changed since a row was planned, or cannot be read any more.
    pub enum DriftKind: "a kind of drift" {
        SourceEdited = "source_edited",
        SourceClosed = "source_closed",
        SourceReopened = "source_reopened",
        SourceAssigned = "source_assigned",
        SourceLocked = "source_locked",
        HumanCommented = "human_commented",
        TargetClosed = "target_closed",
        TargetEdited = "target_edited",
        /// The target was deleted, transferred or converted to a discussion.
        TargetGone = "target_gone",
        LabelAdded = "label_added",
        MaintainerChanged = "maintainer_changed",
        UnreadableState = "unreadable_state",
        UnreadableText = "unreadable_text",
        /// GitHub's answer does not say whether the item is locked.
        UnreadableLocked = "unreadable_locked",
        UnreadableAssignees = "unreadable_assignees",
        UnreadableLabels = "unreadable_labels",
        UnreadableMilestone = "unreadable_milestone",
        UnreadableAuthor = "unreadable_author",
        /// GitHub's answer does not say whether the item is a draft.
        UnreadableDraft = "unreadable_draft",
        /// GitHub's answer does not say when the item was opened and updated.
        UnreadableTimes = "unreadable_times",
        UnreadableComments = "unreadable_comments",
        UnreadableTimeline = "unreadable_timeline",
        /// GitHub's answer does not contain the reactions to the announcement.
        UnreadableReactions = "unreadable_reactions",
        /// GitHub's answer does not contain the item that stays open.
        UnreadableTarget = "unreadable_target",
    }
}

impl DriftKind {
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::SourceEdited => "its text was edited",
            Self::SourceClosed => "it was closed",
            Self::SourceReopened => "it was closed and reopened",
            Self::SourceAssigned => "somebody was assigned to it",
            Self::SourceLocked => "it was locked",
            Self::HumanCommented => "somebody commented on it",
            Self::TargetClosed => "the item that was to stay open was closed",
            Self::TargetEdited => "the text of the item that stays open was edited",
            Self::TargetGone => "the item that was to stay open is gone",
            Self::LabelAdded => "a label was added",
            Self::MaintainerChanged => "its author or an assignee is a maintainer now",
            Self::UnreadableState => "GitHub did not return the item\'s state",
            Self::UnreadableText => "GitHub did not return the item\'s text",
            Self::UnreadableLocked => "GitHub did not say whether the item is locked",
            Self::UnreadableAssignees => "GitHub did not return the item\'s assignees",
            Self::UnreadableLabels => "GitHub did not return the item\'s labels",
            Self::UnreadableMilestone => "GitHub did not return the item\'s milestone",
            Self::UnreadableAuthor => "GitHub did not return the item\'s author",
            Self::UnreadableDraft => "GitHub did not say whether the item is a draft",
            Self::UnreadableTimes => "GitHub did not say when the item was opened and changed",
            Self::UnreadableComments => "GitHub did not return the item\'s comments",
            Self::UnreadableTimeline => "GitHub did not return the item\'s timeline",
            Self::UnreadableReactions => "GitHub did not return the reactions to the announcement",
            Self::UnreadableTarget => "GitHub did not return the item that stays open",
        }
    }
}

/// One item as it was when the plan was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemSnapshot {
    pub number: ItemNumber,
    pub content_hash: ContentHash,
    pub state: ItemState,
    /// The known assignees.
    pub assignees: Vec<Login>,
    pub labels: Vec<String>,
    pub comments: u32,
    pub updated_at: Option<Timestamp>,
    /// When the item was last fetched from GitHub.
    pub last_synced_at: Option<Timestamp>,
}

impl From<&Item> for ItemSnapshot {
    fn from(item: &Item) -> Self {
        Self {
            number: item.number,
            content_hash: item.content_hash.clone(),
            state: item.state,
            assignees: item.assignees.clone().unwrap_or_default(),
            labels: item.labels.clone(),
            comments: item.comments,
            updated_at: item.updated_at,
            last_synced_at: item.last_synced_at,
        }
    }
}

/// Both items of a close row as they were when the plan was made; stored with the row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowSnapshot {
    pub source: ItemSnapshot,
    pub target: ItemSnapshot,
}

impl RowSnapshot {
    pub fn of(source: &Item, target: &Item) -> Self {
        Self { source: source.into(), target: target.into() }
    }
}

/// An item as GitHub shows it right before a close. Of a target only the text and the state matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveItem {
    pub content_hash: ContentHash,
    pub state: ItemState,
    /// Whether only collaborators may comment.
    pub locked: bool,
    /// `None` if the account was deleted.
    pub author: Option<Login>,
    pub assignees: Vec<Login>,
    pub labels: Vec<String>,
    pub milestone: bool,
    pub linked_open_pr: bool,
    pub pinned: bool,
    /// Whether the item was reopened after the plan's snapshot.
    pub reopened_since: bool,
    pub human_commented_since: bool,
}

impl LiveItem {
    /// The stored item, for a check before GitHub is asked. Facts that only GitHub knows count as unchanged.
    pub fn as_stored(item: &Item) -> Self {
        Self {
            content_hash: item.content_hash.clone(),
            state: item.state,
            locked: item.locked == Some(true),
            author: item.author.clone(),
            assignees: item.assignees.clone().unwrap_or_default(),
            labels: item.labels.clone(),
            milestone: item.has_milestone == Some(true),
            linked_open_pr: false,
            pinned: false,
            reopened_since: false,
            human_commented_since: false,
        }
    }
}

/// Why a planned close does not happen; shown as `drift:source_edited`, `pinned` or `grace:reaction`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RowRefusal {
    Drift(DriftKind),
    /// A fact that the plan could not see keeps the item open.
    Skip(SkipReason),
    /// A person objected before the grace period was over.
    Grace(GraceEnd),
}

impl RowRefusal {
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Drift(kind) => kind.in_words(),
            Self::Skip(reason) => reason.in_words(),
            Self::Grace(end) => end.in_words(),
        }
    }
}

impl fmt::Display for RowRefusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Drift(kind) => write!(formatter, "drift:{kind}"),
            Self::Skip(reason) => reason.fmt(formatter),
            Self::Grace(end) => write!(formatter, "grace:{end}"),
        }
    }
}

impl FromStr for RowRefusal {
    type Err = UnknownRefusal;

    fn from_str(text: &str) -> Result<Self, UnknownRefusal> {
        let refusal = match text.split_once(':') {
            Some(("drift", kind)) => kind.parse().ok().map(Self::Drift),
            Some(("grace", end)) => end.parse().ok().map(Self::Grace),
            _ => text.parse().ok().map(Self::Skip),
        };
        refusal.ok_or(UnknownRefusal)
    }
}

/// A text that is not the name of a `RowRefusal`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unknown reason of a refused close")]
pub struct UnknownRefusal;

/// The first reason why a planned close must not happen now.
///
/// When a close row was planned, its author and assignees were known and were not maintainers. If one of them is a
/// maintainer now, that changed since. Removed assignees or labels are not a reason.
pub fn drift(
    planned: &RowSnapshot,
    source: &LiveItem,
    target: Option<&LiveItem>,
    maintainers: &Maintainers,
    protected_labels: &[String],
) -> Option<RowRefusal> {
    source_drift(&planned.source, source, maintainers, protected_labels)
        .or_else(|| target_drift(&planned.target, target).map(RowRefusal::Drift))
}

fn source_drift(
    planned: &ItemSnapshot,
    live: &LiveItem,
    maintainers: &Maintainers,
    protected_labels: &[String],
) -> Option<RowRefusal> {
    let changed = |kind| Some(RowRefusal::Drift(kind));
    if live.state != ItemState::Open {
        return changed(DriftKind::SourceClosed);
    }
    if live.content_hash != planned.content_hash {
        return changed(DriftKind::SourceEdited);
    }
    if live.locked {
        return changed(DriftKind::SourceLocked);
    }
    if live.reopened_since {
        return changed(DriftKind::SourceReopened);
    }
    if live.assignees.iter().any(|assignee| !planned.assignees.contains(assignee)) {
        return changed(DriftKind::SourceAssigned);
    }
    if has_protected_label(&live.labels, protected_labels) {
        return Some(RowRefusal::Skip(SkipReason::ProtectedLabel));
    }
    let is_new = |label: &String| !planned.labels.iter().any(|known| same_label(known, label));
    if live.labels.iter().any(|label| is_new(label) && !same_label(label, POSSIBLE_DUPLICATE)) {
        return changed(DriftKind::LabelAdded);
    }
    if live.human_commented_since {
        return changed(DriftKind::HumanCommented);
    }
    let Some(author) = &live.author else {
        return Some(RowRefusal::Skip(SkipReason::UncertainMaintainerIdentity));
    };
    if maintainers.contains(author) || live.assignees.iter().any(|assignee| maintainers.contains(assignee)) {
        return changed(DriftKind::MaintainerChanged);
    }
    if live.milestone || live.linked_open_pr {
        return Some(RowRefusal::Skip(SkipReason::InProgress));
    }
    live.pinned.then_some(RowRefusal::Skip(SkipReason::Pinned))
}

fn target_drift(planned: &ItemSnapshot, live: Option<&LiveItem>) -> Option<DriftKind> {
    let Some(live) = live else { return Some(DriftKind::TargetGone) };
    if live.state != ItemState::Open {
        return Some(DriftKind::TargetClosed);
    }
    (live.content_hash != planned.content_hash).then_some(DriftKind::TargetEdited)
}

#[cfg(test)]
mod tests {
    use super::{DriftKind, LiveItem, RowSnapshot, drift};
    use crate::{Item, ItemNumber, ItemRecord, ItemState, ItemType, Login, Maintainers, merge_record};

    fn login(name: &str) -> Login {
        name.parse().expect("valid")
    }

    fn item(number: i64) -> Item {
        let record = ItemRecord {
            state: Some(ItemState::Open),
            author: Some(login("reporter")),
            assignees: Some(vec![login("helper")]),
            labels: Some(vec!["bug".into()]),
            ..ItemRecord::new(ItemType::Issue, ItemNumber::new(number).expect("valid"), "It crashes")
        };
        merge_record(None, record).item
    }

    fn refusal(change: impl FnOnce(&mut LiveItem, &mut Option<LiveItem>)) -> Option<String> {
        let (source, target) = (item(1), item(2));
        let (mut live_source, mut live_target) = (LiveItem::as_stored(&source), Some(LiveItem::as_stored(&target)));
        change(&mut live_source, &mut live_target);
        let maintainers: Maintainers = [login("Boss")].iter().collect();
        let planned = RowSnapshot::of(&source, &target);
        drift(&planned, &live_source, live_target.as_ref(), &maintainers, &["security".into()])
            .map(|refusal| refusal.to_string())
    }

    fn other_hash() -> crate::items::content::ContentHash {
        crate::items::content::content_hash(ItemType::Issue, "other", "")
    }

    #[test]
    fn nothing_changed_or_nothing_that_matters() {
        assert_eq!(refusal(|_, _| {}), None);
        let harmless = refusal(|source, target| {
            source.labels = vec!["BUG".into(), "Possible-Duplicate".into()];
            source.assignees.clear();
            let target = target.as_mut().expect("a target");
            (target.locked, target.human_commented_since, target.pinned, target.milestone) = (true, true, true, true);
            target.labels.push("security".into());
        });
        assert_eq!(harmless, None);
    }

    type LiveChange = fn(&mut LiveItem, &mut Option<LiveItem>);

    /// Every reason alone, in the order in which `drift` checks them.
    const CHANGES: [(&str, LiveChange); 15] = [
        ("drift:source_closed", |source, _| source.state = ItemState::Closed),
        ("drift:source_edited", |source, _| source.content_hash = other_hash()),
        ("drift:source_locked", |source, _| source.locked = true),
        ("drift:source_reopened", |source, _| source.reopened_since = true),
        ("drift:source_assigned", |source, _| source.assignees.push(login("somebody"))),
        ("protected_label", |source, _| source.labels.push("Security".into())),
        ("drift:label_added", |source, _| source.labels.push("duplicate".into())),
        ("drift:human_commented", |source, _| source.human_commented_since = true),
        ("uncertain_maintainer_identity", |source, _| source.author = None),
        ("drift:maintainer_changed", |source, _| source.author = Some(login("boss"))),
        ("in_progress", |source, _| source.milestone = true),
        ("pinned", |source, _| source.pinned = true),
        ("drift:target_gone", |_, target| *target = None),
        ("drift:target_closed", |_, target| target.as_mut().expect("a target").state = ItemState::Closed),
        ("drift:target_edited", |_, target| target.as_mut().expect("a target").content_hash = other_hash()),
    ];

    #[test]
    fn every_reason_is_found() {
        for (expected, change) in CHANGES {
            assert_eq!(refusal(change).as_deref(), Some(expected));
        }
        assert_eq!(refusal(|source, _| source.linked_open_pr = true).as_deref(), Some("in_progress"));
        let promoted = CHANGES.iter().filter(|(reason, _)| reason.starts_with("drift:")).count();
        let told = DriftKind::ALL.iter().filter(|kind| !kind.as_str().starts_with("unreadable_")).count();
        assert_eq!(promoted, told, "a kind of drift has no case");
    }

    #[test]
    fn of_two_reasons_the_earlier_one_is_told() {
        for pair in CHANGES.windows(2) {
            // A missing target cannot be changed any further, and an author is either unknown or promoted.
            if matches!(pair[0].0, "drift:target_gone" | "uncertain_maintainer_identity") {
                continue;
            }
            let both = refusal(|source, target| {
                pair[1].1(source, target);
                if target.is_some() || !pair[0].0.contains("target") {
                    pair[0].1(source, target);
                }
            });
            assert_eq!(both.as_deref(), Some(pair[0].0), "with {}", pair[1].0);
        }
    }

    #[test]
    fn a_snapshot_survives_its_storage() {
        let snapshot = RowSnapshot::of(&item(1), &item(2));
        let stored = serde_json::to_value(&snapshot).expect("serialises");
        assert_eq!(serde_json::from_value::<RowSnapshot>(stored).expect("reads back"), snapshot);
    }
}
