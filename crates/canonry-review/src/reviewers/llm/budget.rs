//! Limits what reading a change with a model may cost.

use std::time::Duration;

use canonry_models::chat::TokenPrices;

/// The limits of one review with a model. What does not fit is not read, and is reported.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LlmReviewBudget {
    /// Questions of every kind, repeated ones included. A third is reserved for second readings of severe findings.
    pub calls: u32,
    pub characters: usize,
    pub characters_per_call: usize,
    pub time: Duration,
    pub cost_usd: Option<f64>,
    pub prices: Option<TokenPrices>,
}

impl LlmReviewBudget {
    /// The questions that may be used for reading. If there are one or two, all are for reading: a second reading needs
    /// a first.
    pub(super) fn reading_calls(&self) -> u32 {
        self.calls - self.calls / 3
    }
}

impl Default for LlmReviewBudget {
    /// A question with 60,000 characters of code has some 20,000 tokens: it fits every model, and models still notice
    /// what is in its middle. 400,000 characters are some 10,000 changed lines.
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
