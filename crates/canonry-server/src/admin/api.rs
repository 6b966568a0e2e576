//! `GET /api/repos/{owner}/{repo}/triage/threshold-state`: the JSON that `canonry thresholds --json` prints.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{ConnectInfo, Path, State};
use axum::http::header::{CACHE_CONTROL, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Json};
use canonry_domain::RepoName;
use canonry_store::{Repo, StoreError};
use serde_json::{Value, json};

use crate::admin::operations::{OperationsState, bearer};
use crate::admin::repo_readers::{ApiReader, ReadDenial};
use crate::admin::threshold_report::threshold_report;

#[derive(Debug, thiserror::Error)]
enum ApiRefusal {
    #[error(transparent)]
    ReadDenial(#[from] ReadDenial),
    #[error("the database does not answer; try again later")]
    Store(#[from] StoreError),
}

pub(crate) async fn threshold_state(
    State(shared): State<Arc<OperationsState>>,
    Path((owner, repo)): Path<(String, String)>,
    peer: Option<Extension<ConnectInfo<SocketAddr>>>,
    headers: HeaderMap,
) -> Response {
    let peer = peer.map(|Extension(ConnectInfo(peer))| peer.ip());
    match find(&shared, &owner, &repo, bearer(&headers), peer).await {
        Ok(document) => private((StatusCode::OK, Json(document)).into_response()),
        Err(refused) => refuse(&refused),
    }
}

async fn find(
    shared: &OperationsState,
    owner: &str,
    name: &str,
    token: Option<&str>,
    peer: Option<IpAddr>,
) -> Result<Value, ApiRefusal> {
    // A name that cannot exist on GitHub is answered without a request. The answer reveals nothing to a stranger.
    let Ok(name) = format!("{owner}/{name}").parse::<RepoName>() else {
        return Err(if token.is_none() { ReadDenial::NoToken } else { ReadDenial::NotFound }.into());
    };
    let repo = match shared.readers.check(token, &name, peer).await? {
        ApiReader::Operator => shared.store.repos().find(&name).await?,
        // By id, never by name: a name can move from one repository to another that has other readers.
        ApiReader::OnGithub(id) => shared.store.repos().by_github_id(id).await?,
    };
    let repo = repo.ok_or(ReadDenial::NotFound)?;
    document(shared, &repo).await
}

async fn document(shared: &OperationsState, repo: &Repo) -> Result<Value, ApiRefusal> {
    let report = threshold_report(&shared.store, repo).await?;
    let mut document = json!({
        "schema_version": 1,
        "command": "thresholds",
        "run_id": format!("{:012x}{:016x}", shared.clock.now().as_millisecond(), rand::random::<u64>()),
        "repo": repo.name,
        "stats": report.stats(),
    });
    if let (Some(document), Value::Object(more)) = (document.as_object_mut(), json!(report)) {
        document.extend(more);
    }
    Ok(document)
}

fn refuse(refused: &ApiRefusal) -> Response {
    let status = match refused {
        ApiRefusal::ReadDenial(ReadDenial::NoToken | ReadDenial::BadToken) => StatusCode::UNAUTHORIZED,
        ApiRefusal::ReadDenial(ReadDenial::Forbidden) => StatusCode::FORBIDDEN,
        ApiRefusal::ReadDenial(ReadDenial::NotFound) => StatusCode::NOT_FOUND,
        ApiRefusal::ReadDenial(ReadDenial::TooMany | ReadDenial::Limited) => StatusCode::TOO_MANY_REQUESTS,
        ApiRefusal::ReadDenial(ReadDenial::Unreachable) => StatusCode::BAD_GATEWAY,
        ApiRefusal::Store(error) => {
            tracing::warn!(%error, "the threshold could not be read from the database");
            StatusCode::SERVICE_UNAVAILABLE
        }
    };
    let document = json!({ "error": { "message": refused.to_string() } });
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

/// A cache must not keep one reader's answer for another reader.
fn private(mut answer: Response) -> Response {
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}
