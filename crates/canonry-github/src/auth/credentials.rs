//! Signs requests with a plain token, or as an App whose key creates short-lived tokens.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use canonry_domain::RepoName;
use jiff::{SignedDuration, Timestamp};
use reqwest::Method;
use rustls::SignatureScheme;
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::sign::Signer;
use serde::{Deserialize, Serialize};

use crate::api::lenient;
use crate::auth::secret::Secret;
use crate::http::client::GitHub;
use crate::http::error::GitHubError;

/// GitHub accepts an App's JWT for at most ten minutes; nine leave room for a clock that is ahead.
const JWT_LIFE: SignedDuration = SignedDuration::from_mins(9);
/// GitHub's own advice against clocks that are behind: issued a minute ago.
const JWT_AGE: SignedDuration = SignedDuration::from_secs(60);
/// Installation tokens live an hour; a new one is created when this little is left, so that a token does not expire
/// during a request.
const RENEW_BEFORE: SignedDuration = SignedDuration::from_mins(5);

/// RS256: RSA with PKCS #1 v1.5 and SHA-256.
const JWT_HEADER: &[u8] = br#"{"alg":"RS256","typ":"JWT"}"#;

#[derive(Debug, Clone)]
pub enum Auth {
    Token(Secret),
    App(AppKey),
}

#[derive(Clone)]
pub struct AppKey {
    app_id: String,
    key: Arc<dyn Signer>,
}

impl AppKey {
    /// Reads the key in GitHub's format (PEM). Line breaks may be written as `\n`, as in many environment files.
    pub fn new(app_id: &str, private_key_pem: &Secret) -> Result<Self, GitHubError> {
        let app_id = app_id.trim();
        if app_id.is_empty() {
            return Err(GitHubError::BadSetup { detail: "the App's id is empty; set CANONRY_APP_ID".to_owned() });
        }
        let pem = private_key_pem.expose().replace("\\n", "\n");
        let key = rsa_signer(&pem).ok_or_else(|| GitHubError::BadSetup {
            detail: "the App's private key is not an RSA key in PEM form; download a new one from the App's settings"
                .to_owned(),
        })?;
        Ok(Self { app_id: app_id.to_owned(), key: key.into() })
    }

    fn jwt(&self, now: Timestamp) -> Result<Secret, GitHubError> {
        let claims = Claims { iat: (now - JWT_AGE).as_second(), exp: (now + JWT_LIFE).as_second(), iss: &self.app_id };
        let claims = serde_json::to_vec(&claims).expect("invariant: plain data");
        let [header, claims] = [JWT_HEADER, &claims].map(|part| URL_SAFE_NO_PAD.encode(part));
        let signed = format!("{header}.{claims}");
        let signature = self.key.sign(signed.as_bytes()).map_err(|_| GitHubError::BadSetup {
            detail: "the App's private key cannot sign; download a new one".to_owned(),
        })?;
        Ok(Secret::new(&format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))))
    }
}

fn rsa_signer(pem: &str) -> Option<Box<dyn Signer>> {
    let key = PrivateKeyDer::from_pem_slice(pem.as_bytes()).ok()?;
    any_supported_type(&key).ok()?.choose_scheme(&[SignatureScheme::RSA_PKCS1_SHA256])
}

impl fmt::Debug for AppKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AppKey").field("app_id", &self.app_id).finish_non_exhaustive()
    }
}

#[derive(Serialize)]
struct Claims<'a> {
    iat: i64,
    exp: i64,
    iss: &'a str,
}

/// On whose behalf a request is sent. A plain token serves repositories and installations alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    Repo(RepoName),
    /// An installation with a known id, as webhooks contain it.
    Installation(i64),
    /// The account itself: the token's owner, or the App.
    Account,
    /// The App itself, for calls that a plain token cannot make.
    App,
}

/// The account of a plain token.
const TOKEN_ACCOUNT: &str = "token";

fn installation_account(installation: i64) -> String {
    format!("installation {installation}")
}

#[derive(Debug, Clone)]
pub(crate) struct Credential {
    /// The account whose rate budget the request uses.
    pub(crate) account: String,
    pub(crate) bearer: Secret,
    pub(crate) kind: CredentialKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CredentialKind {
    Token,
    App,
    Installation(i64),
}

#[derive(Debug, Default)]
pub(crate) struct TokenCache {
    installations: HashMap<String, i64>,
    tokens: HashMap<i64, InstallationToken>,
}

#[derive(Debug, Deserialize)]
struct Installation {
    id: i64,
}

#[derive(Debug, Clone, Deserialize)]
struct TokenAnswer {
    token: String,
    #[serde(default, deserialize_with = "lenient::moment")]
    expires_at: Option<Timestamp>,
}

#[derive(Debug, Clone)]
struct InstallationToken {
    token: Secret,
    expires_at: Timestamp,
}

impl GitHub {
    /// The credential for a request of this scope; creates an installation token if there is none.
    pub(crate) async fn credential(&self, scope: &Scope) -> Result<Credential, GitHubError> {
        let key = match self.auth() {
            Auth::Token(_) if *scope == Scope::App => {
                return Err(GitHubError::NeedsApp { what: "this call".to_owned() });
            }
            Auth::Token(token) => {
                let account = TOKEN_ACCOUNT.to_owned();
                return Ok(Credential { account, bearer: token.clone(), kind: CredentialKind::Token });
            }
            Auth::App(key) => key,
        };
        // Signing takes longer than most requests, so it is done only if there is no token.
        let app = || -> Result<Credential, GitHubError> {
            Ok(Credential { account: "app".to_owned(), bearer: key.jwt(self.now())?, kind: CredentialKind::App })
        };
        // Locked during the requests below: one token is created, however many tasks wait for it.
        let mut cache = self.token_cache().lock().await;
        let installation = match scope {
            Scope::App | Scope::Account => return app(),
            Scope::Installation(id) => *id,
            Scope::Repo(repo) => match cache.installations.get(&repo.key()) {
                Some(id) => *id,
                None => {
                    let id = self.find_installation(&app()?, repo).await?;
                    cache.installations.insert(repo.key(), id);
                    id
                }
            },
        };
        let bearer = match cache.tokens.get(&installation) {
            Some(known) if known.expires_at > self.now() + RENEW_BEFORE => known.token.clone(),
            _ => {
                let made = self.make_installation_token(&app()?, installation).await?;
                let token = made.token.clone();
                cache.tokens.insert(installation, made);
                token
            }
        };
        Ok(Credential {
            account: installation_account(installation),
            bearer,
            kind: CredentialKind::Installation(installation),
        })
    }

    /// The account whose rate budget requests for a repository use; `None` while its installation is unknown or being
    /// looked up.
    pub(crate) fn known_account(&self, repo: &RepoName) -> Option<String> {
        match self.auth() {
            Auth::Token(_) => Some(TOKEN_ACCOUNT.to_owned()),
            Auth::App(_) => {
                let cache = self.token_cache().try_lock().ok()?;
                let installation = cache.installations.get(&repo.key()).copied();
                installation.map(installation_account)
            }
        }
    }

    /// Drops a token that GitHub no longer accepts, and the cached installations that belong to it. Returns whether a
    /// new one can be created.
    pub(crate) async fn forget(&self, credential: &Credential) -> bool {
        let CredentialKind::Installation(id) = credential.kind else { return false };
        let mut cache = self.token_cache().lock().await;
        // Another task may have replaced it in the meantime; its new token stays.
        if cache.tokens.get(&id).is_some_and(|known| known.token == credential.bearer) {
            cache.tokens.remove(&id);
            cache.installations.retain(|_, installation| *installation != id);
        }
        true
    }

    async fn find_installation(&self, app: &Credential, repo: &RepoName) -> Result<i64, GitHubError> {
        let url = self.url(&["repos", repo.owner(), repo.name(), "installation"], &[]);
        match self.request_as(app, Method::GET, url, None, None).await {
            Ok(answer) => Ok(answer.fresh()?.json::<Installation>()?.id),
            Err(GitHubError::NotFound { .. }) => Err(GitHubError::NotInstalled { repo: repo.to_string() }),
            Err(error) => Err(error),
        }
    }

    async fn make_installation_token(&self, app: &Credential, id: i64) -> Result<InstallationToken, GitHubError> {
        let url = self.url(&["app", "installations", &id.to_string(), "access_tokens"], &[]);
        // The one POST that may be repeated: an extra token does no harm.
        let answer = self.request_as(app, Method::POST, url, Some(&serde_json::json!({})), None).await?;
        let answer: TokenAnswer = answer.fresh()?.json()?;
        let expires_at = answer.expires_at.unwrap_or_else(|| self.now() + SignedDuration::from_hours(1));
        Ok(InstallationToken { token: Secret::new(&answer.token), expires_at })
    }
}
