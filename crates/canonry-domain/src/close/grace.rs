//! The grace period in which people can object before an item is closed: when there is one, and what ends it.

use crate::close::plan::whose;
use crate::{
    Item, ItemState, Maintainers, PairItem, Probability, StateReason, Verdict, has_protected_label, is_too_vague,
    may_close_towards, text_enum,
};

text_enum! {
    /// Why a grace period ended without a close.
    pub enum GraceEnd: "an end of a grace" {
        Gone = "gone",
        Closed = "closed",
        Reopened = "reopened",
        /// A person ruled that the two items are not duplicates.
        NotDuplicate = "not_duplicate",
        /// The settings no longer say that items are closed after a grace period.
        ModeChanged = "mode_changed",
        Breaker = "breaker",
        Superseded = "superseded",
        CalledOff = "called_off",
        Edited = "edited",
        /// A recheck found that the item is not a duplicate.
        Withdrawn = "withdrawn",
        CommentDeleted = "comment_deleted",
        Reaction = "reaction",
        HumanCommented = "human_commented",
        LabelRemoved = "label_removed",
        Assigned = "assigned",
        Milestoned = "milestoned",
        LinkedPull = "linked_pull",
        /// The item has a label whose items are never closed.
        Protected = "protected",
        Pinned = "pinned",
        Locked = "locked",
        TargetClosed = "target_closed",
        /// The item is older or more active than its target, or the target is to be closed as a duplicate of the item.
        Outranked = "outranked",
    }
}

impl GraceEnd {
    /// The reason as the comment on the item gives it, after "because".
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Gone => "it was deleted or transferred",
            Self::Closed => "it was closed by somebody else",
            Self::Reopened => "somebody reopened it",
            Self::NotDuplicate => "somebody said that it is not a duplicate",
            Self::ModeChanged => "automatic closing is off in this repository",
            Self::Breaker => "too many recent closes were wrong",
            Self::Superseded => "a maintainer decided about it",
            Self::CalledOff => "a maintainer cancelled it",
            Self::Edited => "it was edited",
            Self::Withdrawn => "it no longer looks like a duplicate",
            Self::CommentDeleted => "the announcement was deleted",
            Self::Reaction => "somebody disagreed",
            Self::HumanCommented => "somebody commented",
            Self::LabelRemoved => "the label was removed",
            Self::Assigned => "somebody is assigned to it",
            Self::Milestoned => "it has a milestone",
            Self::LinkedPull => "a pull request is linked to it",
            Self::Protected => "it has a protected label",
            Self::Pinned => "it is pinned",
            Self::Locked => "its conversation is locked",
            Self::TargetClosed => "the other item is no longer open",
            Self::Outranked => "it is older or more active than the other item",
        }
    }

    /// Whether this also ends a grace period that a maintainer's ruling began. The ruling already overrides people's
    /// objections and the signs that somebody works on the item.
    pub const fn ends_ruled(self) -> bool {
        !matches!(
            self,
            Self::Withdrawn
                | Self::CommentDeleted
                | Self::Reaction
                | Self::HumanCommented
                | Self::LabelRemoved
                | Self::Assigned
                | Self::Milestoned
                | Self::LinkedPull
                | Self::Outranked
        )
    }

    /// Whether people kept the item open in one of the ways that they were offered. Such an item is never planned for
    /// a close again unless a maintainer rules so.
    pub const fn is_objection(self) -> bool {
        matches!(
            self,
            Self::Reopened
                | Self::NotDuplicate
                | Self::CalledOff
                | Self::Edited
                | Self::CommentDeleted
                | Self::Reaction
                | Self::HumanCommented
                | Self::LabelRemoved
        )
    }

    /// Whether a maintainer must be notified that a ruling is not carried out. Not if the ruling is already answered,
    /// and not if there is nothing left to close.
    pub const fn is_news_to_maintainer(self) -> bool {
        !matches!(self, Self::Gone | Self::Closed | Self::Superseded | Self::NotDuplicate)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GraceBasis {
    Announced,
    /// A maintainer ruled that the item is a duplicate. Objections do not end this grace period; the rules that
    /// protect every item from a close do.
    Ruled,
}

/// Everything that may end a grace period, at this moment. Facts that could not be read have no value here: a caller
/// that cannot read one must wait.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is another question that people answer by another act")]
pub struct GraceFacts {
    pub gone: bool,
    pub closed: bool,
    /// The item was reopened since the grace period began, or by a person at any time.
    pub reopened: bool,
    pub ruled_apart: bool,
    /// The settings name a mode other than `grace`.
    pub mode_changed: bool,
    pub breaker: bool,
    pub edited: bool,
    pub withdrawn: bool,
    pub comment_deleted: bool,
    pub reaction: bool,
    pub human_commented: bool,
    pub label_removed: bool,
    pub assigned: bool,
    pub milestoned: bool,
    pub linked_pull: bool,
    pub protected: bool,
    pub pinned: bool,
    pub locked: bool,
    pub target_closed: bool,
    /// [`may_close_towards`] forbids the close, or the target is to be closed as a duplicate of the item.
    pub outranked: bool,
}

/// Why a grace period ends now without a close; the first reason that applies.
pub fn grace_end(began: GraceBasis, facts: &GraceFacts) -> Option<GraceEnd> {
    let all = [
        (facts.gone, GraceEnd::Gone),
        (facts.closed, GraceEnd::Closed),
        (facts.reopened, GraceEnd::Reopened),
        (facts.ruled_apart, GraceEnd::NotDuplicate),
        (facts.mode_changed, GraceEnd::ModeChanged),
        (facts.breaker, GraceEnd::Breaker),
        (facts.edited, GraceEnd::Edited),
        (facts.withdrawn, GraceEnd::Withdrawn),
        (facts.comment_deleted, GraceEnd::CommentDeleted),
        (facts.reaction, GraceEnd::Reaction),
        (facts.human_commented, GraceEnd::HumanCommented),
        (facts.label_removed, GraceEnd::LabelRemoved),
        (facts.assigned, GraceEnd::Assigned),
        (facts.milestoned, GraceEnd::Milestoned),
        (facts.linked_pull, GraceEnd::LinkedPull),
        (facts.protected, GraceEnd::Protected),
        (facts.pinned, GraceEnd::Pinned),
        (facts.locked, GraceEnd::Locked),
        (facts.target_closed, GraceEnd::TargetClosed),
        (facts.outranked, GraceEnd::Outranked),
    ];
    let ends = |end: GraceEnd| began == GraceBasis::Announced || end.ends_ruled();
    all.into_iter().find_map(|(holds, end)| (holds && ends(end)).then_some(end))
}

/// A new item whose close may perhaps be announced.
#[derive(Debug, Clone, Copy)]
pub struct GraceCandidate<'a> {
    pub item: &'a Item,
    pub own_comments: u32,
    pub target: Option<PairItem<'a>>,
    /// Whether the target has a grace period or a plan that closes it as a duplicate of the item.
    pub is_target_closing: bool,
    pub verdict: Verdict,
    pub confidence: Option<Probability>,
    pub min_close: Probability,
    pub protected_labels: &'a [String],
    /// `None` if the maintainers are unknown.
    pub maintainers: Option<&'a Maintainers>,
    /// Whether the item had a grace period before, was closed by Canonry before, was ever reopened, or was ruled
    /// about.
    pub has_a_past: bool,
}

/// Whether a suggestion may announce that the item will be closed. It must be a sure duplicate, and no known fact may
/// keep it open: a close that is announced and never happens confuses people. An item gets only one grace period.
pub fn may_announce_close(candidate: &GraceCandidate<'_>) -> bool {
    let item = candidate.item;
    let (Some(maintainers), Some(target)) = (candidate.maintainers, candidate.target) else { return false };
    let source = PairItem { item, own_comments: candidate.own_comments };
    may_close_towards(source, target, maintainers)
        && !candidate.is_target_closing
        && candidate.verdict == Verdict::Duplicate
        && candidate.confidence.is_some_and(|confidence| confidence >= candidate.min_close)
        && !candidate.has_a_past
        && item.state == ItemState::Open
        && item.gone.is_none()
        && item.state_reason != Some(StateReason::Reopened)
        && whose(item, maintainers).is_none()
        && item.assignees.as_ref().is_some_and(Vec::is_empty)
        && item.has_milestone != Some(true)
        && item.locked != Some(true)
        && !has_protected_label(&item.labels, candidate.protected_labels)
        && !is_too_vague(&item.title, &item.body)
}

pub fn left_open_text(why: &str) -> String {
    format!("Not closed, because {why}.")
}

/// The comment that tells maintainers that automatic closing is paused.
pub fn breaker_comment(objections: u64, days: i64, handle: &str) -> String {
    format!(
        "Automatic closing is paused in this repository: people objected to {objections} closes within {days} days. Canonry \
         still suggests. A maintainer can turn closing on again with `/{handle} resume`, or close reviewed duplicates with \
         `canonry plan-close`."
    )
}

#[cfg(test)]
mod tests {
    use super::{
        GraceBasis, GraceCandidate, GraceEnd, GraceFacts, breaker_comment, grace_end, left_open_text,
        may_announce_close,
    };
    use crate::{
        Item, ItemNumber, ItemRecord, ItemState, ItemType, Login, Maintainers, PairItem, Probability, StateReason,
        Verdict, merge_record,
    };

    type Fact = fn(&mut GraceFacts);

    /// Every reason alone, in the order in which `grace_end` checks them, and whether it also ends a maintainer's
    /// ruling.
    const REASONS: [(GraceEnd, bool, Fact); 20] = [
        (GraceEnd::Gone, true, |facts| facts.gone = true),
        (GraceEnd::Closed, true, |facts| facts.closed = true),
        (GraceEnd::Reopened, true, |facts| facts.reopened = true),
        (GraceEnd::NotDuplicate, true, |facts| facts.ruled_apart = true),
        (GraceEnd::ModeChanged, true, |facts| facts.mode_changed = true),
        (GraceEnd::Breaker, true, |facts| facts.breaker = true),
        (GraceEnd::Edited, true, |facts| facts.edited = true),
        (GraceEnd::Withdrawn, false, |facts| facts.withdrawn = true),
        (GraceEnd::CommentDeleted, false, |facts| facts.comment_deleted = true),
        (GraceEnd::Reaction, false, |facts| facts.reaction = true),
        (GraceEnd::HumanCommented, false, |facts| facts.human_commented = true),
        (GraceEnd::LabelRemoved, false, |facts| facts.label_removed = true),
        (GraceEnd::Assigned, false, |facts| facts.assigned = true),
        (GraceEnd::Milestoned, false, |facts| facts.milestoned = true),
        (GraceEnd::LinkedPull, false, |facts| facts.linked_pull = true),
        (GraceEnd::Protected, true, |facts| facts.protected = true),
        (GraceEnd::Pinned, true, |facts| facts.pinned = true),
        (GraceEnd::Locked, true, |facts| facts.locked = true),
        (GraceEnd::TargetClosed, true, |facts| facts.target_closed = true),
        (GraceEnd::Outranked, false, |facts| facts.outranked = true),
    ];

    #[test]
    fn every_reason_ends_a_grace_and_the_earlier_one_is_told() {
        assert_eq!(grace_end(GraceBasis::Announced, &GraceFacts::default()), None);
        for (index, (end, of_ruled, fact)) in REASONS.into_iter().enumerate() {
            let mut facts = GraceFacts::default();
            fact(&mut facts);
            assert_eq!(grace_end(GraceBasis::Announced, &facts), Some(end));
            assert_eq!(grace_end(GraceBasis::Ruled, &facts), of_ruled.then_some(end), "{end}");
            for (_, _, later) in &REASONS[index + 1..] {
                later(&mut facts);
            }
            assert_eq!(grace_end(GraceBasis::Announced, &facts), Some(end), "before all that come after it");
        }
        // A later ruling and a cancellation by a maintainer are known from the store alone.
        assert!(GraceEnd::Superseded.ends_ruled() && GraceEnd::CalledOff.ends_ruled());
        assert_eq!(REASONS.len() + 2, GraceEnd::ALL.len(), "an end has no case");
    }

    #[test]
    fn what_people_did_to_keep_an_item_open_counts_for_good() {
        let objections: Vec<GraceEnd> = GraceEnd::ALL.iter().copied().filter(|end| end.is_objection()).collect();
        let expected = [
            GraceEnd::Reopened,
            GraceEnd::NotDuplicate,
            GraceEnd::CalledOff,
            GraceEnd::Edited,
            GraceEnd::CommentDeleted,
            GraceEnd::Reaction,
            GraceEnd::HumanCommented,
            GraceEnd::LabelRemoved,
        ];
        assert_eq!(objections, expected);
    }

    #[test]
    fn a_maintainer_is_told_what_they_cannot_see() {
        insta::assert_snapshot!(left_open_text(GraceEnd::Protected.in_words()), @"Not closed, because it has a protected label.");
        let silent: Vec<GraceEnd> = GraceEnd::ALL.iter().copied().filter(|end| !end.is_news_to_maintainer()).collect();
        assert_eq!(silent, [GraceEnd::Gone, GraceEnd::Closed, GraceEnd::NotDuplicate, GraceEnd::Superseded]);
    }

    fn login(name: &str) -> Login {
        name.parse().expect("valid")
    }

    fn at(hour: i64) -> jiff::Timestamp {
        jiff::Timestamp::from_second(1_800_000_000 + hour * 3_600).expect("in range")
    }

    fn item() -> Item {
        let record = ItemRecord {
            created_at: Some(at(9)),
            body: Some(
                "The exporter writes its summary twice to the console, once at the start and once at the end.".into(),
            ),
            state: Some(ItemState::Open),
            author: Some(login("ann")),
            assignees: Some(Vec::new()),
            labels: Some(vec!["bug".into()]),
            ..ItemRecord::new(ItemType::Issue, ItemNumber::new(9).expect("valid"), "Summary twice after last update")
        };
        merge_record(None, record).item
    }

    /// The parameters of the test beside the item.
    struct Asked {
        verdict: Verdict,
        confidence: Option<Probability>,
        has_a_past: bool,
        knows_maintainers: bool,
        target: Item,
        is_target_closing: bool,
    }

    fn announces(change: impl FnOnce(&mut Item, &mut Asked)) -> bool {
        let mut item = item();
        let confidence = Some(Probability::new(0.92).expect("valid"));
        let target = Item { number: ItemNumber::new(3).expect("valid"), created_at: Some(at(3)), ..item.clone() };
        let mut asked = Asked {
            verdict: Verdict::Duplicate,
            confidence,
            has_a_past: false,
            knows_maintainers: true,
            target,
            is_target_closing: false,
        };
        change(&mut item, &mut asked);
        let maintainers: Maintainers = [login("boss")].iter().collect();
        may_announce_close(&GraceCandidate {
            item: &item,
            own_comments: 0,
            target: Some(PairItem { item: &asked.target, own_comments: 1 }),
            is_target_closing: asked.is_target_closing,
            verdict: asked.verdict,
            confidence: asked.confidence,
            min_close: Probability::new(0.90).expect("valid"),
            protected_labels: &["security".to_owned()],
            maintainers: asked.knows_maintainers.then_some(&maintainers),
            has_a_past: asked.has_a_past,
        })
    }

    #[test]
    fn only_a_sure_duplicate_that_nothing_keeps_open_is_announced() {
        assert!(announces(|_, _| {}));
        let confidence = |value| Some(Probability::new(value).expect("valid"));
        assert!(announces(|_, asked| asked.confidence = confidence(0.90)));
        assert!(!announces(|_, asked| asked.confidence = confidence(0.8999)));
        assert!(!announces(|_, asked| asked.confidence = None));
        assert!(!announces(|_, asked| asked.verdict = Verdict::MaybeDuplicate));
        assert!(!announces(|_, asked| asked.has_a_past = true));
        assert!(!announces(|_, asked| asked.knows_maintainers = false), "nobody knows who maintains it");
        assert!(!announces(|item, _| item.author = None));
        assert!(!announces(|item, _| item.author = Some(login("Boss"))));
        assert!(!announces(|item, _| item.assignees = None));
        assert!(!announces(|item, _| item.assignees = Some(vec![login("zoe")])));
        assert!(!announces(|item, _| item.labels.push("Security".into())));
        assert!(!announces(|item, _| item.has_milestone = Some(true)));
        assert!(!announces(|item, _| item.locked = Some(true)));
        assert!(!announces(|item, _| item.state = ItemState::Closed));
        assert!(!announces(|item, _| item.state_reason = Some(StateReason::Reopened)));
        assert!(!announces(|item, _| item.body = "please fix".into()));
    }

    #[test]
    fn only_the_newer_and_quieter_of_two_is_announced() {
        assert!(!announces(|_, asked| asked.is_target_closing = true));
        assert!(!announces(|_, asked| asked.target.created_at = Some(at(10))), "the target is the newer one");
        assert!(!announces(|_, asked| asked.target.created_at = None), "nobody knows how old it is");
        assert!(!announces(|item, _| item.comments = 1), "people talk here, and not there");
        assert!(
            !announces(|item, asked| (item.comments, asked.target.comments) = (1, 1)),
            "the one there is Canonry's"
        );
        assert!(announces(|item, asked| (item.comments, asked.target.comments) = (1, 2)));
    }

    #[test]
    fn maintainers_are_told_how_to_switch_it_on_again() {
        insta::assert_snapshot!(breaker_comment(3, 7, "dedupe"), @"Automatic closing is paused in this repository: people objected to 3 closes within 7 days. Canonry still suggests. A maintainer can turn closing on again with `/dedupe resume`, or close reviewed duplicates with `canonry plan-close`.");
    }
}
