//! Users, tokens and their rights in a repository.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::github::repos::repositories::Repo;
use crate::github::serve::call::{Answer, Call, Reply, extended};
use crate::github::world::World;

/// A person, a bot or an organisation.
#[derive(Debug, Clone)]
pub struct User {
    pub login: String,
    pub id: u64,
    pub account: Account,
}

/// The `type` of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Account {
    User,
    Bot,
    Organization,
}

/// A role in a repository, the weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Permission {
    /// No access, not even reading a private repository.
    None,
    /// `read`, formerly `pull`.
    Read,
    Triage,
    /// `write`, formerly `push`.
    Write,
    Maintain,
    Admin,
}

/// A token for calls of the API.
#[derive(Debug, Clone)]
pub struct Token {
    pub login: String,
    pub kind: TokenKind,
    /// From this time on the token is refused with 401.
    pub expires_at: Option<Timestamp>,
}

/// What limits a token's rights.
#[derive(Debug, Clone)]
pub enum TokenKind {
    Classic {
        /// `repo`, `public_repo`, …
        scopes: BTreeSet<String>,
    },
    FineGrained {
        /// `issues` → `write`, …
        permissions: BTreeMap<String, String>,
    },
    Installation {
        installation: u64,
        /// `issues` → `write`, …
        permissions: BTreeMap<String, String>,
    },
}

impl Token {
    /// Replaces the scopes of a classic token.
    pub fn scopes(&mut self, scopes: &[&str]) -> &mut Self {
        self.kind = TokenKind::Classic { scopes: scopes.iter().map(|&scope| scope.to_owned()).collect() };
        self
    }

    /// Makes it a fine-grained token with these permissions.
    pub fn fine_grained(&mut self, permissions: &[(&str, &str)]) -> &mut Self {
        let permissions = permissions.iter().map(|&(area, level)| (area.to_owned(), level.to_owned())).collect();
        self.kind = TokenKind::FineGrained { permissions };
        self
    }
}

impl Permission {
    /// The value of `role_name`.
    pub fn role_name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Read => "read",
            Self::Triage => "triage",
            Self::Write => "write",
            Self::Maintain => "maintain",
            Self::Admin => "admin",
        }
    }

    /// The value of the older `permission` field, which has four levels.
    pub(crate) fn legacy_name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Read | Self::Triage => "read",
            Self::Write | Self::Maintain => "write",
            Self::Admin => "admin",
        }
    }

    /// The value of the `permission=` filter.
    pub(crate) fn from_filter(word: &str) -> Option<Self> {
        Some(match word {
            "pull" => Self::Read,
            "triage" => Self::Triage,
            "push" => Self::Write,
            "maintain" => Self::Maintain,
            "admin" => Self::Admin,
            _ => return None,
        })
    }

    pub(crate) fn json(self) -> Value {
        json!({
            "admin": self >= Self::Admin,
            "maintain": self >= Self::Maintain,
            "push": self >= Self::Write,
            "triage": self >= Self::Triage,
            "pull": self >= Self::Read,
        })
    }
}

/// Who sent a request.
#[derive(Debug, Clone)]
pub(crate) enum Actor {
    Anonymous,
    App,
    Token(Token),
}

impl Actor {
    /// The login under which changes are made.
    pub(crate) fn login(&self) -> Option<&str> {
        match self {
            Self::Anonymous | Self::App => None,
            Self::Token(token) => Some(&token.login),
        }
    }
}

/// Areas of a repository for which App permissions and fine-grained tokens are granted.
pub(crate) const ISSUES: &[&str] = &["issues"];
/// Comments and labels of a pull request may be written with either permission.
pub(crate) const ISSUES_OR_PULLS: &[&str] = &["issues", "pull_requests"];
pub(crate) const PULLS: &[&str] = &["pull_requests"];
pub(crate) const CONTENTS: &[&str] = &["contents"];
pub(crate) const METADATA: &[&str] = &["metadata"];
pub(crate) const CHECKS: &[&str] = &["checks"];

impl World {
    /// Identifies the caller, or returns 401 with GitHub's text.
    pub(crate) fn authenticate(&self, authorization: Option<&str>) -> Result<Actor, Answer> {
        let Some(header) = authorization else { return Ok(Actor::Anonymous) };
        let (scheme, credentials) = header.split_once(' ').unwrap_or((header, ""));
        let password = (scheme.eq_ignore_ascii_case("basic")).then(|| password(credentials.trim()));
        let credentials = password.as_deref().unwrap_or(credentials).trim();
        if credentials.split('.').count() == 3 {
            self.verify_jwt(credentials)?;
            return Ok(Actor::App);
        }
        let Some(token) = self.tokens.get(credentials) else { return Err(Answer::message(401, "Bad credentials")) };
        if token.expires_at.is_some_and(|end| end <= self.now) {
            return Err(Answer::message(401, "Bad credentials"));
        }
        Ok(Actor::Token(token.clone()))
    }

    /// The role of a login in a repository.
    pub(crate) fn permission_of(&self, repo: &Repo, login: &str) -> Permission {
        let public = if repo.private { Permission::None } else { Permission::Read };
        if repo.owner.eq_ignore_ascii_case(login) {
            return Permission::Admin;
        }
        repo.collaborators.get(&login.to_ascii_lowercase()).copied().unwrap_or(public)
    }

    /// Whether the caller may read this area of a repository; 404 hides private repositories.
    pub(crate) fn may_read(&self, call: &Call, areas: &[&str]) -> Result<(), Answer> {
        let repo = call.repo(self);
        let visible = match &call.actor {
            Actor::Anonymous => !repo.private,
            Actor::App => return Err(Answer::message(403, "Resource not accessible by integration")),
            Actor::Token(token) => match &token.kind {
                TokenKind::Classic { scopes } if repo.private => {
                    scopes.contains("repo") && self.permission_of(repo, &token.login) >= Permission::Read
                }
                TokenKind::Classic { .. } => true,
                TokenKind::FineGrained { permissions } => {
                    let readable = self.permission_of(repo, &token.login) >= Permission::Read;
                    if repo.private && readable && !grants(permissions, areas, false) {
                        return Err(lacks("Resource not accessible by personal access token", areas, "read"));
                    }
                    readable
                }
                TokenKind::Installation { installation, permissions } => {
                    let installed = self.installation_covers(*installation, repo);
                    if repo.private && installed && !grants(permissions, areas, false) {
                        return Err(lacks("Resource not accessible by integration", areas, "read"));
                    }
                    installed || !repo.private
                }
            },
        };
        if visible { Ok(()) } else { Err(Answer::not_found()) }
    }

    /// The caller's role for writes in this area of a repository. In a public repository every signed-in person may
    /// open issues and comment, so the handler decides which role it requires.
    pub(crate) fn may_write(&self, call: &Call, areas: &[&str]) -> Result<Permission, Answer> {
        self.may_read(call, METADATA)?;
        let repo = call.repo(self);
        let Actor::Token(token) = &call.actor else { return Err(Answer::message(401, "Requires authentication")) };
        let permission = match &token.kind {
            TokenKind::Classic { scopes } => {
                if !scopes.contains("repo") && (repo.private || !scopes.contains("public_repo")) {
                    return Err(Answer::not_found());
                }
                self.permission_of(repo, &token.login)
            }
            TokenKind::FineGrained { permissions } => {
                if !grants(permissions, areas, true) {
                    return Err(lacks("Resource not accessible by personal access token", areas, "write"));
                }
                self.permission_of(repo, &token.login)
            }
            TokenKind::Installation { installation, permissions } => {
                if !self.installation_covers(*installation, repo) || !grants(permissions, areas, true) {
                    return Err(lacks("Resource not accessible by integration", areas, "write"));
                }
                Permission::Write
            }
        };
        if repo.archived {
            return Err(Answer::message(403, "Repository was archived so is read-only."));
        }
        Ok(permission)
    }

    pub(crate) fn users_json(&self, logins: &[String]) -> Vec<Value> {
        logins.iter().map(|login| self.user_json(login)).filter(|user| !user.is_null()).collect()
    }

    /// A user with the fields that only the profile shows.
    fn profile_json(&self, login: &str) -> Reply {
        let user = self.user_json(login);
        if user.is_null() {
            return Err(Answer::not_found());
        }
        let more = json!({
            "name": null, "company": null, "blog": "", "location": null, "email": null, "hireable": null, "bio": null,
            "public_repos": 0, "public_gists": 0, "followers": 0, "following": 0,
            "created_at": "2020-01-01T00:00:00Z", "updated_at": "2020-01-01T00:00:00Z",
        });
        Ok(Answer::ok(extended(user, more)))
    }

    /// The JSON of a user, or `null` for a deleted one.
    pub(crate) fn user_json(&self, login: &str) -> Value {
        let Some(user) = self.users.get(&login.to_ascii_lowercase()) else { return Value::Null };
        let api = format!("{}/users/{}", self.api_url, user.login);
        let account = match user.account {
            Account::User => "User",
            Account::Bot => "Bot",
            Account::Organization => "Organization",
        };
        json!({
            "login": user.login,
            "id": user.id,
            "node_id": format!("U_{}", user.id),
            "avatar_url": format!("https://avatars.githubusercontent.com/u/{}?v=4", user.id),
            "gravatar_id": "",
            "url": api,
            "html_url": format!("https://github.com/{}", user.login),
            "followers_url": format!("{api}/followers"),
            "following_url": format!("{api}/following{{/other_user}}"),
            "gists_url": format!("{api}/gists{{/gist_id}}"),
            "starred_url": format!("{api}/starred{{/owner}}{{/repo}}"),
            "subscriptions_url": format!("{api}/subscriptions"),
            "organizations_url": format!("{api}/orgs"),
            "repos_url": format!("{api}/repos"),
            "events_url": format!("{api}/events{{/privacy}}"),
            "received_events_url": format!("{api}/received_events"),
            "type": account,
            "user_view_type": "public",
            "site_admin": false,
        })
    }
}

/// `GET /user`
pub(crate) fn show_me(world: &mut World, call: &Call) -> Reply {
    let Actor::Token(token) = &call.actor else {
        return Err(Answer::message(401, "Requires authentication"));
    };
    if matches!(token.kind, TokenKind::Installation { .. }) {
        return Err(Answer::message(403, "Resource not accessible by integration"));
    }
    world.profile_json(&token.login)
}

/// `GET /users/{username}`
pub(crate) fn show_user(world: &mut World, call: &Call) -> Reply {
    world.profile_json(call.param("username"))
}

/// The password that git sends; the name before it does not matter.
fn password(encoded: &str) -> String {
    let pair = STANDARD.decode(encoded).ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
    pair.split_once(':').map_or_else(String::new, |(_, password)| password.to_owned())
}

pub(crate) fn grants(permissions: &BTreeMap<String, String>, areas: &[&str], write: bool) -> bool {
    areas.contains(&"metadata")
        || areas.iter().any(|area| match permissions.get(*area).map(String::as_str) {
            Some("write" | "admin") => true,
            Some("read") => !write,
            _ => false,
        })
}

fn lacks(message: &str, areas: &[&str], level: &str) -> Answer {
    let wanted: Vec<String> = areas.iter().map(|area| format!("{area}={level}")).collect();
    Answer::message(403, message).header("x-accepted-github-permissions", &wanted.join("; "))
}
