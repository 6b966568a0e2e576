//! The GitHub App: its JWT, its installations and their tokens.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jiff::{SignedDuration, Timestamp};
use rustls::SignatureScheme;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::github::issues::issue::time;
use crate::github::people::accounts::{Account, Actor, Token, TokenKind};
use crate::github::repos::repositories::Repo;
use crate::github::serve::call::{Answer, Call, Reply};
use crate::github::world::World;

/// The private key of the emulated App, for tests only.
pub const TEST_APP_PRIVATE_KEY: &str = include_str!("../../../keys/test-app.pem");
/// The public half of [`TEST_APP_PRIVATE_KEY`].
pub const TEST_APP_PUBLIC_KEY: &str = include_str!("../../../keys/test-app.pub.pem");

/// GitHub refuses a JWT with a longer lifetime.
const LONGEST_JWT: SignedDuration = SignedDuration::from_mins(10);
/// How long an installation token lives.
const TOKEN_LIFE: SignedDuration = SignedDuration::from_hours(1);

#[derive(Debug, Clone)]
pub struct App {
    /// The id, which is the `iss` of its JWTs.
    pub id: u64,
    /// The slug; the App's bot is `<slug>[bot]`.
    pub slug: String,
    /// The client id, which may also be the `iss`.
    pub client_id: String,
    pub public_key: String,
}

/// An installation of the App on an account.
#[derive(Debug, Clone)]
pub struct Installation {
    pub id: u64,
    pub account: String,
    /// Ids of the repositories that it may access; `None` means all of the account's.
    pub repositories: Option<BTreeSet<u64>>,
    /// `issues` → `write`, …
    pub permissions: BTreeMap<String, String>,
    pub suspended: bool,
    pub created_at: Timestamp,
}

#[derive(Deserialize)]
struct Claims {
    iss: Value,
    iat: i64,
    exp: i64,
}

impl World {
    /// Creates the App (with the test key) and its bot user.
    pub fn add_app(&mut self, id: u64, slug: &str) {
        self.bot(&format!("{slug}[bot]"));
        self.app = Some(App {
            id,
            slug: slug.to_owned(),
            client_id: format!("Iv23li{id}"),
            public_key: TEST_APP_PUBLIC_KEY.to_owned(),
        });
    }

    /// Installs the App on all repositories of an account and returns the installation's id.
    pub fn install_app(&mut self, account: &str, permissions: &[(&str, &str)]) -> u64 {
        let id = self.fresh_id();
        let permissions = permissions.iter().map(|&(area, level)| (area.to_owned(), level.to_owned())).collect();
        let created_at = self.stamp();
        self.account(account, Account::Organization);
        self.installations.push(Installation {
            id,
            account: account.to_owned(),
            repositories: None,
            permissions,
            suspended: false,
            created_at,
        });
        let installation = self.installations.iter().find(|installation| installation.id == id);
        let value = installation.map_or(Value::Null, |installation| self.installation_json(installation));
        let owned = self.repos.iter().filter(|repo| repo.owner.eq_ignore_ascii_case(account));
        let repositories: Vec<Value> = owned
            .map(|repo| json!({ "id": repo.id, "name": repo.name, "full_name": repo.full_name(), "private": repo.private }))
            .collect();
        let extra = json!({ "installation": value, "repositories": repositories });
        self.queue_event("installation", Some("created"), None, Some(account), extra);
        id
    }

    pub(crate) fn installation_of(&self, repo: &Repo) -> Option<&Installation> {
        self.installations.iter().find(|installation| covers(installation, repo))
    }

    pub(crate) fn installation_covers(&self, id: u64, repo: &Repo) -> bool {
        self.installations.iter().any(|installation| installation.id == id && covers(installation, repo))
    }

    /// 401 with GitHub's text unless the JWT is the App's own and neither too old nor too long-lived.
    pub(crate) fn verify_jwt(&self, jwt: &str) -> Result<(), Answer> {
        let refuse = |message: &str| Answer::message(401, message);
        let undecodable = || refuse("A JSON web token could not be decoded");
        let app = self.app.as_ref().ok_or_else(|| refuse("Integration not found"))?;
        let claims = signed_claims(jwt, &app.public_key).ok_or_else(undecodable)?;
        let issuer = claims.iss.as_str().map_or_else(|| claims.iss.to_string(), str::to_owned);
        if issuer != app.id.to_string() && issuer != app.client_id {
            return Err(refuse("Integration not found"));
        }
        let now = self.now.as_second();
        if claims.iat > now {
            return Err(refuse(
                "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued",
            ));
        }
        if claims.exp <= now {
            return Err(refuse(
                "'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires",
            ));
        }
        if claims.exp - now > LONGEST_JWT.as_secs() {
            return Err(refuse("'Expiration time' claim ('exp') is too far in the future"));
        }
        Ok(())
    }

    /// The App as other objects contain it, or `null` if there is none.
    pub(crate) fn app_json(&self) -> Value {
        let Some(app) = &self.app else { return Value::Null };
        let permissions = self.installations.first().map(|installation| installation.permissions.clone());
        let owner = self.users.values().find(|user| user.account != Account::Bot).map(|user| user.login.clone());
        json!({
            "id": app.id,
            "slug": app.slug,
            "node_id": format!("A_{}", app.id),
            "client_id": app.client_id,
            "owner": self.user_json(&owner.unwrap_or_else(|| format!("{}[bot]", app.slug))),
            "name": app.slug,
            "description": null,
            "external_url": "https://example.com",
            "html_url": format!("https://github.com/apps/{}", app.slug),
            "created_at": "2025-01-01T00:00:00Z",
            "updated_at": "2025-01-01T00:00:00Z",
            "permissions": permissions.unwrap_or_default(),
            "events": EVENTS,
        })
    }

    fn installation_json(&self, installation: &Installation) -> Value {
        let app = self.app.as_ref();
        let id = installation.id;
        let account = self.user_json(&installation.account);
        json!({
            "id": id,
            "account": account,
            "target_id": account["id"],
            "target_type": account["type"],
            "repository_selection": if installation.repositories.is_some() { "selected" } else { "all" },
            "access_tokens_url": format!("{}/app/installations/{id}/access_tokens", self.api_url),
            "repositories_url": format!("{}/installation/repositories", self.api_url),
            "html_url": format!("https://github.com/settings/installations/{id}"),
            "app_id": app.map_or(0, |app| app.id),
            "app_slug": app.map_or("", |app| app.slug.as_str()),
            "permissions": installation.permissions,
            "events": EVENTS,
            "single_file_name": null,
            "created_at": time(installation.created_at),
            "updated_at": time(installation.created_at),
            "suspended_by": null,
            "suspended_at": installation.suspended.then(|| time(installation.created_at)),
        })
    }
}

/// The events the App subscribes to.
const EVENTS: &[&str] = &[
    "check_run",
    "check_suite",
    "issues",
    "issue_comment",
    "pull_request",
    "pull_request_review",
    "pull_request_review_comment",
    "pull_request_review_thread",
    "push",
    "repository",
];

/// `GET /app`
pub(crate) fn show(world: &mut World, call: &Call) -> Reply {
    require_app(call)?;
    let mut value = world.app_json();
    if value.is_null() {
        return Err(Answer::not_found());
    }
    value["installations_count"] = json!(world.installations.len());
    Ok(Answer::ok(value))
}

/// `POST /app-manifests/{code}/conversions`: it needs no sign-in, because the code is the secret. Any code that
/// begins with `manifest-` returns the App.
pub(crate) fn convert_manifest(world: &mut World, call: &Call) -> Reply {
    let mut value = world.app_json();
    if value.is_null() || !call.param("code").starts_with("manifest-") {
        return Err(Answer::not_found());
    }
    value["client_secret"] = json!("the-client-secret");
    value["webhook_secret"] = json!("the-webhook-secret");
    value["pem"] = json!(TEST_APP_PRIVATE_KEY);
    Ok(Answer::json(201, value))
}

/// `GET /app/installations`
pub(crate) fn list_installations(world: &mut World, call: &Call) -> Reply {
    require_app(call)?;
    let base = format!("{}/app/installations", world.api_url);
    Ok(crate::github::serve::paging::numbered(call, &base, &world.installations, |installation| {
        world.installation_json(installation)
    }))
}

/// `GET /app/installations/{installation_id}`
pub(crate) fn show_installation(world: &mut World, call: &Call) -> Reply {
    require_app(call)?;
    Ok(Answer::ok(world.installation_json(find(world, call)?)))
}

/// `GET …/installation`
pub(crate) fn show_installation_of_repo(world: &mut World, call: &Call) -> Reply {
    require_app(call)?;
    let installation = world.installation_of(call.repo(world)).ok_or_else(Answer::not_found)?;
    Ok(Answer::ok(world.installation_json(installation)))
}

/// `POST /app/installations/{installation_id}/access_tokens`
pub(crate) fn create_token(world: &mut World, call: &Call) -> Reply {
    require_app(call)?;
    let installation = find(world, call)?;
    if installation.suspended {
        return Err(Answer::message(403, "This installation has been suspended"));
    }
    if call.field("repositories").is_some() || call.field("repository_ids").is_some() {
        return Err(Answer::message(422, "The emulator gives tokens for whole installations only"));
    }
    let permissions = match call.field("permissions").and_then(Value::as_object) {
        None => installation.permissions.clone(),
        Some(wanted) => narrowed(&installation.permissions, wanted)?,
    };
    let selection = if installation.repositories.is_some() { "selected" } else { "all" };
    let id = installation.id;
    let app = world.app.as_ref().ok_or_else(Answer::not_found)?;
    let login = format!("{}[bot]", app.slug);
    let number = world.fresh_id();
    let digits: String =
        Sha256::digest(number.to_be_bytes()).iter().take(18).map(|byte| format!("{byte:02x}")).collect();
    let text = format!("ghs_{digits}");
    let expires_at = world.stamp() + TOKEN_LIFE;
    let kind = TokenKind::Installation { installation: id, permissions: permissions.clone() };
    world.tokens.insert(text.clone(), Token { login, kind, expires_at: Some(expires_at) });
    Ok(Answer::json(
        201,
        json!({
            "token": text,
            "expires_at": time(expires_at),
            "permissions": permissions,
            "repository_selection": selection,
        }),
    ))
}

/// `GET /installation/repositories`
pub(crate) fn list_repositories(world: &mut World, call: &Call) -> Reply {
    let Actor::Token(Token { kind: TokenKind::Installation { installation, .. }, .. }) = &call.actor else {
        return Err(Answer::message(
            403,
            "You must authenticate with an installation access token in order to list repositories for an installation.",
        ));
    };
    let repos: Vec<&Repo> = world.repos.iter().filter(|repo| world.installation_covers(*installation, repo)).collect();
    let base = format!("{}/installation/repositories", world.api_url);
    let mut answer = crate::github::serve::paging::numbered(call, &base, &repos, |repo| world.repo_json(repo));
    answer.body = Some(json!({ "total_count": repos.len(), "repositories": answer.body }));
    Ok(answer)
}

pub(crate) fn require_app(call: &Call) -> Result<(), Answer> {
    match call.actor {
        Actor::App => Ok(()),
        _ => Err(Answer::message(401, "A JSON web token could not be decoded")),
    }
}

fn find<'world>(world: &'world World, call: &Call) -> Result<&'world Installation, Answer> {
    let id = call.number("installation_id")?;
    world.installations.iter().find(|installation| installation.id == id).ok_or_else(Answer::not_found)
}

/// The claims of a JWT whose signature is of this key (PKCS #1, PEM).
fn signed_claims(jwt: &str, public_key: &str) -> Option<Claims> {
    let (signed, signature) = jwt.rsplit_once('.')?;
    let (header, claims) = signed.split_once('.')?;
    let header: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header).ok()?).ok()?;
    if header["alg"] != "RS256" {
        return None;
    }
    let key: String = public_key.lines().filter(|line| !line.starts_with("-----")).collect();
    let key = STANDARD.decode(key).expect("the App's public key is a PEM");
    let provider = rustls::crypto::ring::default_provider();
    let (_, algorithms) = provider
        .signature_verification_algorithms
        .mapping
        .iter()
        .find(|(scheme, _)| *scheme == SignatureScheme::RSA_PKCS1_SHA256)?;
    let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
    algorithms.first()?.verify_signature(&key, signed.as_bytes(), &signature).ok()?;
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
}

fn covers(installation: &Installation, repo: &Repo) -> bool {
    match &installation.repositories {
        Some(ids) => ids.contains(&repo.id),
        None => installation.account.eq_ignore_ascii_case(&repo.owner),
    }
}

/// A token may have fewer rights than the installation, never more.
fn narrowed(
    granted: &BTreeMap<String, String>,
    wanted: &serde_json::Map<String, Value>,
) -> Result<BTreeMap<String, String>, Answer> {
    let mut permissions = BTreeMap::new();
    for (area, level) in wanted {
        let level = level.as_str().unwrap_or_default();
        let enough = granted.get(area).is_some_and(|granted| granted == level || granted == "write");
        if !enough {
            return Err(Answer::message(422, "The permissions requested are not granted to this installation."));
        }
        permissions.insert(area.clone(), level.to_owned());
    }
    Ok(permissions)
}
