//! The console's secrets from the environment: its OAuth credentials at GitHub.

use anyhow::{Result, bail};
use canonry_console::ConsoleOauthApp;
use canonry_github::Secret;

/// The variables with the console's OAuth credentials at GitHub.
const CLIENT_ID: &str = "CANONRY_OAUTH_CLIENT_ID";
const CLIENT_SECRET: &str = "CANONRY_OAUTH_CLIENT_SECRET";

/// The App with which people sign in.
pub(crate) fn oauth_app() -> Result<Option<ConsoleOauthApp>> {
    match (secret_of(CLIENT_ID), secret_of(CLIENT_SECRET)) {
        (Some(id), Some(client_secret)) => {
            Ok(Some(ConsoleOauthApp { client_id: id.expose().to_owned(), client_secret }))
        }
        (None, None) => Ok(None),
        _ => bail!("set both {CLIENT_ID} and {CLIENT_SECRET}, or neither to sign in with the admin token only"),
    }
}

/// A secret from the environment; an empty one counts as missing.
pub(crate) fn secret_of(variable: &str) -> Option<Secret> {
    let secret = Secret::new(&std::env::var(variable).ok()?);
    (!secret.expose().is_empty()).then_some(secret)
}
