//! The console's state, which every page uses.

use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::header::HOST;
use canonry_domain::RepoName;
use canonry_github::{Clock, GitHub, Secret};
use canonry_server::AddressAttempts;
use canonry_store::Store;
use canonry_triage::Lookup;
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use tokio::sync::Notify;
use url::Url;

use crate::items::public_checks::PublicChecks;
use crate::sign_in::one_time_codes::OneTimeCodes;
use crate::sign_in::roles::Roles;

pub struct ConsoleParts {
    pub store: Store,
    /// The GitHub client that checks permissions; without it only the admin token signs in.
    pub github: Option<GitHub>,
    pub github_api: Url,
    pub clock: Arc<dyn Clock>,
    /// The App that people sign in with; `None` without its id and secret.
    pub oauth: Option<ConsoleOauthApp>,
    /// The address people open the console at, if it is not the one it listens on.
    pub public_url: Option<Url>,
    pub admin_token: AdminToken,
    /// Random bytes that sign forms. They are the same after a restart and in all processes.
    pub form_key: [u8; 32],
    /// Links that sign in once, which only the demo creates; `None` in a service.
    pub one_time_codes: Option<Arc<OneTimeCodes>>,
    /// Notified when a job was queued.
    pub wake_worker: Arc<Notify>,
    /// Notified when something was put into the outbox.
    pub wake_publisher: Arc<Notify>,
    pub version: &'static str,
    /// The commands of the command line, for the search.
    pub commands: Vec<ConsoleCommand>,
    /// Compares drafts with the stored items; without it there is no such page.
    pub lookup: Option<Arc<Lookup>>,
    /// Repositories whose drafts anybody may check, without signing in.
    pub public_checks: Vec<RepoName>,
}

/// A command of the command line in the search results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsoleCommand {
    /// `canonry plan show PLAN`.
    pub usage: String,
    /// What it does, in one line.
    pub about: String,
}

/// GitHub's credentials of the App that signs people in.
#[derive(Debug, Clone)]
pub struct ConsoleOauthApp {
    pub client_id: String,
    pub client_secret: Secret,
}

/// The SHA-256 of the operator's token.
#[derive(Clone, Copy)]
pub struct AdminToken([u8; 32]);

impl AdminToken {
    /// From the token that an operator was given or chose.
    pub fn given(token: &Secret) -> Self {
        Self(Sha256::digest(token.expose().as_bytes()).into())
    }

    pub const fn hashed(hash: [u8; 32]) -> Self {
        Self(hash)
    }

    /// The seal that an operator's session is stored with; `session_id` is the value in the browser's cookie. After a
    /// change of the token, no session has a valid seal.
    pub fn seal(&self, session_id: &str) -> [u8; 32] {
        let seal = Sha256::new().chain_update(b"operator of the console\n").chain_update(self.0);
        seal.chain_update(session_id.as_bytes()).finalize().into()
    }

    /// Compares in constant time.
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
    pub(crate) wrong_tokens: AddressAttempts,
    pub(crate) lookup: Option<Arc<Lookup>>,
    pub(crate) public_checks: PublicChecks,
    pub(crate) strangers_drafts: AddressAttempts,
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
            lookup: parts.lookup,
            public_checks: PublicChecks::new(parts.public_checks),
            strangers_drafts: AddressAttempts::default(),
            roles: Roles::default(),
            wrong_tokens: AddressAttempts::default(),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The address people open the console at: the operator's setting, else the browser's host.
    pub(crate) fn address(&self, headers: &HeaderMap) -> Option<Url> {
        let told = || headers.get(HOST)?.to_str().ok().and_then(|host| Url::parse(&format!("http://{host}")).ok());
        self.public_url.clone().or_else(told)
    }

    /// Whether people use https: then cookies are restricted to it.
    pub(crate) fn is_secure(&self) -> bool {
        self.public_url.as_ref().is_some_and(|url| url.scheme() == "https")
    }
}
