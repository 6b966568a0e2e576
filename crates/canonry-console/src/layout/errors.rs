//! What somebody sees when there is no page to show, and what to do next.

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
    /// There is none, or it is not for this reader: nobody learns which.
    #[error("this page does not exist, or you cannot see it")]
    NotFound,
    #[error("this page is for {0}")]
    Forbidden(&'static str),
    #[error("you are signed out; sign in and try again")]
    SignedOut,
    /// Nobody is signed in, and the page can be shown after that.
    #[error("sign in first")]
    SignIn { then: String },
    /// The form does not come from a page of this session.
    #[error("the form does not belong to your session; reload the page and send it again")]
    Forged,
    /// The form says something that cannot be done.
    #[error("{0}")]
    BadForm(String),
    #[error("the form took too long to arrive; send it again")]
    TooSlow,
    #[error("GitHub does not answer: {0}; try again in a minute")]
    Github(String),
    #[error("the page could not be rendered: {0}")]
    Render(#[from] askama::Error),
}

/// Goes with an answer that is no page, so that it can be told again to whom it is told.
#[derive(Debug, Clone)]
struct ErrorMessage {
    heading: &'static str,
    message: String,
    next: &'static str,
}

/// Goes with an answer to somebody who has no session, or no longer has one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NoSession;

#[derive(Template)]
#[template(path = "layout/error.html")]
struct ErrorPage<'a> {
    page: PageFrame,
    told: &'a ErrorMessage,
}

/// Shows an error in the frame of whoever asked: their theme, and for whoever is signed in the navigation. The error alone
/// knows nothing of them.
pub(crate) async fn in_their_frame(State(console): State<Arc<Console>>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let mut asked = parts.clone();
    let mut answer = next.run(Request::from_parts(parts, body)).await;
    let Some(told) = answer.extensions_mut().remove::<ErrorMessage>() else { return answer };
    let theme = Theme::of(theme_of(&asked.headers).as_deref());
    let page = match SignedIn::from_request_parts(&mut asked, &console).await {
        // What an action left to be said is for the next page that is one.
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
        // What the database says about itself is for the log.
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
