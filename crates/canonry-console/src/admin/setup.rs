//! Creating the GitHub App with one click, and showing its secrets once.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::Query;
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_SECURITY_POLICY, SET_COOKIE};
use axum::routing::get;
use canonry_domain::Login;
use canonry_github::{GitHub, app_manifest, created_app, web_address};
use serde::Deserialize;
use subtle::ConstantTimeEq as _;

use crate::console::Console;
use crate::layout::errors::{PageError, PageResult};
use crate::layout::filters;
use crate::layout::headers::policy_with_forms_to;
use crate::layout::page::{NavSection, PageFrame, html};
use crate::sign_in::github_round_trip::{GithubRoundTrip, forget, keep, pending_of, random_text};
use crate::sign_in::visit::OperatorOnly;

pub(crate) fn routes() -> Router<Arc<Console>> {
    Router::new().route("/setup", get(show)).route("/setup/created", get(created))
}

#[derive(Template)]
#[template(path = "admin/setup.html")]
struct SetupPage {
    page: PageFrame,
    is_app: bool,
    organization: String,
    offer: Option<ManifestForm>,
}

struct ManifestForm {
    action: String,
    manifest: String,
    readable: String,
}

#[derive(Template)]
#[template(path = "admin/app_created.html")]
struct AppCreatedPage {
    page: PageFrame,
    slug: String,
    install: String,
    variables: String,
    key: String,
}

#[derive(Deserialize)]
struct SetupQuery {
    organization: Option<String>,
}

async fn show(OperatorOnly(visit): OperatorOnly, Query(asked): Query<SetupQuery>) -> PageResult {
    let state = random_text();
    let web = web_address(&visit.console.github_api);
    let organization = asked.organization.as_deref().map(str::trim).filter(|name| !name.is_empty());
    let organization = match organization {
        Some(name) => Some(name.parse::<Login>().map_err(|error| PageError::BadForm(error.to_string()))?),
        None => None,
    };
    let offer = visit.console.public_url.as_ref().map(|public| {
        let manifest = app_manifest(public);
        let mut action = web.clone();
        if let Ok(mut path) = action.path_segments_mut() {
            path.pop_if_empty();
            if let Some(name) = &organization {
                path.extend(["organizations", name.as_str()]);
            }
            path.extend(["settings", "apps", "new"]);
        }
        action.query_pairs_mut().append_pair("state", &state);
        let readable = serde_json::to_string_pretty(&manifest).unwrap_or_default();
        ManifestForm { action: action.to_string(), manifest: manifest.to_string(), readable }
    });
    let mut answer = html(&SetupPage {
        page: visit.page("Create the GitHub App", NavSection::Setup),
        is_app: visit.console.github.as_ref().is_some_and(GitHub::is_app),
        organization: organization.map(|name| name.to_string()).unwrap_or_default(),
        offer,
    })?;
    let pending =
        GithubRoundTrip { state, verifier: String::new(), then: "/setup".to_owned(), at: visit.console.now() };
    let headers = answer.headers_mut();
    headers.append(SET_COOKIE, keep(&visit.console, &pending));
    // The only page whose form goes to another host.
    let policy = policy_with_forms_to(&web.origin().ascii_serialization());
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    Ok(answer)
}

#[derive(Deserialize)]
struct AppCreatedQuery {
    code: Option<String>,
    state: Option<String>,
}

/// Handles the return from GitHub, which created the App: fetches its secrets and shows them. They are not stored.
async fn created(
    OperatorOnly(visit): OperatorOnly,
    headers: axum::http::HeaderMap,
    Query(made): Query<AppCreatedQuery>,
) -> PageResult {
    let told = made.state.as_deref().unwrap_or_default();
    let pending = pending_of(&headers, &visit.console);
    if !pending.is_some_and(|pending| pending.state.as_bytes().ct_eq(told.as_bytes()).into()) {
        let problem = "this setup was not started in this browser, or more than ten minutes ago; start again at /setup";
        return Err(PageError::BadForm(problem.to_owned()));
    }
    let code = made.code.ok_or_else(|| PageError::BadForm("GitHub sent no code; start again at /setup".to_owned()))?;
    let app =
        created_app(&visit.console.github_api, &code).await.map_err(|error| PageError::Github(error.to_string()))?;
    visit.record(None, "create the GitHub App", &app.slug).await?;
    let webhook_secret = app.webhook_secret();
    let variables = [
        ("CANONRY_APP_ID", app.id.to_string()),
        ("CANONRY_WEBHOOK_SECRET", webhook_secret.map(|secret| secret.expose().to_owned()).unwrap_or_default()),
        ("CANONRY_OAUTH_CLIENT_ID", app.client_id.clone()),
        ("CANONRY_OAUTH_CLIENT_SECRET", app.client_secret().expose().to_owned()),
        ("CANONRY_APP_PRIVATE_KEY_PATH", "canonry.pem".to_owned()),
    ];
    let mut answer = html(&AppCreatedPage {
        page: visit.page("GitHub App created", NavSection::Setup),
        install: install_address(&visit.console, &app.slug),
        slug: app.slug.clone(),
        variables: variables.map(|(name, value)| format!("{name}={value}")).join("\n"),
        key: app.private_key().expose().to_owned(),
    })?;
    answer.headers_mut().append(SET_COOKIE, forget(&visit.console));
    Ok(answer)
}

/// Derived from the API's own address, never from an answer.
fn install_address(console: &Console, slug: &str) -> String {
    let mut url = web_address(&console.github_api);
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(["apps", slug, "installations", "new"]);
    }
    url.to_string()
}
