//! Answers for htmx instead of a page that it would not show, or would show inside another page.

use axum::extract::Request;
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use url::{Position, Url};

use crate::layout::errors::NoSession;
use crate::layout::paging::{link, own_path};
use crate::sign_in::cookies::keep_flash;

/// Redirects to the sign-in page if the session is over, and shows a refused action in place of the page. A part that
/// is refreshed every few seconds stays unchanged while it cannot be loaded.
pub(crate) async fn for_htmx(request: Request, next: Next) -> Response {
    if !request.headers().contains_key("hx-request") {
        return next.run(request).await;
    }
    let here = here_of(request.headers());
    let is_read = request.method() == Method::GET || request.method() == Method::HEAD;
    let mut answer = next.run(request).await;
    let status = answer.status();
    if answer.extensions().get::<NoSession>().is_some() {
        return to_sign_in(&here, is_read);
    }
    if !is_read && (status.is_client_error() || status.is_server_error()) {
        // htmx swaps in only successful answers.
        *answer.status_mut() = StatusCode::OK;
        for (name, value) in [("hx-retarget", "#main"), ("hx-reselect", "#main"), ("hx-reswap", "outerHTML")] {
            answer.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
    }
    answer
}

pub(crate) fn load_again() -> Response {
    [(HeaderName::from_static("hx-refresh"), HeaderValue::from_static("true"))].into_response()
}

/// The page that the browser shows, according to the browser.
fn here_of(headers: &HeaderMap) -> String {
    let told = headers.get("hx-current-url").and_then(|url| url.to_str().ok()).and_then(|url| Url::parse(url).ok());
    let path = told.as_ref().map(|url| &url[Position::BeforePath..Position::AfterQuery]);
    own_path(path).to_owned()
}

fn to_sign_in(here: &str, is_read: bool) -> Response {
    let mut answer = StatusCode::UNAUTHORIZED.into_response();
    if let Ok(to) = HeaderValue::try_from(link("/sign-in", &[("then", here)])) {
        answer.headers_mut().insert(HeaderName::from_static("hx-redirect"), to);
    }
    if !is_read {
        let words = "You were signed out, so nothing was changed. Sign in and do it again.";
        answer.headers_mut().append(SET_COOKIE, keep_flash(words));
    }
    answer
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderMap;

    use super::here_of;

    #[test]
    fn the_way_back_is_to_a_page_of_ours() {
        for (told, here) in [
            ("https://canonry.example/r/a/b/plans/3?show=all#pair", "/r/a/b/plans/3?show=all"),
            ("https://canonry.example//evil.example/x", "/"),
            ("javascript:alert(1)", "/"),
            ("nonsense", "/"),
        ] {
            let headers =
                HeaderMap::from_iter([("hx-current-url".parse().expect("a name"), told.parse().expect("text"))]);
            assert_eq!(here_of(&headers), here, "{told}");
        }
        assert_eq!(here_of(&HeaderMap::new()), "/");
    }
}
