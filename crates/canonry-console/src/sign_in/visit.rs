//! The person who requests a page, and their role in its repository.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{FromRequestParts, Path};
use axum::http::Method;
use axum::http::request::Parts;
use canonry_domain::{Login, RepoName};
use canonry_store::{ConsoleSession, NewConsoleAction, Repo, RepoAttention, RepoId};

use crate::console::Console;
use crate::home::needs::plans_since;
use crate::layout::errors::PageError;
use crate::layout::page::{NavSection, PageFrame, RepoHead};
use crate::layout::theme::Theme;
use crate::sign_in::cookies::{flash_of, session_of, stored_key, theme_of};
use crate::sign_in::csrf;
use crate::sign_in::roles::Role;

pub(crate) struct SignedIn(pub(crate) Visit);

/// A person with the admin token.
pub(crate) struct OperatorOnly(pub(crate) Visit);

/// A person who may read the repository in the path.
pub(crate) struct ReaderOf(pub(crate) RepoVisit);

/// A person who may change what Canonry does in the repository in the path. Before an action GitHub is asked again.
pub(crate) struct MaintainerOf(pub(crate) RepoVisit);

#[derive(Clone)]
pub(crate) struct Visit {
    pub(crate) console: Arc<Console>,
    pub(crate) session: ConsoleSession,
    pub(crate) theme: Theme,
    pub(crate) flash: Option<String>,
    /// Whether htmx sent the request; it wants a part of the page.
    pub(crate) is_htmx: bool,
    /// Whether a whole page is requested, with its navigation.
    has_frame: bool,
    here: String,
    csrf: String,
}

#[derive(Clone)]
pub(crate) struct RepoVisit {
    pub(crate) console: Arc<Console>,
    pub(crate) repo: Repo,
    pub(crate) role: Role,
    pub(crate) visit: Visit,
    /// What needs a person, for the navigation of a whole page.
    attention: Option<RepoAttention>,
}

impl Visit {
    /// `None` for a person who signed in with the admin token.
    pub(crate) fn login(&self) -> Option<&Login> {
        self.session.login.as_ref()
    }

    pub(crate) fn who(&self) -> String {
        self.login().map_or_else(|| "operator".to_owned(), |login| format!("@{login}"))
    }

    pub(crate) async fn record(&self, repo: Option<RepoId>, action: &str, subject: &str) -> Result<(), PageError> {
        let (by, is_operator) = (self.login(), self.session.is_operator);
        let action = NewConsoleAction { by, is_operator, repo, action, subject };
        Ok(self.console.store.console().record_action(&action, self.console.now()).await?)
    }

    /// The frame of a page without a repository.
    pub(crate) fn page(&self, title: &str, section: NavSection) -> PageFrame {
        PageFrame {
            title: title.to_owned(),
            section,
            theme: self.theme,
            who: Some(self.who()),
            is_operator: self.session.is_operator,
            repo: None,
            flash: self.flash.clone(),
            search: String::new(),
            command: None,
            refresh: None,
            version: self.console.version,
            here: self.here.clone(),
            csrf: self.csrf.clone(),
        }
    }
}

impl RepoVisit {
    pub(crate) async fn new(visit: Visit, repo: Repo, role: Role) -> Result<Self, PageError> {
        let console = Arc::clone(&visit.console);
        let attention = match visit.has_frame {
            true => Some(console.store.console().repo_attention(repo.id, plans_since(console.now())).await?),
            false => None,
        };
        Ok(Self { console, repo, role, visit, attention })
    }

    pub(crate) fn can_maintain(&self) -> bool {
        self.role >= Role::Maintainer
    }

    pub(crate) async fn record(&self, action: &str, subject: &str) -> Result<(), PageError> {
        self.visit.record(Some(self.repo.id), action, subject).await
    }

    /// The frame of a page about the repository.
    pub(crate) fn page(&self, title: &str, section: NavSection) -> PageFrame {
        let mut page = self.visit.page(title, section);
        page.repo = Some(RepoHead::new(&self.repo, self.can_maintain(), self.attention.clone()));
        page
    }
}

impl FromRequestParts<Arc<Console>> for SignedIn {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, console: &Arc<Console>) -> Result<Self, PageError> {
        visit(parts, console).await.map(Self)
    }
}

impl FromRequestParts<Arc<Console>> for OperatorOnly {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, console: &Arc<Console>) -> Result<Self, PageError> {
        let visit = visit(parts, console).await?;
        if !visit.session.is_operator {
            return Err(PageError::Forbidden("whoever runs this service; sign in with the admin token"));
        }
        Ok(Self(visit))
    }
}

impl FromRequestParts<Arc<Console>> for ReaderOf {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, console: &Arc<Console>) -> Result<Self, PageError> {
        at(parts, console).await.map(Self)
    }
}

impl FromRequestParts<Arc<Console>> for MaintainerOf {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, console: &Arc<Console>) -> Result<Self, PageError> {
        let at = at(parts, console).await?;
        if !at.can_maintain() {
            return Err(PageError::Forbidden("maintainers of this repository"));
        }
        Ok(Self(at))
    }
}

async fn visit(parts: &Parts, console: &Arc<Console>) -> Result<Visit, PageError> {
    let headers = &parts.headers;
    let here = parts.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
    let is_read = parts.method == Method::GET || parts.method == Method::HEAD;
    let signed_out = || if is_read { PageError::SignIn { then: here.clone() } } else { PageError::SignedOut };
    // Before any database read or GitHub request: a request forged by another site must not cost anything.
    if !is_read && !csrf::is_from_here(headers, console.public_url.as_ref()) {
        return Err(PageError::Forged);
    }
    let id = session_of(headers, console).ok_or_else(signed_out)?;
    let (key, seal) = (stored_key(&id), console.admin_token.seal(&id));
    let session = console.store.console().session(&key, &seal, console.now()).await?.ok_or_else(signed_out)?;
    Ok(Visit {
        console: Arc::clone(console),
        session,
        theme: Theme::of(theme_of(headers).as_deref()),
        flash: flash_of(headers),
        is_htmx: headers.contains_key("hx-request"),
        has_frame: is_read && !headers.contains_key("hx-request"),
        csrf: csrf::token(&console.form_key, &id),
        here: if is_read { here } else { "/".to_owned() },
    })
}

async fn at(parts: &mut Parts, console: &Arc<Console>) -> Result<RepoVisit, PageError> {
    let visit = visit(parts, console).await?;
    let Ok(Path(path)) = Path::<HashMap<String, String>>::from_request_parts(parts, console).await else {
        return Err(PageError::NotFound);
    };
    let (Some(owner), Some(name)) = (path.get("owner"), path.get("name")) else {
        return Err(PageError::NotFound);
    };
    // A name that cannot exist on GitHub belongs to no repository.
    let name: RepoName = format!("{owner}/{name}").parse().map_err(|_| PageError::NotFound)?;
    let repo = console.store.repos().find(&name).await?.ok_or(PageError::NotFound)?;
    let is_action = parts.method != Method::GET && parts.method != Method::HEAD;
    let role = console.roles.of(console, &visit.session, &repo, is_action).await?;
    RepoVisit::new(visit, repo, role).await
}
