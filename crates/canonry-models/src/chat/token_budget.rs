//! Limits on how often a model may be asked, and on the cost.

use canonry_boxed::boxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use canonry_domain::TriageReason;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// The price of a million tokens, in US dollars. Prices change, so the operator sets them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TokenPrices {
    pub input: f64,
    pub output: f64,
}

impl TokenPrices {
    /// The cost in US dollars; `None` if a count is not known.
    pub fn cost(self, input: Option<u64>, output: Option<u64>) -> Option<f64> {
        Some((input? as f64 * self.input + output? as f64 * self.output) / 1e6)
    }
}

/// The limits of a run; `None` for no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TokenLimits {
    pub max_calls: Option<u64>,
    pub max_cost: Option<f64>,
    /// Without prices the cost is unknown.
    pub prices: Option<TokenPrices>,
}

/// The limits of a run and what it has spent so far. Clones share it: one run has one budget.
#[derive(Debug, Clone, Default)]
pub struct TokenBudget {
    limits: TokenLimits,
    spending: Arc<Mutex<TokenSpending>>,
    settled: Arc<Notify>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct TokenSpending {
    pub calls: u64,
    pub cost: f64,
    under_way: u64,
    reserved: f64,
    /// The highest cost of a question so far, once one is known.
    dearest: Option<f64>,
    /// This never changes back: a late cheap answer must not reopen the budget.
    closed: Option<BudgetRefusal>,
    has_refused: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum BudgetRefusal {
    #[error("the budget of {limit} calls is used up")]
    Calls { limit: u64 },
    #[error("the budget of {limit} US dollars is used up ({spent:.4} spent)")]
    Cost { limit: f64, spent: f64 },
    #[error("the budget of {limit} US dollars is too small for this question")]
    NoRoom { limit: f64 },
    #[error("a cost limit is set, but the model's prices are not known; start with --input-price and --output-price")]
    NoPrices,
    #[error("the model does not report its tokens, so its cost cannot be limited")]
    UnknownCost,
}

impl BudgetRefusal {
    /// The reason that is stored for what was not asked.
    pub fn reason(self) -> TriageReason {
        if self == Self::NoPrices { TriageReason::NoPrices } else { TriageReason::OverBudget }
    }
}

/// A question that counts as asked, and the amount reserved for it until it is settled or released.
#[derive(Debug)]
#[must_use]
pub struct TokenReservation(f64);

enum BudgetDecision {
    Ask { reserve: f64 },
    Wait,
    Refuse(BudgetRefusal),
}

#[boxed]
impl TokenBudget {
    pub fn new(limits: TokenLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// The rest of a limit that spans several runs, such as a month's. If nothing is left, no question is asked.
    pub fn up_to(cost_left: f64, prices: Option<TokenPrices>) -> Self {
        Self::new(TokenLimits { max_calls: None, max_cost: Some(cost_left.max(0.0)), prices })
    }

    /// Why a question was refused, if one was. An answer that was paid for is used, even if it exhausts the budget.
    pub fn refusal(&self) -> Option<BudgetRefusal> {
        let spending = self.lock();
        spending.closed.filter(|_| spending.has_refused)
    }

    /// Reserves a question of any size. The first refusal closes the budget.
    ///
    /// Pending questions count as much as the most expensive one so far. Until a cost is known, questions are asked
    /// one after the other: otherwise every worker would spend before the cost of a question is known.
    pub async fn take(&self) -> Result<TokenReservation, BudgetRefusal> {
        loop {
            let settled = self.settled();
            {
                let mut spending = self.lock();
                match self.decide(&spending) {
                    BudgetDecision::Ask { reserve } => return Ok(spending.begin(reserve)),
                    BudgetDecision::Refuse(why) => {
                        spending.has_refused = true;
                        return Err(*spending.closed.get_or_insert(why));
                    }
                    BudgetDecision::Wait => {}
                }
            }
            settled.await;
        }
    }

    /// Reserves a question that costs at most `most`, or as much as the most expensive one so far if that is more:
    /// thoughts come on top of an answer's limit. Returns `None` if there may be room later, once pending questions
    /// are settled for less than they could cost. After a refusal a smaller question may still fit.
    pub fn try_reserve(&self, most: f64) -> Result<Option<TokenReservation>, BudgetRefusal> {
        let mut spending = self.lock();
        match self.decide_sized(&spending, most) {
            BudgetDecision::Ask { reserve } => Ok(Some(spending.begin(reserve))),
            BudgetDecision::Wait => Ok(None),
            BudgetDecision::Refuse(why) => Err(why),
        }
    }

    /// Waits for the end of the next question. Call it before `try_reserve` to miss none.
    pub fn settled(&self) -> Notified<'_> {
        self.settled.notified()
    }

    fn calls_left(&self, spending: &TokenSpending) -> Result<(), BudgetRefusal> {
        if let Some(why) = spending.closed {
            return Err(why);
        }
        let used_up = self.limits.max_calls.filter(|limit| spending.calls >= *limit);
        used_up.map_or(Ok(()), |limit| Err(BudgetRefusal::Calls { limit }))
    }

    fn decide(&self, spending: &TokenSpending) -> BudgetDecision {
        if let Err(why) = self.calls_left(spending) {
            return BudgetDecision::Refuse(why);
        }
        let Some(limit) = self.limits.max_cost else { return BudgetDecision::Ask { reserve: 0.0 } };
        let used_up = BudgetDecision::Refuse(BudgetRefusal::Cost { limit, spent: spending.cost });
        if spending.cost >= limit {
            return used_up;
        }
        // Asking first and counting later would pay for answers that the limit then forbids.
        if self.limits.prices.is_none() {
            return BudgetDecision::Refuse(BudgetRefusal::NoPrices);
        }
        match spending.dearest {
            None if spending.under_way > 0 => BudgetDecision::Wait,
            Some(dearest) if spending.cost + dearest * (spending.under_way + 1) as f64 > limit => used_up,
            _ => BudgetDecision::Ask { reserve: 0.0 },
        }
    }

    fn decide_sized(&self, spending: &TokenSpending, most: f64) -> BudgetDecision {
        if let Err(why) = self.calls_left(spending) {
            return BudgetDecision::Refuse(why);
        }
        let reserve = most.max(spending.dearest.unwrap_or_default());
        match self.limits.max_cost {
            Some(_) if self.limits.prices.is_none() => BudgetDecision::Refuse(BudgetRefusal::NoPrices),
            Some(limit) if spending.cost + reserve > limit => BudgetDecision::Refuse(BudgetRefusal::NoRoom { limit }),
            Some(limit) if spending.under_way > 0 && spending.cost + spending.reserved + reserve > limit => {
                BudgetDecision::Wait
            }
            _ => BudgetDecision::Ask { reserve },
        }
    }

    /// Records the cost of a question. `None` means unknown, which closes a budget that limits cost.
    pub fn settle(&self, reservation: TokenReservation, cost: Option<f64>) {
        let mut spending = self.lock();
        spending.end(reservation);
        match cost {
            Some(cost) => {
                spending.cost += cost;
                spending.dearest = Some(spending.dearest.unwrap_or_default().max(cost));
            }
            None if self.limits.max_cost.is_some() => {
                spending.closed.get_or_insert(BudgetRefusal::UnknownCost);
            }
            None => {}
        }
        drop(spending);
        self.settled.notify_waiters();
    }

    /// Ends a question that cost nothing and says nothing about the cost of others.
    pub fn release(&self, reservation: TokenReservation) {
        self.lock().end(reservation);
        self.settled.notify_waiters();
    }

    pub fn cost(&self, input: Option<u64>, output: Option<u64>) -> Option<f64> {
        self.limits.prices?.cost(input, output)
    }

    /// Whether cost is limited and the cost of a question is still unknown.
    pub fn awaits_price(&self) -> bool {
        self.limits.max_cost.is_some() && self.lock().dearest.is_none()
    }

    pub fn closed(&self) -> Option<BudgetRefusal> {
        self.lock().closed
    }

    pub fn spending(&self) -> TokenSpending {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, TokenSpending> {
        self.spending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TokenSpending {
    fn begin(&mut self, reserve: f64) -> TokenReservation {
        self.calls += 1;
        self.under_way += 1;
        self.reserved += reserve;
        TokenReservation(reserve)
    }

    fn end(&mut self, TokenReservation(reserved): TokenReservation) {
        self.under_way -= 1;
        // Exactly zero, not the rounding rest of a sum: otherwise a caller could wait although no question is
        // pending.
        self.reserved = if self.under_way == 0 { 0.0 } else { self.reserved - reserved };
    }
}

#[cfg(test)]
mod tests {
    use canonry_domain::TriageReason;

    use super::{BudgetRefusal, TokenBudget, TokenLimits, TokenPrices};

    const PRICES: Option<TokenPrices> = Some(TokenPrices { input: 1.0, output: 10.0 });

    async fn spend(budget: &TokenBudget, cost: Option<f64>) {
        let taken = budget.take().await.expect("there is money");
        budget.settle(taken, cost);
    }

    #[tokio::test]
    async fn calls_end_at_their_number_for_all_that_share_the_budget() {
        let budget = TokenBudget::new(TokenLimits { max_calls: Some(2), ..TokenLimits::default() });
        let other = budget.clone();
        assert!(budget.take().await.is_ok() && other.take().await.is_ok());
        for budget in [&budget, &other] {
            let why = budget.take().await.expect_err("used up");
            assert_eq!(why.to_string(), "the budget of 2 calls is used up");
        }
        assert_eq!(budget.spending().calls, 2);
    }

    #[tokio::test]
    async fn money_ends_before_it_is_exceeded_and_stays_ended() {
        let budget = TokenBudget::up_to(0.05, PRICES);
        let cost = budget.cost(Some(10_000), Some(1_000));
        assert_eq!((cost, budget.cost(None, Some(3))), (Some(0.02), None));
        spend(&budget, cost).await;
        let second = budget.take().await.expect("there is money for one more");
        assert_eq!(budget.refusal(), None);
        // .02 is spent and .02 is pending; a third question would make it .06.
        assert!(budget.take().await.is_err());
        budget.settle(second, Some(0.0));
        assert!(budget.take().await.is_err(), "an answer that comes late opens nothing");
        assert_eq!(budget.refusal().map(BudgetRefusal::reason), Some(TriageReason::OverBudget));
        for nothing in [0.0, -1.0] {
            let why = TokenBudget::up_to(nothing, PRICES).take().await.expect_err("nothing is left");
            assert_eq!(why.to_string(), "the budget of 0 US dollars is used up (0.0000 spent)");
        }
    }

    #[tokio::test]
    async fn until_a_price_is_known_questions_go_one_after_the_other() {
        let budget = TokenBudget::up_to(1.0, PRICES);
        let first = budget.take().await.expect("the first");
        let second = tokio::spawn({
            let budget = budget.clone();
            async move { budget.take().await }
        });
        tokio::task::yield_now().await;
        assert!(!second.is_finished(), "nobody knows yet what one costs");
        budget.settle(first, Some(0.4));
        let _under_way = second.await.expect("no panic").expect("there is money for one more");
        assert!(budget.take().await.is_err(), ".4 is spent, .4 under way");
    }

    #[tokio::test]
    async fn what_cannot_be_counted_cannot_be_limited() {
        let unpriced = TokenBudget::up_to(5.0, None);
        let why = unpriced.take().await.expect_err("nobody knows what it costs");
        assert!(why.to_string().contains("--input-price"), "{why}");
        assert_eq!(unpriced.refusal().map(BudgetRefusal::reason), Some(TriageReason::NoPrices));
        assert_eq!(unpriced.spending().calls, 0);
        assert!(TokenBudget::up_to(0.0, None).take().await.is_err_and(|why| why.reason() == TriageReason::OverBudget));

        let budget = TokenBudget::up_to(1.0, PRICES);
        spend(&budget, None).await;
        assert_eq!(budget.refusal(), None, "the answer that was paid for is used");
        assert!(budget.take().await.is_err());
        assert_eq!(budget.refusal().map(BudgetRefusal::reason), Some(TriageReason::OverBudget));
        let free = TokenBudget::default();
        spend(&free, None).await;
        spend(&free, None).await;
    }
}
