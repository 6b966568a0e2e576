//! The two ways to reach the server: standard input and output, and streamable HTTP.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};
use rmcp::ServiceExt as _;
use rmcp::service::{QuitReason, ServerInitializeError};
use rmcp::transport::stdio;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use crate::server::McpServer;

/// Serves one client on standard input and output until it hangs up.
pub async fn serve_stdio(server: McpServer) -> Result<(), String> {
    let running = match server.serve(stdio()).await {
        Ok(running) => running,
        // The client went away before it said anything.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(error.to_string()),
    };
    match running.waiting().await {
        Ok(QuitReason::JoinError(error)) | Err(error) => Err(error.to_string()),
        Ok(_) => Ok(()),
    }
}

/// `/mcp`: each request stands alone, so that any replica can answer it. A token is sent with every request, never a
/// cookie, so that a page in a browser can ask nothing that it could not ask anyway.
pub fn mcp_routes(server: McpServer) -> Router {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .disable_allowed_hosts();
    let service =
        StreamableHttpService::new(move || Ok(server.clone()), Arc::new(NeverSessionManager::default()), config);
    Router::new().route_service("/mcp", service).route_layer(from_fn(with_token))
}

/// Without a token nothing can be read, not even the list of tools.
async fn with_token(request: Request, next: Next) -> Response {
    if request.headers().contains_key(AUTHORIZATION) {
        return next.run(request).await;
    }
    let words = "send a GitHub token that may read the repository, as `Authorization: Bearer TOKEN`\n";
    (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, "Bearer")], words).into_response()
}
