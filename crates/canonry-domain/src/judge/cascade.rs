//! Which questions a model is asked if the local judge answers first.

use crate::{
    Certainty, ItemNumber, JudgeAnswer, PathMatch, Probability, Relation, RootCauseMatch, ScopeRelation, Structure,
    Verdict,
};

/// The local judge settles a pair with a "no" below this probability. Low on purpose: where it missed a linked original
/// that search had ranked first, a low probability was the reason in 107 of 118 cases. The saving was not weighed against
/// the duplicates below it; `backtest --cascade` counts those of a repository.
pub const SETTLED_NO: f64 = 0.15;

/// What an answer leads to. Later ones say more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Consequence {
    Nothing,
    Suggestion,
    Duplicate,
}

impl From<Verdict> for Consequence {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::NotDuplicate => Self::Nothing,
            Verdict::MaybeDuplicate => Self::Suggestion,
            Verdict::Duplicate => Self::Duplicate,
        }
    }
}

/// Who answers a question of a cascade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CascadeRoute {
    /// The local judge's answer stands.
    Local,
    Model,
}

/// Decides whether a model is asked after the local judge. `consequence` puts an answer through the gates.
///
/// The local judge settles what it calls unlikely, and what it is sure of and the gates accept. A model is asked about
/// the rest, unless no answer could change the consequence: not even a full yes about any candidate passes the gates.
pub fn cascade_route(
    local: &JudgeAnswer,
    candidates: &[ItemNumber],
    consequence: impl Fn(&JudgeAnswer) -> Consequence,
) -> CascadeRoute {
    if !local.is_duplicate && local.confidence.get() < SETTLED_NO {
        return CascadeRoute::Local;
    }
    let locally = consequence(local);
    if locally == Consequence::Duplicate && local.structure.certainty == Some(Certainty::Sure) {
        return CascadeRoute::Local;
    }
    let could_say_more = || candidates.iter().any(|number| consequence(&full_yes(*number)) > Consequence::Nothing);
    match locally > Consequence::Nothing || could_say_more() {
        true => CascadeRoute::Model,
        false => CascadeRoute::Local,
    }
}

/// The strongest answer that a judge can give about a candidate.
fn full_yes(number: ItemNumber) -> JudgeAnswer {
    JudgeAnswer {
        is_duplicate: true,
        duplicate_of: Some(number),
        confidence: Probability::ONE,
        reasoning: String::new(),
        structure: Structure {
            relation: Some(Relation::SameInstance),
            root_cause_match: Some(RootCauseMatch::Same),
            scope_relation: Some(ScopeRelation::SameScope),
            path_match: Some(PathMatch::Same),
            certainty: Some(Certainty::Sure),
        },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert_eq, proptest};

    use super::{CascadeRoute, Consequence, SETTLED_NO, cascade_route, full_yes};
    use crate::{Certainty, ItemNumber, JudgeAnswer, Probability, Structure};

    fn number(number: i64) -> ItemNumber {
        ItemNumber::new(number).expect("positive")
    }

    fn local(confidence: f64, certainty: Certainty) -> JudgeAnswer {
        let is_duplicate = confidence >= 0.5;
        JudgeAnswer {
            is_duplicate,
            duplicate_of: is_duplicate.then(|| number(7)),
            confidence: Probability::new(confidence).expect("in range"),
            reasoning: String::new(),
            structure: Structure { certainty: Some(certainty), ..Structure::default() },
        }
    }

    /// Gates that accept every sure yes, and suggest every other yes.
    fn open(answer: &JudgeAnswer) -> Consequence {
        match (answer.is_duplicate, answer.structure.certainty) {
            (false, _) => Consequence::Nothing,
            (true, Some(Certainty::Sure)) => Consequence::Duplicate,
            (true, _) => Consequence::Suggestion,
        }
    }

    #[test]
    fn a_model_is_asked_only_about_what_is_not_settled() {
        use Certainty::{Sure, Unsure};
        for (confidence, certainty, route) in [
            (0.0, Unsure, CascadeRoute::Local),
            (0.14, Unsure, CascadeRoute::Local),
            (0.16, Unsure, CascadeRoute::Model),
            (0.49, Sure, CascadeRoute::Model),
            (0.7, Unsure, CascadeRoute::Model),
            (0.99, Unsure, CascadeRoute::Model),
            (0.99, Sure, CascadeRoute::Local),
        ] {
            let routed = cascade_route(&local(confidence, certainty), &[number(7)], open);
            assert_eq!(routed, route, "{confidence} {certainty}");
        }
    }

    #[test]
    fn a_model_is_not_asked_if_no_answer_could_change_anything() {
        let closed = |_: &JudgeAnswer| Consequence::Nothing;
        let unsure = local(0.7, Certainty::Unsure);
        assert_eq!(cascade_route(&unsure, &[number(7), number(8)], closed), CascadeRoute::Local);
        // One candidate that the gates would accept is enough.
        let eight = |answer: &JudgeAnswer| match answer.duplicate_of {
            Some(of) if of == number(8) => open(answer),
            _ => Consequence::Nothing,
        };
        assert_eq!(cascade_route(&unsure, &[number(7), number(8)], eight), CascadeRoute::Model);
        assert_eq!(cascade_route(&unsure, &[number(7)], eight), CascadeRoute::Local);
    }

    proptest! {
        /// What the local judge's answer leads to stands exactly if the route is local; otherwise some answer of a model
        /// leads to something else.
        #[test]
        fn asking_could_always_change_something(confidence in 0.0..=1.0_f64, is_sure in any::<bool>(), accepts in any::<[bool; 3]>()) {
            let certainty = if is_sure { Certainty::Sure } else { Certainty::Unsure };
            let answer = local(confidence, certainty);
            let candidates = [7, 8, 9].map(number);
            let gates = |answer: &JudgeAnswer| {
                let place = answer.duplicate_of.and_then(|of| candidates.iter().position(|number| *number == of));
                if place.is_some_and(|place| accepts[place]) { open(answer) } else { Consequence::Nothing }
            };
            let said = gates(&answer);
            let can_change = said > Consequence::Nothing || candidates.iter().any(|of| gates(&full_yes(*of)) != said);
            let is_settled = (answer.confidence.get() < SETTLED_NO && !answer.is_duplicate)
                || (is_sure && said == Consequence::Duplicate);
            let route = if can_change && !is_settled { CascadeRoute::Model } else { CascadeRoute::Local };
            prop_assert_eq!(cascade_route(&answer, &candidates, gates), route);
        }
    }
}
