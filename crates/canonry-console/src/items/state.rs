//! An item's status: its state, and what Canonry did, announced and found.
//!
//! Every sentence about a close, a grace or an edge includes the item's current state, so that the sentence and the
//! badge above it always agree.

use canonry_domain::{
    EventBy, GraceEnd, Item, ItemNumber, ItemState, OutcomeEvent, OutcomeKind, SkipReason, StateReason,
};
use canonry_store::GraceState;
use jiff::Timestamp;

use crate::items::timeline::{ECHO, why_it_ended};
use crate::layout::formatting::{score, when};

/// The sentence: text, the other item, more text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Sentence {
    pub(crate) class: &'static str,
    pub(crate) before: String,
    pub(crate) target: Option<ItemNumber>,
    pub(crate) after: String,
}

impl Sentence {
    pub(crate) fn about(
        class: &'static str,
        before: impl Into<String>,
        target: ItemNumber,
        after: impl Into<String>,
    ) -> Self {
        Self { class, before: before.into(), target: Some(target), after: after.into() }
    }

    pub(crate) fn alone(class: &'static str, words: impl Into<String>) -> Self {
        Self { class, before: words.into(), ..Self::default() }
    }
}

/// The item's state, with the badge's text if it is not open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PresentState {
    Open,
    Closed(&'static str),
}

impl PresentState {
    pub(crate) const fn of(state: ItemState, badge: &'static str) -> Self {
        match state {
            ItemState::Open => Self::Open,
            ItemState::Closed => Self::Closed(badge),
        }
    }

    /// The end of a sentence that does not mention the state itself.
    pub(crate) fn end(self) -> String {
        match self {
            Self::Open => ".".to_owned(),
            Self::Closed(how) => format!(". It is {how} now."),
        }
    }

    /// A settled item needs no action, so its sentence is muted.
    pub(crate) const fn class(self, if_open: &'static str) -> &'static str {
        match self {
            Self::Open => if_open,
            Self::Closed(_) => "mute",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LastClose<'a> {
    pub(crate) target: ItemNumber,
    pub(crate) at: Timestamp,
    pub(crate) approved: Option<Option<&'a str>>,
    pub(crate) since: AfterClose,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterClose {
    /// The item is still closed by it.
    Stands,
    /// The close was undone, or people reopened the item at once.
    Undone(Timestamp),
    /// People reopened the item; it may be closed again.
    Reopened,
    /// No reopening is known, but the state is not the one that the close left.
    Changed,
}

impl AfterClose {
    /// `events` are the item's events; a pull request has none.
    pub(crate) fn of(item: &Item, closed_at: Timestamp, back: Option<Timestamp>, events: &[OutcomeEvent]) -> Self {
        if let Some(back) = back {
            return Self::Undone(back);
        }
        // The result is stored some time after GitHub closed the item, and a person may have reopened it in between.
        let by_people = |event: &OutcomeEvent| {
            event.kind == OutcomeKind::Reopened
                && !matches!(event.by, EventBy::Canonry | EventBy::Approved)
                && event.occurred_at >= closed_at - ECHO
        };
        if item.state == ItemState::Open || events.iter().any(by_people) {
            return Self::Reopened;
        }
        let is_other_reason = matches!(item.state_reason, Some(StateReason::Completed | StateReason::NotPlanned));
        let is_later = item.closed_at.is_some_and(|at| at > closed_at + ECHO);
        if item.merged || is_other_reason || is_later { Self::Changed } else { Self::Stands }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GraceSummary<'a> {
    pub(crate) target: ItemNumber,
    pub(crate) due_at: Timestamp,
    pub(crate) state: GraceState,
    /// Why the grace ended without a close.
    pub(crate) reason: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct JudgedEdge {
    pub(crate) target: ItemNumber,
    pub(crate) confidence: Option<f64>,
    pub(crate) texts: EdgeTexts,
    /// The canonical of the item's cluster, if it is not the target: the edge leads to it through other items.
    pub(crate) canonical: Option<ItemNumber>,
}

/// Which text changed since the judge read it: an edge counts only for the judged texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EdgeTexts {
    AsJudged,
    OwnChanged,
    OtherChanged,
    BothChanged,
    OtherGone,
}

impl EdgeTexts {
    /// `other` is whether the other text is unchanged; `None` if that item is gone.
    pub(crate) const fn new(is_own_same: bool, other: Option<bool>) -> Self {
        match (is_own_same, other) {
            (_, None) => Self::OtherGone,
            (true, Some(true)) => Self::AsJudged,
            (false, Some(true)) => Self::OwnChanged,
            (true, Some(false)) => Self::OtherChanged,
            (false, Some(false)) => Self::BothChanged,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ItemStatus<'a> {
    pub(crate) now: PresentState,
    pub(crate) close: Option<LastClose<'a>>,
    /// The waiting grace, or else the last one.
    pub(crate) grace: Option<GraceSummary<'a>>,
    pub(crate) edge: Option<JudgedEdge>,
    pub(crate) at: Timestamp,
}

impl ItemStatus<'_> {
    /// What is in force or announced; it has priority over everything else.
    pub(crate) fn done(&self) -> Option<Sentence> {
        match (self.now, self.close, self.grace) {
            (PresentState::Closed(_), Some(close), _)
                if matches!(close.since, AfterClose::Stands | AfterClose::Changed) =>
            {
                Some(self.closed(close))
            }
            (_, _, Some(grace)) if grace.state == GraceState::Waiting => Some(self.waiting(grace)),
            _ => None,
        }
    }

    /// What was undone or cancelled, and then what the judge decided.
    pub(crate) fn history(&self) -> Option<Sentence> {
        match (self.close, self.grace, self.edge) {
            (Some(close), ..) => Some(self.closed(close)),
            (None, Some(grace), _) if matches!(grace.state, GraceState::Cancelled | GraceState::Refused) => {
                Some(self.ended(grace))
            }
            (None, _, edge) => edge.map(|edge| self.taken_for(edge)),
        }
    }

    fn closed(&self, close: LastClose<'_>) -> Sentence {
        let ago = |at| when(at, self.at).in_words();
        let (class, after) = match (self.now, close.since) {
            (PresentState::Closed(_), AfterClose::Stands) => {
                let by = match close.approved {
                    Some(Some(by)) => format!(", approved by @{by}"),
                    Some(None) => ", approved by a person".to_owned(),
                    None => String::new(),
                };
                ("info", format!(" {}{by}.", ago(close.at)))
            }
            (PresentState::Closed(how), AfterClose::Changed) => {
                ("mute", format!(" {}. Somebody changed that since: it is {how} now.", ago(close.at)))
            }
            (PresentState::Closed(how), AfterClose::Undone(back)) => {
                ("mute", format!("; that was undone {}. It is {how} now.", ago(back)))
            }
            (PresentState::Closed(how), AfterClose::Reopened) => {
                ("mute", format!("; people reopened it. It is {how} now."))
            }
            (PresentState::Open, AfterClose::Undone(back)) => ("good", format!("; that was undone {}.", ago(back))),
            (PresentState::Open, AfterClose::Stands | AfterClose::Changed | AfterClose::Reopened) => {
                ("good", "; people reopened it.".to_owned())
            }
        };
        Sentence::about(class, "Closed by Canonry as a duplicate of ", close.target, after)
    }

    fn waiting(&self, grace: GraceSummary<'_>) -> Sentence {
        let due = when(grace.due_at, self.at).in_words();
        let (before, after) = match (self.now, grace.due_at > self.at) {
            (PresentState::Open, true) => {
                ("Will be closed as a duplicate of ", format!(" {due} unless somebody objects."))
            }
            (PresentState::Open, false) => (
                "Will be closed as a duplicate of ",
                format!(": the close was due {due} and is done as soon as nothing blocks it."),
            ),
            (PresentState::Closed(how), _) => {
                ("A close was announced as a duplicate of ", format!(", and it is {how} already."))
            }
        };
        Sentence::about(self.now.class("warn"), before, grace.target, after)
    }

    fn ended(&self, grace: GraceSummary<'_>) -> Sentence {
        let why = why_it_ended(grace.reason);
        let ended = if grace.state == GraceState::Refused { "not done" } else { "cancelled" };
        let after = match (self.now, keeps_open(grace.reason)) {
            (PresentState::Open, true) => format!(" {ended}: it stays open because {why}."),
            (PresentState::Open, false) => format!(" {ended} because {why}. It is open now."),
            (PresentState::Closed(how), _) if grace.reason == GraceEnd::Closed.as_str() => {
                format!(" {ended}: somebody else closed it first. It is {how} now.")
            }
            (PresentState::Closed(how), _) => format!(" {ended} because {why}. It is {how} now."),
        };
        Sentence::about(self.now.class("good"), "Announced close as a duplicate of ", grace.target, after)
    }

    fn taken_for(&self, edge: JudgedEdge) -> Sentence {
        let sure = edge.confidence.map(score);
        let no_longer = |changed: &str| {
            let sure = sure.as_ref().map(|sure| format!(" with a confidence of {sure}")).unwrap_or_default();
            let after = match self.now {
                PresentState::Open => {
                    format!("{sure}; {changed} since, so the verdict does not count until it is judged again.")
                }
                PresentState::Closed(how) => {
                    format!("{sure}; {changed} since, so the verdict does not count. It is {how} now.")
                }
            };
            (self.now.class("warn"), "Was judged a duplicate of ", after)
        };
        let (class, before, after) = match edge.texts {
            EdgeTexts::AsJudged => {
                let sure = sure.as_ref().map_or_else(String::new, |sure| {
                    format!(": the judge’s confidence is {sure}, and all checks passed")
                });
                (self.now.class("info"), "Duplicate of ", format!("{sure}{}", self.now.end()))
            }
            EdgeTexts::OwnChanged => no_longer("its text has changed"),
            EdgeTexts::OtherChanged => no_longer("the target’s text has changed"),
            EdgeTexts::BothChanged => no_longer("both texts have changed"),
            EdgeTexts::OtherGone => no_longer("the target was deleted or transferred"),
        };
        let through = edge.canonical.map(|canonical| format!(" The canonical of its cluster is #{canonical}."));
        Sentence::about(class, before, edge.target, format!("{after}{}", through.unwrap_or_default()))
    }
}

/// Whether the end of a grace can explain why the item is open: some ends mean that it is closed, or that it will
/// still be closed.
fn keeps_open(reason: &str) -> bool {
    !matches!(reason.parse(), Ok(GraceEnd::Closed | GraceEnd::Gone))
        && !matches!(reason.parse(), Ok(SkipReason::NotOpen | SkipReason::InGrace))
}

#[cfg(test)]
mod tests {
    use canonry_domain::{
        ContentVersion, EventBy, GraceEnd, Item, ItemNumber, ItemState, ItemType, OutcomeEvent, OutcomeKind,
        SkipReason, StateReason, content_hash,
    };
    use canonry_store::GraceState;
    use jiff::{SignedDuration, Timestamp};

    use super::{AfterClose, EdgeTexts, GraceSummary, ItemStatus, JudgedEdge, LastClose, PresentState, Sentence};
    use crate::items::timeline::why_it_ended;

    const HOUR: SignedDuration = SignedDuration::from_hours(1);

    fn now() -> Timestamp {
        Timestamp::from_second(1_800_000_000).expect("in range")
    }

    fn number(number: i64) -> ItemNumber {
        ItemNumber::new(number).expect("positive")
    }

    fn told(sentence: &Sentence) -> String {
        let target = sentence.target.map(|target| format!("#{target}")).unwrap_or_default();
        format!("{}{target}{}", sentence.before, sentence.after)
    }

    /// Every state × every close × every grace with every end × every edge.
    fn everything() -> Vec<ItemStatus<'static>> {
        let states = [
            PresentState::Open,
            PresentState::Closed("closed"),
            PresentState::Closed("closed as a duplicate"),
            PresentState::Closed("closed as completed"),
            PresentState::Closed("closed as not planned"),
            PresentState::Closed("merged"),
        ];
        let close = |since, approved| LastClose { target: number(33), at: now() - HOUR * 96, approved, since };
        let closes = [
            None,
            Some(close(AfterClose::Stands, None)),
            Some(close(AfterClose::Stands, Some(Some("mona")))),
            Some(close(AfterClose::Undone(now() - HOUR), Some(None))),
            Some(close(AfterClose::Reopened, None)),
            Some(close(AfterClose::Changed, None)),
        ];
        let grace = |state, reason| Some(GraceSummary { target: number(88), due_at: now() - HOUR, state, reason });
        let waiting =
            |due_at| Some(GraceSummary { target: number(88), due_at, state: GraceState::Waiting, reason: "" });
        let mut graces = vec![None, waiting(now() + HOUR), waiting(now() - HOUR), grace(GraceState::Closed, "")];
        for state in [GraceState::Cancelled, GraceState::Refused] {
            graces.extend(GraceEnd::ALL.iter().map(|end| grace(state, end.as_str())));
            graces.extend(SkipReason::ALL.iter().map(|skip| grace(state, skip.as_str())));
            graces.extend(["", "GitHub answered 403", "drift:label_added"].map(|reason| grace(state, reason)));
        }
        let edge = |texts| Some(JudgedEdge { target: number(21), confidence: Some(0.93), texts, canonical: None });
        let edges = [
            None,
            edge(EdgeTexts::AsJudged),
            edge(EdgeTexts::OwnChanged),
            edge(EdgeTexts::OtherChanged),
            edge(EdgeTexts::BothChanged),
            edge(EdgeTexts::OtherGone),
        ];
        let mut all = Vec::new();
        for now_is in states {
            for close in closes {
                for grace in &graces {
                    all.extend(edges.map(|edge| ItemStatus { now: now_is, close, grace: *grace, edge, at: now() }));
                }
            }
        }
        all
    }

    #[test]
    fn no_sentence_contradicts_the_state_or_blames_canonry() {
        for standing in everything() {
            let Some(sentence) = standing.done().or_else(|| standing.history()) else {
                let is_silent = standing.grace.is_none_or(|grace| grace.state == GraceState::Closed);
                assert!(standing.close.is_none() && is_silent && standing.edge.is_none(), "{standing:?}");
                continue;
            };
            // The reason of a grace's end may mention other items and other times.
            let why = why_it_ended(standing.grace.map_or("", |grace| grace.reason));
            let told = told(&sentence).replace(&why, "WHY");
            let holds = |words: &str| told.contains(words);
            match standing.now {
                PresentState::Open => {
                    for never in ["is closed", "is merged", "already"] {
                        assert!(!holds(never), "{told}");
                    }
                    let no_reasons = [
                        "it was closed by somebody else",
                        "it left the repository",
                        "it is not open",
                        "its close is announced, and comes by itself",
                    ];
                    assert!(!holds("stays open because WHY") || !no_reasons.contains(&why.as_str()), "{told} {why}");
                }
                PresentState::Closed(how) => {
                    for never in ["stays open", "Will be closed", "as soon as", "until it is judged", "is open"] {
                        assert!(!holds(never), "{told}");
                    }
                    let stands = standing.close.is_some_and(|close| close.since == AfterClose::Stands);
                    assert!(stands || holds(&format!(" {how} now.")) || holds(&format!(" is {how} already")), "{told}");
                    assert!(!matches!(sentence.class, "good" | "warn"), "{told}");
                }
            }
            if holds("Closed by Canonry") {
                let is_over =
                    standing.now == PresentState::Open || standing.close.expect("a close").since != AfterClose::Stands;
                let is_told = holds("reopened it") || holds("undone") || holds("changed that since");
                assert_eq!(is_told, is_over, "{told}");
            }
            if let Some(edge) = standing.edge.filter(|_| told.contains("#21")) {
                assert_eq!(holds("does not count"), edge.texts != EdgeTexts::AsJudged, "{told}");
            }
        }
    }

    #[test]
    fn a_close_that_was_announced_is_told_with_what_came_first() {
        let ended = |now_is, state, reason| {
            let grace = GraceSummary { target: number(88), due_at: now(), state, reason };
            let standing = ItemStatus { now: now_is, close: None, grace: Some(grace), edge: None, at: now() };
            told(&standing.history().expect("a sentence"))
        };
        let (cancelled, refused) = (GraceState::Cancelled, GraceState::Refused);
        let begins = "Announced close as a duplicate of #88 ";
        for (now_is, state, reason, expected) in [
            (PresentState::Open, cancelled, "edited", "cancelled: it stays open because it was edited."),
            (PresentState::Open, refused, "", "not done: it stays open because the recheck was not sure enough."),
            (
                PresentState::Open,
                cancelled,
                "closed",
                "cancelled because it was closed by somebody else. It is open now.",
            ),
            (PresentState::Open, refused, "not_open", "not done because it is not open. It is open now."),
            (
                PresentState::Closed("closed as a duplicate"),
                cancelled,
                "closed",
                "cancelled: somebody else closed it first. It is closed as a duplicate now.",
            ),
            (
                PresentState::Closed("closed as completed"),
                cancelled,
                "human_commented",
                "cancelled because somebody commented. It is closed as completed now.",
            ),
        ] {
            assert_eq!(ended(now_is, state, reason), format!("{begins}{expected}"));
        }
    }

    fn item(state: ItemState, state_reason: Option<StateReason>, closed_at: Option<Timestamp>) -> Item {
        Item {
            item_type: ItemType::Issue,
            number: number(91),
            github_id: None,
            title: String::new(),
            body: String::new(),
            state,
            state_reason,
            merged: false,
            draft: false,
            author: None,
            assignees: None,
            has_milestone: None,
            locked: None,
            labels: Vec::new(),
            comments: 0,
            review_comments: 0,
            created_at: None,
            updated_at: None,
            closed_at,
            url: None,
            duplicate_of: None,
            changes: None,
            base_branch: None,
            content_hash: content_hash(ItemType::Issue, "", ""),
            content_version: ContentVersion::FIRST,
            last_synced_at: None,
            gone: None,
        }
    }

    fn event(kind: OutcomeKind, by: EventBy, occurred_at: Timestamp) -> OutcomeEvent {
        OutcomeEvent {
            delivery_id: String::new(),
            number: number(91),
            kind,
            state_reason: None,
            actor: None,
            by,
            duplicate_of: None,
            in_body: None,
            comment: None,
            labels: None,
            cluster: Vec::new(),
            occurred_at,
        }
    }

    #[test]
    fn a_close_stands_while_nobody_did_anything_else() {
        let (closed, duplicate) = (ItemState::Closed, Some(StateReason::Duplicate));
        let (at, second) = (now(), SignedDuration::from_secs(1));
        let reopened = |by, at| [event(OutcomeKind::Reopened, by, at)];
        let since = |item: &Item, back, events: &[OutcomeEvent]| AfterClose::of(item, at, back, events);
        let as_left = item(closed, duplicate, None);
        assert_eq!(since(&as_left, None, &[]), AfterClose::Stands);
        assert_eq!(since(&item(closed, None, Some(at - second)), None, &[]), AfterClose::Stands);
        for (by, when, expected) in [
            (EventBy::Person, at + HOUR, AfterClose::Reopened),
            (EventBy::Maintainer, at - second, AfterClose::Reopened),
            (EventBy::Unknown, at + HOUR, AfterClose::Reopened),
            (EventBy::Person, at - HOUR, AfterClose::Stands),
            (EventBy::Canonry, at + HOUR, AfterClose::Stands),
        ] {
            assert_eq!(since(&as_left, None, &reopened(by, when)), expected, "{by} {when}");
        }
        assert_eq!(
            since(&as_left, None, &[event(OutcomeKind::Labeled, EventBy::Person, at + HOUR)]),
            AfterClose::Stands
        );
        for changed in [
            item(closed, Some(StateReason::Completed), None),
            item(closed, Some(StateReason::NotPlanned), None),
            item(closed, duplicate, Some(at + HOUR)),
            Item { merged: true, ..item(closed, None, None) },
        ] {
            assert_eq!(since(&changed, None, &[]), AfterClose::Changed, "{changed:?}");
            assert_eq!(since(&changed, None, &reopened(EventBy::Person, at + HOUR)), AfterClose::Reopened);
            assert_eq!(since(&changed, Some(at), &[]), AfterClose::Undone(at));
        }
        assert_eq!(since(&item(ItemState::Open, None, None), None, &[]), AfterClose::Reopened);
    }
}
