//! The cookie during a sign-in at GitHub: a secret that must come back, signed so that only we can set it.

use axum::http::{HeaderMap, HeaderValue};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::console::Console;
use crate::sign_in::cookies::value;

/// GitHub's code is valid for as long.
const LASTS: SignedDuration = SignedDuration::from_mins(10);

/// A sign-in at GitHub that began here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GithubRoundTrip {
    pub(crate) state: String,
    /// A secret that only this browser and we know; GitHub has its hash.
    pub(crate) verifier: String,
    pub(crate) then: String,
    pub(crate) at: Timestamp,
}

pub(crate) fn random_text() -> String {
    URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>())
}

/// Stores it in the browser until it returns.
pub(crate) fn keep(console: &Console, pending: &GithubRoundTrip) -> HeaderValue {
    let body = serde_json::to_vec(pending).expect("invariant: texts and a time are JSON");
    let body = URL_SAFE_NO_PAD.encode(body);
    let signature = URL_SAFE_NO_PAD.encode(mac(&console.form_key, &body).finalize().into_bytes());
    cookie(console, &format!("{body}.{signature}"), LASTS.as_secs())
}

pub(crate) fn forget(console: &Console) -> HeaderValue {
    cookie(console, "", 0)
}

/// The sign-in stored in the browser, if it is ours and not too old.
pub(crate) fn pending_of(headers: &HeaderMap, console: &Console) -> Option<GithubRoundTrip> {
    let kept = value(headers, name(console))?;
    let (body, signature) = kept.split_once('.')?;
    let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
    mac(&console.form_key, body).verify_slice(&signature).ok()?;
    let pending: GithubRoundTrip = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(body).ok()?).ok()?;
    let age = pending.at.duration_until(console.now());
    (!age.is_negative() && age < LASTS).then_some(pending)
}

fn mac(key: &[u8; 32], body: &str) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("invariant: HMAC takes keys of any length");
    mac.update(b"console pending\n");
    mac.update(body.as_bytes());
    mac
}

fn name(console: &Console) -> &'static str {
    if console.is_secure() { "__Host-canonry-github" } else { "canonry-github" }
}

fn cookie(console: &Console, text: &str, seconds: i64) -> HeaderValue {
    let secure = if console.is_secure() { "; Secure" } else { "" };
    // Lax: GitHub redirects back from another site.
    let cookie = format!("{}={text}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}", name(console));
    HeaderValue::from_str(&cookie).expect("invariant: base64 and words of ours")
}
