//! How often a model may be asked, and for how much.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// What a million tokens cost, in US dollars. Prices change, so that the operator names them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LlmPrices {
    pub input: f64,
    pub output: f64,
}

/// The most that a run may ask and spend; `None` for no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LlmLimits {
    pub max_calls: Option<u64>,
    pub max_cost: Option<f64>,
    /// What tokens cost; without it nothing is known about cost.
    pub prices: Option<LlmPrices>,
}

/// What may be asked and spent, and what of it is spent. Clones share it: one run has one budget.
#[derive(Debug, Clone, Default)]
pub struct LlmBudget {
    limits: LlmLimits,
    spent: Arc<Mutex<Spent>>,
    settled: Arc<Notify>,
}

/// What was spent so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Spent {
    pub(crate) calls: u64,
    pub(crate) cost: f64,
    under_way: u64,
    /// What one question cost at most, once that is known of any.
    dearest: Option<f64>,
    /// Why nothing more is asked. It stays: a cheap answer that comes late must not open the budget again.
    closed: Option<String>,
    /// The reason that is stored when a question was turned away.
    refusal: Option<&'static str>,
}

/// A limit of cost whose prices nobody named.
const NO_PRICES: &str =
    "a cost limit is set, but the model's prices are not known; start with --input-price and --output-price";

impl LlmBudget {
    pub fn new(limits: LlmLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// What is left of a cap that outlives one run, such as a month's; nothing is asked when nothing is left.
    pub fn up_to(cost_left: f64, prices: Option<LlmPrices>) -> Self {
        Self::new(LlmLimits { max_calls: None, max_cost: Some(cost_left.max(0.0)), prices })
    }

    /// The reason that is stored where a question was turned away: `over_budget`, or `no_prices` where cost is limited and
    /// cannot be known. An answer that was paid for is used, whatever it says about the next question.
    pub(crate) fn refusal(&self) -> Option<&'static str> {
        self.lock().refusal
    }

    /// Takes one question out of the budget; what stands against it, if something does.
    ///
    /// Questions under way count as much as the dearest one so far. Until one is known, they are asked one after the
    /// other: otherwise every worker would spend before anybody knows what a question costs.
    pub(crate) async fn take(&self) -> Result<(), String> {
        loop {
            let settled = self.settled.notified();
            {
                let mut spent = self.lock();
                match self.look(&spent) {
                    Look::Go => {
                        spent.calls += 1;
                        spent.under_way += 1;
                        return Ok(());
                    }
                    Look::Stop(why) => {
                        spent.closed.get_or_insert_with(|| why.clone());
                        let reason = if why == NO_PRICES { "no_prices" } else { "over_budget" };
                        spent.refusal.get_or_insert(reason);
                        return Err(why);
                    }
                    Look::Wait => {}
                }
            }
            settled.await;
        }
    }

    fn look(&self, spent: &Spent) -> Look {
        if let Some(why) = &spent.closed {
            return Look::Stop(why.clone());
        }
        if let Some(most) = self.limits.max_calls.filter(|most| spent.calls >= *most) {
            return Look::Stop(format!("the budget of {most} calls is used up"));
        }
        let Some(most) = self.limits.max_cost else { return Look::Go };
        let used_up = || Look::Stop(format!("the budget of {most} US dollars is used up ({:.4} spent)", spent.cost));
        if spent.cost >= most {
            return used_up();
        }
        // Asking first and counting later would pay for answers that the limit then forbids.
        if self.limits.prices.is_none() {
            return Look::Stop(NO_PRICES.to_owned());
        }
        let Some(dearest) = spent.dearest else {
            return if spent.under_way > 0 { Look::Wait } else { Look::Go };
        };
        let expected = spent.cost + dearest * (spent.under_way + 1) as f64;
        if expected <= most { Look::Go } else { used_up() }
    }

    /// Notes what a question cost in the end; `None` when nobody knows, which ends a budget that limits cost.
    pub(crate) fn settle(&self, cost: Option<f64>) {
        let mut spent = self.lock();
        spent.under_way = spent.under_way.saturating_sub(1);
        match cost {
            Some(cost) => {
                spent.cost += cost;
                spent.dearest = Some(spent.dearest.unwrap_or_default().max(cost));
            }
            None if self.limits.max_cost.is_some() => {
                let why = "the model does not tell how many tokens it took, so that its cost cannot be limited";
                spent.closed.get_or_insert_with(|| why.to_owned());
            }
            None => {}
        }
        drop(spent);
        self.settled.notify_waiters();
    }

    pub(crate) fn cost(&self, input: Option<u64>, output: Option<u64>) -> Option<f64> {
        let prices = self.limits.prices?;
        let million = |tokens: u64, price: f64| tokens as f64 / 1e6 * price;
        Some(million(input?, prices.input) + million(output?, prices.output))
    }

    pub(crate) fn spent(&self) -> Spent {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Spent> {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Look {
    Go,
    Wait,
    Stop(String),
}

#[cfg(test)]
mod tests {
    use super::{LlmBudget, LlmLimits, LlmPrices};

    fn dollars(max_cost: f64) -> LlmBudget {
        let prices = Some(LlmPrices { input: 1.0, output: 10.0 });
        LlmBudget::new(LlmLimits { max_cost: Some(max_cost), prices, max_calls: None })
    }

    #[tokio::test]
    async fn calls_end_at_their_number_for_all_that_share_the_budget() {
        let budget = LlmBudget::new(LlmLimits { max_calls: Some(2), ..LlmLimits::default() });
        let other = budget.clone();
        assert!(budget.take().await.is_ok() && other.take().await.is_ok());
        assert_eq!(budget.take().await, Err("the budget of 2 calls is used up".to_owned()));
        assert!(other.take().await.is_err());
        assert_eq!(budget.spent().calls, 2);
    }

    #[tokio::test]
    async fn money_ends_before_it_is_exceeded_and_stays_ended() {
        let budget = dollars(0.05);
        let cost = budget.cost(Some(10_000), Some(1_000));
        assert_eq!(cost, Some(0.02));
        budget.take().await.expect("there is money");
        budget.settle(cost);
        budget.take().await.expect("there is money for one more");
        // .02 is spent, .02 under way; a third would make it .06.
        assert!(budget.take().await.is_err());
        budget.settle(Some(0.0));
        assert!(budget.take().await.is_err(), "an answer that comes late opens nothing");
    }

    #[tokio::test]
    async fn until_a_price_is_known_questions_go_one_after_the_other() {
        let budget = dollars(1.0);
        budget.take().await.expect("the first");
        let second = tokio::spawn({
            let budget = budget.clone();
            async move { budget.take().await }
        });
        tokio::task::yield_now().await;
        assert!(!second.is_finished(), "nobody knows yet what one costs");
        budget.settle(Some(0.4));
        second.await.expect("no panic").expect("there is money for one more");
        assert!(budget.take().await.is_err(), ".4 is spent, .4 under way");
    }

    #[tokio::test]
    async fn what_is_left_of_a_months_cap_is_the_limit() {
        let prices = Some(LlmPrices { input: 1.0, output: 10.0 });
        let left = LlmBudget::up_to(0.03, prices);
        left.take().await.expect("there is money");
        left.settle(left.cost(Some(10_000), Some(1_000)));
        assert_eq!(left.refusal(), None);
        assert!(left.take().await.is_err(), "a second one costs too much");
        assert_eq!(left.refusal(), Some("over_budget"));
        for nothing in [0.0, -1.0] {
            let why = LlmBudget::up_to(nothing, prices).take().await.expect_err("nothing is left");
            assert_eq!(why, "the budget of 0 US dollars is used up (0.0000 spent)");
        }
    }

    #[tokio::test]
    async fn without_prices_nothing_is_asked_that_may_cost_only_so_much() {
        let budget = LlmBudget::up_to(5.0, None);
        let why = budget.take().await.expect_err("nobody knows what it costs");
        assert!(why.contains("--input-price"), "{why}");
        assert_eq!((budget.refusal(), budget.spent().calls), (Some("no_prices"), 0));
        let nothing = LlmBudget::up_to(0.0, None);
        assert!(nothing.take().await.is_err());
        assert_eq!(nothing.refusal(), Some("over_budget"));
        let free = LlmBudget::default();
        free.take().await.expect("no limit");
    }

    #[tokio::test]
    async fn what_cannot_be_counted_cannot_be_limited() {
        let budget = dollars(1.0);
        assert_eq!(budget.cost(None, Some(3)), None);
        budget.take().await.expect("the first");
        budget.settle(None);
        assert_eq!(budget.refusal(), None, "the answer that was paid for is used");
        assert!(budget.take().await.is_err());
        assert_eq!(budget.refusal(), Some("over_budget"));
        let free = LlmBudget::new(LlmLimits::default());
        free.take().await.expect("no limit");
        free.settle(None);
        free.take().await.expect("no limit");
    }
}
