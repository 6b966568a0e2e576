//! Pages: `page`/`per_page`, opaque cursors and the `Link` header.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE;
use serde_json::Value;

use crate::github::serve::call::{Answer, Call};

/// The number of entries per page: 30 by default, at most 100.
pub(crate) fn per_page(call: &Call) -> usize {
    call.query("per_page").and_then(|text| text.parse().ok()).unwrap_or(30_usize).clamp(1, 100)
}

/// The requested page, from 1.
pub(crate) fn page_number(call: &Call) -> usize {
    call.query("page").and_then(|text| text.parse().ok()).unwrap_or(1_usize).max(1)
}

/// Selects the requested page of a list and adds `Link`.
pub(crate) fn numbered<T>(call: &Call, base: &str, entries: &[T], show: impl Fn(&T) -> Value) -> Answer {
    let size = per_page(call);
    let page = page_number(call);
    let start = (page - 1).saturating_mul(size).min(entries.len());
    let end = start.saturating_add(size).min(entries.len());
    let answer = Answer::ok(entries[start..end].iter().map(show).collect());
    let last = entries.len().div_ceil(size).max(1);
    let mut links = Vec::new();
    if page > 1 {
        links.push(link(call, base, &[("page", &(page - 1).to_string())], "prev"));
    }
    if page < last {
        links.push(link(call, base, &[("page", &(page + 1).to_string())], "next"));
        links.push(link(call, base, &[("page", &last.to_string())], "last"));
    }
    if page > 1 {
        links.push(link(call, base, &[("page", "1")], "first"));
    }
    if links.is_empty() { answer } else { answer.header("link", &links.join(", ")) }
}

/// One entry of a `Link` header: the call's own query with some parameters replaced, under the path by id.
pub(crate) fn link(call: &Call, base: &str, replaced: &[(&str, &str)], rel: &str) -> String {
    let kept = call.query.iter().filter(|(name, _)| !replaced.iter().any(|(other, _)| other == name));
    let kept = kept.map(|(name, value)| (name.as_str(), value.as_str()));
    let query: Vec<String> =
        kept.chain(replaced.iter().copied()).map(|(name, value)| format!("{name}={}", encode(value))).collect();
    format!("<{base}?{}>; rel=\"{rel}\"", query.join("&"))
}

/// Makes a cursor that is opaque to clients.
pub(crate) fn cursor(key: i64, number: u64) -> String {
    URL_SAFE.encode(format!("cursor:v2:{key}:{number}"))
}

/// Parses a cursor; 422 for anything else.
pub(crate) fn read_cursor(text: &str) -> Result<(i64, u64), Answer> {
    let invalid = || Answer::message(422, "The cursor is invalid.");
    let bytes = URL_SAFE.decode(text).map_err(|_| invalid())?;
    let text = String::from_utf8(bytes).map_err(|_| invalid())?;
    let rest = text.strip_prefix("cursor:v2:").ok_or_else(invalid)?;
    let (key, number) = rest.split_once(':').ok_or_else(invalid)?;
    Ok((key.parse().map_err(|_| invalid())?, number.parse().map_err(|_| invalid())?))
}

/// Percent-encodes a query value.
fn encode(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => text.push(char::from(byte)),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// Decodes a query or path part; `plus` says whether `+` means a space.
pub(crate) fn decode(text: &str, plus: bool) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        let hex = tail.get(..2).and_then(|pair| std::str::from_utf8(pair).ok());
        match (byte, hex.and_then(|pair| u8::from_str_radix(pair, 16).ok())) {
            (b'%', Some(decoded)) => {
                bytes.push(decoded);
                rest = &tail[2..];
            }
            (b'+', _) if plus => bytes.push(b' '),
            _ => bytes.push(byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
