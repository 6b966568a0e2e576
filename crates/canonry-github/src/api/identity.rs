//! Finds our own account, the only one whose texts may contain markers.

use canonry_boxed::boxed;
use canonry_domain::Login;
use serde_json::json;

use super::{AppSlug, RestUser};
use crate::auth::credentials::{Auth, Scope};
use crate::http::client::GitHub;
use crate::http::error::GitHubError;

#[boxed]
impl GitHub {
    /// The login under which this client writes: the token's account, or the App's `slug[bot]`.
    pub async fn own_login(&self) -> Result<Login, GitHubError> {
        let (what, login) = match self.auth() {
            Auth::Token(_) => match self.get_json::<RestUser>(&Scope::Account, self.url(&["user"], &[])).await {
                Ok(user) => ("/user", user.login),
                Err(GitHubError::Forbidden { .. }) => ("viewer", self.installations_login().await?),
                Err(error) => return Err(error),
            },
            Auth::App(_) => {
                let app: AppSlug = self.get_json(&Scope::Account, self.url(&["app"], &[])).await?;
                ("/app", format!("{}[bot]", app.slug))
            }
        };
        let bad = |error: canonry_domain::InvalidLogin| GitHubError::BadAnswer {
            what: what.to_owned(),
            detail: error.to_string(),
        };
        match login.as_str() {
            "[bot]" => Err(GitHubError::BadAnswer { what: what.to_owned(), detail: "the App has no slug".to_owned() }),
            login => login.parse().map_err(bad),
        }
    }

    /// The account of an installation token, such as the token of GitHub Actions. REST does not return it.
    async fn installations_login(&self) -> Result<String, GitHubError> {
        let nameless = |why: &str| GitHubError::BadSetup {
            detail: format!(
                "GitHub does not say whose token GITHUB_TOKEN is ({why}); set it to a personal access token, or set CANONRY_APP_ID and CANONRY_APP_PRIVATE_KEY"
            ),
        };
        let data = match self.graphql_read(&Scope::Account, "query { viewer { login } }", &json!({})).await {
            Ok(data) => data,
            Err(error) if error.is_passing() => return Err(error),
            Err(GitHubError::Forbidden { message, .. }) => return Err(nameless(&message)),
            Err(error) => return Err(nameless(&error.to_string())),
        };
        match data["viewer"]["login"].as_str() {
            None | Some("") => Err(nameless("its account has no name")),
            Some(login) if login.ends_with("[bot]") => Ok(login.to_owned()),
            Some(slug) => Ok(format!("{slug}[bot]")),
        }
    }
}
