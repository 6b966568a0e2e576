//! Extracts what a browser or a reader takes from an answer of the console.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Response;

pub(crate) fn csrf_of(page: &str) -> String {
    let field = page.split(r#"name="csrf""#).nth(1).expect("a form");
    field.split(r#"value=""#).nth(1).and_then(|rest| rest.split('"').next()).expect("a value").to_owned()
}

/// The flash message of a redirect.
pub(crate) fn flash_of(answer: &Response) -> String {
    let cookies = answer.headers().get_all("set-cookie").iter().filter_map(|cookie| cookie.to_str().ok());
    let flash = cookies.filter_map(|cookie| cookie.strip_prefix("canonry-flash=")).next().unwrap_or_default();
    let flash = flash.split(';').next().unwrap_or_default();
    String::from_utf8(URL_SAFE_NO_PAD.decode(flash).expect("base64")).expect("a text")
}

/// The page of the repository that a link with this text leads to: `First page`, `Next page`.
pub(crate) fn linked(page: &str, words: &str) -> Option<String> {
    let (before, _) = page.split_once(&format!(">{words}"))?;
    let (_, rest) = before.rsplit_once("href=\"/r/tide/pool")?;
    let address = rest.split('"').next()?.replace("&#38;", "&").replace("&amp;", "&");
    Some(address.split('#').next()?.to_owned())
}

/// The page's text without its elements, on one line.
pub(crate) fn words(page: &str) -> String {
    let text: Vec<&str> = page.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text)).collect();
    let text = text.join(" ").replace("&#39;", "'").replace("&#34;", "\"");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Asserts that no stranger's text became markup in a page or a part of one.
pub(crate) fn assert_harmless(page: &str) {
    for hostile in ["<script>", "<img", "onerror=alert(2)>", "\u{202e}", "style=\""] {
        assert!(!page.contains(hostile), "{hostile:?} in {page}");
    }
    let own = page.matches("<script src=\"/").count();
    assert_eq!(page.matches("<script").count(), own, "only our own files: {page}");
    assert_eq!(own, if page.contains("<html") { 2 } else { 0 }, "{page}");
}
