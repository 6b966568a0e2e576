//! Our own account: the one whose texts may carry markers.

use canonry_domain::Login;

use super::{AppSlug, RestUser};
use crate::auth::{Auth, Scope};
use crate::client::GitHub;
use crate::error::GitHubError;

impl GitHub {
    /// The login under which this client writes: the token's account, or the App's `slug[bot]`.
    pub async fn own_login(&self) -> Result<Login, GitHubError> {
        let (what, login) = match self.auth() {
            Auth::Token(_) => {
                let user: RestUser = self.get_json(&Scope::Account, self.url(&["user"], &[])).await?;
                ("/user", user.login)
            }
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
}
