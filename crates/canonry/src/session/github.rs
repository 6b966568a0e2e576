//! How commands reach GitHub.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use canonry_github::{AppKey, Auth, ClientOptions, GitHub, Secret, Waiting};
use indicatif::ProgressBar;
use jiff::SignedDuration;
use url::Url;

/// The environment variable that contains the token. It is never an option, because every process can read another
/// process's arguments.
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
    /// Returns a client that reports above the progress bar when it waits for GitHub.
    pub(crate) fn client(&self, bar: &ProgressBar) -> Result<GitHub> {
        let bar = bar.clone();
        let on_wait = Arc::new(move |waiting: &Waiting| bar.suspend(|| tracing::warn!("{waiting}")));
        Ok(GitHub::new(ClientOptions { on_wait, ..self.options()? })?)
    }

    pub(crate) fn api(&self) -> &Url {
        &self.api
    }

    /// Returns a client for a service, which logs what it waits for; `None` without credentials.
    ///
    /// The client waits only for a short time. A job that has to wait longer waits in the queue, so that the worker is
    /// free for other jobs.
    pub(crate) fn service_client(&self) -> Result<Option<GitHub>> {
        if !has_credentials() {
            return Ok(None);
        }
        let options = self.options()?;
        Ok(Some(GitHub::new(ClientOptions { longest_wait: SignedDuration::from_secs(5), tries: 2, ..options })?))
    }

    /// Returns a client for checks: it tries each request once and has short timeouts.
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

/// Returns the App's id and private key if the environment names an App. The environment contains the key, or the path
/// of the file that contains it.
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

/// Whether the environment contains credentials for GitHub: a token or an App.
pub(crate) fn has_credentials() -> bool {
    token().is_some() || is_app()
}

pub(crate) fn token() -> Option<Secret> {
    let text = std::env::var(TOKEN_VARIABLE).ok()?;
    (!text.trim().is_empty()).then(|| Secret::new(&text))
}
