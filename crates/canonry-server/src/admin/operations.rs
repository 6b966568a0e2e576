//! The route for operators: `/metrics`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{ConnectInfo, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Extension, Router};
use canonry_domain::is_loopback_host;
use canonry_github::{Clock, GitHub, Secret};
use canonry_store::Store;
use jiff::{SignedDuration, Timestamp};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use tokio::sync::Mutex;

use crate::admin::exposition::{Exposition, MEDIA_TYPE, MetricKind};
use crate::admin::metrics::Metrics;
use crate::admin::stored_metrics::StoredMetrics;

/// The database is read at most once in this time, whether it answers or not, however many requests come.
const KEPT: SignedDuration = SignedDuration::from_secs(5);
/// Prometheus stops waiting after ten seconds.
const PATIENCE: Duration = Duration::from_secs(5);
/// Headers that proxies add. A request that comes through a proxy may come from anyone, even if the proxy is local.
const FORWARDED: [&str; 5] = ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via"];

pub struct Operations {
    pub store: Store,
    /// The client whose rate limit is shown; `None` without credentials.
    pub github: Option<GitHub>,
    pub clock: Arc<dyn Clock>,
    pub metrics: Metrics,
    /// The token that shows the metrics; without it, any request from this machine may read them.
    pub metrics_token: Option<Secret>,
}

struct OperationsState {
    store: Store,
    clock: Arc<dyn Clock>,
    github: Option<GitHub>,
    metrics: Metrics,
    metrics_token: Option<Secret>,
    /// The last database reading and its time; the text is `None` if the reading failed. The lock is kept during a
    /// reading, so that one reading serves all requests.
    reading: Mutex<Option<(Timestamp, Option<String>)>>,
}

/// `GET /metrics`. The server must provide the peer's
/// address as [`ConnectInfo`]: without a token the metrics are shown only to this machine.
pub fn operations_routes(operations: Operations) -> Router {
    let Operations { store, github, clock, metrics, metrics_token } = operations;
    let shared = OperationsState { store, clock, github, metrics, metrics_token, reading: Mutex::default() };
    Router::new().route("/metrics", get(show_metrics)).with_state(Arc::new(shared))
}

async fn show_metrics(
    State(shared): State<Arc<OperationsState>>,
    peer: Option<Extension<ConnectInfo<SocketAddr>>>,
    headers: HeaderMap,
) -> Response {
    if let Some(token) = &shared.metrics_token {
        if !bearer(&headers).is_some_and(|given| is_same(given, token)) {
            let words = "the metrics need the token from CANONRY_METRICS_TOKEN\n";
            return (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, "Bearer")], words).into_response();
        }
    } else if !is_local(peer.map(|Extension(ConnectInfo(peer))| peer), &headers) {
        let words = "the metrics are for this machine alone until CANONRY_METRICS_TOKEN is set; then they are for \
            whoever shows that token\n";
        return (StatusCode::FORBIDDEN, words).into_response();
    } else if !names_this_machine(&headers) {
        let words = "open the metrics on localhost or 127.0.0.1, or set CANONRY_METRICS_TOKEN and send that token\n";
        return (StatusCode::MISDIRECTED_REQUEST, words).into_response();
    }
    let mut page = Exposition::default();
    shared.metrics.expose(&mut page);
    let now = shared.clock.now();
    if let Some(github) = &shared.github {
        expose_rates(github, now, &mut page);
    }
    let stored = shared.stored(now).await;
    page.family(
        "canonry_database_up",
        MetricKind::Gauge,
        "1 when the database answered, 0 when the metrics from the database are missing.",
    )
    .sample(&[], f64::from(u8::from(stored.is_some())));
    let text = page.into_text() + &stored.unwrap_or_default();
    ([(CONTENT_TYPE, MEDIA_TYPE)], text).into_response()
}

impl OperationsState {
    /// Metrics from the database, at most a few seconds old; `None` if the database does not answer.
    async fn stored(&self, now: Timestamp) -> Option<String> {
        let mut reading = self.reading.lock().await;
        if let Some((read_at, text)) = &*reading
            && now.duration_since(*read_at).abs() < KEPT
        {
            return text.clone();
        }
        let text = match tokio::time::timeout(PATIENCE, StoredMetrics::read(&self.store, now)).await {
            Ok(Ok(stored)) => {
                let mut page = Exposition::default();
                stored.expose(&mut page);
                Some(page.into_text())
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "the metrics could not be read from the database");
                None
            }
            Err(_) => {
                tracing::warn!("the database takes too long to answer for metrics");
                None
            }
        };
        // A failed reading may have taken a while. The pause for a database that is down begins at the end of the
        // failure.
        let read_at = if text.is_some() { now } else { self.clock.now() };
        *reading = Some((read_at, text.clone()));
        text
    }
}

/// Whether the request comes from this machine, as far as that is visible. A local proxy that adds no forwarding
/// header looks like a local client; the operator's guide describes what to do about it.
fn is_local(peer: Option<SocketAddr>, headers: &HeaderMap) -> bool {
    peer.is_some_and(|peer| peer.ip().to_canonical().is_loopback())
        && !FORWARDED.iter().any(|name| headers.contains_key(*name))
}

/// Whether the `Host` is a name that always means this machine. A page in a local browser can point its own domain at
/// this address (DNS rebinding) and would then read the answer.
fn names_this_machine(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(HOST).and_then(|host| host.to_str().ok()) else { return false };
    let name = if host.starts_with('[') {
        host.split_inclusive(']').next().unwrap_or_default().trim_matches(['[', ']'])
    } else {
        host.split(':').next().unwrap_or_default()
    };
    is_loopback_host(name)
}

/// Exposes the rate limits of the latest answers. A window that has ended says nothing about the current one.
fn expose_rates(github: &GitHub, now: Timestamp, page: &mut Exposition) {
    let mut rates = github.rates_left();
    rates.retain(|(_, left)| left.reset > now);
    let mut remaining = page.family(
        "canonry_github_rate_remaining",
        MetricKind::Gauge,
        "Requests that GitHub still allows in this hour, by the account that this process asked as.",
    );
    for (account, left) in &rates {
        remaining.sample(&[("account", account)], left.remaining as f64);
    }
    if let Some(time) = github.github_time() {
        page.family(
            "canonry_github_clock_skew_seconds",
            MetricKind::Gauge,
            "How far this machine's clock is ahead of GitHub's, negative where it is behind. Beyond 120 nothing is closed.",
        )
        .sample(&[], time.skew.as_secs_f64());
    }
    let mut limit =
        page.family("canonry_github_rate_limit", MetricKind::Gauge, "Requests that GitHub allows in an hour.");
    for (account, left) in &rates {
        limit.sample(&[("account", account)], left.limit as f64);
    }
}

/// The token of `Authorization: Bearer …`, or of `token …` as GitHub's own tools write it.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.trim().split_once(' ')?;
    let known = ["bearer", "token"].iter().any(|word| scheme.eq_ignore_ascii_case(word));
    known.then(|| token.trim()).filter(|token| !token.is_empty())
}

/// Compares in a time that reveals nothing about the secret, not even its length.
pub(crate) fn is_same(given: &str, secret: &Secret) -> bool {
    let hashes = [given, secret.expose()].map(Sha256::digest);
    hashes[0].as_slice().ct_eq(hashes[1].as_slice()).into()
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderName, HeaderValue};

    use super::{FORWARDED, is_local};

    #[test]
    fn only_who_asks_from_this_machine_itself_is_local() {
        let none = HeaderMap::new();
        for (peer, local) in [
            ("127.0.0.1:9", true),
            ("127.8.9.10:9", true),
            ("[::1]:9", true),
            ("[::ffff:127.0.0.1]:9", true),
            ("10.0.0.7:9", false),
            ("192.168.1.2:9", false),
            ("172.17.0.1:9", false),
            ("203.0.113.9:9", false),
            ("0.0.0.0:9", false),
            ("[::ffff:10.0.0.7]:9", false),
            ("[fe80::1]:9", false),
            ("[2001:db8::1]:9", false),
        ] {
            assert_eq!(is_local(Some(peer.parse().expect("an address")), &none), local, "{peer}");
        }
        assert!(!is_local(None, &none), "nobody knows who asks");
        for name in FORWARDED {
            let headers =
                HeaderMap::from_iter([(HeaderName::from_static(name), HeaderValue::from_static("127.0.0.1"))]);
            assert!(!is_local(Some("127.0.0.1:9".parse().expect("an address")), &headers), "{name}");
        }
    }
}
