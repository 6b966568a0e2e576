//! Creates a GitHub App from a manifest: the manifest, and GitHub's answer after the creation.

use canonry_boxed::boxed;
use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

use crate::auth::app_access::{APP_EVENTS, APP_PERMISSIONS};
use crate::auth::secret::Secret;
use crate::http::error::GitHubError;
use crate::http::transport::Transport;

/// A person waits at a browser for both.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
const ANSWER_LIMIT: Duration = Duration::from_secs(15);
/// An App with its key is a few thousand bytes.
const LARGEST_ANSWER: usize = 256 * 1024;

/// The manifest of the App for a service at `public_url`, in the form from which GitHub creates an App.
pub fn app_manifest(public_url: &Url) -> Value {
    let base = public_url.as_str().trim_end_matches('/');
    let permissions: serde_json::Map<String, Value> =
        APP_PERMISSIONS.iter().map(|&(name, level)| (name.to_owned(), level.into())).collect();
    json!({
        "name": "Canonry",
        "description": "Finds duplicate issues and pull requests, and reviews changes without repeating itself.",
        "url": "https://github.com/canonry/canonry",
        "hook_attributes": { "url": format!("{base}/webhooks/github"), "active": true },
        "redirect_url": format!("{base}/setup/created"),
        "callback_urls": [format!("{base}/auth/github/callback")],
        "setup_url": format!("{base}/"),
        "request_oauth_on_install": false,
        "setup_on_update": false,
        "public": false,
        "default_permissions": permissions,
        "default_events": APP_EVENTS,
    })
}

/// An App that GitHub created; GitHub returns its secrets only once.
#[derive(Clone, Deserialize)]
pub struct CreatedApp {
    pub id: i64,
    pub slug: String,
    pub html_url: String,
    pub client_id: String,
    client_secret: String,
    webhook_secret: Option<String>,
    pem: String,
}

impl CreatedApp {
    pub fn client_secret(&self) -> Secret {
        Secret::new(&self.client_secret)
    }

    pub fn webhook_secret(&self) -> Option<Secret> {
        self.webhook_secret.as_deref().map(Secret::new)
    }

    pub fn private_key(&self) -> Secret {
        Secret::new(&self.pem)
    }
}

impl fmt::Debug for CreatedApp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("CreatedApp").field("id", &self.id).field("slug", &self.slug).finish_non_exhaustive()
    }
}

/// Exchanges the code that the browser came back with for the App that was created from a manifest. The code is valid
/// for an hour and for one use.
#[boxed]
pub async fn created_app(api: &Url, code: &str) -> Result<CreatedApp, GitHubError> {
    crate::http::client::check_api(api)?;
    let what = "/app-manifests/CODE/conversions";
    let user_agent = concat!("canonry/", env!("CARGO_PKG_VERSION"));
    let transport = Transport::new(api, user_agent, CONNECT_LIMIT, ANSWER_LIMIT, LARGEST_ANSWER)?;
    let mut url = api.clone();
    let mut path = url.path_segments_mut().expect("invariant: the API's URL was checked");
    path.pop_if_empty().extend(["app-manifests", code, "conversions"]);
    drop(path);
    let host = api.host_str().unwrap_or_default().to_owned();
    let answer = transport
        .post_openly(&url, &json!({}))
        .await
        .map_err(|broken| GitHubError::Network { host, detail: broken.detail })?;
    if !answer.status.is_success() {
        return Err(GitHubError::from_refusal(answer.status, &answer.headers, &answer.body, what, false));
    }
    let bad = |error: serde_json::Error| {
        let detail = format!("it does not describe an App (column {})", error.column());
        GitHubError::BadAnswer { what: what.to_owned(), detail }
    };
    serde_json::from_slice(&answer.body).map_err(bad)
}
