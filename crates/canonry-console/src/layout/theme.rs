//! The theme: light, dark, or the system's.

use std::sync::Arc;

use axum::Router;
use axum::http::header::SET_COOKIE;
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::post;

use crate::console::Console;
use crate::layout::form::OpenForm;
use crate::layout::paging::own_path;
use crate::sign_in::cookies::keep_theme;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Theme {
    Auto,
    Light,
    Dark,
}

impl Theme {
    pub(crate) fn of(word: Option<&str>) -> Self {
        match word {
            Some("light") => Self::Light,
            Some("dark") => Self::Dark,
            _ => Self::Auto,
        }
    }

    /// The value in the cookie and on the page.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    /// The next theme of the switch, in a cycle that begins with the system's.
    pub(crate) const fn next(self) -> Self {
        match self {
            Self::Auto => Self::Dark,
            Self::Dark => Self::Light,
            Self::Light => Self::Auto,
        }
    }
}

pub(crate) fn routes() -> Router<Arc<Console>> {
    Router::new().route("/theme", post(choose))
}

async fn choose(form: OpenForm) -> Response {
    let mut answer = Redirect::to(own_path(form.one("then"))).into_response();
    answer.headers_mut().append(SET_COOKIE, keep_theme(Theme::of(form.one("theme")).as_str()));
    answer
}
