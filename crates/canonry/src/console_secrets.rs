//! The secrets of the console: random tokens, what forms are signed with, what GitHub knows it by.

use anyhow::{Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use canonry_console::OauthApp;
use canonry_github::Secret;
use canonry_store::Store;
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

/// The variables with what GitHub knows the console by.
const CLIENT_ID: &str = "CANONRY_OAUTH_CLIENT_ID";
const CLIENT_SECRET: &str = "CANONRY_OAUTH_CLIENT_SECRET";

/// A token of 32 random bytes.
pub(crate) fn fresh_token() -> Secret {
    Secret::new(&URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>()))
}

/// What forms are signed with: the same from start to start and in every process, and of no use for anything else.
pub(crate) async fn form_key(store: &Store) -> Result<[u8; 32]> {
    let marker = store.marker_secret(rand::random(), Timestamp::now()).await?;
    Ok(Sha256::new().chain_update(b"canonry console forms\n").chain_update(marker).finalize().into())
}

/// The App that people sign in with.
pub(crate) fn oauth_app() -> Result<Option<OauthApp>> {
    match (secret_of(CLIENT_ID), secret_of(CLIENT_SECRET)) {
        (Some(id), Some(client_secret)) => Ok(Some(OauthApp { client_id: id.expose().to_owned(), client_secret })),
        (None, None) => Ok(None),
        _ => bail!(
            "{CLIENT_ID} and {CLIENT_SECRET} belong together; set both, or none to sign in by the admin token alone"
        ),
    }
}

/// A secret from the environment; an empty one is none.
pub(crate) fn secret_of(variable: &str) -> Option<Secret> {
    let secret = Secret::new(&std::env::var(variable).ok()?);
    (!secret.expose().is_empty()).then_some(secret)
}
