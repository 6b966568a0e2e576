//! How commands reach GitHub.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use canonry_github::{AppKey, Auth, ClientOptions, GitHub, Secret, Waiting};
use indicatif::ProgressBar;
use jiff::SignedDuration;
use url::Url;

/// The variable that holds the token. Never an option: arguments are seen by every process.
pub(crate) const TOKEN_VARIABLE: &str = "GITHUB_TOKEN";

/// The option that names GitHub's API.
#[derive(Debug, clap::Args)]
pub(crate) struct GithubOption {
    /// GitHub's API, for GitHub Enterprise Server https://HOST/api/v3; the token comes from GITHUB_TOKEN
    #[arg(
        long = "github-api",
        value_name = "URL",
        env = "CANONRY_GITHUB_API_URL",
        default_value = "https://api.github.com"
    )]
    api: Url,
}

impl GithubOption {
    /// A client; what it waits for is told above the progress bar.
    pub(crate) fn client(&self, bar: &ProgressBar) -> Result<GitHub> {
        let bar = bar.clone();
        let on_wait = Arc::new(move |waiting: &Waiting| bar.suspend(|| tracing::warn!("{waiting}")));
        Ok(GitHub::new(ClientOptions { on_wait, ..self.options()? })?)
    }

    pub(crate) fn api(&self) -> &Url {
        &self.api
    }

    /// A client for a service, which logs what it waits for; `None` without credentials.
    ///
    /// Whoever has to wait for long waits in the queue: a worker that sleeps does nobody's work.
    pub(crate) fn service_client(&self) -> Result<Option<GitHub>> {
        if !has_credentials() {
            return Ok(None);
        }
        let options = self.options()?;
        Ok(Some(GitHub::new(ClientOptions { longest_wait: SignedDuration::from_secs(5), tries: 2, ..options })?))
    }

    /// A client that asks once and does not wait long, for checks.
    pub(crate) fn impatient_client(&self) -> Result<GitHub> {
        let options = self.options()?;
        let limit = Duration::from_secs(10);
        Ok(GitHub::new(ClientOptions { tries: 1, connect_timeout: limit, request_timeout: limit, ..options })?)
    }

    fn options(&self) -> Result<ClientOptions> {
        let auth = match (app_key()?, token()) {
            (Some(app), _) => Auth::App(app),
            (None, Some(token)) => Auth::Token(token),
            (None, None) => bail!(
                "GITHUB_TOKEN is not set; set it to a token that can read the repository, or set CANONRY_APP_ID and \
                 CANONRY_APP_PRIVATE_KEY"
            ),
        };
        Ok(ClientOptions { api: self.api.clone(), ..ClientOptions::new(auth) })
    }
}

/// The App's id and key, if the environment names an App: the key itself, or the file that holds it.
fn app_key() -> Result<Option<AppKey>> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let Some(app_id) = set("CANONRY_APP_ID") else {
        return Ok(None);
    };
    let pem = match (set("CANONRY_APP_PRIVATE_KEY"), set("CANONRY_APP_PRIVATE_KEY_PATH")) {
        (Some(pem), _) => pem,
        (None, Some(path)) => std::fs::read_to_string(&path).with_context(|| {
            format!("the App's private key cannot be read from {path}; check CANONRY_APP_PRIVATE_KEY_PATH")
        })?,
        (None, None) => {
            bail!("CANONRY_APP_ID is set without a key; set CANONRY_APP_PRIVATE_KEY to the App's private key")
        }
    };
    Ok(Some(AppKey::new(app_id.trim(), &Secret::new(&pem))?))
}

/// Whether the environment names a GitHub App.
pub(crate) fn is_app() -> bool {
    std::env::var("CANONRY_APP_ID").is_ok_and(|id| !id.trim().is_empty())
}

/// Whether the environment holds something to reach GitHub with.
pub(crate) fn has_credentials() -> bool {
    token().is_some() || is_app()
}

/// The token, if there is one.
pub(crate) fn token() -> Option<Secret> {
    let text = std::env::var(TOKEN_VARIABLE).ok()?;
    (!text.trim().is_empty()).then(|| Secret::new(&text))
}
