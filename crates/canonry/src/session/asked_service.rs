//! Asks a running service instead of the local database.

use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use canonry_domain::RepoName;
use canonry_models::http_client;
use canonry_triage::{DraftReport, DraftRequest};
use reqwest::header::HeaderMap;
use serde::Deserialize;
use url::Url;

use crate::output::exit::WrongUsage;
use crate::output::printable::one_line;
use crate::session::admin_token::ADMIN_TOKEN;
use crate::session::console_secrets::secret_of;
use crate::session::github::TOKEN_VARIABLE;

/// A person waits for the answer.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Deserialize)]
struct Refusal {
    error: RefusalMessage,
}

#[derive(Deserialize)]
struct RefusalMessage {
    message: String,
}

/// Sends a draft to the service at `server`, which compares it and stores nothing.
pub(crate) async fn ask_service(server: &Url, repo: &RepoName, request: &DraftRequest) -> Result<DraftReport> {
    // The admin token opens the operator's own console: it is not sent to a service that somebody else may run.
    let Some(token) = secret_of(TOKEN_VARIABLE).or_else(|| secret_of(ADMIN_TOKEN)) else {
        bail!("{TOKEN_VARIABLE} is not set; set it to a token that can read {repo}, or set {ADMIN_TOKEN}");
    };
    if !server.username().is_empty() || server.password().is_some() {
        bail!(WrongUsage(format!("--server must not contain a password; the token comes from {TOKEN_VARIABLE}")));
    }
    let is_local = server.host_str().is_some_and(|host| matches!(host, "localhost" | "127.0.0.1" | "[::1]"));
    if server.scheme() != "https" && !is_local {
        bail!(WrongUsage(format!("{server} is not encrypted, and a token would be sent to it; use https")));
    }
    let address = format!("{}/api/repos/{repo}/check", server.as_str().trim_end_matches('/'));
    let client = http_client(HeaderMap::new(), server, PATIENCE).map_err(|error| anyhow!(error))?;
    let asking = client.post(address).bearer_auth(token.expose()).json(request).send();
    let silent = || format!("{server} does not answer; check the address and that the service is running");
    let answer = asking.await.with_context(silent)?;
    let (status, text) = (answer.status(), answer.text().await.with_context(silent)?);
    if !status.is_success() {
        let said = serde_json::from_str::<Refusal>(&text).map(|refusal| refusal.error.message);
        bail!("{server} answered {status}: {}", one_line(&said.unwrap_or_else(|_| "no reason given".to_owned())));
    }
    serde_json::from_str(&text)
        .with_context(|| format!("{server} did not answer as Canonry does; check the address and its version"))
}
