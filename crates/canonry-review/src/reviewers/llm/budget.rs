//! What reading a change with a model may take.

use std::time::Duration;

use canonry_models::chat::TokenPrices;

/// The most that one review may ask of a model. What does not fit is not read, and told.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LlmReviewBudget {
    /// Questions of every kind, those included that are asked again. A third is kept for second readings of grave findings.
    pub calls: u32,
    pub characters: usize,
    pub characters_per_call: usize,
    pub time: Duration,
    pub cost_usd: Option<f64>,
    pub prices: Option<TokenPrices>,
}

impl LlmReviewBudget {
    /// How many of the questions may be for reading. Of one or two, all: nothing can be doubted that was not read.
    pub(super) fn reading_calls(&self) -> u32 {
        self.calls - self.calls / 3
    }
}

impl Default for LlmReviewBudget {
    /// A question of 60,000 characters of code has some 20,000 tokens: it fits every model, and models still see what is in
    /// its middle. 400,000 characters are some 10,000 changed lines.
    fn default() -> Self {
        Self {
            calls: 30,
            characters: 400_000,
            characters_per_call: 60_000,
            time: Duration::from_secs(600),
            cost_usd: None,
            prices: None,
        }
    }
}
