//! A console on loopback with an emulated GitHub, a repository that it knows, and people's browsers.

pub(crate) mod items;
mod learning;
pub(crate) mod plans;
pub(crate) mod reviews;
pub(crate) mod service;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{ConnectInfo, Request};
use axum::middleware::{Next, from_fn};
use canonry_console::{AdminToken, ConsoleCommand, ConsoleOauthApp, ConsoleParts, console_routes};
use canonry_domain::{GithubId, ItemNumber, ItemType, Login};
use canonry_github::{Auth, ClientOptions, Clock, GitHub, ManualClock, Secret};
use canonry_store::{Repo, SessionOwner, Store};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{Emulator, Permission, World, loopback_client_builder};
use jiff::Timestamp;
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use sha2::{Digest as _, Sha256};

use crate::reading::{csrf_of, words};

pub(crate) const REPO: &str = "tide/pool";
pub(crate) const ISSUE: ItemType = ItemType::Issue;
pub(crate) const ADMIN_TOKEN: &str = "an-admin-token-for-tests";
/// A text that a stranger may write anywhere.
pub(crate) const HOSTILE: &str = "<script>alert(1)</script>\u{202e}\"'><img src=x onerror=alert(2)>{{ 7*7 }}";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    Operator,
    Mona,
    Hubot,
    Rita,
    /// May not even read.
    Stranger,
    Nobody,
}

impl Who {
    pub(crate) const fn session(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Mona => "mona",
            Self::Hubot => "hubot",
            Self::Rita => "rita",
            Self::Stranger => "stranger",
            Self::Nobody => "nobody",
        }
    }
}

pub(crate) struct ConsoleWorld {
    _database: TestDatabase,
    pub(crate) emulator: Emulator,
    pub(crate) store: Store,
    pub(crate) repo: Repo,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) now: Timestamp,
    pub(crate) address: String,
    pub(crate) client: Client,
}

impl ConsoleWorld {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(adjust: impl FnOnce(&mut ConsoleParts)) -> Self {
        let database = TestDatabase::sqlite();
        let mut github = World::new();
        github.repo(REPO).private = true;
        github.token("own", "canonry-bot");
        github.collaborator(REPO, "canonry-bot", Permission::Admin);
        let mut accounts = Vec::new();
        for (login, permission) in
            [("mona", Permission::Write), ("hubot", Permission::Maintain), ("rita", Permission::Read)]
        {
            accounts.push((login, github.user(login).id));
            github.collaborator(REPO, login, permission);
        }
        accounts.push(("stranger", github.user("stranger").id));
        let (now, id) = (github.now, github.get(REPO).id);
        let emulator = Emulator::start(github).await;
        let store = Store::open(&database.url().parse().expect("a URL"), now).await.expect("opens");
        let repo = store.repos().ensure(&REPO.parse().expect("a name"), now).await.expect("stored");
        let id = GithubId(i64::try_from(id).expect("small"));
        let repo = store.repos().identify(repo.id, id, &repo.name).await.expect("stored").expect("its own name");
        for (login, id) in accounts {
            let (id, name) = (GithubId(i64::try_from(id).expect("small")), login.parse::<Login>().expect("a login"));
            store.console().begin_session(&hash(login), SessionOwner::Account(id, &name), now).await.expect("begun");
        }
        let seal = AdminToken::given(&Secret::new(ADMIN_TOKEN)).seal("operator");
        store.console().begin_session(&hash("operator"), SessionOwner::Operator { seal }, now).await.expect("begun");
        let clock = Arc::new(ManualClock::new(now));
        let api: url::Url = emulator.url().parse().expect("a URL");
        let options = ClientOptions {
            api: api.clone(),
            clock: clock.clone() as Arc<dyn Clock>,
            jitter: Arc::new(|| 0.0),
            ..ClientOptions::new(Auth::Token(Secret::new("own")))
        };
        let mut parts = ConsoleParts {
            store: store.clone(),
            github: Some(GitHub::new(options).expect("a client")),
            github_api: api,
            clock: clock.clone(),
            oauth: Some(ConsoleOauthApp {
                client_id: "Iv1.console".to_owned(),
                client_secret: Secret::new("the-secret"),
            }),
            public_url: None,
            admin_token: AdminToken::given(&Secret::new(ADMIN_TOKEN)),
            form_key: [7; 32],
            one_time_codes: None,
            wake_worker: Arc::default(),
            wake_publisher: Arc::default(),
            version: "test",
            commands: vec![ConsoleCommand {
                usage: "canonry plan show".to_owned(),
                about: "Show a plan and its rows".to_owned(),
            }],
            lookup: None,
            public_checks: Vec::new(),
        };
        adjust(&mut parts);
        let routes = console_routes(parts).layer(from_fn(tell_peer));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("bound"));
        tokio::spawn(async move { axum::serve(listener, routes).await });
        let client = loopback_client_builder().redirect(reqwest::redirect::Policy::none()).build().expect("a client");
        Self { _database: database, emulator, store, repo, clock, now, address, client }
    }

    pub(crate) fn get(&self, who: Who, path: &str) -> RequestBuilder {
        self.client.get(format!("{}{path}", self.address)).header("cookie", format!("canonry={}", who.session()))
    }

    /// Sends a form of any page with this token, from a page at `origin`.
    pub(crate) fn form(
        &self,
        who: Who,
        path: &str,
        csrf: Option<&str>,
        origin: &str,
        fields: &[(&str, &str)],
    ) -> RequestBuilder {
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        if let Some(csrf) = csrf {
            form.append_pair("csrf", csrf);
        }
        form.extend_pairs(fields);
        self.client
            .post(format!("{}{path}", self.address))
            .header("cookie", format!("canonry={}", who.session()))
            .header("origin", origin)
            .header("content-type", "application/x-www-form-urlencoded")
            .body(form.finish())
    }

    pub(crate) async fn csrf(&self, who: Who) -> String {
        csrf_of(&text(self.get(who, "/help/keys").send().await.expect("answered")).await)
    }

    pub(crate) async fn ask(&self, who: Who, path: &str, is_htmx: bool) -> Response {
        let request = self.get(who, &format!("/r/{REPO}{path}"));
        let request = if is_htmx { request.header("hx-request", "true") } else { request };
        request.send().await.expect("answered")
    }

    /// An existing page of the repository.
    pub(crate) async fn page(&self, who: Who, path: &str) -> String {
        text(self.ask(who, path, false).await).await
    }

    /// The text of a page of the repository for a reader.
    pub(crate) async fn told(&self, path: &str) -> String {
        words(&self.page(Who::Rita, path).await)
    }

    /// Sends a form of the repository's pages as a browser does, with the session's own token unless another is
    /// given.
    pub(crate) async fn send(&self, who: Who, path: &str, csrf: Option<&str>, fields: &[(&str, &str)]) -> Response {
        let token = match csrf {
            Some(csrf) => csrf.to_owned(),
            None => self.csrf(who).await,
        };
        let path = format!("/r/{REPO}{path}");
        self.form(who, &path, Some(&token), &self.address, fields).send().await.expect("answered")
    }
}

pub(crate) async fn text(answer: Response) -> String {
    let (status, path) = (answer.status(), answer.url().path().to_owned());
    let text = answer.text().await.expect("a page");
    assert_eq!(status, StatusCode::OK, "{path}: {}", words(&text));
    text
}

pub(crate) fn number(number: i64) -> ItemNumber {
    ItemNumber::new(number).expect("a number")
}

fn hash(session: &str) -> [u8; 32] {
    Sha256::digest(session).into()
}

/// Sets the client's address from a header, as the service does from the connection.
async fn tell_peer(mut request: Request, next: Next) -> axum::response::Response {
    let told = request.headers().get("test-peer").and_then(|peer| peer.to_str().ok()?.parse::<SocketAddr>().ok());
    if let Some(peer) = told {
        request.extensions_mut().insert(ConnectInfo(peer));
    }
    next.run(request).await
}
