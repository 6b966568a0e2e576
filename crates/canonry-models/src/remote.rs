//! Embedders behind an HTTP interface.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use canonry_clock::{Clock, SystemClock};
use futures_util::future::BoxFuture;
use futures_util::{StreamExt, TryStreamExt, stream};
use reqwest::header::HeaderMap;

use crate::api_key::ApiKey;
use crate::calibration::Calibration;
use crate::embedder::{EmbedError, Embedder, InputType};
use crate::provider::Provider;
use crate::remote_failure::RemoteFailure;
use crate::remote_service::{Patience, RemoteService, ServiceSettings, Vendor};

/// Texts per request. Gemini accepts at most 100, the others more.
const BATCH_TEXTS: usize = 96;
/// Characters per request: the strictest of the three accepts 120,000 tokens.
const BATCH_CHARACTERS: usize = 100_000;
/// An answer has some 25 bytes per component; 96 vectors of 4,096 components have 10 MB.
const LARGEST_ANSWER: usize = 32 << 20;
/// A text that every model can embed: it gives the dimension if all other texts are blank.
const PROBE: &str = "text";

#[derive(Debug, Clone)]
pub struct RemoteSettings {
    pub provider: Provider,
    pub model: String,
    pub base_url: String,
    /// The key; a self-hosted server may need none.
    pub key: Option<ApiKey>,
    pub workers: usize,
    /// How often one request is sent before it counts as failed.
    pub attempts: u32,
    pub timeout: Duration,
    /// How cosines become scores; the identity if no calibration was fitted.
    pub calibration: Calibration,
}

impl RemoteSettings {
    /// The provider's own service with its default model and no key.
    pub fn new(provider: Provider) -> Self {
        let Vendor { model, base_url, .. } = provider.vendor();
        Self {
            provider,
            model: model.to_owned(),
            base_url: base_url.to_owned(),
            key: None,
            workers: 4,
            attempts: 5,
            timeout: Duration::from_secs(60),
            calibration: Calibration::identity(),
        }
    }

    /// The same, with the key from the environment.
    pub fn from_environment(provider: Provider) -> Self {
        Self { key: provider.vendor().key_of_environment(), ..Self::new(provider) }
    }
}

pub struct RemoteEmbedder {
    settings: RemoteSettings,
    model_id: String,
    service: RemoteService,
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
        let reached = ServiceSettings {
            vendor: provider.vendor(),
            base_url: &settings.base_url,
            model: &settings.model,
            key: settings.key.as_ref(),
            attempts: settings.attempts,
            patience: Patience::Whole(settings.timeout),
            largest_answer: LARGEST_ANSWER,
            is_sent_again,
        };
        let endpoint = |base: &_| provider.endpoint(base, &settings.model);
        let service = RemoteService::new(&reached, endpoint, HeaderMap::new(), clock).map_err(wrong)?;
        let model_id = format!("{}:{}", provider.name(), settings.model);
        Ok(Self { settings, model_id, service, dimension: OnceLock::new() })
    }

    /// The vectors of texts that are not blank, in batches, several batches at once.
    async fn embed_all(&self, texts: &[NumberedText<'_>], input: InputType) -> Result<Vec<Vec<f32>>, EmbedError> {
        // In order, so that among several failures the one of the first text is reported.
        let batches: Vec<_> = batches(texts).into_iter().map(|batch| self.embed_batch(batch, input)).collect();
        let answers = stream::iter(batches).buffered(self.settings.workers.max(1));
        let vectors: Vec<Vec<Vec<f32>>> = answers.try_collect().await?;
        Ok(vectors.into_iter().flatten().collect())
    }

    /// Sends one request, or several smaller ones if it is rejected as a whole: this finds the text that is too long
    /// for the model.
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
        let answer =
            self.service.post(body, |answer| Ok(answer.bytes)).await.map_err(|failure| failed(None, failure))?;
        let vectors = provider.read_answer(&answer, batch.len(), &self.dimension);
        vectors.map_err(|(place, failure)| failed(place, failure))
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

/// After 429, 5xx, a timeout or a broken connection: requesting a vector twice does no harm.
fn is_sent_again(failure: &RemoteFailure) -> bool {
    match failure {
        RemoteFailure::TimedOut { .. } | RemoteFailure::Unreachable { .. } => true,
        RemoteFailure::Status { status, .. } => matches!(status, 429 | 500..=599),
        _ => false,
    }
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
        assert_eq!(
            message(broken),
            "set up the gemini embedder: the key contains characters that are not allowed in a key"
        );
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
