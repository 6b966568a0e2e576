//! Decides whether an event of a pull request triggers a review.

use std::fmt;

use crate::Login;

/// What happened to a pull request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewOccasion {
    Opened,
    Reopened,
    ReadyForReview,
    ReviewRequested,
    Pushed,
    /// The base branch of the pull request changed.
    Retargeted,
    CheckRerequested,
}

/// The repository's settings for review triggers.
#[derive(Debug, Clone, Copy)]
pub struct TriggerRules<'a> {
    /// Whether the review settings could be read: after a mistake in them it is unknown what they want.
    pub readable: bool,
    pub enabled: bool,
    pub on_opened: bool,
    pub on_ready_for_review: bool,
    pub on_review_requested: bool,
    pub on_synchronize: bool,
    pub skip_authors: &'a [String],
}

/// The pull request, and the account that caused the event.
#[derive(Debug, Clone, Copy)]
pub struct TriggerFacts<'a> {
    pub occasion: ReviewOccasion,
    pub is_open: bool,
    pub is_draft: bool,
    pub was_reviewed: bool,
    /// `None` if the account was deleted.
    pub author: Option<&'a Login>,
    pub own: &'a Login,
    pub by_bot: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewTrigger {
    Review {
        /// Whether the review is wanted even if the same head was reviewed before.
        requested: bool,
    },
    /// No review.
    Skip(NoReview),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NoReview {
    Closed,
    OwnPull,
    Disabled,
    UnreadableSettings,
    /// The settings do not request a review on this occasion.
    TriggerOff,
    /// The pull request was never reviewed, so a new base changes nothing.
    NotReviewedBefore,
    BotAsked,
    /// The settings exclude this author.
    SkippedAuthor,
    Draft,
}

impl NoReview {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::OwnPull => "own_pull",
            Self::Disabled => "disabled",
            Self::UnreadableSettings => "unreadable_settings",
            Self::TriggerOff => "trigger_off",
            Self::NotReviewedBefore => "not_reviewed_before",
            Self::BotAsked => "bot_asked",
            Self::SkippedAuthor => "skipped_author",
            Self::Draft => "draft",
        }
    }
}

/// The reason, as the end of a sentence.
impl fmt::Display for NoReview {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Closed => "it is closed",
            Self::OwnPull => "Canonry wrote it itself",
            Self::Disabled => "review.enabled is false",
            Self::UnreadableSettings => ".canonry.yml has a mistake, so its `review` section does not count",
            Self::TriggerOff => "review.triggers does not name this occasion",
            Self::NotReviewedBefore => "it was not reviewed before its base changed",
            Self::BotAsked => "a bot asked for it",
            Self::SkippedAuthor => "review.skipAuthors names its author",
            Self::Draft => "it is a draft",
        })
    }
}

/// Whether an event triggers a review. The first reason against one counts.
///
/// Pull requests of bots are reviewed like those of people. A review request by a bot does not count. A draft is
/// reviewed if a person requests it. After a change of the base branch, a reviewed pull request is another change, and
/// its old review must not count for it: then neither a draft nor unreadable settings prevent the review. If Canonry
/// is paused, the review waits.
pub fn review_trigger(rules: &TriggerRules<'_>, facts: &TriggerFacts<'_>) -> ReviewTrigger {
    let occasion = facts.occasion;
    let is_asked = matches!(occasion, ReviewOccasion::ReviewRequested | ReviewOccasion::CheckRerequested);
    let is_retargeted = occasion == ReviewOccasion::Retargeted;
    let is_wanted = match occasion {
        ReviewOccasion::Opened | ReviewOccasion::Reopened => rules.on_opened,
        ReviewOccasion::ReadyForReview => rules.on_ready_for_review,
        ReviewOccasion::ReviewRequested => rules.on_review_requested,
        ReviewOccasion::Pushed => rules.on_synchronize,
        ReviewOccasion::Retargeted | ReviewOccasion::CheckRerequested => true,
    };
    let reasons = [
        (!facts.is_open, NoReview::Closed),
        (facts.author == Some(facts.own), NoReview::OwnPull),
        (rules.readable && !rules.enabled, NoReview::Disabled),
        (!rules.readable && !is_retargeted, NoReview::UnreadableSettings),
        (!is_wanted, NoReview::TriggerOff),
        (is_retargeted && !facts.was_reviewed, NoReview::NotReviewedBefore),
        (is_asked && facts.by_bot, NoReview::BotAsked),
        (facts.author.is_some_and(|author| is_skipped(author, rules.skip_authors)), NoReview::SkippedAuthor),
        (facts.is_draft && !is_asked && !is_retargeted, NoReview::Draft),
    ];
    match reasons.into_iter().find(|(holds, _)| *holds) {
        Some((_, why)) => ReviewTrigger::Skip(why),
        None => ReviewTrigger::Review { requested: is_asked },
    }
}

/// Whether a list of logins contains an author. Letter case does not count, and a bot's name ends with `[bot]`.
fn is_skipped(author: &Login, skipped: &[String]) -> bool {
    skipped.iter().any(|name| name.parse::<Login>().is_ok_and(|name| name == *author))
}

#[cfg(test)]
mod tests {
    use super::{NoReview, ReviewOccasion, ReviewTrigger, TriggerFacts, TriggerRules, review_trigger};
    use crate::Login;

    const ALL: [ReviewOccasion; 7] = [
        ReviewOccasion::Opened,
        ReviewOccasion::Reopened,
        ReviewOccasion::ReadyForReview,
        ReviewOccasion::ReviewRequested,
        ReviewOccasion::Pushed,
        ReviewOccasion::Retargeted,
        ReviewOccasion::CheckRerequested,
    ];

    fn login(name: &str) -> Login {
        name.parse().expect("a login")
    }

    fn ruled(
        occasion: ReviewOccasion,
        change: impl FnOnce(&mut TriggerRules<'_>, &mut TriggerFacts<'_>),
    ) -> ReviewTrigger {
        ruled_of(Some(&login("ann")), occasion, change)
    }

    fn ruled_of(
        author: Option<&Login>,
        occasion: ReviewOccasion,
        change: impl FnOnce(&mut TriggerRules<'_>, &mut TriggerFacts<'_>),
    ) -> ReviewTrigger {
        let own = login("canonry[bot]");
        let skipped = ["Renovate[bot]".to_owned(), "no login at all".to_owned()];
        let mut rules = TriggerRules {
            readable: true,
            enabled: true,
            on_opened: true,
            on_ready_for_review: true,
            on_review_requested: true,
            on_synchronize: true,
            skip_authors: &skipped,
        };
        let mut facts = TriggerFacts {
            occasion,
            is_open: true,
            is_draft: false,
            was_reviewed: true,
            author,
            own: &own,
            by_bot: false,
        };
        change(&mut rules, &mut facts);
        review_trigger(&rules, &facts)
    }

    #[test]
    fn each_occasion_has_its_trigger() {
        for occasion in ALL {
            let requested = matches!(occasion, ReviewOccasion::ReviewRequested | ReviewOccasion::CheckRerequested);
            assert_eq!(ruled(occasion, |_, _| {}), ReviewTrigger::Review { requested }, "{occasion:?}");
            let without = ruled(occasion, |rules, _| {
                (rules.on_opened, rules.on_ready_for_review) = (false, false);
                (rules.on_review_requested, rules.on_synchronize) = (false, false);
            });
            let has_trigger = !matches!(occasion, ReviewOccasion::Retargeted | ReviewOccasion::CheckRerequested);
            assert_eq!(without == ReviewTrigger::Skip(NoReview::TriggerOff), has_trigger, "{occasion:?}");
        }
    }

    #[test]
    fn some_reasons_hold_on_every_occasion() {
        for occasion in ALL {
            let closed = ruled(occasion, |_, facts| facts.is_open = false);
            assert_eq!(closed, ReviewTrigger::Skip(NoReview::Closed), "{occasion:?}");
            let disabled = ruled(occasion, |rules, _| rules.enabled = false);
            assert_eq!(disabled, ReviewTrigger::Skip(NoReview::Disabled), "{occasion:?}");
            let by = |author: &str| ruled_of(Some(&login(author)), occasion, |_, _| {});
            assert_eq!(by("renovate[bot]"), ReviewTrigger::Skip(NoReview::SkippedAuthor), "{occasion:?}");
            assert_eq!(by("canonry[bot]"), ReviewTrigger::Skip(NoReview::OwnPull), "{occasion:?}");
            // The code of other bots is reviewed, and so is that of deleted accounts.
            for author in ["dependabot[bot]", "renovate"] {
                assert!(matches!(by(author), ReviewTrigger::Review { .. }), "{occasion:?} {author}");
            }
            let nobody = ruled_of(None, occasion, |_, _| {});
            assert!(matches!(nobody, ReviewTrigger::Review { .. }), "{occasion:?}");
        }
    }

    #[test]
    fn who_asks_gets_one_of_a_draft_unless_it_is_a_bot() {
        for occasion in ALL {
            let is_asked = matches!(occasion, ReviewOccasion::ReviewRequested | ReviewOccasion::CheckRerequested);
            let draft = ruled(occasion, |_, facts| facts.is_draft = true);
            let never_lost = is_asked || occasion == ReviewOccasion::Retargeted;
            assert_eq!(draft == ReviewTrigger::Skip(NoReview::Draft), !never_lost, "{occasion:?}");
            let by_bot = ruled(occasion, |_, facts| facts.by_bot = true);
            assert_eq!(by_bot == ReviewTrigger::Skip(NoReview::BotAsked), is_asked, "{occasion:?}");
            let unreadable = ruled(occasion, |rules, _| (rules.readable, rules.enabled) = (false, false));
            let is_skipped = unreadable == ReviewTrigger::Skip(NoReview::UnreadableSettings);
            assert_eq!(is_skipped, occasion != ReviewOccasion::Retargeted, "{occasion:?}");
        }
    }

    #[test]
    fn another_base_matters_to_what_was_reviewed() {
        let fresh = ruled(ReviewOccasion::Retargeted, |_, facts| facts.was_reviewed = false);
        assert_eq!(fresh, ReviewTrigger::Skip(NoReview::NotReviewedBefore));
        assert_eq!(
            ruled(ReviewOccasion::Reopened, |_, facts| facts.was_reviewed = false),
            ReviewTrigger::Review { requested: false }
        );
    }
}
