//! Whether a model's yes depends on the two texts, or is what one of them tells it to answer.

use canonry_domain::{Item, ItemNumber, content_hash};
use canonry_models::chat::TokenBudget;
use canonry_store::NewLlmCall;

use crate::judge::judge_case::{CaseCandidate, Judge, JudgeCase, JudgeFailure};

/// A problem that no item of a repository reports: about things that do not exist.
const UNRELATED_TITLE: &str = "The brass weathervane points to yesterday's wind";
const UNRELATED_BODY: &str = "After the lamplighter winds the eastern tower, the weathervane keeps the direction of \
    the evening before until somebody rings the bell twice. Oiling the spindle does not help. It should turn with the \
    wind as soon as the tower is wound. The old vane with the copper rooster did that.";

/// What the control questions showed.
#[derive(Default)]
pub(crate) struct ControlResult {
    /// The model said no to both.
    pub(crate) is_passed: bool,
    /// Why a question got no answer.
    pub(crate) failure: Option<String>,
    pub(crate) calls: Vec<NewLlmCall>,
}

impl JudgeCase {
    /// The pair once with an unrelated text in place of the candidate's, and once in place of the source's: a text that
    /// tells a model what to answer is still in one of them. `None` if there is no such candidate.
    fn controls(&self, target: ItemNumber) -> Option<[Self; 2]> {
        let place = self.candidates.iter().position(|one| one.item.number == target)?;
        let candidate = &self.candidates[place];
        let pair = |source: Item, other: Item, cards: Option<[String; 2]>| Self {
            source,
            candidates: vec![CaseCandidate { item: other, score: candidate.score, parts: candidate.parts.clone() }],
            pairs: Default::default(),
            cards: cards.map(Vec::from).unwrap_or_default(),
            common: self.common.clone(),
        };
        let unrelated = format!("{UNRELATED_TITLE}\n\n{UNRELATED_BODY}");
        let card = |at: usize| self.cards.get(at).cloned();
        Some([
            pair(
                self.source.clone(),
                with_unrelated_text(&candidate.item),
                card(0).map(|source| [source, unrelated.clone()]),
            ),
            pair(
                with_unrelated_text(&self.source),
                candidate.item.clone(),
                card(place + 1).map(|candidate| [unrelated.clone(), candidate]),
            ),
        ])
    }
}

/// The item's number with another text, which changes nothing.
fn with_unrelated_text(item: &Item) -> Item {
    Item {
        title: UNRELATED_TITLE.to_owned(),
        body: UNRELATED_BODY.to_owned(),
        content_hash: content_hash(item.item_type, UNRELATED_TITLE, UNRELATED_BODY),
        labels: Vec::new(),
        changes: None,
        ..item.clone()
    }
}

impl Judge<'_> {
    /// Asks whether the same yes is said about unrelated texts. An answer that cannot be used fails too.
    pub(crate) async fn ask_controls(
        &self,
        case: &JudgeCase,
        target: ItemNumber,
        purpose: &'static str,
        budget: &TokenBudget,
    ) -> ControlResult {
        let mut result = ControlResult::default();
        for control in case.controls(target).into_iter().flatten() {
            match self.ask(&self.question(&control), &control, purpose, budget).await {
                Ok(reply) => {
                    result.calls.extend(reply.call);
                    result.is_passed = reply.answer.is_ok_and(|answer| !answer.is_duplicate);
                }
                Err(JudgeFailure::NoAnswer { error, call }) => {
                    result.calls.push(*call);
                    (result.is_passed, result.failure) = (false, Some(format!("failed to {error}")));
                }
                Err(JudgeFailure::OverBudget(why)) => (result.is_passed, result.failure) = (false, Some(why)),
            }
            if !result.is_passed {
                break;
            }
        }
        result
    }
}
