//! Defines the client: its options, and what all calls share.

use canonry_boxed::boxed;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use canonry_domain::{RepoName, is_loopback_host};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::Mutex;
use url::Url;

use crate::auth::credentials::{Auth, TokenCache};
use crate::http::error::GitHubError;
use crate::http::github_time::GithubTime;
use crate::http::rate_budget::{RateBudget, RateLeft, WaitReason, Waiting};
use crate::http::transport::Transport;
use canonry_clock::{Clock, SystemClock};

/// The options of a client. Start from [`ClientOptions::new`] and change what differs.
#[derive(Clone)]
pub struct ClientOptions {
    /// The address of the API: `https://api.github.com`, or `https://HOST/api/v3` for GitHub Enterprise.
    pub api: Url,
    pub auth: Auth,
    /// GitHub refuses requests without a user agent.
    pub user_agent: String,
    pub clock: Arc<dyn Clock>,
    /// Numbers from 0 to 1 that spread retries.
    pub jitter: Arc<dyn Fn() -> f64 + Send + Sync>,
    /// Called before every wait.
    pub on_wait: Arc<dyn Fn(&Waiting) + Send + Sync>,
    /// The longest single wait; a longer one ends the call with [`GitHubError::RateLimited`].
    pub longest_wait: SignedDuration,
    /// How often a read is tried if GitHub or the network fails.
    pub tries: u32,
    pub connect_timeout: Duration,
    /// The limit for a request as a whole.
    pub request_timeout: Duration,
    /// The largest answer that is read, in bytes after decompression.
    pub answer_limit: usize,
}

impl ClientOptions {
    /// The options for github.com and the system clock.
    pub fn new(auth: Auth) -> Self {
        Self {
            api: Url::parse("https://api.github.com").expect("invariant: a constant URL"),
            auth,
            user_agent: concat!("canonry/", env!("CARGO_PKG_VERSION")).to_owned(),
            clock: Arc::new(SystemClock),
            jitter: Arc::new(rand::random::<f64>),
            on_wait: Arc::new(|waiting| tracing::info!(%waiting)),
            // Long enough for secondary limits (a minute, doubled a few times), too short for an exhausted hour: then a
            // command should end with a sentence and not hang.
            longest_wait: SignedDuration::from_mins(10),
            tries: 5,
            connect_timeout: Duration::from_secs(10),
            // GitHub ends its own work after ten seconds; the rest is for slow connections and large pages.
            request_timeout: Duration::from_secs(60),
            // A page of 100 issues with the longest bodies (64 KiB each, escaped) is about 14 MB.
            answer_limit: 64 << 20,
        }
    }
}

impl fmt::Debug for ClientOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ClientOptions")
            .field("api", &self.api.as_str())
            .field("auth", &self.auth)
            .finish_non_exhaustive()
    }
}

/// A client of GitHub's REST API. Clones share tokens and rate budget.
#[derive(Clone)]
pub struct GitHub {
    shared: Arc<Shared>,
}

struct Shared {
    options: ClientOptions,
    transport: Transport,
    budget: RateBudget,
    tokens: Mutex<TokenCache>,
    time: std::sync::Mutex<Option<GithubTime>>,
}

#[boxed]
impl GitHub {
    pub fn new(options: ClientOptions) -> Result<Self, GitHubError> {
        check_api(&options.api)?;
        let transport = Transport::new(
            &options.api,
            &options.user_agent,
            options.connect_timeout,
            options.request_timeout,
            options.answer_limit,
        )?;
        let shared = Shared {
            options,
            transport,
            budget: RateBudget::default(),
            tokens: Mutex::default(),
            time: std::sync::Mutex::default(),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The hourly budget of every account that was used, by name (`token`, `app`, `installation 5`). Sends no request.
    pub fn rates_left(&self) -> Vec<(String, RateLeft)> {
        self.shared.budget.all_left()
    }

    /// Whether the account for a repository has less than a fifth of its hourly budget left. Work that can wait leaves
    /// that to others. Sends no request: before the first one for the repository, nothing is known.
    pub fn is_rate_low(&self, repo: &RepoName) -> bool {
        self.known_account(repo).is_some_and(|account| self.shared.budget.is_low(&account, self.now()))
    }

    /// The present time of the client's clock.
    pub fn now(&self) -> Timestamp {
        self.shared.options.clock.now()
    }

    /// Reports a wait to the `on_wait` callback.
    pub fn tell_wait(&self, reason: WaitReason, until: Timestamp) {
        (self.shared.options.on_wait)(&Waiting { reason, until });
    }

    pub async fn sleep_until(&self, until: Timestamp) {
        self.shared.options.clock.sleep_until(until).await;
    }

    /// The longest that this client waits for anything; a caller that would have to wait longer stops.
    pub fn longest_wait(&self) -> SignedDuration {
        self.shared.options.longest_wait
    }

    pub(crate) fn options(&self) -> &ClientOptions {
        &self.shared.options
    }

    pub(crate) fn auth(&self) -> &Auth {
        &self.shared.options.auth
    }

    pub(crate) fn transport(&self) -> &Transport {
        &self.shared.transport
    }

    pub(crate) fn budget(&self) -> &RateBudget {
        &self.shared.budget
    }

    pub(crate) fn token_cache(&self) -> &Mutex<TokenCache> {
        &self.shared.tokens
    }

    pub(crate) fn latest_time(&self) -> std::sync::MutexGuard<'_, Option<GithubTime>> {
        self.shared.time.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// A URL of the API; every segment is percent-encoded.
    pub(crate) fn url(&self, segments: &[&str], query: &[(&str, &str)]) -> Url {
        let mut url = self.options().api.clone();
        url.path_segments_mut().expect("invariant: the API's URL was checked").pop_if_empty().extend(segments);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        url
    }

    /// Whether a URL from an answer belongs to the API, so that our token may be sent there.
    pub(crate) fn is_ours(&self, url: &Url) -> bool {
        let api = &self.options().api;
        let base = api.path().trim_end_matches('/');
        let below_base = url.path().strip_prefix(base).is_some_and(|rest| rest.starts_with('/'));
        url.origin() == api.origin() && below_base && url.username().is_empty() && url.password().is_none()
    }

    /// A URL for messages: its path below the API, without the query.
    pub(crate) fn what(&self, url: &Url) -> String {
        let base = self.options().api.path().trim_end_matches('/');
        url.path().strip_prefix(base).unwrap_or(url.path()).to_owned()
    }
}

impl fmt::Debug for GitHub {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("GitHub").field("options", self.options()).finish_non_exhaustive()
    }
}

/// Whether this is an address of the local machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    url.host_str().is_some_and(is_loopback_host)
}

/// A token is sent with every request, so the connection must be encrypted, or stay on the machine.
pub(crate) fn check_api(api: &Url) -> Result<(), GitHubError> {
    let detail = match api.scheme() {
        "https" if api.has_host() => None,
        "http" if is_loopback(api) => None,
        "http" => {
            Some("the API's address begins with http://, which would show the token to the network; use https://")
        }
        _ => Some("the API's address must look like https://api.github.com or https://HOST/api/v3"),
    };
    let with_credentials = !api.username().is_empty() || api.password().is_some();
    let detail = detail.or(with_credentials.then_some("the API's address must not contain a user name or password"));
    match detail {
        Some(detail) => Err(GitHubError::BadSetup { detail: detail.to_owned() }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{ClientOptions, GitHub};
    use crate::auth::credentials::Auth;
    use crate::auth::secret::Secret;
    use crate::http::error::GitHubError;
    use url::Url;

    fn client(api: &str) -> Result<GitHub, GitHubError> {
        let api = Url::parse(api).expect("valid");
        GitHub::new(ClientOptions { api, ..ClientOptions::new(Auth::Token(Secret::new("ghp_secret"))) })
    }

    #[test]
    fn an_address_that_would_show_the_token_is_refused() {
        for api in ["http://github.example/api/v3", "ftp://x/", "https://user:pw@github.example/", "mailto:a@b"] {
            assert!(matches!(client(api), Err(GitHubError::BadSetup { .. })), "{api} was accepted");
        }
        for api in ["http://127.0.0.1:8080", "http://[::1]:1", "http://localhost:3", "https://ghe.example/api/v3/"] {
            assert!(client(api).is_ok(), "{api} was refused");
        }
    }

    #[test]
    fn urls_stay_below_the_enterprise_prefix() {
        let github = client("https://ghe.example/api/v3/").expect("valid");
        let url = github.url(&["repos", "a", "b", "labels", "a/b c?"], &[("per_page", "100")]);
        assert_eq!(url.as_str(), "https://ghe.example/api/v3/repos/a/b/labels/a%2Fb%20c%3F?per_page=100");
        assert_eq!(github.what(&url), "/repos/a/b/labels/a%2Fb%20c%3F");
        let ours = |text: &str| github.is_ours(&Url::parse(text).expect("valid"));
        assert!(ours("https://ghe.example/api/v3/repositories/1/issues?after=x"));
        for elsewhere in [
            "https://ghe.example/api/v30/x",
            "https://ghe.example/login",
            "https://ghe.example:8443/api/v3/x",
            "http://ghe.example/api/v3/x",
            "https://evil.example/api/v3/x",
            "https://a@ghe.example/api/v3/x",
        ] {
            assert!(!ours(elsewhere), "{elsewhere}");
        }
    }

    #[test]
    fn debug_shows_no_token() {
        let shown = format!("{:?}", client("https://ghe.example/api/v3").expect("valid"));
        assert!(!shown.contains("ghp_secret"), "{shown}");
    }
}
