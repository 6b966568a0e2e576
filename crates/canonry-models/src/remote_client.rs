//! The HTTP client of models that are reached by their address.

use std::time::Duration;

use reqwest::header::HeaderMap;
use url::{Host, Url};

/// Where a service is; an address that cannot work, or that holds a password, is refused in words.
pub(crate) fn checked_base(text: &str, key_variable: &str) -> Result<Url, String> {
    let base = Url::parse(text).map_err(|error| format!("the base URL: {error}"))?;
    if !matches!(base.scheme(), "http" | "https") {
        return Err(format!("the base URL: {} is neither http nor https", base.scheme()));
    }
    // An address is shown and logged, a key never is.
    if !base.username().is_empty() || base.password().is_some() {
        return Err(format!("the base URL holds a password; a key belongs in {key_variable}"));
    }
    Ok(base)
}

/// A client that sends these headers to that address alone.
pub(crate) fn client(headers: HeaderMap, base: &Url, timeout: Duration) -> Result<reqwest::Client, String> {
    // A redirect could carry a key in a header of its own to another host.
    let mut builder = reqwest::Client::builder()
        .default_headers(headers)
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(timeout.min(Duration::from_secs(10)))
        .timeout(timeout);
    if is_loopback(base) {
        builder = builder.no_proxy();
    }
    // Without TLS nobody asks for the machine's certificates, and reading them is most of what a client takes.
    if base.scheme() == "http" {
        builder = builder.tls_certs_only([]);
    }
    builder.build().map_err(|error| format!("no HTTP client: {error}"))
}

/// An address as it may be shown: keys stand behind a `?` with some services.
pub(crate) fn shown_address(url: &Url) -> String {
    let mut shown = url.clone();
    shown.set_query(None);
    shown.set_fragment(None);
    shown.to_string()
}

fn is_loopback(base: &Url) -> bool {
    match base.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
