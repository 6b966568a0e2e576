//! Sends writes once, without retries, and reports exactly what is known if one fails.

use jiff::Timestamp;
use reqwest::{Method, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;

use crate::auth::credentials::{Credential, Scope};
use crate::http::client::GitHub;
use crate::http::error::{GitHubError, header, message_of};
use crate::http::transport::{Broken, Incoming, Outgoing};

/// What is known about a write that did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// GitHub neither carried it out nor judged it: it may be sent again later.
    #[error("{0}")]
    NotSent(GitHubError),
    /// GitHub refused it: sending it again unchanged is useless.
    #[error("GitHub refuses the write (status {status}: {message})")]
    Refused { status: u16, message: String },
    /// It is unknown whether it was carried out; only reading the state from GitHub tells.
    #[error("whether GitHub carried out the write is unknown ({detail}); check before it is sent again")]
    Ambiguous {
        /// What happened instead of an answer.
        detail: String,
    },
}

impl WriteError {
    /// When a write that was not sent may be retried, if GitHub said so.
    pub fn retry_at(&self) -> Option<Timestamp> {
        match self {
            Self::NotSent(GitHubError::RateLimited { until }) => Some(*until),
            _ => None,
        }
    }
}

impl GitHub {
    /// Sends a write and parses the thing it created or changed.
    pub(crate) async fn write_json<T: DeserializeOwned>(
        &self,
        scope: &Scope,
        method: Method,
        url: Url,
        body: &Value,
    ) -> Result<T, WriteError> {
        let answer = self.write(scope, method, url, Some(body)).await?;
        // It was carried out, but the result is unknown: the same as no answer.
        serde_json::from_slice(&answer)
            .map_err(|error| WriteError::Ambiguous { detail: format!("the answer cannot be read: {error}") })
    }

    /// Sends a write; returns the body of the answer.
    pub(crate) async fn write(
        &self,
        scope: &Scope,
        method: Method,
        url: Url,
        body: Option<&Value>,
    ) -> Result<Vec<u8>, WriteError> {
        let credential = self.credential(scope).await.map_err(WriteError::NotSent)?;
        let answer = self.write_as(&credential, method.clone(), &url, body).await;
        // After a 401 it is certain that nothing was carried out, so a revoked installation token costs one more try
        // and leaves no doubt.
        if matches!(answer, Err(WriteError::Refused { status: 401, .. })) && self.forget(&credential).await {
            let credential = self.credential(scope).await.map_err(WriteError::NotSent)?;
            return self.write_as(&credential, method, &url, body).await;
        }
        answer
    }

    async fn write_as(
        &self,
        credential: &Credential,
        method: Method,
        url: &Url,
        body: Option<&Value>,
    ) -> Result<Vec<u8>, WriteError> {
        let sent_at = self.now();
        if let Some(waiting) = self.budget().blocked(&credential.account, sent_at) {
            return Err(WriteError::NotSent(GitHubError::RateLimited { until: waiting.until }));
        }
        let outgoing = Outgoing { method, url, bearer: &credential.bearer, body, etag: None };
        let incoming = match self.transport().send(outgoing).await {
            Ok(incoming) => incoming,
            Err(Broken { before_sending: true, detail, .. }) => {
                let host = url.host_str().unwrap_or("GitHub").to_owned();
                return Err(WriteError::NotSent(GitHubError::Network { host, detail }));
            }
            Err(broken) => return Err(WriteError::Ambiguous { detail: broken.detail }),
        };
        let Incoming { status, headers, body: answer } = &incoming;
        let now = self.now();
        self.note_time(headers, sent_at, now);
        if let Some(waiting) = self.budget().note(&credential.account, *status, headers, answer, now, 0) {
            return Err(WriteError::NotSent(GitHubError::RateLimited { until: waiting.until }));
        }
        if status.is_success() { Ok(incoming.body) } else { Err(refusal(*status, &incoming)) }
    }
}

fn refusal(status: StatusCode, incoming: &Incoming) -> WriteError {
    // 408 comes from a gateway that waited too long; it is not a refusal.
    if status.is_server_error() || status == StatusCode::REQUEST_TIMEOUT {
        return WriteError::Ambiguous { detail: format!("status {}", status.as_u16()) };
    }
    let message = if status.is_redirection() {
        let to = header(&incoming.headers, "location").unwrap_or_else(|| "another place".to_owned());
        format!("the address has moved to {to}; run `canonry sync`, then try again")
    } else {
        message_of(&incoming.body)
    };
    WriteError::Refused { status: status.as_u16(), message }
}
