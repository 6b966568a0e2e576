//! Sends one request and reads one answer: headers, timeouts, the size limit, and what is known if it fails.

use std::error::Error;
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderName, HeaderValue, IF_NONE_MATCH};
use reqwest::{Method, StatusCode};
use serde_json::Value;
use url::Url;

use crate::auth::secret::Secret;
use crate::http::client::is_loopback;
use crate::http::error::GitHubError;

const API_VERSION: (HeaderName, HeaderValue) =
    (HeaderName::from_static("x-github-api-version"), HeaderValue::from_static("2022-11-28"));
const JSON: HeaderValue = HeaderValue::from_static("application/vnd.github+json");

#[derive(Debug, Clone)]
pub(crate) struct Transport {
    http: reqwest::Client,
    answer_limit: usize,
}

pub(crate) struct Outgoing<'a> {
    pub(crate) method: Method,
    pub(crate) url: &'a Url,
    pub(crate) bearer: &'a Secret,
    pub(crate) body: Option<&'a Value>,
    pub(crate) etag: Option<&'a str>,
}

/// A complete answer.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

/// No complete answer came.
#[derive(Debug)]
pub(crate) struct Broken {
    /// Whether it is certain that GitHub has not seen the request.
    pub(crate) before_sending: bool,
    /// Whether the answer is larger than the limit.
    pub(crate) too_large: bool,
    pub(crate) detail: String,
}

impl Transport {
    pub(crate) fn new(
        api: &Url,
        user_agent: &str,
        connect_timeout: Duration,
        request_timeout: Duration,
        answer_limit: usize,
    ) -> Result<Self, GitHubError> {
        // An error says that the process has a provider already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // A proxy is for other machines, whatever its variables say.
        let builder = reqwest::Client::builder();
        let builder = if is_loopback(api) { builder.no_proxy() } else { builder };
        // Without TLS the machine's certificates are not needed, and reading them takes most of the time to create a
        // client. A client of another machine keeps them, because that machine may redirect to https.
        let is_plain = is_loopback(api) && api.scheme() == "http";
        let builder = if is_plain { builder.tls_certs_only([]) } else { builder };
        let http = builder
            .user_agent(user_agent)
            .connect_timeout(connect_timeout)
            .timeout(request_timeout)
            // Redirects and retries are decided by the caller: a redirected write would be sent as another request, and
            // a token must not follow a redirect to an unknown host.
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .build()
            .map_err(|error| GitHubError::BadSetup { detail: describe(&error) })?;
        Ok(Self { http, answer_limit })
    }

    pub(crate) async fn send(&self, outgoing: Outgoing<'_>) -> Result<Incoming, Broken> {
        let mut bearer =
            HeaderValue::from_str(&format!("Bearer {}", outgoing.bearer.expose())).map_err(|_| Broken {
                before_sending: true,
                too_large: false,
                detail: "the token contains characters that are not allowed in a token".to_owned(),
            })?;
        bearer.set_sensitive(true);
        let mut request = self
            .http
            .request(outgoing.method, outgoing.url.clone())
            .header(AUTHORIZATION, bearer)
            .header(ACCEPT, JSON)
            .header(API_VERSION.0, API_VERSION.1);
        if let Some(etag) = outgoing.etag {
            request = request.header(IF_NONE_MATCH, etag);
        }
        if let Some(body) = outgoing.body {
            request = request.json(body);
        }
        self.answer(request).await
    }

    /// Posts a document without a credential in a header, for the one place that expects it in the document.
    pub(crate) async fn post_openly(&self, url: &Url, body: &Value) -> Result<Incoming, Broken> {
        let plain = HeaderValue::from_static("application/json");
        self.answer(self.http.post(url.clone()).header(ACCEPT, plain).json(body)).await
    }

    async fn answer(&self, request: reqwest::RequestBuilder) -> Result<Incoming, Broken> {
        let mut response = request.send().await.map_err(|error| Broken {
            before_sending: error.is_connect() || error.is_builder(),
            too_large: false,
            detail: describe(&error),
        })?;
        let (status, headers) = (response.status(), response.headers().clone());
        let mut body = Vec::new();
        loop {
            let chunk = response.chunk().await.map_err(|error| Broken {
                before_sending: false,
                too_large: false,
                detail: describe(&error),
            })?;
            let Some(chunk) = chunk else { break };
            if body.len() + chunk.len() > self.answer_limit {
                let detail = format!("the answer is larger than {} bytes", self.answer_limit);
                return Err(Broken { before_sending: false, too_large: true, detail });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Incoming { status, headers, body })
    }
}

/// The innermost cause, which says more than "error sending request"; never the URL.
fn describe(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "no answer in time".to_owned();
    }
    let mut cause: &dyn Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let words = cause.to_string();
    if std::ptr::addr_eq(cause, error) { "the request failed".to_owned() } else { words.chars().take(200).collect() }
}
