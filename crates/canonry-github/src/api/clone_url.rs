//! Builds the address and the token for fetching a repository's code.

use canonry_boxed::boxed;
use canonry_domain::RepoName;
use url::Url;

use crate::auth::credentials::{Auth, Scope};
use crate::auth::secret::Secret;
use crate::http::client::GitHub;
use crate::http::error::GitHubError;

#[boxed]
impl GitHub {
    /// The address to fetch a repository's code from. It is derived from the API's own address and never from an
    /// answer: our token goes there.
    pub fn clone_url(&self, repo: &RepoName) -> String {
        let mut url = web_address(&self.options().api);
        url.path_segments_mut()
            .expect("invariant: the API's URL was checked")
            .pop_if_empty()
            .extend([repo.owner(), &format!("{}.git", repo.name())]);
        url.to_string()
    }

    /// The token for fetching from there, as the password of `x-access-token`. An App's token lives an hour at most.
    pub async fn git_token(&self, repo: &RepoName) -> Result<Secret, GitHubError> {
        Ok(self.credential(&Scope::Repo(repo.clone())).await?.bearer)
    }

    /// Whether this client is a GitHub App: only Apps may write check runs.
    pub fn is_app(&self) -> bool {
        matches!(self.auth(), Auth::App(_))
    }
}

/// The web address for people and git that belongs to an API: github.com, or the host of GitHub Enterprise itself.
pub fn web_address(api: &Url) -> Url {
    let mut url = api.clone();
    if url.host_str() == Some("api.github.com") {
        // Cannot fail: a host is replaced by a host.
        url.set_host(Some("github.com")).expect("invariant: a constant host");
    }
    let base = url.path().trim_end_matches('/');
    let base = base.strip_suffix("/api/v3").unwrap_or(base).to_owned();
    url.set_path(&base);
    url.set_query(None);
    url
}

#[cfg(test)]
mod tests {
    use crate::auth::credentials::Auth;
    use crate::auth::secret::Secret;
    use crate::http::client::{ClientOptions, GitHub};
    use url::Url;

    #[test]
    fn follows_from_the_apis_address() {
        let repo = "acme/widgets".parse().expect("a name");
        for (api, clone) in [
            ("https://api.github.com", "https://github.com/acme/widgets.git"),
            ("https://ghe.example/api/v3/", "https://ghe.example/acme/widgets.git"),
            ("https://ghe.example:8443/api/v3", "https://ghe.example:8443/acme/widgets.git"),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080/acme/widgets.git"),
        ] {
            let api = Url::parse(api).expect("valid");
            let options = ClientOptions { api, ..ClientOptions::new(Auth::Token(Secret::new("t"))) };
            assert_eq!(GitHub::new(options).expect("a client").clone_url(&repo), clone);
        }
    }
}
