//! Sends GraphQL requests, for the few things that REST cannot do.

use jiff::SignedDuration;
use reqwest::Method;
use serde_json::{Value, json};
use url::Url;

use crate::auth::credentials::Scope;
use crate::http::client::GitHub;
use crate::http::error::{GitHubError, message_of};
use crate::http::write::WriteError;

/// The body of a rate limit error contains no time; GitHub asks for at least a minute.
const LIMIT_PAUSE: SignedDuration = SignedDuration::from_secs(60);

impl GitHub {
    /// Sends a query; returns its `data`.
    pub(crate) async fn graphql_read(
        &self,
        scope: &Scope,
        query: &str,
        variables: &Value,
    ) -> Result<Value, GitHubError> {
        let question = json!({ "query": query, "variables": variables });
        let got = self.ask(scope, self.graphql_url(), &question).await?;
        let answer: Value = got.json()?;
        match Trouble::of(&answer) {
            None => Ok(answer["data"].clone()),
            Some(Trouble { kind, message }) => Err(match kind.as_str() {
                "NOT_FOUND" => GitHubError::NotFound { what: got.what },
                "FORBIDDEN" | "INSUFFICIENT_SCOPES" => {
                    GitHubError::Forbidden { what: got.what, message, needs: None, has: None }
                }
                "RATE_LIMITED" => GitHubError::RateLimited { until: self.now() + LIMIT_PAUSE },
                _ => GitHubError::Refused { what: got.what, status: 200, message },
            }),
        }
    }

    /// Sends a mutation, once; returns its `data`. A refusal has the status that REST would give it.
    pub(crate) async fn graphql_write(
        &self,
        scope: &Scope,
        mutation: &str,
        variables: &Value,
    ) -> Result<Value, WriteError> {
        let body = json!({ "query": mutation, "variables": variables });
        let answer: Value = self.write_json(scope, Method::POST, self.graphql_url(), &body).await?;
        match Trouble::of(&answer) {
            None => Ok(answer["data"].clone()),
            Some(Trouble { kind, message }) => Err(match kind.as_str() {
                "NOT_FOUND" => WriteError::Refused { status: 404, message },
                "FORBIDDEN" | "INSUFFICIENT_SCOPES" => WriteError::Refused { status: 403, message },
                "RATE_LIMITED" => WriteError::NotSent(GitHubError::RateLimited { until: self.now() + LIMIT_PAUSE }),
                // GitHub also reports its own failures here, with undocumented types.
                "" | "INTERNAL" | "SERVICE_UNAVAILABLE" => WriteError::Ambiguous { detail: message },
                _ => WriteError::Refused { status: 422, message },
            }),
        }
    }

    /// `https://api.github.com/graphql`, or `https://HOST/api/graphql` beside GitHub Enterprise's `/api/v3`.
    fn graphql_url(&self) -> Url {
        let mut url = self.options().api.clone();
        let path = match url.path().trim_end_matches('/').strip_suffix("/api/v3") {
            Some(before) => format!("{before}/api/graphql"),
            None => format!("{}/graphql", url.path().trim_end_matches('/')),
        };
        url.set_path(&path);
        url.set_query(None);
        url
    }
}

/// The first error of an answer; GitHub sends errors with status 200.
struct Trouble {
    kind: String,
    message: String,
}

impl Trouble {
    fn of(answer: &Value) -> Option<Self> {
        let first = answer["errors"].as_array()?.first()?;
        let message = message_of(json!({ "message": first["message"] }).to_string().as_bytes());
        Some(Self { kind: first["type"].as_str().unwrap_or_default().to_owned(), message })
    }
}

#[cfg(test)]
mod tests {
    use crate::auth::credentials::Auth;
    use crate::auth::secret::Secret;
    use crate::http::client::{ClientOptions, GitHub};
    use url::Url;

    #[test]
    fn stands_beside_the_rest_api() {
        for (api, graphql) in [
            ("https://api.github.com", "https://api.github.com/graphql"),
            ("https://ghe.example/api/v3/", "https://ghe.example/api/graphql"),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080/graphql"),
        ] {
            let api = Url::parse(api).expect("valid");
            let options = ClientOptions { api, ..ClientOptions::new(Auth::Token(Secret::new("t"))) };
            assert_eq!(GitHub::new(options).expect("a client").graphql_url().as_str(), graphql);
        }
    }
}
