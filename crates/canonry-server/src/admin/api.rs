//! The API under `/api/repos/{owner}/{repo}`: the JSON that commands print with `--json`.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::rejection::JsonRejection;
use axum::extract::{ConnectInfo, DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use canonry_domain::RepoName;
use canonry_triage::{DraftRequest, Lookup};
use serde::Serialize;
use serde_json::{Value, json};

use crate::admin::api_access::{ApiAccess, ApiRefusal, private};
use crate::admin::threshold_report::threshold_report;

/// The parts of the API.
pub struct ApiParts {
    pub access: Arc<ApiAccess>,
    pub lookup: Arc<Lookup>,
}

/// The routes of the API. The server must provide the peer's address as [`ConnectInfo`].
pub fn api_routes(parts: ApiParts) -> Router {
    Router::new()
        .route("/api/repos/{owner}/{repo}/triage/threshold-state", get(threshold_state))
        .route("/api/repos/{owner}/{repo}/check", post(check).layer(DefaultBodyLimit::max(LARGEST_DRAFT)))
        .with_state(Arc::new(parts))
}

type Peer = Option<Extension<ConnectInfo<SocketAddr>>>;

/// Bytes of a request with a draft: as JSON, 1 MiB of text may take several times as much.
const LARGEST_DRAFT: usize = 4 << 20;
/// The most similar items that a check answers with.
const MOST_SIMILAR: u16 = 50;

/// `GET …/triage/threshold-state`: what `canonry thresholds --json` prints.
async fn threshold_state(
    State(shared): State<Arc<ApiParts>>,
    Path((owner, repo)): Path<(String, String)>,
    peer: Peer,
    headers: HeaderMap,
) -> Result<Response, ApiRefusal> {
    let peer = peer.map(|Extension(ConnectInfo(peer))| peer.ip());
    let repo = shared.access.repo(&format!("{owner}/{repo}"), &headers, peer).await?;
    let report = threshold_report(&shared.lookup.store, &repo).await?;
    let stats = json!(report.stats());
    Ok(document(&shared, "thresholds", &repo.name, &stats, &report))
}

/// `POST …/check`: what `canonry check --json` prints about the draft in the request.
async fn check(
    State(shared): State<Arc<ApiParts>>,
    Path((owner, repo)): Path<(String, String)>,
    peer: Peer,
    headers: HeaderMap,
    request: Result<Json<DraftRequest>, JsonRejection>,
) -> Result<Response, ApiRefusal> {
    let peer = peer.map(|Extension(ConnectInfo(peer))| peer.ip());
    let repo = shared.access.repo(&format!("{owner}/{repo}"), &headers, peer).await?;
    let Json(request) = request.map_err(|rejection| ApiRefusal::BadRequest(rejection.body_text()))?;
    if request.draft.is_empty() {
        return Err(ApiRefusal::BadRequest("the draft is empty; send a title".to_owned()));
    }
    let report = shared.lookup.check(&repo, &request.draft, usize::from(request.k.clamp(1, MOST_SIMILAR))).await?;
    Ok(document(&shared, "check", &repo.name, &json!(report.stats), &report))
}

/// The document of a command, with the keys of `report` at its top.
fn document(shared: &ApiParts, command: &str, repo: &RepoName, stats: &Value, report: &impl Serialize) -> Response {
    let mut document = json!({
        "schema_version": 1,
        "command": command,
        "run_id": format!("{:012x}{:016x}", shared.lookup.clock.now().as_millisecond(), rand::random::<u64>()),
        "repo": repo,
        "stats": stats,
    });
    if let (Some(document), Value::Object(more)) = (document.as_object_mut(), json!(report)) {
        document.extend(more);
    }
    private((StatusCode::OK, Json(document)).into_response())
}
