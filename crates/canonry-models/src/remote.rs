//! Embedders behind an HTTP interface.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{StreamExt, TryStreamExt, stream};
use reqwest::header::{HeaderMap, HeaderValue, RETRY_AFTER};
use url::Url;

use crate::api_key::ApiKey;
use crate::calibration::Calibration;
use crate::embedder::{EmbedError, Embedder, InputType};
use crate::provider::Provider;
use crate::remote_client::{checked_base, client, shown_address};
use crate::remote_failure::RemoteFailure;
use crate::retry::{Clock, PATIENCE, SystemClock, asked_pause, back_off};

/// Texts in one request. Gemini takes 100 at most, the others more.
const BATCH_TEXTS: usize = 96;
/// Characters in one request: the strictest of the three takes 120,000 tokens.
const BATCH_CHARACTERS: usize = 100_000;
/// An answer has some 25 bytes per component; 96 vectors of 4,096 components have 10 MB.
const LARGEST_ANSWER: usize = 32 << 20;
/// What is quoted of a provider's explanation.
const QUOTED_CHARACTERS: usize = 200;
/// A text that any model has a vector for: it tells the dimension when all other texts are blank.
const PROBE: &str = "text";

#[derive(Debug, Clone)]
pub struct RemoteSettings {
    pub provider: Provider,
    pub model: String,
    pub base_url: String,
    /// The key; a server of one's own may need none.
    pub key: Option<ApiKey>,
    pub workers: usize,
    /// How often one request is sent before it counts as failed.
    pub attempts: u32,
    pub timeout: Duration,
    /// How cosines become scores; the identity where nothing was fitted.
    pub calibration: Calibration,
}

impl RemoteSettings {
    /// The provider's own service with its usual model and no key.
    pub fn new(provider: Provider) -> Self {
        Self {
            provider,
            model: provider.default_model().to_owned(),
            base_url: provider.default_base_url().to_owned(),
            key: None,
            workers: 4,
            attempts: 5,
            timeout: Duration::from_secs(60),
            calibration: Calibration::identity(),
        }
    }

    /// The same, with the key that the environment holds.
    pub fn from_environment(provider: Provider) -> Self {
        let key = std::env::var(provider.key_variable()).ok().filter(|key| !key.trim().is_empty());
        Self { key: key.as_deref().map(ApiKey::new), ..Self::new(provider) }
    }
}

pub struct RemoteEmbedder {
    settings: RemoteSettings,
    model_id: String,
    endpoint: Url,
    client: reqwest::Client,
    clock: Arc<dyn Clock>,
    dimension: OnceLock<usize>,
}

impl RemoteEmbedder {
    /// Checks the settings; nothing is sent yet.
    pub fn new(settings: RemoteSettings) -> Result<Self, EmbedError> {
        Self::with_clock(settings, Arc::new(SystemClock))
    }

    pub fn with_clock(settings: RemoteSettings, clock: Arc<dyn Clock>) -> Result<Self, EmbedError> {
        let provider = settings.provider;
        let wrong = |problem: String| EmbedError::Settings { provider: provider.name(), problem };
        if settings.key.is_none() && settings.base_url == provider.default_base_url() {
            return Err(wrong(format!("no key in {}", provider.key_variable())));
        }
        if settings.model.trim().is_empty() {
            return Err(wrong("the model has no name".to_owned()));
        }
        let base = checked_base(&settings.base_url, provider.key_variable()).map_err(wrong)?;
        let endpoint = provider
            .endpoint(&base, &settings.model)
            .ok_or_else(|| wrong("the base URL: it cannot have a path".to_owned()))?;
        let headers = headers(provider, settings.key.as_ref()).map_err(wrong)?;
        let client = client(headers, &base, settings.timeout).map_err(wrong)?;
        let model_id = format!("{}:{}", provider.name(), settings.model);
        Ok(Self { settings, model_id, endpoint, client, clock, dimension: OnceLock::new() })
    }

    /// The vectors of texts that are not blank, a batch at a time, several batches at once.
    async fn embed_all(&self, texts: &[NumberedText<'_>], input: InputType) -> Result<Vec<Vec<f32>>, EmbedError> {
        // In order, so that of several failures the one of the first text is told.
        let batches: Vec<_> = batches(texts).into_iter().map(|batch| self.embed_batch(batch, input)).collect();
        let answers = stream::iter(batches).buffered(self.settings.workers.max(1));
        let vectors: Vec<Vec<Vec<f32>>> = answers.try_collect().await?;
        Ok(vectors.into_iter().flatten().collect())
    }

    /// One request, or several when it is refused as a whole: one text that is too long for the model must not
    /// hide behind its neighbours.
    fn embed_batch<'a>(
        &'a self,
        batch: &'a [NumberedText<'a>],
        input: InputType,
    ) -> BoxFuture<'a, Result<Vec<Vec<f32>>, EmbedError>> {
        Box::pin(async move {
            match self.ask(batch, input).await {
                Err(EmbedError::Remote { failure: RemoteFailure::Status { status: 400 | 413 | 422, .. }, .. })
                    if batch.len() > 1 =>
                {
                    let (left, right) = batch.split_at(batch.len() / 2);
                    let mut vectors = self.embed_batch(left, input).await?;
                    vectors.extend(self.embed_batch(right, input).await?);
                    Ok(vectors)
                }
                answer => answer,
            }
        })
    }

    async fn ask(&self, batch: &[NumberedText<'_>], input: InputType) -> Result<Vec<Vec<f32>>, EmbedError> {
        let provider = self.settings.provider;
        let failed = |place: Option<usize>, failure| {
            let texts = match place {
                Some(place) => batch[place].0..batch[place].0 + 1,
                None => batch[0].0..batch[batch.len() - 1].0 + 1,
            };
            EmbedError::Remote { provider: provider.name(), texts, failure }
        };
        let texts: Vec<&str> = batch.iter().map(|(_, text)| *text).collect();
        let body = provider.request(&self.settings.model, &texts, input).to_string();
        let answer = self.send_until_answered(body).await.map_err(|failure| failed(None, failure))?;
        let vectors = provider.read_answer(&answer, batch.len(), &self.dimension);
        vectors.map_err(|(place, failure)| failed(place, failure))
    }

    /// Sends again after 429, 5xx, a timeout or a broken connection: asking twice for a vector harms nobody.
    async fn send_until_answered(&self, body: String) -> Result<Vec<u8>, RemoteFailure> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let refusal = match self.send_once(body.clone(), attempts).await {
                Ok(answer) => return Ok(answer),
                Err(refusal) => refusal,
            };
            let pause = match refusal.pause {
                Pause::Never => return Err(refusal.failure),
                Pause::Asked(pause) if pause > PATIENCE => return Err(refusal.failure),
                Pause::Asked(pause) => pause,
                Pause::Usual => back_off(attempts, rand::random()),
            };
            if attempts >= self.settings.attempts.max(1) {
                return Err(refusal.failure);
            }
            let provider = self.settings.provider.name();
            tracing::debug!(provider, attempts, ?pause, failure = %refusal.failure, "embedding request is sent again");
            self.clock.sleep(pause).await;
        }
    }

    async fn send_once(&self, body: String, attempts: u32) -> Result<Vec<u8>, RequestFailure> {
        let broken = |error: reqwest::Error| {
            let failure = if error.is_timeout() {
                RemoteFailure::TimedOut { seconds: self.settings.timeout.as_secs(), attempts }
            } else {
                RemoteFailure::Unreachable { url: shown_address(&self.endpoint), attempts }
            };
            RequestFailure { failure, pause: Pause::Usual }
        };
        let request = self.client.post(self.endpoint.clone()).body(body);
        let mut answer = request.send().await.map_err(broken)?;
        let status = answer.status();
        let asked = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let asked = asked.and_then(|value| asked_pause(value, self.clock.now()));
        let mut bytes = Vec::new();
        while let Some(part) = answer.chunk().await.map_err(broken)? {
            bytes.extend_from_slice(&part);
            if bytes.len() > LARGEST_ANSWER {
                return Err(RequestFailure {
                    failure: RemoteFailure::TooLarge { limit: LARGEST_ANSWER },
                    pause: Pause::Never,
                });
            }
        }
        if status.is_success() {
            return Ok(bytes);
        }
        let again = status.is_server_error() || status.as_u16() == 429;
        let pause = if again { asked.map_or(Pause::Usual, Pause::Asked) } else { Pause::Never };
        let said = self.explanation(&bytes);
        Err(RequestFailure { failure: RemoteFailure::Status { status: status.as_u16(), said, attempts }, pause })
    }

    /// The first words of an error answer, on one line and without the key.
    fn explanation(&self, body: &[u8]) -> String {
        let text = String::from_utf8_lossy(body);
        let told = serde_json::from_slice::<serde_json::Value>(body).ok();
        let message = told.as_ref().and_then(|told| {
            ["/error/message", "/message", "/detail"].iter().find_map(|at| told.pointer(at)?.as_str())
        });
        let message = message.unwrap_or(&text);
        let message = self.settings.key.as_ref().map_or_else(|| message.to_owned(), |key| key.hidden_in(message));
        let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
        line.chars().filter(|character| !character.is_control()).take(QUOTED_CHARACTERS).collect()
    }
}

impl Embedder for RemoteEmbedder {
    fn model_id(&self) -> &str {
        &self.model_id
    }

    fn dimension(&self) -> Option<usize> {
        self.dimension.get().copied()
    }

    fn calibration(&self) -> &Calibration {
        &self.settings.calibration
    }

    fn embed<'a>(&'a self, texts: &'a [String], input: InputType) -> BoxFuture<'a, Result<Vec<Vec<f32>>, EmbedError>> {
        Box::pin(async move {
            let worded: Vec<NumberedText<'_>> =
                texts.iter().map(String::as_str).enumerate().filter(|(_, text)| !is_blank(text)).collect();
            let vectors = self.embed_all(&worded, input).await?;
            if worded.len() == texts.len() {
                return Ok(vectors);
            }
            if self.dimension.get().is_none() {
                self.ask(&[(0, PROBE)], input).await?;
            }
            let mut all = vec![vec![0.0; self.dimension().unwrap_or_default()]; texts.len()];
            for ((at, _), vector) in worded.into_iter().zip(vectors) {
                all[at] = vector;
            }
            Ok(all)
        })
    }
}

impl std::fmt::Debug for RemoteEmbedder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("RemoteEmbedder")
            .field("model_id", &self.model_id)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

type NumberedText<'a> = (usize, &'a str);

/// Why one request failed, and whether to send it again.
struct RequestFailure {
    failure: RemoteFailure,
    pause: Pause,
}

enum Pause {
    Never,
    Usual,
    Asked(Duration),
}

fn is_blank(text: &str) -> bool {
    text.chars().all(|character| character.is_whitespace() || character.is_control())
}

fn batches<'a, 'b>(texts: &'a [NumberedText<'b>]) -> Vec<&'a [NumberedText<'b>]> {
    let mut batches = Vec::new();
    let (mut start, mut characters) = (0, 0);
    for (at, (_, text)) in texts.iter().enumerate() {
        let length = text.chars().count();
        if at > start && (at - start == BATCH_TEXTS || characters + length > BATCH_CHARACTERS) {
            batches.push(&texts[start..at]);
            (start, characters) = (at, 0);
        }
        characters += length;
    }
    if start < texts.len() {
        batches.push(&texts[start..]);
    }
    batches
}

fn headers(provider: Provider, key: Option<&ApiKey>) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    if let Some(key) = key {
        let (name, prefix) = provider.key_header();
        let value = HeaderValue::try_from(format!("{prefix}{}", key.expose()));
        let mut value = value.map_err(|_| "the key has characters that no key has".to_owned())?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::{BATCH_CHARACTERS, BATCH_TEXTS, NumberedText, RemoteEmbedder, RemoteSettings, batches};
    use crate::api_key::ApiKey;
    use crate::provider::Provider;
    use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};

    #[test]
    fn settings_that_cannot_work_are_refused_before_anything_is_sent() {
        let message = |settings| RemoteEmbedder::new(settings).expect_err("refused").to_string();
        assert_eq!(
            message(RemoteSettings::new(Provider::Voyage)),
            "set up the voyage embedder: no key in VOYAGE_API_KEY"
        );
        let at =
            |base_url: &str| RemoteSettings { base_url: base_url.to_owned(), ..RemoteSettings::new(Provider::OpenAi) };
        assert!(message(at("ftp://127.0.0.1/v1")).contains("neither http nor https"));
        assert!(message(at("nowhere")).contains("the base URL"));
        let told = message(at("http://me:hunter2@127.0.0.1/v1"));
        assert!(told.contains("belongs in OPENAI_API_KEY") && !told.contains("hunter2"), "{told}");
        let broken = RemoteSettings { key: Some(ApiKey::new("a\nb")), ..RemoteSettings::new(Provider::Gemini) };
        assert_eq!(message(broken), "set up the gemini embedder: the key has characters that no key has");
    }

    #[test]
    fn debug_shows_no_key() {
        let key = Some(ApiKey::new("sk-very-secret"));
        let embedder =
            RemoteEmbedder::new(RemoteSettings { key, ..RemoteSettings::new(Provider::OpenAi) }).expect("valid");
        let shown = format!("{embedder:?}");
        assert!(shown.contains("ApiKey(redacted)") && !shown.contains("very-secret"), "{shown}");
    }

    proptest! {
        #[test]
        fn batches_hold_every_text_once_and_keep_to_the_limits(lengths in prop::collection::vec(0usize..30_000, 0..300)) {
            let long = "x".repeat(30_000);
            let texts: Vec<NumberedText<'_>> = lengths.iter().map(|length| &long[..*length]).enumerate().collect();
            let batches = batches(&texts);
            prop_assert_eq!(&batches.concat(), &texts);
            for batch in batches {
                let characters: usize = batch.iter().map(|(_, text)| text.len()).sum();
                prop_assert!(!batch.is_empty() && batch.len() <= BATCH_TEXTS);
                prop_assert!(batch.len() == 1 || characters <= BATCH_CHARACTERS);
            }
        }
    }
}
