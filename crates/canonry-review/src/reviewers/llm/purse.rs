//! What was asked and spent so far, and whether there may be more.

use std::sync::{Mutex, MutexGuard, PoisonError};

use canonry_models::RemoteFailure;
use canonry_models::chat::{ChatAnswer, ChatError, ChatModel, ChatRequest};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::budget::{LlmReviewBudget, TokenPrices};
use crate::run::report::ModelUse;

/// What a question is for: reading leaves something for second readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Reading,
    Refuting,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum NoAnswer {
    /// It was not asked: the budget is used up, or nobody would answer.
    NotAsked(String),
    Failed(String),
    /// The answer was longer than an answer may be.
    CutOff,
}

impl NoAnswer {
    /// The reason, for a sentence that ends with it.
    pub(super) fn why(&self) -> &str {
        match self {
            Self::NotAsked(why) | Self::Failed(why) => why,
            Self::CutOff => "the model's answer was too long",
        }
    }
}

/// Why a question is not asked now.
enum Refused {
    /// It never will be.
    For(String),
    /// There may be money for it when others have ended and cost less than they could.
    Yet,
}

/// One review's means of asking a model.
pub(super) struct Purse<'a> {
    chat: &'a dyn ChatModel,
    budget: LlmReviewBudget,
    ends: Instant,
    spent: Mutex<Spent>,
    ended: Notify,
}

#[derive(Default)]
struct Spent {
    reading: u32,
    calls: u32,
    input_tokens: u64,
    output_tokens: u64,
    cost: f64,
    /// Whether an answer came of which nobody knows what it cost.
    has_unknown_cost: bool,
    /// How many questions are under way, and the most that they can cost.
    under_way: u32,
    set_aside: f64,
    /// What one question cost at most, once that is known of any.
    dearest: Option<f64>,
    closed: Option<String>,
}

impl<'a> Purse<'a> {
    pub(super) fn new(chat: &'a dyn ChatModel, budget: LlmReviewBudget) -> Self {
        // A time that no clock can hold is no limit; a day is as good.
        let now = Instant::now();
        let ends = now.checked_add(budget.time).unwrap_or(now + std::time::Duration::from_secs(86_400));
        Self { chat, budget, ends, spent: Mutex::default(), ended: Notify::new() }
    }

    /// How many questions may be under way at once. Until it is known what one costs, they are asked one after the other
    /// where cost is limited.
    pub(super) fn at_once(&self) -> usize {
        /// As many as small plans of the vendors serve without pushing back.
        const AT_ONCE: usize = 4;
        let is_price_awaited = self.budget.cost_usd.is_some() && self.lock().dearest.is_none();
        if is_price_awaited { 1 } else { AT_ONCE }
    }

    pub(super) async fn ask(&self, purpose: Purpose, request: &ChatRequest) -> Result<ChatAnswer, NoAnswer> {
        let set_aside = self.take(purpose, self.most(request)).await.map_err(NoAnswer::NotAsked)?;
        let answer = tokio::time::timeout_at(self.ends, self.chat.complete(request)).await;
        let mut spent = self.lock();
        spent.under_way -= 1;
        // Not what is left of a sum of fractions: nobody would wait for its end in vain.
        spent.set_aside = if spent.under_way == 0 { 0.0 } else { spent.set_aside - set_aside };
        // Whoever waits takes the lock after us.
        self.ended.notify_waiters();
        match answer {
            Ok(Ok(answer)) => {
                self.settle(&mut spent, answer.input_tokens, answer.output_tokens);
                Ok(answer)
            }
            // What is of no use is paid for all the same.
            Ok(Err(ChatError::CutOff { input_tokens, output_tokens, .. })) => {
                self.settle(&mut spent, input_tokens, output_tokens);
                Err(NoAnswer::CutOff)
            }
            Ok(Err(error)) => {
                if let ChatError::Refused { input_tokens, output_tokens, .. } = &error {
                    self.settle(&mut spent, *input_tokens, *output_tokens);
                }
                let why = told(&error);
                if error.is_hopeless() {
                    spent.closed.get_or_insert_with(|| why.clone());
                }
                Err(NoAnswer::Failed(why))
            }
            Err(_) => {
                let why = format!("the time of {} s for the model was over", self.budget.time.as_secs());
                spent.closed.get_or_insert_with(|| why.clone());
                Err(NoAnswer::Failed(why))
            }
        }
    }

    /// Counts a question as asked and sets aside what it may cost; gives how much that is.
    async fn take(&self, purpose: Purpose, most: f64) -> Result<f64, String> {
        loop {
            // Made before looking, so that no end is missed in between.
            let ended = self.ended.notified();
            match self.try_take(purpose, most) {
                Ok(set_aside) => return Ok(set_aside),
                Err(Refused::For(why)) => return Err(why),
                // A question under way ends with the time at the latest.
                Err(Refused::Yet) => ended.await,
            }
        }
    }

    fn try_take(&self, purpose: Purpose, most: f64) -> Result<f64, Refused> {
        let mut spent = self.lock();
        if let Some(why) = &spent.closed {
            return Err(Refused::For(why.clone()));
        }
        if Instant::now() >= self.ends {
            let why = format!("the time of {} s for the model was over", self.budget.time.as_secs());
            return Err(Refused::For(why));
        }
        let (calls, reading) = (self.budget.calls, self.budget.reading_calls());
        if spent.calls >= calls {
            return Err(Refused::For(format!("the budget of questions ({calls}) was used up")));
        }
        if purpose == Purpose::Reading && spent.reading >= reading {
            let why = format!("the budget of questions ({reading} of {calls} for reading) was used up");
            return Err(Refused::For(why));
        }
        // Thoughts come on top of an answer's limit, so that a question may have cost more than was thought.
        let set_aside = most.max(spent.dearest.unwrap_or_default());
        if let Some(limit) = self.budget.cost_usd {
            // Asking first and counting later would pay for answers that the limit then forbids.
            if self.budget.prices.is_none() {
                return Err(Refused::For("a cost limit is set, but the model's prices are not known".to_owned()));
            }
            if spent.cost + set_aside > limit {
                let why = format!("the budget of {limit} US dollars has no room for a question of this size");
                return Err(Refused::For(why));
            }
            if spent.under_way > 0 && spent.cost + spent.set_aside + set_aside > limit {
                return Err(Refused::Yet);
            }
        }
        spent.calls += 1;
        spent.reading += u32::from(purpose == Purpose::Reading);
        spent.under_way += 1;
        spent.set_aside += set_aside;
        Ok(set_aside)
    }

    /// The most that a question can cost, as far as prices are known. Three bytes to a token are few in every language.
    fn most(&self, request: &ChatRequest) -> f64 {
        let Some(prices) = self.budget.prices else { return 0.0 };
        let bytes = request.system.len() + request.user.len() + request.json_schema.to_string().len();
        cost(prices, bytes.div_ceil(3) as u64, u64::from(request.max_tokens))
    }

    fn settle(&self, spent: &mut Spent, input: Option<u64>, output: Option<u64>) {
        spent.input_tokens += input.unwrap_or_default();
        spent.output_tokens += output.unwrap_or_default();
        match self.budget.prices.zip(input.zip(output)) {
            Some((prices, (input, output))) => {
                let cost = cost(prices, input, output);
                spent.cost += cost;
                spent.dearest = Some(spent.dearest.unwrap_or_default().max(cost));
            }
            None => {
                spent.has_unknown_cost = true;
                if self.budget.cost_usd.is_some() {
                    let why = "the cost of the model's answers is not known, so that it cannot be limited";
                    spent.closed.get_or_insert_with(|| why.to_owned());
                }
            }
        }
    }

    pub(super) fn model_use(&self) -> ModelUse {
        let spent = self.lock();
        ModelUse {
            model: self.chat.model_id().to_owned(),
            calls: spent.calls,
            input_tokens: spent.input_tokens,
            output_tokens: spent.output_tokens,
            // A sum with something missing would pass for all there was.
            cost_usd: self.budget.prices.filter(|_| !spent.has_unknown_cost).map(|_| spent.cost),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Spent> {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn cost(prices: TokenPrices, input: u64, output: u64) -> f64 {
    (input as f64 * prices.input + output as f64 * prices.output) / 1e6
}

/// The kind of the error in a sentence, which is published. A provider's own words name the operator's account and may
/// quote what it was sent: they are for the log.
fn told(error: &ChatError) -> String {
    tracing::warn!(error = canonry_domain::redact(&error.to_string()), "a model did not answer");
    let kind = match error {
        ChatError::Settings { .. } => "it is not set up".to_owned(),
        ChatError::Remote { failure: RemoteFailure::Status { status, .. }, .. } => format!("status {status}"),
        ChatError::Remote { failure: RemoteFailure::Malformed(_), .. } => "what came cannot be read".to_owned(),
        ChatError::Remote { failure, .. } => failure.to_string(),
        ChatError::Refused { .. } => "it refused".to_owned(),
        ChatError::CutOff { .. } => "the answer was too long".to_owned(),
        ChatError::Command { .. } => "its program failed".to_owned(),
    };
    format!("the model did not answer: {kind}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use canonry_models::chat::{ChatError, ChatRequest};
    use futures_util::FutureExt as _;
    use futures_util::future::join_all;

    use super::super::budget::{LlmReviewBudget, TokenPrices};
    use super::super::scripted_model::{Said, Scripted};
    use super::{NoAnswer, Purpose, Purse};

    fn request() -> ChatRequest {
        ChatRequest {
            system: String::new(),
            user: String::new(),
            schema_name: "x",
            json_schema: serde_json::json!({}),
            max_tokens: 1,
        }
    }

    async fn ask(purse: &Purse<'_>, purpose: Purpose) -> Result<(), String> {
        purse.ask(purpose, &request()).await.map(drop).map_err(|failure| failure.why().to_owned())
    }

    #[tokio::test]
    async fn all_questions_together_are_never_more_than_the_limit() {
        for (calls, reading, refuting) in [(0, 0, 0), (1, 1, 0), (2, 2, 0), (3, 2, 1), (9, 6, 3), (30, 20, 10)] {
            let chat = Scripted::always(Said::Text("{}".to_owned()));
            let purse = Purse::new(&chat, LlmReviewBudget { calls, ..LlmReviewBudget::default() });
            for (purpose, most) in [(Purpose::Reading, reading), (Purpose::Refuting, refuting)] {
                for _ in 0..most {
                    assert_eq!(ask(&purse, purpose).await, Ok(()), "{calls}");
                }
                let why = ask(&purse, purpose).await.expect_err("used up");
                assert!(why.starts_with("the budget of questions (") && why.ends_with(") was used up"), "{why}");
            }
            assert_eq!((purse.model_use().calls, chat.asked().len() as u32), (calls, calls));
        }
    }

    #[tokio::test]
    async fn what_reading_leaves_is_for_second_readings() {
        let chat = Scripted::always(Said::Text("{}".to_owned()));
        let purse = Purse::new(&chat, LlmReviewBudget { calls: 3, ..LlmReviewBudget::default() });
        assert_eq!(ask(&purse, Purpose::Reading).await, Ok(()));
        assert_eq!(ask(&purse, Purpose::Refuting).await, Ok(()));
        assert_eq!(ask(&purse, Purpose::Refuting).await, Ok(()));
        assert_eq!(ask(&purse, Purpose::Refuting).await, Err("the budget of questions (3) was used up".to_owned()));
        assert_eq!(ask(&purse, Purpose::Reading).await, Err("the budget of questions (3) was used up".to_owned()));
    }

    fn no_room(limit: f64) -> Result<(), String> {
        Err(format!("the budget of {limit} US dollars has no room for a question of this size"))
    }

    #[tokio::test]
    async fn money_ends_before_it_is_exceeded() {
        let chat = Scripted::always(Said::Text("{}".to_owned()));
        let prices = Some(TokenPrices { input: 10_000.0, output: 100_000.0 });
        // The scripted model reads 100 tokens and writes 10: two dollars a question.
        let budget = LlmReviewBudget { cost_usd: Some(5.0), prices, ..LlmReviewBudget::default() };
        let purse = Purse::new(&chat, budget);
        assert_eq!(purse.at_once(), 1);
        assert_eq!(ask(&purse, Purpose::Reading).await, Ok(()));
        assert!(purse.at_once() > 1);
        assert_eq!(ask(&purse, Purpose::Reading).await, Ok(()));
        assert_eq!(ask(&purse, Purpose::Reading).await, no_room(5.0));
        let used = purse.model_use();
        assert_eq!((used.calls, used.input_tokens, used.output_tokens, used.cost_usd), (2, 200, 20, Some(4.0)));
    }

    #[tokio::test]
    async fn a_question_that_may_cost_too_much_is_not_asked() {
        let chat = Scripted::always(Said::Text("{}".to_owned()));
        let prices = Some(TokenPrices { input: 3.0, output: 10.0 });
        let long = ChatRequest { user: "x".repeat(299_998), max_tokens: 10_000, ..request() };
        // A hundred thousand tokens to read and ten thousand to write: 0.4 dollars.
        for (limit, asked) in [(0.399, 0), (0.401, 1)] {
            let budget = LlmReviewBudget { cost_usd: Some(limit), prices, ..LlmReviewBudget::default() };
            let purse = Purse::new(&chat, budget);
            let answer = purse.ask(Purpose::Reading, &long).await.map(drop).map_err(|failure| failure.why().to_owned());
            assert_eq!(answer, if asked == 0 { no_room(limit) } else { Ok(()) });
            assert_eq!(purse.model_use().calls, asked);
        }
    }

    #[tokio::test]
    async fn a_question_waits_for_money_that_another_may_leave() {
        let chat = Scripted::always(Said::Text("{}".to_owned()));
        let prices = Some(TokenPrices { input: 3.0, output: 10.0 });
        let long = ChatRequest { user: "x".repeat(299_998), max_tokens: 10_000, ..request() };
        // Each may cost 0.4 dollars and costs next to nothing.
        let budget = LlmReviewBudget { cost_usd: Some(0.5), prices, ..LlmReviewBudget::default() };
        let purse = Purse::new(&chat, budget);
        let mut four = Box::pin(join_all((0..4).map(|_| purse.ask(Purpose::Reading, &long))));
        assert!(four.as_mut().now_or_never().is_none());
        assert_eq!(chat.asked().len(), 1);
        let heard = four.await;
        assert!(heard.iter().all(Result::is_ok), "{heard:?}");
        assert_eq!(purse.model_use().calls, 4);
    }

    #[tokio::test]
    async fn answers_that_are_of_no_use_are_paid_for() {
        let tokens = |input, output| (Some(input), Some(output));
        let ((a, b), (c, d)) = (tokens(1_000, 500), tokens(2_000, 0));
        let cut = ChatError::CutOff { provider: "openai", max_tokens: 500, input_tokens: a, output_tokens: b };
        let refused =
            ChatError::Refused { provider: "openai", said: "no".to_owned(), input_tokens: c, output_tokens: d };
        let chat = Scripted::new([Said::Error(cut), Said::Error(refused)], []);
        let prices = Some(TokenPrices { input: 1.0, output: 2.0 });
        let budget = LlmReviewBudget { cost_usd: Some(1.0), prices, ..LlmReviewBudget::default() };
        let purse = Purse::new(&chat, budget);
        assert_eq!(ask(&purse, Purpose::Reading).await, Err("the model's answer was too long".to_owned()));
        assert!(ask(&purse, Purpose::Reading).await.is_err_and(|why| why.ends_with(": it refused")));
        let used = purse.model_use();
        assert_eq!((used.calls, used.input_tokens, used.output_tokens), (2, 3_000, 500));
        assert!(used.cost_usd.is_some_and(|cost| (cost - 0.004).abs() < 1e-9), "{:?}", used.cost_usd);
        // What they cost is known, so that there may be more.
        assert_eq!(ask(&purse, Purpose::Reading).await, Ok(()));
    }

    #[tokio::test]
    async fn what_cannot_be_counted_cannot_be_limited() {
        let chat = Scripted::always(Said::Text("{}".to_owned()));
        let purse = Purse::new(&chat, LlmReviewBudget { cost_usd: Some(5.0), ..LlmReviewBudget::default() });
        assert!(ask(&purse, Purpose::Reading).await.is_err_and(|why| why.contains("prices are not known")));
        assert_eq!((chat.asked().len(), purse.model_use().cost_usd), (0, None), "nobody is paid");
        let (input_tokens, output_tokens) = (Some(7), None);
        let untold = ChatError::CutOff { provider: "openai", max_tokens: 1, input_tokens, output_tokens };
        let chat = Scripted::new([Said::Text("{}".to_owned()), Said::Error(untold)], []);
        let prices = Some(TokenPrices { input: 1.0, output: 1.0 });
        let purse = Purse::new(&chat, LlmReviewBudget { prices, ..LlmReviewBudget::default() });
        assert_eq!(ask(&purse, Purpose::Reading).await, Ok(()));
        assert!(purse.model_use().cost_usd.is_some());
        assert!(ask(&purse, Purpose::Reading).await.is_err());
        assert_eq!((purse.model_use().input_tokens, purse.model_use().cost_usd), (107, None));
    }

    #[tokio::test(start_paused = true)]
    async fn time_ends_a_question_and_all_further_ones() {
        let chat = Scripted::always(Said::Nothing);
        let purse = Purse::new(&chat, LlmReviewBudget { time: Duration::from_secs(60), ..LlmReviewBudget::default() });
        for _ in 0..2 {
            let why = ask(&purse, Purpose::Reading).await;
            assert_eq!(why, Err("the time of 60 s for the model was over".to_owned()));
        }
        assert_eq!(chat.asked().len(), 1);
    }

    #[tokio::test]
    async fn a_wrong_key_is_tried_once() {
        let wrong = ChatError::Settings { provider: "openai", problem: "no key".to_owned() };
        let chat = Scripted::always(Said::Error(wrong));
        let purse = Purse::new(&chat, LlmReviewBudget::default());
        let first = purse.ask(Purpose::Reading, &request()).await;
        assert!(matches!(first, Err(NoAnswer::Failed(_))), "{first:?}");
        let second = purse.ask(Purpose::Reading, &request()).await;
        assert!(matches!(second, Err(NoAnswer::NotAsked(_))), "{second:?}");
        assert_eq!(chat.asked().len(), 1);
    }
}
