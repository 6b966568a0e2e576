//! What all pages have in common: title, navigation, who looks, and how they become an answer.

use std::fmt;

use askama::Template;
use askama::filters::HtmlSafe;
use axum::http::header::{CONTENT_TYPE, SET_COOKIE, VARY};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Redirect, Response};
use canonry_store::Repo;

use crate::layout::assets;
use crate::layout::errors::{PageError, PageResult};
use crate::layout::theme::Theme;
use crate::sign_in::cookies::keep_flash;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NavSection {
    Overview,
    Repository,
    Items,
    Clusters,
    Plans,
    Learning,
    Adjudicate,
    Audits,
    Reviews,
    Findings,
    Patterns,
    Jobs,
    Deliveries,
    Settings,
    None,
}

pub(crate) struct NavLink {
    pub(crate) words: &'static str,
    pub(crate) href: String,
    /// The second key of `g …`.
    pub(crate) key: &'static str,
    pub(crate) is_here: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct RepoHead {
    pub(crate) owner: String,
    pub(crate) name: String,
    /// `/r/owner/name`.
    pub(crate) path: String,
    pub(crate) can_maintain: bool,
}

impl RepoHead {
    pub(crate) fn new(repo: &Repo, can_maintain: bool) -> Self {
        Self {
            owner: repo.name.owner().to_owned(),
            name: repo.name.name().to_owned(),
            path: repo_path(repo),
            can_maintain,
        }
    }
}

pub(crate) fn repo_path(repo: &Repo) -> String {
    format!("/r/{}/{}", repo.name.owner(), repo.name.name())
}

/// The frame of a page; the field `page` of every template that extends `layout.html`.
#[derive(Debug, Clone)]
pub(crate) struct PageFrame {
    pub(crate) title: String,
    pub(crate) section: NavSection,
    pub(crate) theme: Theme,
    /// Who is signed in, in words; nobody on the sign-in page and on errors.
    pub(crate) who: Option<String>,
    pub(crate) is_operator: bool,
    pub(crate) repo: Option<RepoHead>,
    pub(crate) flash: Option<String>,
    /// The command that tells or does the same; what it needs to be told stands in capitals. Many pages have none.
    pub(crate) command: Option<String>,
    /// Seconds after which a browser without scripts loads the page again.
    pub(crate) refresh: Option<u32>,
    pub(crate) version: &'static str,
    pub(crate) here: String,
    pub(crate) csrf: String,
}

impl PageFrame {
    pub(crate) fn bare(title: &str) -> Self {
        Self {
            title: title.to_owned(),
            section: NavSection::None,
            theme: Theme::Auto,
            who: None,
            is_operator: false,
            repo: None,
            flash: None,
            command: None,
            refresh: None,
            version: "",
            here: "/".to_owned(),
            csrf: String::new(),
        }
    }

    pub(crate) fn cli(mut self, command: impl Into<String>) -> Self {
        self.command = Some(command.into());
        self
    }

    /// Whether who looks may change what Canonry does in the repository.
    pub(crate) fn can_maintain(&self) -> bool {
        self.repo.as_ref().is_some_and(|repo| repo.can_maintain)
    }

    pub(crate) fn csrf_field(&self) -> CsrfField<'_> {
        CsrfField(&self.csrf)
    }

    pub(crate) fn places(&self) -> Vec<NavLink> {
        let mut places = vec![self.place("Overview", "/".to_owned(), "o", NavSection::Overview)];
        if self.is_operator && self.repo.is_none() {
            places.push(self.place("Jobs", "/jobs".to_owned(), "j", NavSection::Jobs));
            places.push(self.place("Deliveries", "/deliveries".to_owned(), "d", NavSection::Deliveries));
        }
        places
    }

    pub(crate) fn repo_places(&self) -> Vec<NavLink> {
        let Some(repo) = &self.repo else {
            return Vec::new();
        };
        let mut places = Vec::new();
        let mut add = |words, tail: &str, key, section| {
            places.push(self.place(words, format!("{}{tail}", repo.path), key, section));
        };
        add("Summary", "", "h", NavSection::Repository);
        add("Items", "/items", "i", NavSection::Items);
        add("Duplicates", "/clusters", "c", NavSection::Clusters);
        add("Plans", "/plans", "p", NavSection::Plans);
        add("Learning", "/learning", "l", NavSection::Learning);
        add("Audits", "/audits", "a", NavSection::Audits);
        if repo.can_maintain {
            add("Adjudicate", "/adjudicate", "q", NavSection::Adjudicate);
        }
        add("Reviews", "/reviews", "r", NavSection::Reviews);
        add("Findings", "/findings", "f", NavSection::Findings);
        add("Patterns", "/patterns", "t", NavSection::Patterns);
        if repo.can_maintain {
            add("Jobs", "/jobs", "j", NavSection::Jobs);
            add("Deliveries", "/deliveries", "d", NavSection::Deliveries);
        }
        add("Settings", "/settings", "s", NavSection::Settings);
        places
    }

    fn place(&self, words: &'static str, href: String, key: &'static str, section: NavSection) -> NavLink {
        NavLink { words, href, key, is_here: self.section == section }
    }

    pub(crate) fn css(&self) -> &'static str {
        assets::css()
    }

    pub(crate) fn js(&self) -> &'static str {
        assets::js()
    }

    pub(crate) fn htmx(&self) -> &'static str {
        assets::htmx()
    }

    pub(crate) fn icon(&self) -> &'static str {
        assets::icon()
    }
}

/// `<input type=hidden name=csrf …>`.
pub(crate) struct CsrfField<'a>(&'a str);

impl fmt::Display for CsrfField<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Base64 for addresses: nothing in it needs escaping.
        write!(formatter, r#"<input type="hidden" name="csrf" value="{}">"#, self.0)
    }
}

impl HtmlSafe for CsrfField<'_> {}

pub(crate) fn html(template: &impl Template) -> PageResult {
    html_with(StatusCode::OK, template).map_err(PageError::Render)
}

pub(crate) fn html_with(status: StatusCode, template: &impl Template) -> Result<Response, askama::Error> {
    let kind = HeaderValue::from_static("text/html; charset=utf-8");
    // The same address answers htmx with a part of the page.
    let vary = HeaderValue::from_static("HX-Request");
    Ok((status, [(CONTENT_TYPE, kind), (VARY, vary)], template.render()?).into_response())
}

/// Leads to a page after an action, which says in one sentence what happened.
pub(crate) fn back_to(path: &str, flash: &str) -> Response {
    let mut answer = Redirect::to(path).into_response();
    answer.headers_mut().append(SET_COOKIE, keep_flash(flash));
    answer
}
