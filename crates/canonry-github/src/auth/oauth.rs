//! Signs people in with their account on GitHub: the address for the browser, the exchange of the code, and the
//! account.

use canonry_boxed::boxed;
use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use canonry_domain::{GithubId, Login};
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use url::Url;

use crate::api::RestUser;
use crate::api::clone_url::web_address;
use crate::auth::secret::Secret;
use crate::http::error::GitHubError;
use crate::http::transport::{Broken, Outgoing, Transport};

/// A person waits at a browser for both.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
const ANSWER_LIMIT: Duration = Duration::from_secs(15);
/// A token or an account has a few hundred to a few thousand bytes.
const LARGEST_ANSWER: usize = 256 * 1024;

/// A GitHub App, or an OAuth App, that people sign in to. It requests no scopes: what people may see is asked of GitHub
/// with the service's own credentials, and their tokens are discarded.
#[derive(Clone)]
pub struct OauthClient {
    api: Url,
    web: Url,
    client_id: String,
    client_secret: Secret,
    transport: Transport,
}

#[boxed]
impl OauthClient {
    /// A client of the GitHub with this API. Sends nothing.
    pub fn new(api: &Url, client_id: &str, client_secret: &Secret) -> Result<Self, GitHubError> {
        crate::http::client::check_api(api)?;
        let user_agent = concat!("canonry/", env!("CARGO_PKG_VERSION"));
        Ok(Self {
            api: api.clone(),
            web: web_address(api),
            client_id: client_id.to_owned(),
            client_secret: client_secret.clone(),
            transport: Transport::new(api, user_agent, CONNECT_LIMIT, ANSWER_LIMIT, LARGEST_ANSWER)?,
        })
    }

    /// The address to which the browser is sent; it comes back to `callback` with a code and the same `state`.
    pub fn authorize_url(&self, callback: &Url, state: &str, challenge: &str) -> Url {
        let mut url = below(&self.web, &["login", "oauth", "authorize"]);
        url.query_pairs_mut()
            .append_pair("client_id", &self.client_id)
            .append_pair("redirect_uri", callback.as_str())
            .append_pair("state", state)
            .append_pair("code_challenge", challenge)
            .append_pair("code_challenge_method", "S256");
        url
    }

    /// Exchanges a code for the person's token; `verifier` is the value from which the challenge was computed.
    pub async fn exchange_code(&self, callback: &Url, code: &str, verifier: &Secret) -> Result<Secret, GitHubError> {
        let what = "/login/oauth/access_token";
        let body = json!({
            "client_id": self.client_id,
            "client_secret": self.client_secret.expose(),
            "code": code,
            "redirect_uri": callback.as_str(),
            "code_verifier": verifier.expose(),
        });
        let url = below(&self.web, &["login", "oauth", "access_token"]);
        let answer = self.transport.post_openly(&url, &body).await.map_err(|broken| self.unreachable(broken))?;
        if !answer.status.is_success() {
            return Err(GitHubError::from_refusal(answer.status, &answer.headers, &answer.body, what, false));
        }
        let bad = |detail: &str| GitHubError::BadAnswer { what: what.to_owned(), detail: detail.to_owned() };
        let bought: Bought = serde_json::from_slice(&answer.body).map_err(|_| bad("it is no JSON"))?;
        match (bought.access_token, bought.error.as_deref()) {
            (Some(token), None) if !token.trim().is_empty() => Ok(Secret::new(&token)),
            (_, Some("incorrect_client_credentials")) => Err(GitHubError::Unauthorized {
                credential: "the client's id and secret",
                advice: "check CANONRY_OAUTH_CLIENT_ID and CANONRY_OAUTH_CLIENT_SECRET",
            }),
            // Expired, used before, or issued to another person.
            (_, Some("bad_verification_code")) => {
                Err(GitHubError::Unauthorized { credential: "the code of this sign-in", advice: "sign in again" })
            }
            (_, error) => Err(bad(&canonry_domain::redact(&format!("{error:?} instead of a token")))),
        }
    }

    pub async fn signed_in_user(&self, token: &Secret) -> Result<(GithubId, Login), GitHubError> {
        let what = "/user";
        let url = below(&self.api, &["user"]);
        let outgoing = Outgoing { method: Method::GET, url: &url, bearer: token, body: None, etag: None };
        let answer = self.transport.send(outgoing).await.map_err(|broken| self.unreachable(broken))?;
        if !answer.status.is_success() {
            return Err(GitHubError::from_refusal(answer.status, &answer.headers, &answer.body, what, false));
        }
        let bad = |detail: String| GitHubError::BadAnswer { what: what.to_owned(), detail };
        let user: RestUser = serde_json::from_slice(&answer.body).map_err(|error| bad(error.to_string()))?;
        if user.id <= 0 {
            return Err(bad("the account has no id".to_owned()));
        }
        let login = user.login.parse().map_err(|error: canonry_domain::InvalidLogin| bad(error.to_string()))?;
        Ok((GithubId(user.id), login))
    }

    fn unreachable(&self, broken: Broken) -> GitHubError {
        let host = self.web.host_str().unwrap_or_default().to_owned();
        GitHubError::Network { host, detail: broken.detail }
    }
}

impl fmt::Debug for OauthClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("OauthClient").field("client_id", &self.client_id).finish_non_exhaustive()
    }
}

/// The PKCE challenge that the browser carries: only the owner of the verifier can use the code.
pub fn code_challenge(verifier: &Secret) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.expose()))
}

#[derive(Deserialize)]
struct Bought {
    access_token: Option<String>,
    error: Option<String>,
}

fn below(base: &Url, segments: &[&str]) -> Url {
    let mut url = base.clone();
    url.path_segments_mut().expect("invariant: the API's URL was checked").pop_if_empty().extend(segments);
    url
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::{OauthClient, code_challenge};
    use crate::auth::secret::Secret;

    #[test]
    fn people_are_sent_to_the_web_side_of_the_api() {
        for (api, page) in [
            ("https://api.github.com", "https://github.com/login/oauth/authorize"),
            ("https://ghe.example/api/v3", "https://ghe.example/login/oauth/authorize"),
        ] {
            let client =
                OauthClient::new(&Url::parse(api).expect("valid"), "Iv1.a", &Secret::new("s")).expect("a client");
            let callback = Url::parse("https://canonry.example/auth/github/callback").expect("valid");
            let url = client.authorize_url(&callback, "st&te", "chal");
            assert_eq!(
                url.as_str(),
                format!(
                    "{page}?client_id=Iv1.a&redirect_uri=https%3A%2F%2Fcanonry.example%2Fauth%2Fgithub%2Fcallback\
                    &state=st%26te&code_challenge=chal&code_challenge_method=S256"
                )
            );
            assert!(!format!("{client:?}").contains("Secret"), "{client:?}");
        }
        let plain = Url::parse("http://ghe.example/api/v3").expect("valid");
        assert!(OauthClient::new(&plain, "a", &Secret::new("s")).is_err(), "the secret would be shown to the network");
    }

    #[test]
    fn a_challenge_is_the_one_of_rfc_7636() {
        let verifier = Secret::new("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
        assert_eq!(code_challenge(&verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }
}
