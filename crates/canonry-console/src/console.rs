//! What every page is answered from.

use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::header::HOST;
use canonry_github::{Clock, GitHub, Secret};
use canonry_server::WrongTokens;
use canonry_store::Store;
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use tokio::sync::Notify;
use url::Url;

use crate::sign_in::one_time_codes::OneTimeCodes;
use crate::sign_in::roles::Roles;

pub struct ConsoleParts {
    pub store: Store,
    /// Whom permissions are asked of; without it only the admin token signs in.
    pub github: Option<GitHub>,
    pub github_api: Url,
    pub clock: Arc<dyn Clock>,
    /// The App that people sign in with; none without its id and secret.
    pub oauth: Option<ConsoleOauthApp>,
    /// The address people reach the console at, where that is not the one it listens at.
    pub public_url: Option<Url>,
    pub admin_token: AdminToken,
    /// Random bytes that stay the same from start to start, and in all processes: what forms are signed with.
    pub form_key: [u8; 32],
    /// Links that sign in once, which only the demo gives; none in a service.
    pub one_time_codes: Option<Arc<OneTimeCodes>>,
    /// Rung when a job was queued.
    pub wake_worker: Arc<Notify>,
    /// Rung when something was put into the outbox.
    pub wake_publisher: Arc<Notify>,
    pub version: &'static str,
    /// The commands of the command line, which the search finds.
    pub commands: Vec<ConsoleCommand>,
}

/// A command of the command line as the search shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsoleCommand {
    /// `canonry plan show PLAN`.
    pub usage: String,
    /// What it does, in one line.
    pub about: String,
}

/// What GitHub knows an App by when it signs people in.
#[derive(Debug, Clone)]
pub struct ConsoleOauthApp {
    pub client_id: String,
    pub client_secret: Secret,
}

/// What an operator signs in with, as its SHA-256.
#[derive(Clone, Copy)]
pub struct AdminToken([u8; 32]);

impl AdminToken {
    /// The token that an operator was given or chose.
    pub fn given(token: &Secret) -> Self {
        Self(Sha256::digest(token.expose().as_bytes()).into())
    }

    pub const fn hashed(hash: [u8; 32]) -> Self {
        Self(hash)
    }

    /// What a session of whoever shows this token is stored with; `session_id` is what the browser gets. When the token is
    /// another one, no session has that of it.
    pub fn seal(&self, session_id: &str) -> [u8; 32] {
        let seal = Sha256::new().chain_update(b"operator of the console\n").chain_update(self.0);
        seal.chain_update(session_id.as_bytes()).finalize().into()
    }

    /// Whether `token` is it, in constant time.
    pub(crate) fn is(&self, token: &str) -> bool {
        let hash: [u8; 32] = Sha256::digest(token.trim().as_bytes()).into();
        hash.ct_eq(&self.0).into()
    }
}

pub(crate) struct Console {
    pub(crate) store: Store,
    pub(crate) github: Option<GitHub>,
    pub(crate) github_api: Url,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) oauth: Option<ConsoleOauthApp>,
    pub(crate) public_url: Option<Url>,
    pub(crate) admin_token: AdminToken,
    pub(crate) form_key: [u8; 32],
    pub(crate) one_time_codes: Option<Arc<OneTimeCodes>>,
    pub(crate) wake_worker: Arc<Notify>,
    pub(crate) wake_publisher: Arc<Notify>,
    pub(crate) version: &'static str,
    pub(crate) commands: Vec<ConsoleCommand>,
    pub(crate) roles: Roles,
    pub(crate) wrong_tokens: WrongTokens,
}

impl Console {
    pub(crate) fn new(parts: ConsoleParts) -> Self {
        Self {
            store: parts.store,
            github: parts.github,
            github_api: parts.github_api,
            clock: parts.clock,
            oauth: parts.oauth,
            public_url: parts.public_url,
            admin_token: parts.admin_token,
            form_key: parts.form_key,
            one_time_codes: parts.one_time_codes,
            wake_worker: parts.wake_worker,
            wake_publisher: parts.wake_publisher,
            version: parts.version,
            commands: parts.commands,
            roles: Roles::default(),
            wrong_tokens: WrongTokens::default(),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The address people reach the console at: as the operator says, else as the browser does.
    pub(crate) fn address(&self, headers: &HeaderMap) -> Option<Url> {
        let told = || headers.get(HOST)?.to_str().ok().and_then(|host| Url::parse(&format!("http://{host}")).ok());
        self.public_url.clone().or_else(told)
    }

    /// Whether people reach the console by https: then cookies are for it alone.
    pub(crate) fn is_secure(&self) -> bool {
        self.public_url.as_ref().is_some_and(|url| url.scheme() == "https")
    }
}
