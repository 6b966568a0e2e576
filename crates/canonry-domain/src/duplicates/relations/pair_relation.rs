//! Recognises pairs that are related and yet no duplicates: parts of a series, what comes again, backports, reverts,
//! follow-ups, and items whose text says that they differ.

use crate::duplicates::relations::citation::cited_relation;
use crate::duplicates::relations::pull_relation::pull_relation;
use crate::duplicates::relations::recurring_title::is_recurring;
use crate::duplicates::relations::series_title::{is_name_series, is_number_series};
use crate::{ItemNumber, ItemType, JudgedItem, text_enum};

text_enum! {
    /// How two items are related that look alike and are no duplicates.
    pub enum PairRelation: "a relation of two items" {
        /// The titles are the same except for a number, a date or a name: a release check list, a monthly report, the
        /// failure of another test.
        Series = "series",
        /// One author, such as a bot, files the same title again and again: a nightly build that failed, a check list.
        Recurring = "recurring",
        /// The same change for another branch.
        Backport = "backport",
        Revert = "revert",
        /// One removes the lines that the other adds, and no title calls that a revert.
        OppositeChange = "opposite_change",
        /// One follows up on the other, is a part of it, depends on it, or contains its change and much more.
        FollowUp = "follow_up",
        CausedBy = "caused_by",
        /// One text says that the other item is different.
        CitedAsDifferent = "cited_as_different",
    }
}

impl PairRelation {
    /// The relation in words that can follow "no duplicate:".
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Series => "they are parts of a series",
            Self::Recurring => "the same author files this title again and again",
            Self::Backport => "one is a backport of the other",
            Self::Revert => "one reverts the other",
            Self::OppositeChange => "one undoes what the other does",
            Self::FollowUp => "one follows up on the other or contains it",
            Self::CausedBy => "one was caused by the other",
            Self::CitedAsDifferent => "the text says that they are different",
        }
    }

    /// One sentence about the other item, without a full stop.
    pub fn about(self, other: ItemNumber) -> String {
        match self {
            Self::Series => format!("Same title as #{other} except for a number, a date or a name: a series"),
            Self::Recurring => format!("The title of #{other}, which the same author files again and again"),
            Self::Backport => format!("The same change as #{other} for another branch: a backport"),
            Self::Revert => format!("This reverts #{other} or is reverted by it"),
            Self::OppositeChange => format!("One of this and #{other} undoes what the other does"),
            Self::FollowUp => format!("A follow-up: this and #{other} build on each other, or one contains the other"),
            Self::CausedBy => format!("One of this and #{other} was caused by the other"),
            Self::CitedAsDifferent => format!("The text says that this and #{other} are different"),
        }
    }
}

/// How the two items are related, if that shows that they are no duplicates of each other. The order of the two does
/// not matter, except that only a later change can contain an earlier one.
///
/// `others` are the other items that are similar to the source: they show whether a title is one of many.
pub fn pair_relation<'a>(
    source: &JudgedItem<'_>,
    target: &JudgedItem<'_>,
    others: impl Iterator<Item = &'a JudgedItem<'a>>,
) -> Option<PairRelation> {
    let cited = || cited_relation(source, target);
    let of_pulls = || {
        let both = source.item_type == ItemType::Pr && target.item_type == ItemType::Pr;
        both.then(|| pull_relation(source, target)).flatten()
    };
    cited().or_else(of_pulls).or_else(|| {
        let is_other = |other: &&JudgedItem<'a>| other.number != target.number && other.number != source.number;
        let others: Vec<&JudgedItem<'a>> = others.filter(is_other).collect();
        let titles = others.iter().map(|other| other.title);
        if is_number_series(source, target) || is_name_series(source.title, target.title, titles) {
            return Some(PairRelation::Series);
        }
        is_recurring(source, target, others.into_iter()).then_some(PairRelation::Recurring)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert_eq, proptest};

    use super::{PairRelation, pair_relation};
    use crate::{ItemNumber, ItemOrigin, ItemState, ItemType, JudgedItem};

    fn item<'a>(at: i64, item_type: ItemType, title: &'a str, body: &'a str) -> JudgedItem<'a> {
        JudgedItem {
            number: ItemNumber::new(at).expect("positive"),
            state: ItemState::Open,
            item_type,
            title,
            body,
            labels: &[],
            origin: ItemOrigin::default(),
        }
    }

    #[test]
    fn what_the_text_says_counts_before_the_titles() {
        let source = item(9, ItemType::Issue, "Release 1.3.0", "Follow-up to #7, which forgot the notes.");
        let target = item(7, ItemType::Issue, "Release 1.2.0", "The usual steps.");
        assert_eq!(pair_relation(&source, &target, [].iter()), Some(PairRelation::FollowUp));
        let bare = JudgedItem { body: "", ..source };
        assert_eq!(pair_relation(&bare, &target, [].iter()), Some(PairRelation::Series));
    }

    #[test]
    fn the_other_items_show_that_a_title_is_one_of_many() {
        let failing = |at, title| item(at, ItemType::Issue, title, "It fails on the nightly build.");
        let source = failing(9, "CI failure of test_parser_recovers");
        let target = failing(7, "CI failure of test_window_resizes");
        assert_eq!(pair_relation(&source, &target, [].iter()), None, "two may be one problem");
        let others = [source, target, failing(5, "CI failure of test_sound_is_loud")];
        assert_eq!(pair_relation(&source, &target, others.iter()), Some(PairRelation::Series));
        let same = failing(3, "CI failure of test_parser_recovers");
        assert_eq!(pair_relation(&source, &same, others.iter()), None);
    }

    #[test]
    fn every_relation_has_its_words() {
        let number = ItemNumber::new(7).expect("positive");
        for relation in PairRelation::ALL {
            assert!(relation.about(number).contains("#7") && !relation.in_words().contains('_'));
            assert_eq!(relation.as_str().parse(), Ok(*relation));
        }
    }

    proptest! {
        #[test]
        fn an_item_is_not_related_to_its_copy(title in any::<String>(), body in "[ -~\n`#0-9]{0,200}", is_pull in any::<bool>()) {
            let item_type = if is_pull { ItemType::Pr } else { ItemType::Issue };
            // No text names these numbers.
            let (one, other) = (item(1_000_001, item_type, &title, &body), item(1_000_002, item_type, &title, &body));
            prop_assert_eq!(pair_relation(&one, &other, [one, other].iter()), None);
        }

        #[test]
        fn the_order_of_two_texts_does_not_matter(
            titles in ("[A-Za-z0-9#. ]{0,40}", "[A-Za-z0-9#. ]{0,40}"),
            bodies in ("(unlike|follow-up to|see|caused by|same as)? ?#[12] [a-z ]{0,40}", "[a-z #12]{0,40}"),
        ) {
            let (one, other) =
                (item(1, ItemType::Issue, &titles.0, &bodies.0), item(2, ItemType::Issue, &titles.1, &bodies.1));
            prop_assert_eq!(pair_relation(&one, &other, [].iter()), pair_relation(&other, &one, [].iter()));
        }
    }
}
