//! Sign-in to another program with a GitHub account: the page that redirects back, and the exchange of the code.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::SignedDuration;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::github::people::accounts::{Token, TokenKind};
use crate::github::serve::call::{Answer, Call, Reply};
use crate::github::world::World;

/// How long a code is valid.
const CODE_LIFE: SignedDuration = SignedDuration::from_mins(10);
/// How long a person's token is valid.
const TOKEN_LIFE: SignedDuration = SignedDuration::from_hours(8);

/// A program that people sign in to.
#[derive(Debug, Clone)]
pub struct OauthApp {
    pub client_id: String,
    pub client_secret: String,
    /// The only URL to which people are redirected.
    pub callback: String,
    /// Login of the person at the browser, who agrees; `None` declines. `as=LOGIN` in the URL overrides it.
    pub person: Option<String>,
    codes: BTreeMap<String, Code>,
}

#[derive(Debug, Clone)]
struct Code {
    login: String,
    challenge: Option<String>,
    ends_at: jiff::Timestamp,
}

impl OauthApp {
    pub fn new(client_id: &str, client_secret: &str, callback: &str) -> Self {
        Self {
            client_id: client_id.to_owned(),
            client_secret: client_secret.to_owned(),
            callback: callback.to_owned(),
            person: None,
            codes: BTreeMap::new(),
        }
    }
}

/// Redirects the browser at once, as if the person had agreed or declined.
pub(crate) fn authorize(world: &mut World, call: &Call) -> Reply {
    let ends_at = world.now + CODE_LIFE;
    let number = world.fresh_id();
    let oauth = world.oauth.as_mut().ok_or_else(Answer::not_found)?;
    if call.query("client_id") != Some(oauth.client_id.as_str()) {
        return Err(Answer::not_found());
    }
    let callback = call.query("redirect_uri").unwrap_or(&oauth.callback);
    if callback != oauth.callback {
        return Err(Answer::message(400, "The redirect_uri is not associated with this application."));
    }
    let challenge = call.query("code_challenge").map(str::to_owned);
    if challenge.is_some() && call.query("code_challenge_method") != Some("S256") {
        return Err(Answer::message(400, "The code_challenge_method must be S256."));
    }
    let person = call.query("as").map(str::to_owned).or_else(|| oauth.person.clone());
    let person = person.filter(|login| world.users.contains_key(&login.to_ascii_lowercase()));
    let told = match person {
        Some(login) => {
            let code = format!("{number:020x}");
            oauth.codes.insert(code.clone(), Code { login, challenge, ends_at });
            format!("code={code}")
        }
        None => "error=access_denied".to_owned(),
    };
    let state: String = call.query("state").unwrap_or_default().bytes().map(|byte| format!("%{byte:02X}")).collect();
    let back = format!("{}?{told}&state={state}", oauth.callback);
    Ok(Answer::empty(302).header("location", &back))
}

/// Exchanges a code for a token, once. Errors have status 200, as on GitHub.
pub(crate) fn access_token(world: &mut World, call: &Call) -> Reply {
    let (now, number) = (world.now, world.fresh_id());
    let field = |name| call.field(name).and_then(Value::as_str);
    let oauth = world.oauth.as_mut().ok_or_else(Answer::not_found)?;
    let wrong = |error: &str| Ok(Answer::ok(json!({ "error": error, "error_description": "The request is wrong." })));
    if field("client_id") != Some(&oauth.client_id) || field("client_secret") != Some(&oauth.client_secret) {
        return wrong("incorrect_client_credentials");
    }
    let Some(code) = field("code").and_then(|code| oauth.codes.remove(code)).filter(|code| code.ends_at > now) else {
        return wrong("bad_verification_code");
    };
    let proven = field("code_verifier").map(|verifier| URL_SAFE_NO_PAD.encode(Sha256::digest(verifier)));
    if code.challenge != proven {
        return wrong("bad_verification_code");
    }
    let token = format!("ghu_{number:036}");
    let kind = TokenKind::FineGrained { permissions: BTreeMap::new() };
    world.tokens.insert(token.clone(), Token { login: code.login, kind, expires_at: Some(now + TOKEN_LIFE) });
    Ok(Answer::ok(json!({ "access_token": token, "token_type": "bearer", "scope": "" })))
}
