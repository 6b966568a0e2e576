//! Defines the errors for requests that GitHub did not fulfil.

use jiff::Timestamp;
use reqwest::StatusCode;
use reqwest::header::HeaderMap;

/// Why GitHub did not answer as wanted. Each `Display` is one sentence that says what happened and what to do next;
/// none contains a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GitHubError {
    /// The token is wrong, expired or revoked (401).
    #[error("GitHub does not accept {credential}: it is wrong, expired or revoked; {advice}")]
    Unauthorized { credential: &'static str, advice: &'static str },
    /// The token may not do this (403).
    #[error("GitHub forbids {what} to this token ({message}){}; give the token that permission and try again", permissions(.needs.as_deref(), .has.as_deref()))]
    Forbidden {
        what: String,
        message: String,
        /// What the call requires, from `X-Accepted-GitHub-Permissions` or `X-Accepted-OAuth-Scopes`.
        needs: Option<String>,
        /// The scopes of the token, from `X-OAuth-Scopes`.
        has: Option<String>,
    },
    /// The thing does not exist, or the token cannot see it (404).
    #[error(
        "GitHub has no {what}, or this token cannot see it; check the name, and that the token may read that repository"
    )]
    NotFound { what: String },
    #[error("the GitHub App is not installed on {repo}; install it there, or check the name")]
    NotInstalled { repo: String },
    /// Only accounts that may push see a repository's collaborators.
    #[error(
        "GitHub does not show the collaborators of {repo} to this token ({message}); use a token that can push there, or run `canonry maintainers set LOGIN… --repo {repo}`"
    )]
    CollaboratorsHidden { repo: String, message: String },
    /// The call exists for GitHub Apps only.
    #[error("{what} needs a GitHub App, and this is a plain token; set CANONRY_APP_ID and CANONRY_APP_PRIVATE_KEY")]
    NeedsApp { what: String },
    /// The thing was deleted, or the feature is switched off (410).
    #[error(
        "GitHub says that {what} is gone ({message}); it was deleted, or the repository has that feature switched off"
    )]
    Gone { what: String, message: String },
    #[error("{what} has moved to {to}; use the new place")]
    Moved { what: String, to: String },
    /// The rate limit is used up for longer than the caller wants to wait.
    #[error("GitHub's rate limit is used up until {}; run the command again then. What was done is kept", clock_time(*.until))]
    RateLimited { until: Timestamp },
    /// No answer came: the host is unreachable, or the connection broke.
    #[error("{host} cannot be reached ({detail}); check the network and the API's address, then run this again")]
    Network { host: String, detail: String },
    /// GitHub answered with a server error (5xx), even after several tries.
    #[error(
        "GitHub failed to answer {what} (status {status}, {tries} tries); try again later, www.githubstatus.com shows whether it is down"
    )]
    Unavailable {
        what: String,
        /// The last status.
        status: u16,
        tries: u32,
    },
    /// GitHub rejects the request itself as wrong.
    #[error("GitHub refuses {what} (status {status}: {message})")]
    Refused { what: String, status: u16, message: String },
    #[error("the answer to {what} is not GitHub's ({detail}); check the API's address and any proxy in between")]
    BadAnswer { what: String, detail: String },
    /// The client's options are invalid.
    #[error("the GitHub client cannot start: {detail}")]
    BadSetup { detail: String },
}

impl GitHubError {
    /// Whether waiting and asking again may help.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::RateLimited { .. } | Self::Network { .. } | Self::Unavailable { .. })
    }

    /// The error for a refusal (4xx).
    pub(crate) fn from_refusal(status: StatusCode, headers: &HeaderMap, body: &[u8], what: &str, app: bool) -> Self {
        let (what, message) = (what.to_owned(), message_of(body));
        match status.as_u16() {
            401 if app => Self::Unauthorized {
                credential: "the App's key",
                advice: "check CANONRY_APP_ID, its private key, and this machine's clock",
            },
            401 => Self::Unauthorized { credential: "the token", advice: "make a new one and set GITHUB_TOKEN" },
            403 => Self::Forbidden {
                what,
                message,
                needs: header(headers, "x-accepted-github-permissions")
                    .or_else(|| header(headers, "x-accepted-oauth-scopes")),
                has: header(headers, "x-oauth-scopes"),
            },
            404 => Self::NotFound { what },
            410 => Self::Gone { what, message },
            status => Self::Refused { what, status, message },
        }
    }
}

/// A header's text, if it is not empty.
pub(crate) fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    let text = headers.get(name)?.to_str().ok()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// GitHub's message from the body of a refusal: one line, bounded, without secrets.
pub(crate) fn message_of(body: &[u8]) -> String {
    let words = match serde_json::from_slice::<serde_json::Value>(body) {
        Ok(answer) => {
            let message = answer["message"].as_str().unwrap_or("no reason given").to_owned();
            let details: Vec<&str> = answer["errors"].as_array().into_iter().flatten().filter_map(detail_of).collect();
            if details.is_empty() { message } else { format!("{message}: {}", details.join(", ")) }
        }
        Err(_) => "no reason given".to_owned(),
    };
    let line: String =
        words.chars().map(|character| if character.is_control() { ' ' } else { character }).take(300).collect();
    canonry_domain::redact(&line)
}

fn detail_of(error: &serde_json::Value) -> Option<&str> {
    error.as_str().or_else(|| error["message"].as_str()).or_else(|| error["code"].as_str())
}

fn permissions(needs: Option<&str>, has: Option<&str>) -> String {
    let needs = needs.map(|needs| format!("; it needs {needs}")).unwrap_or_default();
    let has = has.map(|has| format!("; the token has the scopes {has}")).unwrap_or_default();
    needs + &has
}

/// A time for people: rounded up to the minute.
pub(crate) fn clock_time(moment: Timestamp) -> String {
    let up = moment.saturating_add(jiff::SignedDuration::from_secs(59)).unwrap_or(moment);
    up.strftime("%H:%M UTC on %Y-%m-%d").to_string()
}

#[cfg(test)]
mod tests {
    use super::{GitHubError, message_of};
    use reqwest::StatusCode;
    use reqwest::header::{HeaderMap, HeaderValue};

    fn refusal(status: u16, headers: &HeaderMap, body: &str) -> String {
        let status = StatusCode::from_u16(status).expect("valid");
        GitHubError::from_refusal(status, headers, body.as_bytes(), "/repos/a/b", false).to_string()
    }

    #[test]
    fn sentences_say_what_to_do() {
        let none = HeaderMap::new();
        insta::assert_snapshot!(refusal(401, &none, r#"{"message":"Bad credentials"}"#), @"GitHub does not accept the token: it is wrong, expired or revoked; make a new one and set GITHUB_TOKEN");
        insta::assert_snapshot!(refusal(404, &none, ""), @"GitHub has no /repos/a/b, or this token cannot see it; check the name, and that the token may read that repository");
        insta::assert_snapshot!(refusal(422, &none, r#"{"message":"Validation Failed","errors":[{"code":"invalid"},{"message":"too long"}]}"#), @"GitHub refuses /repos/a/b (status 422: Validation Failed: invalid, too long)");
        let mut headers = HeaderMap::new();
        headers.insert("x-accepted-github-permissions", HeaderValue::from_static("issues=write"));
        headers.insert("x-oauth-scopes", HeaderValue::from_static("read:org"));
        insta::assert_snapshot!(refusal(403, &headers, r#"{"message":"Resource not accessible by integration"}"#), @"GitHub forbids /repos/a/b to this token (Resource not accessible by integration); it needs issues=write; the token has the scopes read:org; give the token that permission and try again");
        let until = "2026-02-01T12:29:30Z".parse().expect("valid");
        insta::assert_snapshot!(GitHubError::RateLimited { until }.to_string(), @"GitHub's rate limit is used up until 12:30 UTC on 2026-02-01; run the command again then. What was done is kept");
    }

    #[test]
    fn a_message_that_echoes_a_token_loses_it() {
        let token = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
        let message = message_of(format!(r#"{{"message":"bad token {token}\nx"}}"#).as_bytes());
        assert!(!message.contains(&token), "{message}");
        assert!(!message.contains('\n'), "{message}");
    }
}
