//! How often a model may be asked, and for how much.

use std::sync::Mutex;

/// What a million tokens cost, in US dollars. Prices change, so that the operator names them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LlmPrices {
    /// Read by the model.
    pub input: f64,
    /// Written by the model.
    pub output: f64,
}

/// The most that a run may ask and spend; `None` for no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LlmLimits {
    /// Questions.
    pub max_calls: Option<u64>,
    /// US dollars.
    pub max_cost: Option<f64>,
    /// What tokens cost; without it nothing is known about cost.
    pub prices: Option<LlmPrices>,
}

/// What of it is spent.
#[derive(Debug)]
pub(crate) struct LlmBudget {
    limits: LlmLimits,
    spent: Mutex<Spent>,
}

/// What was spent so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Spent {
    pub(crate) calls: u64,
    pub(crate) cost: f64,
    /// What the questions under way will cost if they cost as much as the dearest so far.
    reserved: f64,
    dearest: f64,
    /// Somebody did not tell how many tokens it took.
    unpriced: bool,
}

impl LlmBudget {
    pub(crate) fn new(limits: LlmLimits) -> Self {
        Self { limits, spent: Mutex::default() }
    }

    /// Takes one question out of the budget; what stands against it, if something does.
    ///
    /// Questions under way count as much as the dearest one so far: otherwise every worker would ask once more when
    /// the money for a single question is left.
    pub(crate) fn take(&self) -> Result<f64, String> {
        let mut spent = self.lock();
        if let Some(most) = self.limits.max_calls.filter(|most| spent.calls >= *most) {
            return Err(format!("the budget of {most} calls is used up"));
        }
        let expected = spent.cost + spent.reserved + spent.dearest;
        if let Some(most) = self.limits.max_cost.filter(|most| expected > *most || spent.cost >= *most) {
            return Err(format!("the budget of {most} US dollars is used up ({:.4} spent)", spent.cost));
        }
        if self.limits.max_cost.is_some() && spent.unpriced {
            return Err(
                "the model does not tell how many tokens it took, so that its cost cannot be limited".to_owned()
            );
        }
        spent.calls += 1;
        let reserved = spent.dearest;
        spent.reserved += reserved;
        Ok(reserved)
    }

    /// Notes what a question cost in the end.
    pub(crate) fn settle(&self, reserved: f64, cost: Option<f64>) {
        let mut spent = self.lock();
        spent.reserved = (spent.reserved - reserved).max(0.0);
        spent.unpriced |= cost.is_none();
        let cost = cost.unwrap_or_default();
        spent.cost += cost;
        spent.dearest = spent.dearest.max(cost);
    }

    /// What so many tokens cost.
    pub(crate) fn cost(&self, input: Option<u64>, output: Option<u64>) -> Option<f64> {
        let prices = self.limits.prices?;
        let million = |tokens: u64, price: f64| tokens as f64 / 1e6 * price;
        Some(million(input?, prices.input) + million(output?, prices.output))
    }

    pub(crate) fn spent(&self) -> Spent {
        *self.lock()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Spent> {
        self.spent.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::{LlmBudget, LlmLimits, LlmPrices};

    #[test]
    fn calls_end_at_their_number() {
        let budget = LlmBudget::new(LlmLimits { max_calls: Some(2), ..LlmLimits::default() });
        assert!(budget.take().is_ok() && budget.take().is_ok());
        assert_eq!(budget.take(), Err("the budget of 2 calls is used up".to_owned()));
        assert_eq!(budget.spent().calls, 2);
    }

    #[test]
    fn money_ends_before_it_is_exceeded() {
        let prices = Some(LlmPrices { input: 1.0, output: 10.0 });
        let budget = LlmBudget::new(LlmLimits { max_cost: Some(0.05), prices, max_calls: None });
        let cost = budget.cost(Some(10_000), Some(1_000));
        assert_eq!(cost, Some(0.02));
        let first = budget.take().expect("there is money");
        budget.settle(first, cost);
        let under_way = budget.take().expect("there is money for one more");
        // .02 is spent, .02 under way; a third would make it .06.
        assert!(budget.take().is_err());
        budget.settle(under_way, Some(0.01));
        assert!(budget.take().is_ok(), "the second was cheaper than the first");
        assert_eq!(budget.cost(None, Some(3)), None);
        budget.settle(0.0, None);
        assert!(budget.take().is_err(), "what cannot be counted cannot be limited");
    }
}
