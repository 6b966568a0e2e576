//! Signing in with the admin token or with GitHub, and signing out.

use std::net::SocketAddr;
use std::sync::Arc;

use askama::Template;
use axum::extract::{ConnectInfo, Path, Query, State};
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Redirect};
use axum::routing::{get, post};
use axum::{Extension, Router};
use canonry_domain::{GithubId, Login};
use canonry_github::{GitHubError, OauthClient, Secret, code_challenge};
use canonry_store::{NewConsoleAction, SessionOwner};
use serde::Deserialize;
use subtle::ConstantTimeEq as _;
use url::Url;

use crate::console::Console;
use crate::layout::errors::{PageError, PageResult};
use crate::layout::form::{Form, OpenForm};
use crate::layout::page::{PageFrame, back_to, html, html_with};
use crate::layout::paging::{link, own_path};
use crate::layout::theme::Theme;
use crate::sign_in::cookies::{flash_of, keep_session, session_of, stored_key, theme_of};
use crate::sign_in::github_round_trip::{GithubRoundTrip, forget, keep, pending_of, random_text};
use crate::sign_in::visit::SignedIn;

pub(crate) fn routes() -> Router<Arc<Console>> {
    Router::new()
        .route("/sign-in", get(ask).post(with_token))
        .route("/sign-in/once/{code}", get(with_one_time_code))
        .route("/sign-out", post(sign_out))
        .route("/auth/github", get(to_github))
        .route("/auth/github/callback", get(from_github))
}

#[derive(Template)]
#[template(path = "sign_in/sign_in_page.html")]
struct SignInPage {
    page: PageFrame,
    then: String,
    github: Option<String>,
    problem: Option<&'static str>,
}

#[derive(Deserialize)]
struct ReturnQuery {
    then: Option<String>,
}

async fn ask(
    State(console): State<Arc<Console>>,
    headers: HeaderMap,
    Query(query): Query<ReturnQuery>,
    visit: Result<SignedIn, PageError>,
) -> PageResult {
    let then = own_path(query.then.as_deref());
    match visit {
        Ok(_) => Ok(Redirect::to(then).into_response()),
        Err(_) => html(&sign_in_page(&console, &headers, then, None)),
    }
}

async fn with_token(
    State(console): State<Arc<Console>>,
    peer: Option<Extension<ConnectInfo<SocketAddr>>>,
    headers: HeaderMap,
    form: OpenForm,
) -> PageResult {
    let then = own_path(form.one("then"));
    let refused = |status, problem| {
        html_with(status, &sign_in_page(&console, &headers, then, Some(problem))).map_err(PageError::Render)
    };
    let peer = peer.map(|Extension(ConnectInfo(peer))| peer.ip());
    if !console.wrong_tokens.may_try(peer, console.now()) {
        let problem = "Too many wrong tokens from your address. Wait a minute, then try again.";
        return refused(StatusCode::TOO_MANY_REQUESTS, problem);
    }
    if !form.one("token").is_some_and(|token| console.admin_token.is(token)) {
        console.wrong_tokens.note(peer, console.now());
        tracing::warn!("somebody tried a wrong admin token");
        return refused(StatusCode::FORBIDDEN, "That is not the admin token.");
    }
    begin(&console, &headers, None, then).await
}

/// Signs in the first person who opens the demo's link on this machine.
async fn with_one_time_code(
    State(console): State<Arc<Console>>,
    peer: Option<Extension<ConnectInfo<SocketAddr>>>,
    headers: HeaderMap,
    Path(code): Path<String>,
) -> PageResult {
    let Some(codes) = &console.one_time_codes else { return Err(PageError::NotFound) };
    let is_local = peer.is_some_and(|Extension(ConnectInfo(peer))| peer.ip().to_canonical().is_loopback());
    if is_local && codes.redeem(&code, console.now()) {
        return begin(&console, &headers, None, "/").await;
    }
    let problem = "This link was used already or has expired. Sign in with the token that the demo printed.";
    html_with(StatusCode::FORBIDDEN, &sign_in_page(&console, &headers, "/", Some(problem))).map_err(PageError::Render)
}

async fn sign_out(
    State(console): State<Arc<Console>>,
    SignedIn(_): SignedIn,
    headers: HeaderMap,
    _: Form,
) -> PageResult {
    if let Some(id) = session_of(&headers, &console) {
        console.store.console().end_session(&stored_key(&id)).await?;
    }
    let mut answer = back_to("/sign-in", "You are signed out.");
    answer.headers_mut().append(SET_COOKIE, keep_session(&console, None));
    Ok(answer)
}

/// Redirects the browser to GitHub, with a secret that must come back.
async fn to_github(
    State(console): State<Arc<Console>>,
    headers: HeaderMap,
    Query(query): Query<ReturnQuery>,
) -> PageResult {
    let (client, callback) = github(&console, &headers)?;
    let pending = GithubRoundTrip {
        state: random_text(),
        verifier: random_text(),
        then: own_path(query.then.as_deref()).to_owned(),
        at: console.now(),
    };
    let url = client.authorize_url(&callback, &pending.state, &code_challenge(&Secret::new(&pending.verifier)));
    let mut answer = Redirect::to(url.as_str()).into_response();
    answer.headers_mut().append(SET_COOKIE, keep(&console, &pending));
    Ok(answer)
}

#[derive(Deserialize)]
struct OauthCallback {
    code: Option<String>,
    state: Option<String>,
    error: Option<String>,
}

/// Handles the return from GitHub: a browser with our secret and a valid code is signed in.
async fn from_github(
    State(console): State<Arc<Console>>,
    headers: HeaderMap,
    Query(back): Query<OauthCallback>,
) -> PageResult {
    let (client, callback) = github(&console, &headers)?;
    let again = |problem| {
        html_with(StatusCode::FORBIDDEN, &sign_in_page(&console, &headers, "/", Some(problem)))
            .map_err(PageError::Render)
    };
    let told = back.state.as_deref().unwrap_or_default();
    let pending =
        pending_of(&headers, &console).filter(|pending| pending.state.as_bytes().ct_eq(told.as_bytes()).into());
    let Some(pending) = pending else {
        return again("This sign-in was not started in this browser, or is older than ten minutes. Start again.");
    };
    let code = match (back.code, back.error) {
        (Some(code), None) => code,
        _ => return again("The sign-in was declined on GitHub."),
    };
    let known = async {
        let token = client.exchange_code(&callback, &code, &Secret::new(&pending.verifier)).await?;
        // The token is dropped here: Canonry never acts in a person's name.
        client.signed_in_user(&token).await
    };
    let (id, login) = match known.await {
        Ok(account) => account,
        Err(GitHubError::Unauthorized { credential: "the code of this sign-in", .. }) => {
            return again("GitHub no longer accepts the code of this sign-in. Start again.");
        }
        Err(error) => return Err(PageError::Github(error.to_string())),
    };
    let mut answer = begin(&console, &headers, Some((id, login)), own_path(Some(&pending.then))).await?;
    answer.headers_mut().append(SET_COOKIE, forget(&console));
    Ok(answer)
}

/// Starts a session and redirects to the page that the person wanted. An earlier session of the browser ends.
async fn begin(console: &Console, headers: &HeaderMap, account: Option<(GithubId, Login)>, then: &str) -> PageResult {
    let (now, id) = (console.now(), random_text());
    if let Some(earlier) = session_of(headers, console) {
        console.store.console().end_session(&stored_key(&earlier)).await?;
    }
    let (by, is_operator) = (account.as_ref().map(|(_, login)| login), account.is_none());
    let subject = if is_operator { "admin token" } else { "GitHub" };
    let action = NewConsoleAction { by, is_operator, repo: None, action: "sign-in", subject };
    console.store.console().record_action(&action, now).await?;
    let whose = match &account {
        Some((account, login)) => SessionOwner::Account(*account, login),
        None => SessionOwner::Operator { seal: console.admin_token.seal(&id) },
    };
    console.store.console().begin_session(&stored_key(&id), whose, now).await?;
    let mut answer = Redirect::to(then).into_response();
    answer.headers_mut().append(SET_COOKIE, keep_session(console, Some(&id)));
    Ok(answer)
}

fn sign_in_page(console: &Console, headers: &HeaderMap, then: &str, problem: Option<&'static str>) -> SignInPage {
    let page = PageFrame {
        theme: Theme::of(theme_of(headers).as_deref()),
        flash: flash_of(headers),
        version: console.version,
        ..PageFrame::bare("Sign in")
    };
    let github = can_ask_github(console).then(|| link("/auth/github", &[("then", then)]));
    SignInPage { page, then: then.to_owned(), github, problem }
}

/// A sign-in with GitHub is useless unless GitHub can be asked for permissions.
fn can_ask_github(console: &Console) -> bool {
    console.oauth.is_some() && console.github.is_some()
}

fn github(console: &Console, headers: &HeaderMap) -> Result<(OauthClient, Url), PageError> {
    let Some(app) = console.oauth.as_ref().filter(|_| can_ask_github(console)) else {
        return Err(PageError::NotFound);
    };
    let client = OauthClient::new(&console.github_api, &app.client_id, &app.client_secret)
        .map_err(|error| PageError::Github(error.to_string()))?;
    let here = console.address(headers).ok_or(PageError::NotFound)?;
    let callback = here.join("/auth/github/callback").map_err(|_| PageError::NotFound)?;
    Ok((client, callback))
}
