//! Decides what to do about an item once its verdict is known; a pure function.

use canonry_domain::{CommentDecision, ItemNumber, TriageMode, TriageReason, Verdict};
use jiff::{SignedDuration, Timestamp};

use crate::online::posted_triage::PostedTriage;

/// Everything that the decision depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TriageSituation<'a> {
    pub(crate) mode: TriageMode,
    pub(crate) verdict: Verdict,
    pub(crate) target: Option<ItemNumber>,
    pub(crate) speaking: CommentDecision,
    pub(crate) text: &'a str,
    pub(crate) said: &'a PostedTriage,
    /// Every target that was ever named on the item, the last one first.
    pub(crate) named: &'a [ItemNumber],
    /// Whether the standing comment says that it was a mistake.
    pub(crate) is_withdrawn: bool,
    pub(crate) cooldown: SignedDuration,
    pub(crate) now: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TriageDecision {
    /// Post a new comment, the n-th, and set the label.
    Comment {
        generation: usize,
    },
    /// Edit the standing comment.
    Edit {
        comment_key: String,
    },
    /// Edit the standing comment to say that it was a mistake, and remove the label.
    Withdraw {
        comment_key: String,
    },
    Record(TriageReason),
}

/// Makes the decision. There is one comment per item: it is edited and withdrawn, never repeated. If people deleted
/// it, only another target justifies another comment, and not before the cooldown is over.
pub(crate) fn decide(situation: &TriageSituation<'_>) -> TriageDecision {
    let why = match situation.speaking {
        CommentDecision::Silent(why) => why,
        CommentDecision::Speak => return speak(situation),
    };
    let is_other_target = situation.target != situation.named.first().copied();
    let is_gone = situation.verdict == Verdict::NotDuplicate || is_other_target;
    match &situation.said.standing {
        // A comment does not become wrong because a threshold has changed or the repository has become silent.
        Some(standing) if situation.mode.speaks() && is_gone && !situation.is_withdrawn => {
            TriageDecision::Withdraw { comment_key: standing.key.clone() }
        }
        _ => TriageDecision::Record(why),
    }
}

fn speak(situation: &TriageSituation<'_>) -> TriageDecision {
    let said = situation.said;
    if let Some(standing) = &said.standing {
        return match standing.text.as_deref() == Some(situation.text) {
            true => TriageDecision::Record(TriageReason::SaidAlready),
            false => TriageDecision::Edit { comment_key: standing.key.clone() },
        };
    }
    if let Some(last) = said.last_said_at {
        if situation.target.is_none_or(|target| situation.named.contains(&target)) {
            return TriageDecision::Record(TriageReason::CommentDeleted);
        }
        if situation.now.duration_since(last) < situation.cooldown {
            return TriageDecision::Record(TriageReason::Cooldown);
        }
    }
    TriageDecision::Comment { generation: said.generations + 1 }
}

#[cfg(test)]
mod tests {
    use canonry_domain::{CommentDecision, ItemNumber, TriageMode, TriageReason, Verdict};
    use jiff::{SignedDuration, Timestamp};

    use super::{TriageDecision, TriageSituation, decide};
    use crate::online::posted_triage::{PostedTriage, StandingComment};

    fn number(number: i64) -> ItemNumber {
        ItemNumber::new(number).expect("valid")
    }

    fn at(hours: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_hours(hours)
    }

    fn standing(text: &str) -> PostedTriage {
        let standing = Some(StandingComment { key: "k".to_owned(), text: Some(text.to_owned()) });
        PostedTriage {
            standing,
            generations: 1,
            last_said_at: Some(at(0)),
            was_labelled: true,
            label_taken_off: false,
            is_ruled_apart: false,
        }
    }

    fn speaking<'a>(said: &'a PostedTriage, named: &'a [ItemNumber]) -> TriageSituation<'a> {
        TriageSituation {
            mode: TriageMode::Suggest,
            verdict: Verdict::Duplicate,
            target: Some(number(7)),
            speaking: CommentDecision::Speak,
            text: "looks like #7",
            said,
            named,
            is_withdrawn: false,
            cooldown: SignedDuration::from_hours(24),
            now: at(1),
        }
    }

    #[test]
    fn one_comment_is_written_and_then_edited() {
        let nothing = PostedTriage::default();
        assert_eq!(decide(&speaking(&nothing, &[])), TriageDecision::Comment { generation: 1 });
        let same = standing("looks like #7");
        assert_eq!(decide(&speaking(&same, &[number(7)])), TriageDecision::Record(TriageReason::SaidAlready));
        let other = standing("looks like #8");
        assert_eq!(decide(&speaking(&other, &[number(8)])), TriageDecision::Edit { comment_key: "k".to_owned() });
        // Nobody has read a comment that a check or GitHub refused.
        let refused = PostedTriage { generations: 1, ..PostedTriage::default() };
        assert_eq!(decide(&speaking(&refused, &[number(7)])), TriageDecision::Comment { generation: 2 });
    }

    #[test]
    fn a_deleted_comment_comes_back_only_for_another_target_and_not_soon() {
        let deleted = PostedTriage { generations: 1, last_said_at: Some(at(0)), ..PostedTriage::default() };
        for (named, hours, expected) in [
            (vec![number(7)], 1, TriageDecision::Record(TriageReason::CommentDeleted)),
            (vec![number(7)], 1_000, TriageDecision::Record(TriageReason::CommentDeleted)),
            (vec![number(8), number(7)], 1_000, TriageDecision::Record(TriageReason::CommentDeleted)),
            (vec![number(8)], 23, TriageDecision::Record(TriageReason::Cooldown)),
            (vec![number(8)], 24, TriageDecision::Comment { generation: 2 }),
        ] {
            let situation = TriageSituation { now: at(hours), ..speaking(&deleted, &named) };
            assert_eq!(decide(&situation), expected, "{named:?} after {hours} hours");
        }
    }

    #[test]
    fn a_description_is_asked_for_once() {
        let nothing = PostedTriage::default();
        let asking = |said| TriageSituation { target: None, verdict: Verdict::NotDuplicate, ..speaking(said, &[]) };
        assert_eq!(decide(&asking(&nothing)), TriageDecision::Comment { generation: 1 });
        let deleted = PostedTriage { generations: 1, last_said_at: Some(at(0)), ..PostedTriage::default() };
        let later = TriageSituation { now: at(1_000), ..asking(&deleted) };
        assert_eq!(decide(&later), TriageDecision::Record(TriageReason::CommentDeleted));
    }

    #[test]
    fn only_what_is_no_longer_predicted_is_taken_back() {
        let said = standing("looks like #7");
        let named = [number(7)];
        let withdraw = TriageDecision::Withdraw { comment_key: "k".to_owned() };
        let silent = |why| TriageSituation { speaking: CommentDecision::Silent(why), ..speaking(&said, &named) };
        let none =
            TriageSituation { verdict: Verdict::NotDuplicate, target: None, ..silent(TriageReason::NotDuplicate) };
        assert_eq!(decide(&none), withdraw);
        assert_eq!(
            decide(&TriageSituation { is_withdrawn: true, ..none }),
            TriageDecision::Record(TriageReason::NotDuplicate)
        );
        assert_eq!(
            decide(&TriageSituation { target: Some(number(8)), ..silent(TriageReason::BelowThreshold) }),
            withdraw
        );
        assert_eq!(decide(&silent(TriageReason::BelowThreshold)), TriageDecision::Record(TriageReason::BelowThreshold));
        assert_eq!(decide(&silent(TriageReason::FallenSilent)), TriageDecision::Record(TriageReason::FallenSilent));
        let shadow =
            TriageSituation { mode: TriageMode::Shadow, speaking: CommentDecision::Silent(TriageReason::Mode), ..none };
        assert_eq!(decide(&shadow), TriageDecision::Record(TriageReason::Mode));
        let nothing = PostedTriage::default();
        assert_eq!(
            decide(&TriageSituation { said: &nothing, ..none }),
            TriageDecision::Record(TriageReason::NotDuplicate)
        );
    }
}
