//! The second reading of a pair before a close that nobody reviews: the same question with the two items exchanged.

use crate::{InvalidAnswer, ItemNumber, JudgeAnswer, Probability, structural_veto};

/// Whether a second reading confirms the first. There the former source is the only candidate, so a confirming answer
/// names it, is at least `least` confident, and does not contradict itself.
///
/// A model that prefers the first or the second text, whatever they say, answers differently when they are exchanged.
pub fn is_confirmed(second: &Result<JudgeAnswer, InvalidAnswer>, first_source: ItemNumber, least: Probability) -> bool {
    let Ok(answer) = second else { return false };
    answer.is_duplicate
        && answer.duplicate_of == Some(first_source)
        && answer.confidence >= least
        && structural_veto(&answer.structure).is_none()
}

#[cfg(test)]
mod tests {
    use super::is_confirmed;
    use crate::{Certainty, InvalidAnswer, ItemNumber, JudgeAnswer, Probability, Relation, Structure};

    fn number(number: i64) -> ItemNumber {
        ItemNumber::new(number).expect("positive")
    }

    fn probability(value: f64) -> Probability {
        Probability::new(value).expect("in range")
    }

    #[test]
    fn only_a_confident_yes_about_the_same_pair_confirms() {
        let yes = JudgeAnswer {
            is_duplicate: true,
            duplicate_of: Some(number(9)),
            confidence: probability(0.9),
            reasoning: String::new(),
            structure: Structure::default(),
        };
        let confirms = |answer: JudgeAnswer| is_confirmed(&Ok(answer), number(9), probability(0.85));
        assert!(confirms(yes.clone()));
        assert!(!confirms(JudgeAnswer { is_duplicate: false, duplicate_of: None, ..yes.clone() }));
        assert!(!confirms(JudgeAnswer { duplicate_of: Some(number(8)), ..yes.clone() }));
        assert!(!confirms(JudgeAnswer { confidence: probability(0.84), ..yes.clone() }));
        for structure in [
            Structure { certainty: Some(Certainty::Unsure), ..Structure::default() },
            Structure { relation: Some(Relation::RelatedFollowup), ..Structure::default() },
        ] {
            assert!(!confirms(JudgeAnswer { structure, ..yes.clone() }));
        }
        assert!(!is_confirmed(&Err(InvalidAnswer::NotJson), number(9), probability(0.85)));
    }
}
