//! Limits what reading a change with a model may cost.

use std::time::Duration;

use canonry_config::ModelBudget;
use canonry_models::chat::TokenPrices;

/// The limits of one review with a model. What does not fit is not read, and is reported.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LlmReviewBudget {
    /// Questions of every kind, repeated ones included. A third is reserved for second readings of severe findings.
    pub calls: u32,
    pub files: usize,
    pub characters: usize,
    pub characters_per_call: usize,
    pub time: Duration,
    pub cost_usd: Option<f64>,
    pub prices: Option<TokenPrices>,
}

/// Characters of code in a token, at the least.
const CHARACTERS_PER_TOKEN: usize = 3;

impl LlmReviewBudget {
    /// The usual limits with a repository's own for what is read, and as many questions as that takes.
    pub fn of(settings: ModelBudget) -> Self {
        let usual = Self::default();
        let size = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        let characters = size(settings.max_tokens).saturating_mul(CHARACTERS_PER_TOKEN);
        let questions = characters.div_ceil(usual.characters_per_call);
        // One for the overview, and half as many again: a third of all questions is for second readings.
        let questions = questions + 1;
        let calls = u32::try_from(questions + questions.div_ceil(2)).unwrap_or(u32::MAX);
        Self { files: size(settings.max_files), characters, calls: usual.calls.max(calls), ..usual }
    }

    /// The questions that may be used for reading. If there are one or two, all are for reading: a second reading needs
    /// a first.
    pub(super) fn reading_calls(&self) -> u32 {
        self.calls - self.calls / 3
    }
}

impl Default for LlmReviewBudget {
    /// A question with 60,000 characters of code has some 20,000 tokens: it fits every model, and models still notice
    /// what is in its middle. 390,000 characters are some 10,000 changed lines.
    fn default() -> Self {
        Self {
            calls: 30,
            files: 1_000,
            characters: 390_000,
            characters_per_call: 60_000,
            time: Duration::from_secs(600),
            cost_usd: None,
            prices: None,
        }
    }
}
