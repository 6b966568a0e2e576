//! Forms that people send: small, from one of our pages, and for their own session.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::to_bytes;
use axum::extract::{FromRequest, Path, Query, Request};
use url::form_urlencoded;

use crate::console::Console;
use crate::layout::errors::PageError;
use crate::sign_in::cookies::session_of;
use crate::sign_in::csrf::{is_from_here, is_token};

/// The largest forms contain a draft: 65,536 characters, as GitHub accepts them, of up to twelve bytes in a form.
const LARGEST: usize = 1 << 20;
/// How long a form may take to arrive: signing in is open to strangers, who must not hold connections open with it.
/// By the machine's own clock: this is about the network, not about Canonry's time.
const PATIENCE: Duration = Duration::from_secs(10);

/// The query parameters that a page reads by name.
pub(crate) type QueryFields = Query<HashMap<String, String>>;
pub(crate) type PathFields = Path<HashMap<String, String>>;

/// A form of a signed-in person. The last argument of every handler that changes something.
pub(crate) struct Form(Vec<(String, String)>);

/// A form that needs no session: signing in, and the theme.
pub(crate) struct OpenForm(Vec<(String, String)>);

impl Form {
    /// A field that is present and not empty.
    pub(crate) fn one(&self, name: &str) -> Option<&str> {
        one(&self.0, name)
    }

    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        self.0.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str()).collect()
    }

    pub(crate) fn needed(&self, name: &str) -> Result<&str, PageError> {
        self.one(name).ok_or_else(|| PageError::BadForm(format!("the form lacks “{name}”; go back and send it again")))
    }
}

impl OpenForm {
    /// A field that is present and not empty.
    pub(crate) fn one(&self, name: &str) -> Option<&str> {
        one(&self.0, name)
    }
}

impl FromRequest<Arc<Console>> for Form {
    type Rejection = PageError;

    async fn from_request(request: Request, console: &Arc<Console>) -> Result<Self, PageError> {
        let session = session_of(request.headers(), console).ok_or(PageError::SignedOut)?;
        let fields = fields(request, console).await?;
        let told = one(&fields, "csrf").unwrap_or_default();
        if !is_token(&console.form_key, &session, told) {
            return Err(PageError::Forged);
        }
        Ok(Self(fields))
    }
}

impl FromRequest<Arc<Console>> for OpenForm {
    type Rejection = PageError;

    async fn from_request(request: Request, console: &Arc<Console>) -> Result<Self, PageError> {
        fields(request, console).await.map(Self)
    }
}

async fn fields(request: Request, console: &Console) -> Result<Vec<(String, String)>, PageError> {
    if !is_from_here(request.headers(), console.public_url.as_ref()) {
        return Err(PageError::Forged);
    }
    let too_large =
        |_| PageError::BadForm("the form is larger than 1 MiB; choose fewer rows, or shorten the text".to_owned());
    let arriving = tokio::time::timeout(PATIENCE, to_bytes(request.into_body(), LARGEST));
    let body = arriving.await.map_err(|_| PageError::TooSlow)?.map_err(too_large)?;
    Ok(form_urlencoded::parse(&body).into_owned().collect())
}

fn one<'a>(fields: &'a [(String, String)], name: &str) -> Option<&'a str> {
    fields.iter().find(|(key, _)| key == name).map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
}
