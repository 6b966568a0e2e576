//! Chat models behind an HTTP interface.

use std::sync::Arc;
use std::time::Duration;

use canonry_clock::{Clock, SystemClock};
use futures_util::future::BoxFuture;
use reqwest::header::{HeaderMap, HeaderValue};
use serde_json::Value;
use url::Url;

use crate::api_key::ApiKey;
use crate::chat::chat_error::ChatError;
use crate::chat::chat_model::{ChatAnswer, ChatModel, ChatRequest};
use crate::chat::event_stream::read_events;
use crate::chat::request_form::{RequestForm, learnt_form, remember_form};
use crate::chat::thinking::Thinking;
use crate::chat::{anthropic, gemini, openai};
use crate::remote_failure::RemoteFailure;
use crate::remote_service::{Patience, RemoteService, ServiceAnswer, ServiceSettings, Vendor};

/// An answer of some thousand tokens has some ten thousand bytes; thoughts may be ten times as long.
const LARGEST_ANSWER: usize = 4 << 20;
/// How many forms of one question are tried after refusals. A service names one part at a time; no known model refuses
/// more than three.
const MOST_FORMS: usize = 6;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChatProvider {
    /// OpenAI, and every server with the same API.
    OpenAi,
    Anthropic,
    Gemini,
}

impl ChatProvider {
    pub const fn name(self) -> &'static str {
        self.vendor().name
    }

    /// The default models are small and support a schema.
    const fn vendor(self) -> Vendor {
        match self {
            Self::OpenAi => Vendor {
                name: "openai",
                key_variable: "OPENAI_API_KEY",
                key_header: ("authorization", "Bearer "),
                base_url: "https://api.openai.com/v1",
                model: "gpt-4.1-mini",
            },
            Self::Anthropic => Vendor {
                name: "anthropic",
                key_variable: "ANTHROPIC_API_KEY",
                key_header: ("x-api-key", ""),
                base_url: "https://api.anthropic.com",
                model: "claude-haiku-4-5",
            },
            Self::Gemini => Vendor {
                name: "gemini",
                key_variable: "GEMINI_API_KEY",
                key_header: ("x-goog-api-key", ""),
                base_url: "https://generativelanguage.googleapis.com/v1beta",
                model: "gemini-2.5-flash",
            },
        }
    }

    /// The URL for the request; `None` if the base URL cannot have a path.
    fn endpoint(self, base: &Url, model: &str) -> Option<Url> {
        let mut url = base.clone();
        let mut path = url.path_segments_mut().ok()?;
        path.pop_if_empty();
        match self {
            Self::OpenAi => path.push("chat").push("completions"),
            Self::Anthropic => path.push("v1").push("messages"),
            Self::Gemini => path.push("models").push(&format!("{model}:streamGenerateContent")),
        };
        drop(path);
        if self == Self::Gemini {
            url.query_pairs_mut().append_pair("alt", "sse");
        }
        Some(url)
    }
}

#[derive(Debug, Clone)]
pub struct ChatSettings {
    pub provider: ChatProvider,
    pub model: String,
    pub base_url: String,
    /// The key; a self-hosted server may need none.
    pub key: Option<ApiKey>,
    /// How often one question is sent before it counts as failed.
    pub attempts: u32,
    /// How long a model may be silent: before its answer begins, and between two parts of it. A whole answer may take
    /// ten times as long.
    pub timeout: Duration,
    /// How long the model may think; `None` leaves it to the model.
    pub thinking: Option<Thinking>,
}

impl ChatSettings {
    /// The provider's own service with its default model and no key.
    pub fn new(provider: ChatProvider) -> Self {
        let Vendor { model, base_url, .. } = provider.vendor();
        Self {
            provider,
            model: model.to_owned(),
            base_url: base_url.to_owned(),
            key: None,
            attempts: 5,
            timeout: Duration::from_secs(120),
            thinking: None,
        }
    }

    /// The same, with the key from the environment.
    pub fn from_environment(provider: ChatProvider) -> Self {
        Self { key: provider.vendor().key_of_environment(), ..Self::new(provider) }
    }
}

/// A model that is asked over HTTP.
pub struct RemoteChat {
    settings: ChatSettings,
    model_id: String,
    service: RemoteService,
}

/// A provider's answer, in one form for all of them.
pub(super) struct ProviderReply {
    pub(super) text: String,
    pub(super) refusal: Option<String>,
    pub(super) is_cut_off: bool,
    pub(super) input_tokens: Option<u64>,
    pub(super) output_tokens: Option<u64>,
}

impl RemoteChat {
    /// Checks the settings; nothing is sent yet.
    pub fn new(settings: ChatSettings) -> Result<Self, ChatError> {
        Self::with_clock(settings, Arc::new(SystemClock))
    }

    /// The same with another clock for waiting.
    pub fn with_clock(settings: ChatSettings, clock: Arc<dyn Clock>) -> Result<Self, ChatError> {
        let provider = settings.provider;
        let wrong = |problem: String| ChatError::Settings { provider: provider.name(), problem };
        let reached = ServiceSettings {
            vendor: provider.vendor(),
            base_url: &settings.base_url,
            model: &settings.model,
            key: settings.key.as_ref(),
            attempts: settings.attempts,
            patience: Patience::Silence(settings.timeout),
            largest_answer: LARGEST_ANSWER,
            is_sent_again,
        };
        let mut headers = HeaderMap::new();
        if provider == ChatProvider::Anthropic {
            headers.insert("anthropic-version", HeaderValue::from_static(anthropic::VERSION));
        }
        let endpoint = |base: &Url| provider.endpoint(base, &settings.model);
        let service = RemoteService::new(&reached, endpoint, headers, clock).map_err(wrong)?;
        // A different effort gives different answers, so the stored model name must differ too.
        let model_id = match settings.thinking {
            Some(thinking) => format!("{} thinking {thinking}", settings.model),
            None => settings.model.clone(),
        };
        Ok(Self { settings, model_id, service })
    }

    fn body(&self, request: &ChatRequest, form: &RequestForm) -> Value {
        let (model, thinking) = (self.settings.model.as_str(), self.settings.thinking);
        match self.settings.provider {
            ChatProvider::OpenAi => openai::body(model, request, thinking, form),
            ChatProvider::Anthropic => anthropic::body(model, request, thinking, form),
            ChatProvider::Gemini => gemini::body(request, thinking, form),
        }
    }

    /// Reads an answer, in one piece or as a stream, whatever was requested: some servers ignore the difference.
    fn read(&self, answer: &ServiceAnswer) -> Result<ProviderReply, RemoteFailure> {
        let provider = self.settings.provider;
        let malformed = |error: serde_json::Error| RemoteFailure::Malformed(error.to_string());
        let body = if answer.is_stream {
            let events = read_events(&answer.bytes)?;
            match provider {
                ChatProvider::OpenAi => openai::joined(&events)?,
                ChatProvider::Anthropic => anthropic::joined(&events)?,
                ChatProvider::Gemini => gemini::joined(&events)?,
            }
        } else {
            serde_json::from_slice(&answer.bytes).map_err(malformed)?
        };
        let reply = match provider {
            ChatProvider::OpenAi => openai::read(body),
            ChatProvider::Anthropic => anthropic::read(body),
            ChatProvider::Gemini => gemini::read(body),
        };
        let reply = reply.map_err(malformed)?;
        if reply.text.len() > LARGEST_ANSWER {
            return Err(RemoteFailure::TooLarge { limit: LARGEST_ANSWER });
        }
        Ok(reply)
    }

    /// Sends a question in the form that the model accepts. A refusal that names a part of the request is a lesson: the
    /// question is sent again without that part, and later questions begin without it.
    async fn send(&self, request: &ChatRequest) -> Result<ProviderReply, RemoteFailure> {
        let ChatSettings { provider, model, base_url, thinking, .. } = &self.settings;
        let key = (*provider, base_url.clone(), model.clone(), thinking.is_some());
        let learnt = learnt_form(&key);
        let mut form =
            learnt.clone().unwrap_or_else(|| RequestForm::usual(model, *base_url == provider.vendor().base_url));
        let mut forms = 1;
        loop {
            let body = self.body(request, &form).to_string();
            let failure = match self.service.post(body, |answer| self.read(&answer)).await {
                Ok(reply) => {
                    if learnt.as_ref() != Some(&form) {
                        remember_form(key, form);
                    }
                    return Ok(reply);
                }
                Err(failure) => failure,
            };
            let next = match &failure {
                RemoteFailure::Status { status: 400 | 422, said, .. } if forms < MOST_FORMS => {
                    form.after_refusal(said, sent_limit(request, *thinking, &form))
                }
                _ => None,
            };
            let Some(next) = next else { return Err(failure) };
            let provider = provider.name();
            tracing::info!(provider, model, "a model refused a part of a request, which is left out from now on");
            (form, forms) = (next, forms + 1);
        }
    }

    async fn ask(&self, request: &ChatRequest) -> Result<ChatAnswer, ChatError> {
        let provider = self.settings.provider.name();
        let began = self.service.clock.now();
        let reply = self.send(request).await.map_err(|failure| ChatError::Remote { provider, failure })?;
        let (input_tokens, output_tokens) = (reply.input_tokens, reply.output_tokens);
        if let Some(said) = reply.refusal {
            let said = self.service.quoted(&said);
            return Err(ChatError::Refused { provider, said, input_tokens, output_tokens });
        }
        if reply.is_cut_off {
            let max_tokens = request.max_tokens;
            return Err(ChatError::CutOff { provider, max_tokens, input_tokens, output_tokens });
        }
        let latency = Duration::try_from(self.service.clock.now().duration_since(began)).unwrap_or_default();
        Ok(ChatAnswer { text: reply.text, input_tokens, output_tokens, latency })
    }
}

impl ChatModel for RemoteChat {
    fn model_id(&self) -> &str {
        &self.model_id
    }

    fn complete<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<ChatAnswer, ChatError>> {
        Box::pin(self.ask(request))
    }
}

impl std::fmt::Debug for RemoteChat {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("RemoteChat").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// The limit of an answer in tokens, thoughts included.
pub(super) fn sent_limit(request: &ChatRequest, thinking: Option<Thinking>, form: &RequestForm) -> u32 {
    let thoughts = thinking.filter(|_| form.is_thinking_set).map_or(0, Thinking::tokens);
    let limit = request.max_tokens.saturating_add(thoughts);
    form.largest_limit.map_or(limit, |largest| limit.min(largest))
}

/// After 429, 5xx, timeouts and broken streams only: any other request would cost money and fail again.
fn is_sent_again(failure: &RemoteFailure) -> bool {
    match failure {
        RemoteFailure::TimedOut { .. } | RemoteFailure::BrokenOff { .. } => true,
        RemoteFailure::Status { status, .. } => matches!(status, 408 | 429 | 500..=599),
        _ => false,
    }
}
