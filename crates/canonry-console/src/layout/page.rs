//! The frame of all pages: title, navigation, the signed-in person, and the response.

use std::fmt;

use askama::Template;
use askama::filters::HtmlSafe;
use axum::http::header::{CONTENT_TYPE, SET_COOKIE, VARY};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Redirect, Response};
use canonry_store::{MOST_COUNTED, Repo, RepoAttention};

use crate::layout::assets;
use crate::layout::errors::{PageError, PageResult};
use crate::layout::theme::Theme;
use crate::sign_in::cookies::keep_flash;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NavSection {
    Home,
    Repository,
    Items,
    Clusters,
    Plans,
    Announced,
    Reviews,
    Findings,
    Patterns,
    Learning,
    Adjudicate,
    Audits,
    Jobs,
    Deliveries,
    Activity,
    Settings,
    Setup,
    None,
}

pub(crate) struct NavLink {
    pub(crate) words: &'static str,
    pub(crate) href: String,
    /// The second key of `g …`.
    pub(crate) key: &'static str,
    /// How many things there need a person.
    pub(crate) count: u64,
    pub(crate) is_here: bool,
}

impl NavLink {
    pub(crate) fn count_text(&self) -> String {
        short_count(self.count)
    }
}

/// A number that fits into the navigation.
fn short_count(count: u64) -> String {
    if count >= MOST_COUNTED { format!("{}+", MOST_COUNTED - 1) } else { count.to_string() }
}

pub(crate) struct NavGroup {
    pub(crate) name: &'static str,
    pub(crate) links: Vec<NavLink>,
}

impl NavGroup {
    pub(crate) fn is_here(&self) -> bool {
        self.links.iter().any(|link| link.is_here)
    }

    pub(crate) fn href(&self) -> &str {
        self.links.first().map_or("/", |link| &link.href)
    }

    pub(crate) fn count(&self) -> u64 {
        self.links.iter().map(|link| link.count).sum()
    }

    pub(crate) fn count_text(&self) -> String {
        short_count(self.count())
    }
}

#[derive(Debug, Clone)]
pub(crate) struct RepoHead {
    pub(crate) owner: String,
    pub(crate) name: String,
    /// `/r/owner/name`.
    pub(crate) path: String,
    pub(crate) can_maintain: bool,
    /// What needs a person there; only full pages show it.
    pub(crate) attention: Option<RepoAttention>,
}

impl RepoHead {
    pub(crate) fn new(repo: &Repo, can_maintain: bool, attention: Option<RepoAttention>) -> Self {
        Self {
            owner: repo.name.owner().to_owned(),
            name: repo.name.name().to_owned(),
            path: repo_path(repo),
            can_maintain,
            attention,
        }
    }

    fn count(&self, of: fn(&RepoAttention) -> u64) -> u64 {
        self.attention.as_ref().map_or(0, of)
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
    /// The signed-in person, in words; `None` on the sign-in page and on errors.
    pub(crate) who: Option<String>,
    pub(crate) is_operator: bool,
    pub(crate) repo: Option<RepoHead>,
    pub(crate) flash: Option<String>,
    /// The searched text, on one line.
    pub(crate) search: String,
    /// The command that does the same; its placeholders are in capitals. Many pages have none.
    pub(crate) command: Option<String>,
    /// Seconds after which a browser without scripts reloads the page.
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
            search: String::new(),
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

    /// Whether the reader may change what Canonry does in the repository.
    pub(crate) fn can_maintain(&self) -> bool {
        self.repo.as_ref().is_some_and(|repo| repo.can_maintain)
    }

    pub(crate) fn csrf_field(&self) -> CsrfField<'_> {
        CsrfField(&self.csrf)
    }

    /// The pages by purpose: of a repository, or of the whole service.
    pub(crate) fn nav_groups(&self) -> Vec<NavGroup> {
        let Some(repo) = &self.repo else { return self.service_groups() };
        let place = |words, tail: &str, key, section| self.place(words, format!("{}{tail}", repo.path), key, section);
        let counted = |place: NavLink, of: fn(&RepoAttention) -> u64| NavLink { count: repo.count(of), ..place };
        let mut learning = vec![place("Thresholds", "/learning", "l", NavSection::Learning)];
        let mut admin = Vec::new();
        if repo.can_maintain {
            let adjudicate = place("Adjudicate", "/adjudicate", "q", NavSection::Adjudicate);
            learning.push(counted(adjudicate, |waits| waits.unanswered));
            admin.push(counted(place("Jobs", "/jobs", "j", NavSection::Jobs), |waits| waits.failed_jobs));
            admin.push(place("Deliveries", "/deliveries", "d", NavSection::Deliveries));
        }
        learning.push(place("Audits", "/audits", "a", NavSection::Audits));
        admin.push(place("Activity", "/activity", "y", NavSection::Activity));
        admin.push(place("Settings", "/settings", "s", NavSection::Settings));
        let triage = vec![
            place("Overview", "", "h", NavSection::Repository),
            place("Items", "/items", "i", NavSection::Items),
            place("Duplicates", "/clusters", "c", NavSection::Clusters),
            counted(place("Plans", "/plans", "p", NavSection::Plans), |waits| waits.undecided),
            counted(place("Announced", "/announced", "n", NavSection::Announced), |waits| waits.announced),
        ];
        let review = vec![
            place("Reviews", "/reviews", "r", NavSection::Reviews),
            counted(place("Findings", "/findings", "f", NavSection::Findings), |waits| waits.open_findings),
            place("Patterns", "/patterns", "t", NavSection::Patterns),
        ];
        [("Triage", triage), ("Review", review), ("Learning", learning), ("Admin", admin)]
            .map(|(name, links)| NavGroup { name, links })
            .into()
    }

    fn service_groups(&self) -> Vec<NavGroup> {
        let home = self.place("Home", "/".to_owned(), "o", NavSection::Home);
        let mut groups = vec![NavGroup { name: "Home", links: vec![home] }];
        if self.is_operator {
            let links = vec![
                self.place("Jobs", "/jobs".to_owned(), "j", NavSection::Jobs),
                self.place("Deliveries", "/deliveries".to_owned(), "d", NavSection::Deliveries),
                self.place("GitHub App", "/setup".to_owned(), "s", NavSection::Setup),
            ];
            groups.push(NavGroup { name: "Admin", links });
        }
        groups
    }

    fn place(&self, words: &'static str, href: String, key: &'static str, section: NavSection) -> NavLink {
        NavLink { words, href, key, count: 0, is_here: self.section == section }
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
        // URL-safe base64: nothing in it needs escaping.
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

/// Redirects to a page after an action, with one sentence about what happened.
pub(crate) fn back_to(path: &str, flash: &str) -> Response {
    let mut answer = Redirect::to(path).into_response();
    answer.headers_mut().append(SET_COOKIE, keep_flash(flash));
    answer
}
