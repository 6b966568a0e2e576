//! What people did with an item, as an event with an id of its own.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::item::{Item, ItemNumber, ItemState, ItemType, StateReason};
use crate::login::Login;
use crate::repo_name::RepoName;
use crate::words::words;

/// One thing that happened to an issue. Events are only ever added: what became of the issue is
/// derived from all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutcomeEvent {
    /// The delivery's id, or `sync:<repo>#<n>:<time>` for what a sync discovered; unique.
    pub delivery_id: String,
    /// The issue.
    pub number: ItemNumber,
    /// What happened.
    pub kind: OutcomeKind,
    /// GitHub's reason, when it gave one.
    pub state_reason: Option<StateReason>,
    /// Who did it; a sync cannot tell.
    pub actor: Option<Login>,
    /// What the issue was said to be a duplicate of.
    pub duplicate_of: Option<ItemNumber>,
    /// When it happened.
    pub occurred_at: Timestamp,
}

/// What happened to an issue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeKind {
    /// It was closed.
    Closed,
    /// It was opened again.
    Reopened,
}

words!(OutcomeKind, "a kind of outcome event", Closed = "closed", Reopened = "reopened");

/// The event behind a change of state that a sync finds between what was known and what is now.
///
/// Pull requests have no outcomes: closing one says nothing about duplicates. An item that is seen
/// for the first time changed no state that anybody here knew.
pub fn discovered_event(repo: &RepoName, known: Option<&Item>, now_is: &Item, now: Timestamp) -> Option<OutcomeEvent> {
    let known = known?;
    // Closed, reopened and closed again since the last look: the state is the same, the closing is not.
    let closed_again =
        now_is.state == ItemState::Closed && now_is.closed_at > known.closed_at && known.closed_at.is_some();
    if now_is.item_type != ItemType::Issue || (known.state == now_is.state && !closed_again) {
        return None;
    }
    let (kind, occurred_at) = match now_is.state {
        ItemState::Closed => (OutcomeKind::Closed, now_is.closed_at.or(now_is.updated_at).unwrap_or(now)),
        ItemState::Open => (OutcomeKind::Reopened, now_is.updated_at.unwrap_or(now)),
    };
    Some(OutcomeEvent {
        delivery_id: format!("sync:{repo}#{}:{occurred_at}", now_is.number),
        number: now_is.number,
        kind,
        state_reason: now_is.state_reason,
        actor: None,
        duplicate_of: now_is.duplicate_of,
        occurred_at,
    })
}

/// The label by which people mark duplicates. Canonry's own is `possible-duplicate`, which is never evidence.
const HUMAN_LABEL: &str = "duplicate";

/// Whether people closed this issue as a duplicate.
pub fn closed_as_duplicate(item: &Item) -> bool {
    item.item_type == ItemType::Issue
        && item.state == ItemState::Closed
        && (item.state_reason == Some(StateReason::Duplicate)
            || item.labels.iter().any(|label| label.eq_ignore_ascii_case(HUMAN_LABEL)))
}

/// Whether a comment of this time belongs to a closing: from a day before to an hour after, because
/// people explain a closing before, while or right after they do it.
pub fn explains_closing(commented_at: Timestamp, closed_at: Timestamp) -> bool {
    let before = commented_at.duration_since(closed_at);
    before >= SignedDuration::from_hours(-24) && before <= SignedDuration::from_hours(1)
}

#[cfg(test)]
mod tests {
    use super::{OutcomeKind, closed_as_duplicate, discovered_event, explains_closing};
    use crate::item::{Item, ItemNumber, ItemState, ItemType, StateReason};
    use crate::item_record::{ItemRecord, merge_record};
    use crate::moment::parse_moment;

    fn item(item_type: ItemType, state: ItemState) -> Item {
        let number = ItemNumber::new(12).expect("valid");
        let record = ItemRecord {
            state: Some(state),
            state_reason: Some((state == ItemState::Closed).then_some(StateReason::NotPlanned)),
            closed_at: Some((state == ItemState::Closed).then(|| parse_moment("2026-02-01").expect("valid"))),
            ..ItemRecord::new(item_type, number, "t")
        };
        merge_record(None, record).item
    }

    #[test]
    fn a_closing_is_found_once_and_named_by_its_time() {
        let repo = "o/n".parse().expect("valid");
        let now = parse_moment("2026-03-01").expect("valid");
        let (open, closed) = (item(ItemType::Issue, ItemState::Open), item(ItemType::Issue, ItemState::Closed));
        let event = discovered_event(&repo, Some(&open), &closed, now).expect("an event");
        assert_eq!(event.delivery_id, "sync:o/n#12:2026-02-01T00:00:00Z");
        assert_eq!((event.kind, event.state_reason), (OutcomeKind::Closed, Some(StateReason::NotPlanned)));
        assert_eq!(discovered_event(&repo, Some(&closed), &closed, now), None);
        assert_eq!(discovered_event(&repo, None, &closed, now), None);
        let later = Item { closed_at: Some(now), ..closed.clone() };
        let again = discovered_event(&repo, Some(&closed), &later, now).expect("an event");
        assert_eq!((again.kind, again.occurred_at), (OutcomeKind::Closed, now));
        let reopened = discovered_event(&repo, Some(&closed), &open, now).expect("an event");
        assert_eq!((reopened.kind, reopened.occurred_at), (OutcomeKind::Reopened, now));
    }

    #[test]
    fn pull_requests_have_no_outcomes() {
        let repo = "o/n".parse().expect("valid");
        let now = parse_moment("2026-03-01").expect("valid");
        let (open, closed) = (item(ItemType::Pr, ItemState::Open), item(ItemType::Pr, ItemState::Closed));
        assert_eq!(discovered_event(&repo, Some(&open), &closed, now), None);
    }

    #[test]
    fn closed_as_a_duplicate_by_reason_or_by_a_persons_label() {
        let closed = item(ItemType::Issue, ItemState::Closed);
        assert!(!closed_as_duplicate(&closed));
        assert!(!closed_as_duplicate(&Item { labels: vec!["possible-duplicate".into()], ..closed.clone() }));
        assert!(closed_as_duplicate(&Item { labels: vec!["Duplicate".into()], ..closed.clone() }));
        let by_reason = Item { state_reason: Some(StateReason::Duplicate), ..closed };
        assert!(closed_as_duplicate(&by_reason));
        assert!(!closed_as_duplicate(&Item { state: ItemState::Open, ..by_reason.clone() }));
        assert!(!closed_as_duplicate(&Item { item_type: ItemType::Pr, ..by_reason }));
    }

    #[test]
    fn a_comment_explains_a_closing_that_is_near() {
        let closed = parse_moment("2026-02-02T12:00:00Z").expect("valid");
        for (commented, expected) in [
            ("2026-02-01T11:59:59Z", false),
            ("2026-02-01T12:00:00Z", true),
            ("2026-02-02T13:00:00Z", true),
            ("2026-02-02T13:00:01Z", false),
        ] {
            assert_eq!(explains_closing(parse_moment(commented).expect("valid"), closed), expected, "{commented}");
        }
    }
}
