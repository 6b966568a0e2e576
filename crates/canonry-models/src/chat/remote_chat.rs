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
use crate::chat::thinking::Thinking;
use crate::chat::{anthropic, gemini, openai};
use crate::remote_failure::RemoteFailure;
use crate::remote_service::{RemoteService, ServiceSettings, Vendor};

/// An answer of some thousand tokens has some ten thousand bytes; thoughts may be ten times as long.
const LARGEST_ANSWER: usize = 4 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
            Self::Gemini => path.push("models").push(&format!("{model}:generateContent")),
        };
        drop(path);
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
            timeout: settings.timeout,
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

    fn body(&self, request: &ChatRequest) -> Value {
        let (provider, model, thinking) =
            (self.settings.provider, self.settings.model.as_str(), self.settings.thinking);
        match provider {
            ChatProvider::OpenAi => {
                openai::body(model, request, thinking, self.settings.base_url == provider.vendor().base_url)
            }
            ChatProvider::Anthropic => anthropic::body(model, request, thinking),
            ChatProvider::Gemini => gemini::body(request, thinking),
        }
    }

    async fn ask(&self, request: &ChatRequest) -> Result<ChatAnswer, ChatError> {
        let provider = self.settings.provider.name();
        let began = self.service.clock.now();
        let failed = |failure| ChatError::Remote { provider, failure };
        let body = self.service.post(self.body(request).to_string()).await.map_err(failed)?;
        let reply = match self.settings.provider {
            ChatProvider::OpenAi => openai::read(&body),
            ChatProvider::Anthropic => anthropic::read(&body),
            ChatProvider::Gemini => gemini::read(&body),
        };
        let reply = reply.map_err(|error| failed(RemoteFailure::Malformed(error.to_string())))?;
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

/// After 429, 5xx and timeouts only: any other request would cost money and fail again.
fn is_sent_again(failure: &RemoteFailure) -> bool {
    match failure {
        RemoteFailure::TimedOut { .. } => true,
        RemoteFailure::Status { status, .. } => matches!(status, 408 | 429 | 500..=599),
        _ => false,
    }
}
