//! A model behind an HTTP interface: the connection, and when a request is retried.

use std::sync::Arc;
use std::time::Duration;

use canonry_clock::Clock;
use canonry_domain::is_loopback_host;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use serde_json::Value;
use url::Url;

use crate::api_key::ApiKey;
use crate::remote_failure::RemoteFailure;
use crate::retry::{BETWEEN_TRIES, PATIENCE, asked_pause};

/// A vendor's own service.
pub(crate) struct Vendor {
    pub(crate) name: &'static str,
    /// The environment variable that usually contains its key.
    pub(crate) key_variable: &'static str,
    /// The header of the key, and the prefix of its value.
    pub(crate) key_header: (&'static str, &'static str),
    pub(crate) base_url: &'static str,
    /// The default model.
    pub(crate) model: &'static str,
}

impl Vendor {
    pub(crate) fn key_of_environment(&self) -> Option<ApiKey> {
        let key = std::env::var(self.key_variable).ok().filter(|key| !key.trim().is_empty());
        key.as_deref().map(ApiKey::new)
    }
}

pub(crate) struct ServiceSettings<'a> {
    pub(crate) vendor: Vendor,
    pub(crate) base_url: &'a str,
    pub(crate) model: &'a str,
    pub(crate) key: Option<&'a ApiKey>,
    pub(crate) attempts: u32,
    pub(crate) patience: Patience,
    pub(crate) largest_answer: usize,
    pub(crate) is_sent_again: fn(&RemoteFailure) -> bool,
}

/// How long a request may take.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Patience {
    /// The whole request.
    Whole(Duration),
    /// The time without a byte. A model that writes slowly is not silent; but no request takes ten times as long.
    Silence(Duration),
}

impl Patience {
    const fn silence(self) -> Duration {
        match self {
            Self::Whole(limit) | Self::Silence(limit) => limit,
        }
    }

    fn whole(self) -> Duration {
        match self {
            Self::Whole(limit) => limit,
            Self::Silence(limit) => limit.saturating_mul(10),
        }
    }
}

pub(crate) struct ServiceAnswer {
    pub(crate) bytes: Vec<u8>,
    /// Whether it is a stream of events.
    pub(crate) is_stream: bool,
}

/// How many bytes of a stream carry one byte of an answer: each word is an event with its own names and ids.
const STREAM_OVERHEAD: usize = 16;

pub(crate) struct RemoteService {
    endpoint: Url,
    client: reqwest::Client,
    provider: &'static str,
    key: Option<ApiKey>,
    attempts: u32,
    patience: Patience,
    largest_answer: usize,
    is_sent_again: fn(&RemoteFailure) -> bool,
    pub(crate) clock: Arc<dyn Clock>,
}

impl RemoteService {
    /// Checks the settings; nothing is sent yet.
    pub(crate) fn new(
        settings: &ServiceSettings<'_>,
        endpoint: impl FnOnce(&Url) -> Option<Url>,
        mut headers: HeaderMap,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, String> {
        let &ServiceSettings { ref vendor, key, attempts, patience, largest_answer, is_sent_again, .. } = settings;
        if key.is_none() && settings.base_url == vendor.base_url {
            return Err(format!("no key in {}", vendor.key_variable));
        }
        if settings.model.trim().is_empty() {
            return Err("the model has no name".to_owned());
        }
        let base = checked_base(settings.base_url, vendor.key_variable)?;
        let endpoint = endpoint(&base).ok_or_else(|| "the base URL: it cannot have a path".to_owned())?;
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        if let Some(key) = key {
            let (name, prefix) = vendor.key_header;
            let value = HeaderValue::try_from(format!("{prefix}{}", key.expose()));
            let mut value =
                value.map_err(|_| "the key contains characters that are not allowed in a key".to_owned())?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let (client, provider, key) = (http_client(headers, &base, patience.whole())?, vendor.name, key.cloned());
        Ok(Self { endpoint, client, provider, key, attempts, patience, largest_answer, is_sent_again, clock })
    }

    /// Sends until there is an answer that can be read, or a retry would not help.
    pub(crate) async fn post<T>(
        &self,
        body: String,
        read: impl Fn(ServiceAnswer) -> Result<T, RemoteFailure>,
    ) -> Result<T, RemoteFailure> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let answer = self.post_once(body.clone(), attempts).await;
            let (failure, asked) = match answer.and_then(|answer| read(answer).map_err(|failure| (failure, None))) {
                Ok(answer) => return Ok(answer),
                Err((RemoteFailure::BrokenOff { said }, asked)) => {
                    (RemoteFailure::BrokenOff { said: self.quoted(&said) }, asked)
                }
                Err(failed) => failed,
            };
            let pause = asked.unwrap_or_else(|| BETWEEN_TRIES.pause(attempts, rand::random()).unsigned_abs());
            if !(self.is_sent_again)(&failure) || attempts >= self.attempts.max(1) || pause > PATIENCE {
                return Err(failure);
            }
            tracing::debug!(provider = self.provider, attempts, ?pause, %failure, "a request to a model is sent again");
            self.clock.sleep(pause).await;
        }
    }

    /// An answer, or the failure and how long the service asks to wait.
    async fn post_once(&self, body: String, attempts: u32) -> Result<ServiceAnswer, (RemoteFailure, Option<Duration>)> {
        let timed_out = |limit: Duration| (RemoteFailure::TimedOut { seconds: limit.as_secs(), attempts }, None);
        let broken = |error: reqwest::Error| {
            if error.is_timeout() {
                timed_out(self.patience.whole())
            } else {
                (RemoteFailure::Unreachable { url: shown_address(&self.endpoint), attempts }, None)
            }
        };
        let silence = self.patience.silence();
        let sent = tokio::time::timeout(silence, self.client.post(self.endpoint.clone()).body(body).send()).await;
        let mut answer = sent.map_err(|_| timed_out(silence))?.map_err(broken)?;
        let status = answer.status();
        let header = |name| answer.headers().get(name).and_then(|value| value.to_str().ok());
        let asked = header(RETRY_AFTER).and_then(|value| asked_pause(value, self.clock.now()));
        let is_stream = header(CONTENT_TYPE).is_some_and(|kind| kind.starts_with("text/event-stream"));
        let limit = self.largest_answer * if is_stream { STREAM_OVERHEAD } else { 1 };
        let mut bytes = Vec::new();
        loop {
            let part = tokio::time::timeout(silence, answer.chunk()).await;
            let Some(part) = part.map_err(|_| timed_out(silence))?.map_err(broken)? else { break };
            bytes.extend_from_slice(&part);
            if bytes.len() > limit {
                return Err((RemoteFailure::TooLarge { limit }, None));
            }
        }
        if status.is_success() {
            return Ok(ServiceAnswer { bytes, is_stream });
        }
        let said = self.explanation(&bytes);
        Err((RemoteFailure::Status { status: status.as_u16(), said, attempts }, asked))
    }

    /// The first words of an error answer, on one line and without the key.
    fn explanation(&self, body: &[u8]) -> String {
        let text = String::from_utf8_lossy(body);
        let told = serde_json::from_slice::<Value>(body).ok();
        let message = told.as_ref().and_then(|told| {
            ["/error/message", "/message", "/detail"].iter().find_map(|at| told.pointer(at)?.as_str())
        });
        self.quoted(message.unwrap_or(&text))
    }

    /// Text from the service, safe to show.
    pub(crate) fn quoted(&self, text: &str) -> String {
        match &self.key {
            Some(key) => quoted(&key.hidden_in(text)),
            None => quoted(text),
        }
    }
}

/// The first words of foreign text, on one line and harmless for a terminal.
pub(crate) fn quoted(text: &str) -> String {
    const QUOTED_CHARACTERS: usize = 200;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().filter(|character| !character.is_control()).take(QUOTED_CHARACTERS).collect()
}

/// Parses the URL of a service. A URL that cannot work, or that contains a password, is refused with a reason.
fn checked_base(text: &str, key_variable: &str) -> Result<Url, String> {
    let base = Url::parse(text).map_err(|error| format!("the base URL: {error}"))?;
    if !matches!(base.scheme(), "http" | "https") {
        return Err(format!("the base URL: {} is neither http nor https", base.scheme()));
    }
    // A URL is shown and logged; a key never is.
    if !base.username().is_empty() || base.password().is_some() {
        return Err(format!("the base URL contains a password; a key belongs in {key_variable}"));
    }
    Ok(base)
}

/// A client that sends these headers only to that URL.
pub fn http_client(headers: HeaderMap, base: &Url, timeout: Duration) -> Result<reqwest::Client, String> {
    // An error says that the process has a provider already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // A redirect could carry a key in a header to another host.
    let mut builder = reqwest::Client::builder()
        .default_headers(headers)
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(timeout.min(Duration::from_secs(10)))
        .timeout(timeout);
    if base.host_str().is_some_and(is_loopback_host) {
        builder = builder.no_proxy();
    }
    // Without TLS the system's certificates are not needed, and reading them is most of the time to create a client.
    if base.scheme() == "http" {
        builder = builder.tls_certs_only([]);
    }
    builder.build().map_err(|error| format!("no HTTP client: {error}"))
}

/// A URL that is safe to show: some services put the key behind a `?`.
fn shown_address(url: &Url) -> String {
    let mut shown = url.clone();
    shown.set_query(None);
    shown.set_fragment(None);
    shown.to_string()
}
