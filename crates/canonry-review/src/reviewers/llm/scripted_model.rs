//! Provides a model that gives the answers of a test.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use canonry_models::chat::{ChatAnswer, ChatError, ChatModel, ChatRequest};
use canonry_testkit::models::confirmed_second_reading;
use futures_util::future::BoxFuture;

#[derive(Debug, Clone)]
pub(super) enum ScriptedAnswer {
    /// This text, for 100 tokens read and 10 written.
    Text(String),
    Error(ChatError),
    /// No answer, ever.
    Nothing,
}

/// A model with an answer for each question, and a default for further ones.
pub(super) struct ScriptedModel {
    reading: Mutex<VecDeque<ScriptedAnswer>>,
    overview: Mutex<VecDeque<ScriptedAnswer>>,
    again: Mutex<VecDeque<ScriptedAnswer>>,
    always: Option<ScriptedAnswer>,
    asked: Mutex<Vec<ChatRequest>>,
}

impl ScriptedModel {
    /// Answers to reading questions and to second readings, in order. After them the model finds nothing and
    /// confirms everything.
    pub(super) fn new(
        reading: impl IntoIterator<Item = ScriptedAnswer>,
        again: impl IntoIterator<Item = ScriptedAnswer>,
    ) -> Self {
        let (reading, again) = (reading.into_iter().collect(), again.into_iter().collect());
        Self {
            reading: Mutex::new(reading),
            again: Mutex::new(again),
            overview: Mutex::default(),
            always: None,
            asked: Mutex::default(),
        }
    }

    pub(super) fn always(said: ScriptedAnswer) -> Self {
        Self { always: Some(said), ..Self::new([], []) }
    }

    pub(super) fn asked(&self) -> Vec<ChatRequest> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ChatModel for ScriptedModel {
    fn model_id(&self) -> &str {
        "scripted-1"
    }

    fn complete<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<ChatAnswer, ChatError>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(request.clone());
        let (script, otherwise) = match request.schema_name {
            "second_reading" => {
                (&self.again, confirmed_second_reading(&request.user).expect("a second reading has findings and code"))
            }
            "change_overview" => (&self.overview, r#"{"summary": "It changes files.", "files": []}"#.to_owned()),
            _ => (&self.reading, r#"{"findings": []}"#.to_owned()),
        };
        let next = script.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let said = next.or_else(|| self.always.clone()).unwrap_or(ScriptedAnswer::Text(otherwise));
        Box::pin(async move {
            // As with a real model, other tasks run meanwhile.
            tokio::task::yield_now().await;
            match said {
                ScriptedAnswer::Text(text) => {
                    Ok(ChatAnswer { text, input_tokens: Some(100), output_tokens: Some(10), latency: Duration::ZERO })
                }
                ScriptedAnswer::Error(error) => Err(error),
                ScriptedAnswer::Nothing => std::future::pending().await,
            }
        })
    }
}
