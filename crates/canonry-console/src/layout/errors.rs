//! The error pages: what happened, and what to do next.

use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::extract::{FromRequestParts as _, Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use canonry_store::StoreError;

use crate::console::Console;
use crate::layout::page::{NavSection, PageFrame, html_with};
use crate::layout::theme::Theme;
use crate::sign_in::cookies::theme_of;
use crate::sign_in::visit::SignedIn;

pub(crate) type PageResult = Result<Response, PageError>;

#[derive(Debug, thiserror::Error)]
pub(crate) enum PageError {
    #[error("{0}")]
    Store(#[from] StoreError),
    /// The page does not exist, or this reader may not see it: the answer is the same.
    #[error("this page does not exist, or you cannot see it")]
    NotFound,
    #[error("this page is for {0}")]
    Forbidden(&'static str),
    #[error("you are signed out; sign in and try again")]
    SignedOut,
    /// The reader has to sign in; then the page can be shown.
    #[error("sign in first")]
    SignIn { then: String },
    /// The form does not come from a page of this session.
    #[error("the form does not belong to your session; reload the page and send it again")]
    Forged,
    /// The form asks for something that cannot be done.
    #[error("{0}")]
    BadForm(String),
    #[error("the form took too long to arrive; send it again")]
    TooSlow,
    #[error("GitHub does not answer: {0}; try again in a minute")]
    Github(String),
    #[error("the page could not be rendered: {0}")]
    Render(#[from] askama::Error),
}

/// Attached to an error response, so that the message can be rendered again in the reader's frame.
#[derive(Debug, Clone)]
struct ErrorMessage {
    heading: &'static str,
    message: String,
    next: &'static str,
}

/// Attached to a response if the reader has no session, or no longer has one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NoSession;

#[derive(Template)]
#[template(path = "layout/error.html")]
struct ErrorPage<'a> {
    page: PageFrame,
    told: &'a ErrorMessage,
}

/// Shows an error in the reader's frame: their theme, and the navigation if they are signed in. The error itself has
/// no data about the reader.
pub(crate) async fn in_their_frame(State(console): State<Arc<Console>>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let mut asked = parts.clone();
    let mut answer = next.run(Request::from_parts(parts, body)).await;
    let Some(told) = answer.extensions_mut().remove::<ErrorMessage>() else { return answer };
    let theme = Theme::of(theme_of(&asked.headers).as_deref());
    let page = match SignedIn::from_request_parts(&mut asked, &console).await {
        // A flash message of an action stays for the next regular page.
        Ok(SignedIn(visit)) => PageFrame { flash: None, ..visit.page(told.heading, NavSection::None) },
        Err(_) => PageFrame { theme, ..PageFrame::bare(told.heading) },
    };
    let Ok(mut framed) = html_with(answer.status(), &ErrorPage { page, told: &told }) else { return answer };
    *framed.extensions_mut() = std::mem::take(answer.extensions_mut());
    framed
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        let (status, heading, next) = match &self {
            Self::SignIn { then } => {
                let to = Redirect::to(&crate::layout::paging::link("/sign-in", &[("then", then.as_str())]));
                return (Extension(NoSession), to).into_response();
            }
            Self::Store(error) => {
                tracing::warn!(%error, "a page could not be shown");
                (
                    StatusCode::SERVICE_UNAVAILABLE,
                    "The database does not answer",
                    "Nothing was changed. Reload in a moment; `canonry doctor` checks the database.",
                )
            }
            Self::NotFound => (
                StatusCode::NOT_FOUND,
                "Page not found",
                "Check the address and the account that you are signed in with. GitHub decides who may see a repository; new \
                 access can take ten minutes to show.",
            ),
            Self::Forbidden(_) => (
                StatusCode::FORBIDDEN,
                "No access",
                "Roles come from GitHub: people with write access to the repository are maintainers here.",
            ),
            Self::SignedOut => (StatusCode::UNAUTHORIZED, "Signed out", "Nothing was changed."),
            Self::Forged => (StatusCode::FORBIDDEN, "Refused", "Nothing was changed."),
            Self::BadForm(_) => (StatusCode::BAD_REQUEST, "Not possible", "Nothing was changed."),
            Self::Github(_) => (StatusCode::BAD_GATEWAY, "GitHub does not answer", "Nothing was changed."),
            Self::TooSlow => (StatusCode::REQUEST_TIMEOUT, "Request timed out", "Nothing was changed."),
            Self::Render(error) => {
                tracing::error!(%error, "a page could not be rendered");
                (
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "The page could not be rendered",
                    "This is a bug in Canonry; please report it.",
                )
            }
        };
        // Database errors go to the log only.
        let message = match &self {
            Self::Store(_) => "the page could not be read from the database".to_owned(),
            other => other.to_string(),
        };
        let told = ErrorMessage { heading, message, next };
        let page = ErrorPage { page: PageFrame::bare(heading), told: &told };
        let mut answer = html_with(status, &page).unwrap_or_else(|_| (status, heading.to_owned()).into_response());
        answer.extensions_mut().insert(told);
        if matches!(self, Self::SignedOut) {
            answer.extensions_mut().insert(NoSession);
        }
        answer
    }
}
