//! Chat models behind one trait: OpenAI and compatible servers, Anthropic, Gemini, and any program that reads a
//! prompt.

mod anthropic;
mod chat_error;
mod chat_model;
mod command;
mod event_stream;
mod gemini;
mod intent_prompt;
mod judge_prompt;
mod openai;
mod remote_chat;
mod request_form;
mod thinking;
mod token_budget;

pub use chat_error::ChatError;
pub use chat_model::{ChatAnswer, ChatModel, ChatRequest};
pub use command::{CommandChat, CommandSettings};
pub use intent_prompt::intent_request;
pub use judge_prompt::{JudgeText, judge_request};
pub use remote_chat::{ChatProvider, ChatSettings, RemoteChat};
pub use thinking::Thinking;
pub use token_budget::{BudgetRefusal, TokenBudget, TokenLimits, TokenPrices, TokenReservation, TokenSpending};
