//! The headers of every page: nothing from other hosts, nothing inline, nothing cached.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, SET_COOKIE, STRICT_TRANSPORT_SECURITY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::Response;

use crate::console::Console;
use crate::sign_in::cookies::{flash_of, forget_flash};

/// Scripts, styles and pictures only from this host; a page is never in a frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; \
    connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// The policy for the only page whose form goes to GitHub.
pub(crate) fn policy_with_forms_to(origin: &str) -> String {
    POLICY.replace("form-action 'self'", &format!("form-action 'self' {origin}"))
}

/// Sets the headers of every answer. A page that sets its own policy or cache time keeps it.
pub(crate) async fn harden(State(console): State<Arc<Console>>, request: Request, next: Next) -> Response {
    let had_flash = flash_of(request.headers()).is_some();
    let mut answer = next.run(request).await;
    let shown = had_flash && answer.status() == StatusCode::OK;
    let headers = answer.headers_mut();
    headers.entry(CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(POLICY));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    for (name, value) in [
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("permissions-policy"), "camera=(), microphone=(), geolocation=()"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if console.is_secure() {
        headers.insert(STRICT_TRANSPORT_SECURITY, HeaderValue::from_static("max-age=31536000"));
    }
    let sets_flash = headers.get_all(SET_COOKIE).iter().any(|cookie| cookie.as_bytes().starts_with(b"canonry-flash="));
    let is_page = headers.get("content-type").is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    if shown && is_page && !sets_flash {
        headers.append(SET_COOKIE, forget_flash());
    }
    answer
}
