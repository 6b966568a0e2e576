//! Sends reads: retried if GitHub or the network fails, delayed if a limit requires it.

use canonry_clock::BackOff;
use jiff::{SignedDuration, Timestamp};
use reqwest::Method;
use reqwest::header::{ETAG, LINK, LOCATION};
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;

use crate::auth::credentials::{Credential, CredentialKind, Scope};
use crate::http::client::GitHub;
use crate::http::error::GitHubError;
use crate::http::etag_cache::{Etag, EtagCache};
use crate::http::link_header::next_link;
use crate::http::rate_budget::{WaitReason, Waiting, retry_after};
use crate::http::transport::{Broken, Incoming, Outgoing};

/// Most failures of GitHub are shorter than a second; one longer than half a minute is reported as an outage.
const BETWEEN_TRIES: BackOff = BackOff { first: SignedDuration::from_secs(1), longest: SignedDuration::from_secs(30) };
/// A renamed repository answers with one redirect; more than a few are a loop.
const MOST_REDIRECTS: u32 = 5;
/// How many refusals for a limit one call waits for.
const MOST_LIMITED: u32 = 6;

/// The answer to a conditional request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer<T> {
    /// It changed, or was never requested before.
    Fresh(T),
    /// It is unchanged since its ETag was stored.
    NotModified,
}

#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) what: String,
    pub(crate) body: Vec<u8>,
    pub(crate) etag: Option<Etag>,
    pub(crate) next: Option<String>,
}

impl Got {
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, GitHubError> {
        serde_json::from_slice(&self.body)
            .map_err(|error| GitHubError::BadAnswer { what: self.what.clone(), detail: error.to_string() })
    }

    /// Parses one field of an object.
    pub(crate) fn json_in<T: DeserializeOwned>(&self, field: &str) -> Result<T, GitHubError> {
        let mut object: Value = self.json()?;
        let list = object.get_mut(field).map(Value::take).unwrap_or_default();
        serde_json::from_value(list)
            .map_err(|error| GitHubError::BadAnswer { what: self.what.clone(), detail: format!("{field}: {error}") })
    }
}

impl Answer<Got> {
    /// The answer to an unconditional request.
    pub(crate) fn fresh(self) -> Result<Got, GitHubError> {
        match self {
            Self::Fresh(got) => Ok(got),
            Self::NotModified => Err(GitHubError::BadAnswer {
                what: "a request without conditions".to_owned(),
                detail: "it says \"not modified\"".to_owned(),
            }),
        }
    }
}

impl GitHub {
    pub(crate) async fn get(&self, scope: &Scope, url: Url) -> Result<Got, GitHubError> {
        self.get_conditional(scope, url, None).await?.fresh()
    }

    pub(crate) async fn get_json<T: DeserializeOwned>(&self, scope: &Scope, url: Url) -> Result<T, GitHubError> {
        self.get(scope, url).await?.json()
    }

    /// Requests a URL only if it changed since the stored ETag.
    pub(crate) async fn get_if_changed(
        &self,
        scope: &Scope,
        url: Url,
        etags: &dyn EtagCache,
    ) -> Result<Answer<Got>, GitHubError> {
        let etag = etags.get(url.as_str()).await;
        self.get_conditional(scope, url, etag.as_deref()).await
    }

    async fn get_conditional(&self, scope: &Scope, url: Url, etag: Option<&str>) -> Result<Answer<Got>, GitHubError> {
        let credential = self.credential(scope).await?;
        let answer = self.request_as(&credential, Method::GET, url.clone(), None, etag).await;
        // An installation token can be revoked before its hour is over: a new one is created, once.
        if matches!(answer, Err(GitHubError::Unauthorized { .. })) && self.forget(&credential).await {
            let credential = self.credential(scope).await?;
            return self.request_as(&credential, Method::GET, url, None, etag).await;
        }
        answer
    }

    /// Sends a read as a POST, as GraphQL requires.
    pub(crate) async fn ask(&self, scope: &Scope, url: Url, question: &Value) -> Result<Got, GitHubError> {
        let credential = self.credential(scope).await?;
        let answer = self.request_as(&credential, Method::POST, url.clone(), Some(question), None).await;
        if matches!(answer, Err(GitHubError::Unauthorized { .. })) && self.forget(&credential).await {
            let credential = self.credential(scope).await?;
            return self.request_as(&credential, Method::POST, url, Some(question), None).await?.fresh();
        }
        answer?.fresh()
    }

    /// Sends a request that may be repeated without harm, until there is a final answer.
    pub(crate) async fn request_as(
        &self,
        credential: &Credential,
        method: Method,
        mut url: Url,
        body: Option<&Value>,
        etag: Option<&str>,
    ) -> Result<Answer<Got>, GitHubError> {
        let what = self.what(&url);
        let asked = url.to_string();
        let (mut failures, mut limited, mut redirects) = (0, 0, 0);
        loop {
            let mut sent_at = self.now();
            if let Some(waiting) = self.budget().blocked(&credential.account, sent_at) {
                self.wait(waiting).await?;
                sent_at = self.now();
            }
            let outgoing = Outgoing { method: method.clone(), url: &url, bearer: &credential.bearer, body, etag };
            let incoming = match self.transport().send(outgoing).await.and_then(whole) {
                Ok(incoming) => incoming,
                Err(broken) if broken.too_large => {
                    return Err(GitHubError::BadAnswer { what, detail: broken.detail });
                }
                Err(broken) => {
                    failures += 1;
                    if failures >= self.options().tries {
                        let host = url.host_str().unwrap_or("GitHub").to_owned();
                        return Err(GitHubError::Network { host, detail: broken.detail });
                    }
                    tracing::debug!(%what, failures, detail = %broken.detail, "no answer");
                    self.wait_for_retry(failures, None).await?;
                    continue;
                }
            };
            let Incoming { status, headers, body: answer } = &incoming;
            let now = self.now();
            self.note_time(headers, sent_at, now);
            if let Some(waiting) = self.budget().note(&credential.account, *status, headers, answer, now, limited) {
                limited += 1;
                if limited >= MOST_LIMITED {
                    return Err(GitHubError::RateLimited { until: waiting.until });
                }
                continue;
            }
            match status.as_u16() {
                200..=299 => return Ok(Answer::Fresh(got(what, asked, incoming))),
                304 => return Ok(Answer::NotModified),
                301 | 302 | 307 | 308 if method == Method::GET => {
                    redirects += 1;
                    url = self.redirect_target(&what, &url, &incoming, redirects)?;
                }
                500..=599 => {
                    failures += 1;
                    let pause = retry_after(headers);
                    let too_long = pause.is_some_and(|pause| pause > self.options().longest_wait);
                    if failures >= self.options().tries || too_long {
                        return Err(GitHubError::Unavailable { what, status: status.as_u16(), tries: failures });
                    }
                    tracing::debug!(%what, failures, status = status.as_u16(), "GitHub failed");
                    self.wait_for_retry(failures, pause.map(|pause| now + pause)).await?;
                }
                _ => {
                    let app = credential.kind != CredentialKind::Token;
                    return Err(GitHubError::from_refusal(*status, headers, answer, &what, app));
                }
            }
        }
    }

    /// The target of a redirect, if our token may be sent there.
    fn redirect_target(&self, what: &str, from: &Url, incoming: &Incoming, redirects: u32) -> Result<Url, GitHubError> {
        let bad = |detail: &str| GitHubError::BadAnswer { what: what.to_owned(), detail: detail.to_owned() };
        if redirects > MOST_REDIRECTS {
            return Err(bad("it redirects again and again"));
        }
        let location = incoming.headers.get(LOCATION).and_then(|location| location.to_str().ok());
        let target =
            location.and_then(|location| from.join(location).ok()).ok_or_else(|| bad("a redirect to nowhere"))?;
        if self.is_ours(&target) { Ok(target) } else { Err(bad("it redirects to another host")) }
    }

    async fn wait_for_retry(&self, failures: u32, not_before: Option<Timestamp>) -> Result<(), GitHubError> {
        let pause = BETWEEN_TRIES.pause(failures, (self.options().jitter)());
        let until = (self.now() + pause).max(not_before.unwrap_or(Timestamp::MIN));
        self.wait(Waiting { reason: WaitReason::Retry, until }).await
    }

    async fn wait(&self, waiting: Waiting) -> Result<(), GitHubError> {
        let options = self.options();
        if waiting.until.duration_since(options.clock.now()) > options.longest_wait {
            return Err(GitHubError::RateLimited { until: waiting.until });
        }
        (options.on_wait)(&waiting);
        options.clock.sleep_until(waiting.until).await;
        Ok(())
    }
}

/// Proxies sometimes cut an answer and set the length to match. JSON without its last bracket is such a piece, and a
/// retry helps.
fn whole(incoming: Incoming) -> Result<Incoming, Broken> {
    let text = incoming.body.trim_ascii();
    let closing = match text.first() {
        Some(b'{') => Some(&b'}'),
        Some(b'[') => Some(&b']'),
        _ => None,
    };
    if !incoming.status.is_success() || closing.is_none() || text.last() == closing {
        return Ok(incoming);
    }
    let detail = "the answer ends in the middle".to_owned();
    Err(Broken { before_sending: false, too_large: false, detail })
}

fn got(what: String, asked: String, incoming: Incoming) -> Got {
    let text = |name| incoming.headers.get(name).and_then(|value| value.to_str().ok());
    let etag = text(ETAG).map(|value| Etag { url: asked, value: value.to_owned() });
    let next = text(LINK).and_then(next_link).map(str::to_owned);
    Got { what, etag, next, body: incoming.body }
}
