//! Finds the repository of a request to the API, if the request may read it.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Json;
use axum::http::header::{CACHE_CONTROL, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use canonry_domain::RepoName;
use canonry_github::{Clock, Secret};
use canonry_store::{Repo, Store, StoreError};
use canonry_triage::LookupError;
use serde_json::json;
use url::Url;

use crate::admin::operations::bearer;
use crate::admin::repo_readers::{ApiReader, ReadDenial, RepoReaders};

/// Tells which repositories the sender of a token may read.
pub struct ApiAccess {
    store: Store,
    readers: RepoReaders,
}

#[derive(Debug, thiserror::Error)]
pub enum ApiRefusal {
    #[error(transparent)]
    ReadDenial(#[from] ReadDenial),
    #[error("{0}")]
    BadRequest(String),
    #[error("the database does not answer; try again later")]
    Store(#[from] StoreError),
    #[error(transparent)]
    Lookup(#[from] LookupError),
}

impl ApiAccess {
    /// `github_api` says what a GitHub token may read; the admin token may read everything.
    pub fn new(store: Store, github_api: Url, admin_token: Option<Secret>, clock: Arc<dyn Clock>) -> Self {
        Self { store, readers: RepoReaders::new(github_api, admin_token, clock) }
    }

    /// The repository of this name, for the token in the headers.
    pub async fn repo(&self, name: &str, headers: &HeaderMap, peer: Option<IpAddr>) -> Result<Repo, ApiRefusal> {
        let token = bearer(headers);
        // A name that cannot exist on GitHub is answered without a request. The answer reveals nothing to a stranger.
        let Ok(name) = name.parse::<RepoName>() else {
            return Err(if token.is_none() { ReadDenial::NoToken } else { ReadDenial::NotFound }.into());
        };
        let repo = match self.readers.check(token, &name, peer).await? {
            ApiReader::Operator => self.store.repos().find(&name).await?,
            // By id, never by name: a name can move from one repository to another that has other readers.
            ApiReader::OnGithub(id) => self.store.repos().by_github_id(id).await?,
        };
        Ok(repo.ok_or(ReadDenial::NotFound)?)
    }
}

impl IntoResponse for ApiRefusal {
    fn into_response(self) -> Response {
        let status = match &self {
            Self::ReadDenial(ReadDenial::NoToken | ReadDenial::BadToken) => StatusCode::UNAUTHORIZED,
            Self::ReadDenial(ReadDenial::Forbidden) => StatusCode::FORBIDDEN,
            Self::ReadDenial(ReadDenial::NotFound) => StatusCode::NOT_FOUND,
            Self::ReadDenial(ReadDenial::TooMany | ReadDenial::Limited) => StatusCode::TOO_MANY_REQUESTS,
            Self::ReadDenial(ReadDenial::Unreachable) => StatusCode::BAD_GATEWAY,
            Self::BadRequest(_) => StatusCode::BAD_REQUEST,
            Self::Store(error) => {
                tracing::warn!(%error, "a request to the API could not be answered from the database");
                StatusCode::SERVICE_UNAVAILABLE
            }
            Self::Lookup(LookupError::TooLong) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Lookup(error) => {
                tracing::warn!(?error, "a draft could not be compared");
                StatusCode::SERVICE_UNAVAILABLE
            }
        };
        let document = json!({ "error": { "message": self.to_string() } });
        let mut answer = private((status, Json(document)).into_response());
        match status {
            StatusCode::UNAUTHORIZED => {
                answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            StatusCode::TOO_MANY_REQUESTS => {
                answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("60"));
            }
            _ => {}
        }
        answer
    }
}

/// A cache must not keep one reader's answer for another reader.
pub(crate) fn private(mut answer: Response) -> Response {
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}
