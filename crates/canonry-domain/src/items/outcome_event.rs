//! Outcome events: what people did with an item. Each event has its own id.

use std::fmt;

use jiff::{SignedDuration, Timestamp};

use crate::items::named_duplicate::named_duplicate;
use crate::{GithubId, Item, ItemNumber, ItemState, ItemType, Login, RepoName, StateReason, text_enum};

/// One event in the history of an issue. Events are only ever added: the outcome of the issue is derived from all of
/// them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutcomeEvent {
    /// The unique id of the delivery, or what [`EventOrigin::id`] makes. The id of a sync's event contains the issue and
    /// the time; if another kind of event of the same second already has it, the store appends the kind.
    pub delivery_id: String,
    pub number: ItemNumber,
    pub kind: OutcomeKind,
    /// `None` if GitHub gave no reason.
    pub state_reason: Option<StateReason>,
    /// Who did it, or wrote the comment; a sync cannot know this.
    pub actor: Option<Login>,
    pub by: EventBy,
    /// For a close: the target that GitHub or the plan names. For a comment: the target that its text names now, or
    /// `None` once it was edited out or the comment was deleted.
    pub duplicate_of: Option<ItemNumber>,
    /// For a close: the duplicate that the issue's own body names.
    pub in_body: Option<ItemNumber>,
    pub comment: Option<GithubId>,
    /// The issue's labels at that time; `None` if the event does not contain them.
    pub labels: Option<Vec<String>>,
    /// The cluster of the predicted target at that time, including the target; empty if nothing was predicted.
    pub cluster: Vec<ItemNumber>,
    pub occurred_at: Timestamp,
}

impl OutcomeEvent {
    pub fn origin(&self) -> EventOrigin {
        EventOrigin::of_id(&self.delivery_id)
    }
}

/// What told of an event. The event's id begins with it, unless the id is that of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventOrigin {
    Delivery,
    /// A sync saw that the issue had changed, and cannot know who changed it.
    Sync,
    /// The issue's timeline, read because a sync could not know more.
    Timeline,
    /// Canonry's own close.
    Apply,
    Undo,
    /// People reopened the issue before Canonry's close was confirmed.
    Objection,
}

impl EventOrigin {
    const NAMED: [Self; 5] = [Self::Sync, Self::Timeline, Self::Apply, Self::Undo, Self::Objection];

    /// The beginning of the ids, if they are not a delivery's.
    pub const fn prefix(self) -> Option<&'static str> {
        match self {
            Self::Delivery => None,
            Self::Sync => Some("sync:"),
            Self::Timeline => Some("timeline:"),
            Self::Apply => Some("apply:"),
            Self::Undo => Some("undo:"),
            Self::Objection => Some("objected:"),
        }
    }

    pub fn id(self, rest: impl fmt::Display) -> String {
        format!("{}{rest}", self.prefix().unwrap_or_default())
    }

    fn of_id(id: &str) -> Self {
        let begins = |origin: &Self| origin.prefix().is_some_and(|prefix| id.starts_with(prefix));
        Self::NAMED.into_iter().find(begins).unwrap_or(Self::Delivery)
    }

    /// Whether Canonry did it, or saw the objection to what it did.
    pub const fn is_own(self) -> bool {
        matches!(self, Self::Apply | Self::Undo | Self::Objection)
    }
}

text_enum! {
    pub enum OutcomeKind: "a kind of outcome event" {
        Closed = "closed",
        Reopened = "reopened",
        /// The issue got the label `duplicate` that people use.
        Labeled = "labeled",
        Unlabeled = "unlabeled",
        Commented = "commented",
    }
}

text_enum! {
    /// Who caused an event. The order is from least to most known: of two reports of one event the greater value is
    /// used.
    pub enum EventBy: "who an event is by" {
        /// Not known: a sync discovered the event.
        Unknown = "unknown",
        /// Another bot, such as one that closes stale issues.
        Bot = "bot",
        Canonry = "canonry",
        /// Canonry, for a plan row that a person had approved.
        Approved = "approved",
        Person = "person",
        Maintainer = "maintainer",
    }
}

impl EventBy {
    /// Whether a program acted by itself. Such events are never evidence.
    pub const fn is_automatic(self) -> bool {
        matches!(self, Self::Bot | Self::Canonry)
    }
}

/// The event that a sync discovers: a change of the state, or of the close reason, between the known item and the
/// current one.
///
/// Pull requests have no outcomes: closing one says nothing about duplicates. An item that is imported for the first
/// time has no earlier state to compare with.
pub fn discovered_event(repo: &RepoName, known: Option<&Item>, now_is: &Item, now: Timestamp) -> Option<OutcomeEvent> {
    let known = known?;
    let is_closed = now_is.state == ItemState::Closed;
    // Closed, reopened and closed again since the last fetch: the state is the same, but the close is another one.
    let closed_again = is_closed && now_is.closed_at > known.closed_at && known.closed_at.is_some();
    let stays = known.state == now_is.state && !closed_again;
    // A source that gives no reason does not change the reason.
    let has_other_reason = is_closed
        && now_is.state_reason != known.state_reason
        && now_is.state_reason.is_some()
        && known.state_reason.is_some();
    if now_is.item_type != ItemType::Issue || (stays && !has_other_reason) {
        return None;
    }
    let (kind, occurred_at) = match now_is.state {
        ItemState::Closed if stays => {
            (OutcomeKind::Closed, reason_given_at(now_is.closed_at, now_is.updated_at).unwrap_or(now))
        }
        ItemState::Closed => (OutcomeKind::Closed, now_is.closed_at.or(now_is.updated_at).unwrap_or(now)),
        ItemState::Open => (OutcomeKind::Reopened, now_is.updated_at.unwrap_or(now)),
    };
    Some(OutcomeEvent {
        delivery_id: EventOrigin::Sync.id(format_args!("{repo}#{}:{occurred_at}", now_is.number)),
        number: now_is.number,
        kind,
        state_reason: now_is.state_reason,
        actor: None,
        by: EventBy::Unknown,
        duplicate_of: now_is.duplicate_of,
        in_body: (kind == OutcomeKind::Closed).then(|| named_duplicate(repo, &now_is.body)).flatten(),
        comment: None,
        labels: Some(now_is.labels.clone()),
        cluster: Vec::new(),
        occurred_at,
    })
}

/// When a closed issue got its current reason, computed right after the reason was given.
///
/// GitHub keeps the time of the close when only its reason is corrected. An issue's last change is often a second or
/// two after the close, which means nothing.
pub fn reason_given_at(closed_at: Option<Timestamp>, updated_at: Option<Timestamp>) -> Option<Timestamp> {
    const CORRECTED_AFTER: SignedDuration = SignedDuration::from_secs(5);
    match (closed_at, updated_at) {
        (Some(closed), Some(updated)) if updated.duration_since(closed) > CORRECTED_AFTER => Some(updated),
        (closed, updated) => closed.or(updated),
    }
}

/// The label by which people mark duplicates. Canonry's own label is `possible-duplicate`, which is never evidence.
pub const HUMAN_LABEL: &str = "duplicate";

pub fn closed_as_duplicate(item: &Item) -> bool {
    item.item_type == ItemType::Issue
        && item.state == ItemState::Closed
        && (item.state_reason == Some(StateReason::Duplicate) || has_human_label(&item.labels))
}

/// GitHub ignores the letter case of labels.
pub(crate) fn has_human_label(labels: &[String]) -> bool {
    labels.iter().any(|label| label.eq_ignore_ascii_case(HUMAN_LABEL))
}

/// Whether a comment of this time belongs to a close: from a day before to an hour after, because people explain a
/// close before it, during it or right after it.
pub fn explains_closing(commented_at: Timestamp, closed_at: Timestamp) -> bool {
    let before = commented_at.duration_since(closed_at);
    before >= SignedDuration::from_hours(-24) && before <= SignedDuration::from_hours(1)
}

#[cfg(test)]
mod tests {
    use super::{
        EventBy, EventOrigin, OutcomeKind, closed_as_duplicate, discovered_event, explains_closing, reason_given_at,
    };
    use crate::{Item, ItemNumber, ItemRecord, ItemState, ItemType, StateReason, merge_record, parse_moment};

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
        assert_eq!(event.origin(), EventOrigin::Sync);
        assert_eq!((event.kind, event.state_reason), (OutcomeKind::Closed, Some(StateReason::NotPlanned)));
        assert_eq!((event.by, event.labels, event.in_body), (EventBy::Unknown, Some(vec![]), None));
        let named = Item { body: "Duplicate of #3".into(), labels: vec!["area/ui".into()], ..closed.clone() };
        let event = discovered_event(&repo, Some(&open), &named, now).expect("an event");
        assert_eq!((event.labels, event.in_body.map(ItemNumber::get)), (Some(vec!["area/ui".into()]), Some(3)));
        assert_eq!(discovered_event(&repo, Some(&closed), &closed, now), None);
        assert_eq!(discovered_event(&repo, None, &closed, now), None);
        let later = Item { closed_at: Some(now), ..closed.clone() };
        let again = discovered_event(&repo, Some(&closed), &later, now).expect("an event");
        assert_eq!((again.kind, again.occurred_at), (OutcomeKind::Closed, now));
        let reopened = discovered_event(&repo, Some(&closed), &open, now).expect("an event");
        assert_eq!((reopened.kind, reopened.occurred_at), (OutcomeKind::Reopened, now));
    }

    #[test]
    fn a_corrected_reason_is_found() {
        let repo = "o/n".parse().expect("valid");
        let now = parse_moment("2026-03-01").expect("valid");
        let corrected_at = parse_moment("2026-02-03").expect("valid");
        let closed = item(ItemType::Issue, ItemState::Closed);
        let reason = |reason| Item { state_reason: reason, updated_at: Some(corrected_at), ..closed.clone() };
        let corrected = reason(Some(StateReason::Duplicate));
        let event = discovered_event(&repo, Some(&closed), &corrected, now).expect("an event");
        assert_eq!((event.kind, event.state_reason), (OutcomeKind::Closed, Some(StateReason::Duplicate)));
        assert_eq!((event.occurred_at, event.delivery_id.as_str()), (corrected_at, "sync:o/n#12:2026-02-03T00:00:00Z"));
        // The reason did not change, or one of the two reasons is unknown.
        assert_eq!(discovered_event(&repo, Some(&closed), &reason(closed.state_reason), now), None);
        assert_eq!(discovered_event(&repo, Some(&closed), &reason(None), now), None);
        assert_eq!(discovered_event(&repo, Some(&reason(None)), &corrected, now), None);
    }

    #[test]
    fn a_reason_is_as_old_as_the_closing_unless_it_was_corrected() {
        let at = |text: &str| Some(parse_moment(text).expect("valid"));
        let closed = at("2026-02-02T12:00:00Z");
        assert_eq!(reason_given_at(closed, at("2026-02-02T12:00:05Z")), closed);
        assert_eq!(reason_given_at(closed, at("2026-02-02T12:00:06Z")), at("2026-02-02T12:00:06Z"));
        assert_eq!(reason_given_at(closed, at("2026-02-02T11:00:00Z")), closed);
        assert_eq!((reason_given_at(closed, None), reason_given_at(None, closed)), (closed, closed));
        assert_eq!(reason_given_at(None, None), None);
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
