//! Counts the questions and the cost of one review, and decides whether more are allowed.

use std::sync::{Mutex, MutexGuard, PoisonError};

use canonry_models::RemoteFailure;
use canonry_models::chat::{
    BudgetRefusal, ChatAnswer, ChatError, ChatModel, ChatRequest, TokenBudget, TokenLimits, TokenReservation,
};
use tokio::time::Instant;

use super::budget::LlmReviewBudget;
use crate::run::report::ModelUse;

/// What a question is for: reading leaves some questions for second readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuestionPurpose {
    Reading,
    SecondReading,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum NoAnswer {
    /// The question was not asked: the budget is used up, or no answer can be expected.
    NotAsked(String),
    Failed(String),
    /// The answer was cut off at the length limit.
    CutOff,
}

impl NoAnswer {
    /// The reason, to be used at the end of a sentence.
    pub(super) fn why(&self) -> &str {
        match self {
            Self::NotAsked(why) | Self::Failed(why) => why,
            Self::CutOff => "the model's answer was too long",
        }
    }
}

/// The access of one review to a model.
pub(super) struct ModelSession<'a> {
    chat: &'a dyn ChatModel,
    limits: LlmReviewBudget,
    budget: TokenBudget,
    ends: Instant,
    state: Mutex<SessionState>,
}

#[derive(Default)]
struct SessionState {
    reading: u32,
    input_tokens: u64,
    output_tokens: u64,
    /// Whether the cost of any answer is unknown.
    has_unknown_cost: bool,
    closed: Option<String>,
}

impl<'a> ModelSession<'a> {
    pub(super) fn new(chat: &'a dyn ChatModel, limits: LlmReviewBudget) -> Self {
        // A time limit that no clock can represent is no limit; a day serves as well.
        let now = Instant::now();
        let ends = now.checked_add(limits.time).unwrap_or(now + std::time::Duration::from_secs(86_400));
        let LlmReviewBudget { calls, cost_usd, prices, .. } = limits;
        let budget = TokenBudget::new(TokenLimits { max_calls: Some(u64::from(calls)), max_cost: cost_usd, prices });
        Self { chat, limits, budget, ends, state: Mutex::default() }
    }

    /// How many questions may run at once. If cost is limited and the cost of a question is still unknown, one at a
    /// time.
    pub(super) fn at_once(&self) -> usize {
        /// As many as small plans of the vendors serve without rate limiting.
        const AT_ONCE: usize = 4;
        if self.budget.awaits_price() { 1 } else { AT_ONCE }
    }

    pub(super) async fn ask(&self, purpose: QuestionPurpose, request: &ChatRequest) -> Result<ChatAnswer, NoAnswer> {
        let reservation = self.reserve(purpose, self.most(request)).await.map_err(NoAnswer::NotAsked)?;
        let answer = tokio::time::timeout_at(self.ends, self.chat.complete(request)).await;
        let mut state = self.lock();
        let tokens = match &answer {
            Ok(Ok(answer)) => Some((answer.input_tokens, answer.output_tokens)),
            Ok(Err(error)) => error.paid_tokens(),
            Err(_) => None,
        };
        match tokens {
            Some((input, output)) => self.settle(&mut state, reservation, input, output),
            None => self.budget.release(reservation),
        }
        match answer {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(ChatError::CutOff { .. })) => Err(NoAnswer::CutOff),
            Ok(Err(error)) => {
                let why = describe_error(&error);
                if error.is_hopeless() {
                    state.closed.get_or_insert_with(|| why.clone());
                }
                Err(NoAnswer::Failed(why))
            }
            Err(_) => {
                let why = self.time_is_over();
                state.closed.get_or_insert_with(|| why.clone());
                Err(NoAnswer::Failed(why))
            }
        }
    }

    fn time_is_over(&self) -> String {
        format!("the model's time limit of {} s was reached", self.limits.time.as_secs())
    }

    /// Counts a question as asked and reserves what it may cost.
    async fn reserve(&self, purpose: QuestionPurpose, most: f64) -> Result<TokenReservation, String> {
        loop {
            let settled = self.budget.settled();
            if let Some(reservation) = self.try_reserve(purpose, most)? {
                return Ok(reservation);
            }
            // A running question ends with the time limit at the latest.
            settled.await;
        }
    }

    fn try_reserve(&self, purpose: QuestionPurpose, most: f64) -> Result<Option<TokenReservation>, String> {
        let mut state = self.lock();
        if let Some(why) = &state.closed {
            return Err(why.clone());
        }
        if Instant::now() >= self.ends {
            return Err(self.time_is_over());
        }
        let (calls, reading) = (self.limits.calls, self.limits.reading_calls());
        let is_reading = purpose == QuestionPurpose::Reading;
        if is_reading && state.reading >= reading && self.budget.spending().calls < u64::from(calls) {
            return Err(format!("the limit of model calls was reached ({reading} of {calls} are for reading)"));
        }
        let reservation = self.budget.try_reserve(most).map_err(describe_refusal)?;
        state.reading += u32::from(is_reading && reservation.is_some());
        Ok(reservation)
    }

    /// The highest cost of a question, as far as prices are known. Three bytes per token are few in every language.
    fn most(&self, request: &ChatRequest) -> f64 {
        let bytes =
            request.system.len() + request.preamble.len() + request.user.len() + request.json_schema.to_string().len();
        let tokens = (Some(bytes.div_ceil(3) as u64), Some(u64::from(request.max_tokens)));
        self.budget.cost(tokens.0, tokens.1).unwrap_or_default()
    }

    fn settle(&self, state: &mut SessionState, reservation: TokenReservation, input: Option<u64>, output: Option<u64>) {
        state.input_tokens += input.unwrap_or_default();
        state.output_tokens += output.unwrap_or_default();
        let cost = self.budget.cost(input, output);
        state.has_unknown_cost |= cost.is_none();
        self.budget.settle(reservation, cost);
        if let Some(refusal) = self.budget.closed() {
            state.closed.get_or_insert_with(|| describe_refusal(refusal));
        }
    }

    pub(super) fn model_use(&self) -> ModelUse {
        let (state, spending) = (self.lock(), self.budget.spending());
        ModelUse {
            model: self.chat.model_id().to_owned(),
            calls: spending.calls as u32,
            input_tokens: state.input_tokens,
            output_tokens: state.output_tokens,
            // A sum with a missing part would look complete.
            cost_usd: self.limits.prices.filter(|_| !state.has_unknown_cost).map(|_| spending.cost),
        }
    }

    fn lock(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn describe_refusal(refusal: BudgetRefusal) -> String {
    match refusal {
        BudgetRefusal::Calls { limit } => format!("the limit of {limit} model calls was reached"),
        BudgetRefusal::NoPrices => "a cost limit is set, but the model's prices are not known".to_owned(),
        BudgetRefusal::UnknownCost => "the cost of the model's answers is unknown, so it cannot be limited".to_owned(),
        BudgetRefusal::NoRoom { .. } | BudgetRefusal::Cost { .. } => refusal.to_string(),
    }
}

/// The kind of the error as a sentence, which is published. The provider's own message may contain the operator's
/// account and the prompt: it goes to the log only.
fn describe_error(error: &ChatError) -> String {
    tracing::warn!(error = canonry_domain::redact(&error.to_string()), "a model did not answer");
    let kind = match error {
        ChatError::Settings { .. } => "the model is not set up".to_owned(),
        ChatError::Remote { failure: RemoteFailure::Status { status, .. }, .. } => format!("status {status}"),
        ChatError::Remote { failure: RemoteFailure::Malformed(_), .. } => "the answer cannot be read".to_owned(),
        ChatError::Remote { failure: RemoteFailure::BrokenOff { .. }, .. } => "the answer broke off".to_owned(),
        ChatError::Remote { failure, .. } => failure.to_string(),
        ChatError::Refused { .. } => "it refused".to_owned(),
        ChatError::CutOff { .. } => "the answer was too long".to_owned(),
        ChatError::Command { .. } => "its program failed".to_owned(),
    };
    format!("the model did not answer: {kind}")
}

#[cfg(test)]
mod tests {
    use canonry_models::chat::{ChatError, ChatRequest, TokenPrices};
    use futures_util::FutureExt as _;
    use futures_util::future::join_all;

    use super::super::budget::LlmReviewBudget;
    use super::super::scripted_model::{ScriptedAnswer, ScriptedModel};
    use super::{ModelSession, NoAnswer, QuestionPurpose};

    fn request() -> ChatRequest {
        ChatRequest {
            system: String::new(),
            preamble: String::new(),
            user: String::new(),
            schema_name: "x",
            json_schema: serde_json::json!({}),
            max_tokens: 1,
        }
    }

    async fn ask(session: &ModelSession<'_>, purpose: QuestionPurpose) -> Result<(), String> {
        session.ask(purpose, &request()).await.map(drop).map_err(|failure| failure.why().to_owned())
    }

    #[tokio::test]
    async fn all_questions_together_are_never_more_than_the_limit() {
        for (calls, reading, refuting) in [(0, 0, 0), (1, 1, 0), (2, 2, 0), (3, 2, 1), (9, 6, 3), (30, 20, 10)] {
            let chat = ScriptedModel::always(ScriptedAnswer::Text("{}".to_owned()));
            let session = ModelSession::new(&chat, LlmReviewBudget { calls, ..LlmReviewBudget::default() });
            for (purpose, most) in [(QuestionPurpose::Reading, reading), (QuestionPurpose::SecondReading, refuting)] {
                for _ in 0..most {
                    assert_eq!(ask(&session, purpose).await, Ok(()), "{calls}");
                }
                let why = ask(&session, purpose).await.expect_err("used up");
                assert!(why.starts_with("the limit of ") && why.contains("model calls was reached"), "{why}");
            }
            assert_eq!((session.model_use().calls, chat.asked().len() as u32), (calls, calls));
        }
    }

    #[tokio::test]
    async fn what_reading_leaves_is_for_second_readings() {
        let chat = ScriptedModel::always(ScriptedAnswer::Text("{}".to_owned()));
        let session = ModelSession::new(&chat, LlmReviewBudget { calls: 3, ..LlmReviewBudget::default() });
        assert_eq!(ask(&session, QuestionPurpose::Reading).await, Ok(()));
        assert_eq!(ask(&session, QuestionPurpose::SecondReading).await, Ok(()));
        assert_eq!(ask(&session, QuestionPurpose::SecondReading).await, Ok(()));
        assert_eq!(
            ask(&session, QuestionPurpose::SecondReading).await,
            Err("the limit of 3 model calls was reached".to_owned())
        );
        assert_eq!(
            ask(&session, QuestionPurpose::Reading).await,
            Err("the limit of 3 model calls was reached".to_owned())
        );
    }

    fn no_room(limit: f64) -> Result<(), String> {
        Err(format!("the budget of {limit} US dollars is too small for this question"))
    }

    #[tokio::test]
    async fn money_ends_before_it_is_exceeded() {
        let chat = ScriptedModel::always(ScriptedAnswer::Text("{}".to_owned()));
        let prices = Some(TokenPrices { input: 10_000.0, output: 100_000.0 });
        // The scripted model reads 100 tokens and writes 10: two dollars a question.
        let budget = LlmReviewBudget { cost_usd: Some(5.0), prices, ..LlmReviewBudget::default() };
        let session = ModelSession::new(&chat, budget);
        assert_eq!(session.at_once(), 1);
        assert_eq!(ask(&session, QuestionPurpose::Reading).await, Ok(()));
        assert!(session.at_once() > 1);
        assert_eq!(ask(&session, QuestionPurpose::Reading).await, Ok(()));
        assert_eq!(ask(&session, QuestionPurpose::Reading).await, no_room(5.0));
        let used = session.model_use();
        assert_eq!((used.calls, used.input_tokens, used.output_tokens, used.cost_usd), (2, 200, 20, Some(4.0)));
    }

    #[tokio::test]
    async fn a_question_that_may_cost_too_much_is_not_asked() {
        let chat = ScriptedModel::always(ScriptedAnswer::Text("{}".to_owned()));
        let prices = Some(TokenPrices { input: 3.0, output: 10.0 });
        let long = ChatRequest { user: "x".repeat(299_998), max_tokens: 10_000, ..request() };
        // A hundred thousand tokens to read and ten thousand to write: 0.4 dollars.
        for (limit, asked) in [(0.399, 0), (0.401, 1)] {
            let budget = LlmReviewBudget { cost_usd: Some(limit), prices, ..LlmReviewBudget::default() };
            let session = ModelSession::new(&chat, budget);
            let answer = session
                .ask(QuestionPurpose::Reading, &long)
                .await
                .map(drop)
                .map_err(|failure| failure.why().to_owned());
            assert_eq!(answer, if asked == 0 { no_room(limit) } else { Ok(()) });
            assert_eq!(session.model_use().calls, asked);
        }
    }

    #[tokio::test]
    async fn a_question_waits_for_money_that_another_may_leave() {
        let chat = ScriptedModel::always(ScriptedAnswer::Text("{}".to_owned()));
        let prices = Some(TokenPrices { input: 3.0, output: 10.0 });
        let long = ChatRequest { user: "x".repeat(299_998), max_tokens: 10_000, ..request() };
        // Each may cost 0.4 dollars and costs next to nothing.
        let budget = LlmReviewBudget { cost_usd: Some(0.5), prices, ..LlmReviewBudget::default() };
        let session = ModelSession::new(&chat, budget);
        let mut four = Box::pin(join_all((0..4).map(|_| session.ask(QuestionPurpose::Reading, &long))));
        assert!(four.as_mut().now_or_never().is_none());
        assert_eq!(chat.asked().len(), 1);
        let heard = four.await;
        assert!(heard.iter().all(Result::is_ok), "{heard:?}");
        assert_eq!(session.model_use().calls, 4);
    }

    #[tokio::test]
    async fn answers_that_are_of_no_use_are_paid_for() {
        let tokens = |input, output| (Some(input), Some(output));
        let ((a, b), (c, d)) = (tokens(1_000, 500), tokens(2_000, 0));
        let cut = ChatError::CutOff { provider: "openai", max_tokens: 500, input_tokens: a, output_tokens: b };
        let refused =
            ChatError::Refused { provider: "openai", said: "no".to_owned(), input_tokens: c, output_tokens: d };
        let chat = ScriptedModel::new([ScriptedAnswer::Error(cut), ScriptedAnswer::Error(refused)], []);
        let prices = Some(TokenPrices { input: 1.0, output: 2.0 });
        let budget = LlmReviewBudget { cost_usd: Some(1.0), prices, ..LlmReviewBudget::default() };
        let session = ModelSession::new(&chat, budget);
        assert_eq!(ask(&session, QuestionPurpose::Reading).await, Err("the model's answer was too long".to_owned()));
        assert!(ask(&session, QuestionPurpose::Reading).await.is_err_and(|why| why.ends_with(": it refused")));
        let used = session.model_use();
        assert_eq!((used.calls, used.input_tokens, used.output_tokens), (2, 3_000, 500));
        assert!(used.cost_usd.is_some_and(|cost| (cost - 0.004).abs() < 1e-9), "{:?}", used.cost_usd);
        // Their cost is known now, so that more are allowed.
        assert_eq!(ask(&session, QuestionPurpose::Reading).await, Ok(()));
    }

    #[tokio::test]
    async fn what_cannot_be_counted_cannot_be_limited() {
        let chat = ScriptedModel::always(ScriptedAnswer::Text("{}".to_owned()));
        let session = ModelSession::new(&chat, LlmReviewBudget { cost_usd: Some(5.0), ..LlmReviewBudget::default() });
        assert!(ask(&session, QuestionPurpose::Reading).await.is_err_and(|why| why.contains("prices are not known")));
        assert_eq!((chat.asked().len(), session.model_use().cost_usd), (0, None), "nobody is paid");
        let (input_tokens, output_tokens) = (Some(7), None);
        let untold = ChatError::CutOff { provider: "openai", max_tokens: 1, input_tokens, output_tokens };
        let chat = ScriptedModel::new([ScriptedAnswer::Text("{}".to_owned()), ScriptedAnswer::Error(untold)], []);
        let prices = Some(TokenPrices { input: 1.0, output: 1.0 });
        let session = ModelSession::new(&chat, LlmReviewBudget { prices, ..LlmReviewBudget::default() });
        assert_eq!(ask(&session, QuestionPurpose::Reading).await, Ok(()));
        assert!(session.model_use().cost_usd.is_some());
        assert!(ask(&session, QuestionPurpose::Reading).await.is_err());
        assert_eq!((session.model_use().input_tokens, session.model_use().cost_usd), (107, None));
    }

    #[tokio::test]
    async fn a_wrong_key_is_tried_once() {
        let wrong = ChatError::Settings { provider: "openai", problem: "no key".to_owned() };
        let chat = ScriptedModel::always(ScriptedAnswer::Error(wrong));
        let session = ModelSession::new(&chat, LlmReviewBudget::default());
        let first = session.ask(QuestionPurpose::Reading, &request()).await;
        assert!(matches!(first, Err(NoAnswer::Failed(_))), "{first:?}");
        let second = session.ask(QuestionPurpose::Reading, &request()).await;
        assert!(matches!(second, Err(NoAnswer::NotAsked(_))), "{second:?}");
        assert_eq!(chat.asked().len(), 1);
    }
}
