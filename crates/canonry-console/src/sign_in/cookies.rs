//! The console's cookies: the session, the theme, and one sentence about the last action.

use axum::http::header::COOKIE;
use axum::http::{HeaderMap, HeaderValue};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use crate::console::Console;

/// The session's cookie; with this prefix browsers accept it only over https and only for this host.
const SECURE_SESSION: &str = "__Host-canonry";
const LOCAL_SESSION: &str = "canonry";
const THEME: &str = "canonry-theme";
const FLASH: &str = "canonry-flash";
/// A flash is one sentence; browsers keep 4 KiB of a cookie.
const LONGEST_FLASH: usize = 600;
const A_YEAR: u32 = 31_536_000;

pub(crate) fn session_of(headers: &HeaderMap, console: &Console) -> Option<String> {
    value(headers, if console.is_secure() { SECURE_SESSION } else { LOCAL_SESSION })
}

/// The key that a session is stored under: a reader of the database cannot sign in with it.
pub(crate) fn stored_key(session: &str) -> [u8; 32] {
    Sha256::digest(session.as_bytes()).into()
}

pub(crate) fn theme_of(headers: &HeaderMap) -> Option<String> {
    value(headers, THEME)
}

pub(crate) fn flash_of(headers: &HeaderMap) -> Option<String> {
    let bytes = URL_SAFE_NO_PAD.decode(value(headers, FLASH)?).ok()?;
    String::from_utf8(bytes).ok().filter(|text| !text.is_empty())
}

pub(crate) fn keep_session(console: &Console, id: Option<&str>) -> HeaderValue {
    let (name, more) = if console.is_secure() { (SECURE_SESSION, "; Secure") } else { (LOCAL_SESSION, "") };
    // Lax, not Strict: a person who comes from GitHub's sign-in, or by a link in a comment, is still signed in.
    match id {
        Some(id) => header(&format!("{name}={id}; Path=/; HttpOnly; SameSite=Lax{more}")),
        None => header(&format!("{name}=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax{more}")),
    }
}

pub(crate) fn keep_theme(word: &str) -> HeaderValue {
    header(&format!("{THEME}={word}; Path=/; Max-Age={A_YEAR}; HttpOnly; SameSite=Lax"))
}

pub(crate) fn keep_flash(text: &str) -> HeaderValue {
    let short: String = text.chars().take(LONGEST_FLASH).collect();
    header(&format!("{FLASH}={}; Path=/; Max-Age=30; HttpOnly; SameSite=Strict", URL_SAFE_NO_PAD.encode(short)))
}

pub(crate) fn forget_flash() -> HeaderValue {
    header(&format!("{FLASH}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict"))
}

pub(crate) fn value(headers: &HeaderMap, name: &str) -> Option<String> {
    let cookies = headers.get_all(COOKIE).into_iter().filter_map(|line| line.to_str().ok());
    let mut pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
}

fn header(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("invariant: cookies are made of words of ours and base64")
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderMap;
    use axum::http::header::COOKIE;

    use super::{flash_of, keep_flash, value};

    #[test]
    fn cookies_are_found_by_their_whole_name() {
        let mut headers = HeaderMap::new();
        headers.append(COOKIE, "xcanonry=no; canonry-theme=dark".parse().expect("header"));
        headers.append(COOKIE, "canonry=abc=def".parse().expect("header"));
        assert_eq!(value(&headers, "canonry").as_deref(), Some("abc=def"));
        assert_eq!(value(&headers, "canonry-theme").as_deref(), Some("dark"));
        assert_eq!(value(&headers, "other"), None);
    }

    #[test]
    fn a_flash_keeps_any_text() {
        let text = "Paused “tidepool/tidepool”; nothing is written until it is resumed\u{202e}.";
        let kept = keep_flash(text);
        let pair = kept.to_str().expect("ASCII").split(';').next().expect("pair").to_owned();
        let mut headers = HeaderMap::new();
        headers.append(COOKIE, pair.parse().expect("header"));
        assert_eq!(flash_of(&headers).as_deref(), Some(text));
    }
}
