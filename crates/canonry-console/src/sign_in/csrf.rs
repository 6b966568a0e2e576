//! Checks that a form was made by one of our pages, for the session that sends it.

use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use subtle::ConstantTimeEq as _;
use url::Url;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

pub(crate) fn token(key: &[u8; 32], session_id: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("invariant: HMAC takes keys of any length");
    mac.update(b"console form\n");
    mac.update(session_id.as_bytes());
    URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes())
}

/// Whether a form's token belongs to this session, compared in constant time.
pub(crate) fn is_token(key: &[u8; 32], session_id: &str, told: &str) -> bool {
    token(key, session_id).as_bytes().ct_eq(told.as_bytes()).into()
}

/// Whether one of our pages sent this, according to the browser. A request without an origin does not come from a
/// browser's form and is refused.
pub(crate) fn is_from_here(headers: &HeaderMap, public_url: Option<&Url>) -> bool {
    if let Some(site) = headers.get(SEC_FETCH_SITE) {
        return site == "same-origin";
    }
    let Some(origin) = headers.get(ORIGIN).and_then(|origin| Url::parse(origin.to_str().ok()?).ok()) else {
        return false;
    };
    if let Some(public) = public_url {
        return origin.origin() == public.origin();
    }
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    host.and_then(|host| Url::parse(&format!("{}://{host}", origin.scheme())).ok())
        .is_some_and(|here| here.origin() == origin.origin())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderMap;
    use url::Url;

    use super::{is_from_here, is_token, token};

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().expect("name"), value.parse().expect("value"))).collect()
    }

    #[test]
    fn a_token_is_for_one_session() {
        let key = [7; 32];
        assert!(is_token(&key, "a", &token(&key, "a")));
        assert!(!is_token(&key, "b", &token(&key, "a")));
        assert!(!is_token(&[8; 32], "a", &token(&key, "a")));
        assert!(!is_token(&key, "a", ""));
    }

    #[test]
    fn only_pages_of_ours_send_forms() {
        let public: Url = "https://canonry.example".parse().expect("URL");
        let from_here = |pairs: &[(&'static str, &str)]| is_from_here(&headers(pairs), None);
        assert!(from_here(&[("origin", "http://127.0.0.1:8080"), ("host", "127.0.0.1:8080")]));
        assert!(!from_here(&[("origin", "http://127.0.0.1:8081"), ("host", "127.0.0.1:8080")]));
        assert!(!from_here(&[("origin", "null"), ("host", "127.0.0.1:8080")]));
        assert!(!from_here(&[("host", "127.0.0.1:8080")]));
        assert!(from_here(&[("sec-fetch-site", "same-origin")]));
        assert!(!from_here(&[
            ("sec-fetch-site", "same-site"),
            ("origin", "http://127.0.0.1:8080"),
            ("host", "127.0.0.1:8080")
        ]));
        assert!(is_from_here(&headers(&[("origin", "https://canonry.example"), ("host", "10.0.0.7")]), Some(&public)));
        assert!(!is_from_here(&headers(&[("origin", "http://10.0.0.7"), ("host", "10.0.0.7")]), Some(&public)));
    }
}
