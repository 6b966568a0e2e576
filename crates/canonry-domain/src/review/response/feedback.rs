//! Pools people's reactions to findings of a pattern, and decides which findings feedback cannot hide.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::review::{Category, Severity};
use crate::{ItemNumber, Login, Maintainers};

/// A reaction to a finding of a pattern that is still in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vote {
    pub by: Login,
    pub pull: ItemNumber,
    pub up: bool,
    pub at: Timestamp,
}

/// People's reactions to a pattern; each person counts once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PatternFeedback {
    pub thumbs_up: u32,
    pub thumbs_down: u32,
    pub reactors: u32,
    pub pull_requests: u32,
}

/// Whether a reaction counts as feedback about a pattern. Everybody's does, except a bot's. The author's on their own
/// pull request counts only if they maintain the repository.
pub fn may_teach(by: &Login, author: Option<&Login>, maintainers: &Maintainers) -> bool {
    !by.is_bot() && (author != Some(by) || maintainers.contains(by))
}

/// Pools the reactions to one pattern. Each person's last vote counts; the order of the votes does not matter, and
/// votes from before the pattern was last `cleared` do not count.
pub fn pool_votes<'a>(votes: impl IntoIterator<Item = &'a Vote>, cleared: Option<Timestamp>) -> PatternFeedback {
    let votes = votes.into_iter().filter(|vote| cleared.is_none_or(|cleared| vote.at > cleared));
    let mut last: BTreeMap<&Login, &Vote> = BTreeMap::new();
    let mut rejected_on: BTreeMap<&Login, BTreeSet<ItemNumber>> = BTreeMap::new();
    for vote in votes {
        let word = last.entry(&vote.by).or_insert(vote);
        // If a person votes up and down at the same moment, the down vote counts: an unsure person does not approve.
        if (vote.at, !vote.up) > (word.at, !word.up) {
            *word = vote;
        }
        if !vote.up {
            rejected_on.entry(&vote.by).or_default().insert(vote.pull);
        }
    }
    let down: Vec<&Login> = last.iter().filter(|(_, vote)| !vote.up).map(|(by, _)| *by).collect();
    let pulls: BTreeSet<ItemNumber> =
        down.iter().flat_map(|by| rejected_on.get(by).into_iter().flatten().copied()).collect();
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    PatternFeedback {
        thumbs_up: count(last.len() - down.len()),
        thumbs_down: count(down.len()),
        reactors: count(last.len()),
        pull_requests: count(pulls.len()),
    }
}

/// The thresholds at which rejection hides a pattern; all of them must be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedbackRule {
    pub thumbs_down: u32,
    pub reactors: u32,
    pub pull_requests: u32,
}

impl Default for FeedbackRule {
    fn default() -> Self {
        Self { thumbs_down: 3, reactors: 3, pull_requests: 2 }
    }
}

pub fn rejected_by_people(rule: FeedbackRule, feedback: PatternFeedback) -> bool {
    // Each person has one vote, so the people who vote down are also the reactors that count.
    feedback.thumbs_down >= rule.thumbs_down
        && feedback.thumbs_down >= rule.reactors
        && feedback.pull_requests >= rule.pull_requests
}

/// Whether feedback hides a finding: people reject its pattern, and neither this finding nor any earlier finding of
/// the pattern is protected.
pub fn feedback_hides(
    rule: FeedbackRule,
    feedback: PatternFeedback,
    pattern_protected: bool,
    severity: Severity,
    category: Category,
) -> bool {
    rejected_by_people(rule, feedback) && !pattern_protected && !is_protected(severity, category)
}

/// Whether feedback must not hide a finding: a CRITICAL one, or a MAJOR one about security or correctness.
pub fn is_protected(severity: Severity, category: Category) -> bool {
    severity == Severity::Critical
        || (severity == Severity::Major && matches!(category, Category::Security | Category::Correctness))
}

#[cfg(test)]
mod tests {
    use super::{
        FeedbackRule, PatternFeedback, Vote, feedback_hides, is_protected, may_teach, pool_votes, rejected_by_people,
    };
    use crate::ItemNumber;
    use crate::review::{Category, Severity};

    fn vote(by: &str, pull: i64, up: bool, second: i64) -> Vote {
        Vote {
            by: by.parse().expect("a login"),
            pull: ItemNumber::new(pull).expect("positive"),
            up,
            at: jiff::Timestamp::from_second(second).expect("in range"),
        }
    }

    #[test]
    fn one_person_is_one_vote() {
        let votes: Vec<Vote> = (1..9).map(|at| vote("ada", at, false, at)).collect();
        let pooled = pool_votes(&votes, None);
        assert_eq!((pooled.thumbs_down, pooled.reactors, pooled.pull_requests), (1, 1, 8));
        assert!(!rejected_by_people(FeedbackRule::default(), pooled));
        let changed = [vote("ada", 1, false, 1), vote("Ada", 1, true, 2)];
        let expected = PatternFeedback { thumbs_up: 1, thumbs_down: 0, reactors: 1, pull_requests: 0 };
        assert_eq!(pool_votes(&changed, None), expected);
        assert_eq!(pool_votes(changed.iter().rev(), None), expected);
    }

    #[test]
    fn it_takes_three_people_on_two_pull_requests() {
        let mut votes = vec![vote("a", 1, false, 1), vote("b", 1, false, 1), vote("c", 1, false, 1)];
        assert!(!rejected_by_people(FeedbackRule::default(), pool_votes(&votes, None)));
        votes[2].pull = ItemNumber::new(2).expect("positive");
        assert!(rejected_by_people(FeedbackRule::default(), pool_votes(&votes, None)));
    }

    #[test]
    fn only_what_comes_after_clearing_counts() {
        let votes = [vote("a", 1, false, 1), vote("b", 1, true, 5)];
        let at = |second| jiff::Timestamp::from_second(second).ok();
        assert_eq!(pool_votes(&votes, at(1)).thumbs_down, 0);
        assert_eq!(pool_votes(&votes, at(1)).thumbs_up, 1);
        assert_eq!(pool_votes(&votes, at(0)).thumbs_down, 1);
    }

    #[test]
    fn an_author_teaches_only_as_a_maintainer() {
        let login = |name: &str| name.parse::<crate::items::login::Login>().expect("a login");
        let (ada, bob) = (login("ada"), login("bob"));
        let nobody = crate::items::maintainers::Maintainers::default();
        assert!(may_teach(&bob, Some(&ada), &nobody));
        assert!(!may_teach(&login("ADA"), Some(&ada), &nobody));
        assert!(may_teach(&ada, Some(&ada), &[ada.clone()].into_iter().collect()));
        assert!(!may_teach(&login("helper[bot]"), Some(&ada), &nobody));
    }

    #[test]
    fn a_critical_finding_of_a_rejected_pattern_is_not_hidden() {
        let (rule, feedback) =
            (FeedbackRule::default(), PatternFeedback { thumbs_down: 9, pull_requests: 9, ..Default::default() });
        assert!(feedback_hides(rule, feedback, false, Severity::Minor, Category::Style));
        assert!(!feedback_hides(rule, feedback, false, Severity::Critical, Category::Style));
        assert!(!feedback_hides(rule, feedback, true, Severity::Minor, Category::Style));
        assert!(!feedback_hides(rule, PatternFeedback::default(), false, Severity::Minor, Category::Style));
    }

    #[test]
    fn what_feedback_cannot_hide() {
        for severity in Severity::ALL {
            for category in Category::ALL {
                let expected = match severity {
                    Severity::Critical => true,
                    Severity::Major => matches!(category, Category::Security | Category::Correctness),
                    _ => false,
                };
                assert_eq!(is_protected(*severity, *category), expected);
            }
        }
    }
}
