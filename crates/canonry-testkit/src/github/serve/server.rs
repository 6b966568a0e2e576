//! The server: it records each request, applies faults, and answers from the world.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::HeaderMap;
use axum::response::Response;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::sync::oneshot;

use crate::connection::{Connection, CuttableListener};
use crate::github::people::accounts::{Actor, Token, TokenKind};
use crate::github::repos::smart_http::GitRequest;
use crate::github::serve::call::{Answer, Call};
use crate::github::serve::faults::{Age, Effect, Faults, Late, Moment};
use crate::github::serve::paging::decode;
use crate::github::serve::recorded::{Recorded, texts_of};
use crate::github::serve::routes::{self, Route};
use crate::github::world::World;

/// How many earlier worlds are kept for stale answers.
const HISTORY: usize = 256;
/// More than the largest request that Canonry could send to GitHub.
const LARGEST_BODY: usize = 32 << 20;

/// What the server and its handle share.
pub(crate) struct Inner {
    pub(crate) world: World,
    pub(crate) requests: Vec<Recorded>,
    /// How many requests were forgotten: pending requests know their position in the whole list.
    pub(crate) forgotten: usize,
    pub(crate) faults: Faults,
    late: Vec<(Late, Arrived)>,
    pub(crate) history: Option<VecDeque<(Timestamp, World)>>,
    pub(crate) unknown: Vec<String>,
    pub(crate) keeps_answers: bool,
    /// Texts of all writes that arrived; they are never forgotten.
    pub(crate) bodies_sent: Vec<String>,
}

/// A request that was read but not yet applied.
#[derive(Clone)]
struct Arrived {
    route: Option<&'static Route>,
    call: Result<Call, Answer>,
    actor: Actor,
    if_none_match: Option<String>,
    index: usize,
}

pub(crate) fn lock(shared: &Mutex<Inner>) -> MutexGuard<'_, Inner> {
    // If a test fails while it holds the lock, its own message must not be hidden by a poisoned lock.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) async fn run(listener: std::net::TcpListener, state: Arc<Mutex<Inner>>, stopped: oneshot::Receiver<()>) {
    let listener = tokio::net::TcpListener::from_std(listener).expect("a socket for the runtime");
    let router = Router::new().fallback(serve).with_state(state);
    let service = router.into_make_service_with_connect_info::<Connection>();
    let server = axum::serve(CuttableListener(listener), service);
    tokio::select! {
        result = async { server.await } => result.expect("serving on loopback does not fail"),
        _ = stopped => {}
    }
}

async fn serve(
    State(shared): State<Arc<Mutex<Inner>>>,
    ConnectInfo(connection): ConnectInfo<Connection>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(bytes) = to_bytes(body, LARGEST_BODY).await else { return Response::new(Body::empty()) };
    let (arrived, effects) = {
        let mut inner = lock(&shared);
        inner.arrive(parts.method.as_str(), &parts.uri, &parts.headers, &bytes)
    };
    let mut after = Vec::new();
    let mut rest = Vec::new();
    let mut hangs = false;
    for effect in effects {
        match effect {
            Effect::Hold(holder, Moment::BeforeApplying) => holder.wait().await,
            Effect::Hold(holder, Moment::AfterApplying) => after.push(holder),
            // This ends when the client disconnects.
            Effect::Hang(Moment::BeforeApplying) => std::future::pending().await,
            Effect::Hang(Moment::AfterApplying) => hangs = true,
            other => rest.push(other),
        }
    }
    let outcome = lock(&shared).settle(&arrived, rest);
    for holder in after {
        holder.wait().await;
    }
    if hangs {
        std::future::pending::<()>().await;
    }
    let Some((answer, bytes)) = outcome else {
        connection.cut();
        return Response::new(Body::empty());
    };
    let mut response = Response::builder().status(answer.status);
    for (name, value) in &answer.headers {
        response = response.header(name, value);
    }
    response.body(Body::from(bytes)).expect("invariant: the emulator's headers are well-formed")
}

impl Inner {
    pub(crate) fn new(world: World) -> Self {
        Self {
            world,
            requests: Vec::new(),
            forgotten: 0,
            faults: Faults::default(),
            late: Vec::new(),
            history: None,
            unknown: Vec::new(),
            keeps_answers: false,
            bodies_sent: Vec::new(),
        }
    }

    /// Keeps earlier worlds from now on.
    pub(crate) fn keep_history(&mut self) {
        self.history.get_or_insert_default();
    }

    /// Reads and records a request and finds its faults.
    fn arrive(
        &mut self,
        method: &str,
        uri: &axum::http::Uri,
        headers: &HeaderMap,
        bytes: &[u8],
    ) -> (Arrived, Vec<Effect>) {
        self.world.tick();
        self.count_down();
        self.apply_due();
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let path = uri.path().to_owned();
        let named_path = routes::by_name(&self.world, &path);
        let query = read_query(uri.query().unwrap_or_default());
        let actor = self.world.authenticate(text("authorization").as_deref());
        let found = routes::find(method, &named_path);
        let speaks_git = found.as_ref().is_some_and(|(route, _)| route.is_git());
        let git =
            speaks_git.then(|| GitRequest::read(text("content-encoding").as_deref(), text("git-protocol"), bytes));
        let body = (!bytes.is_empty() && !speaks_git).then(|| serde_json::from_slice::<Value>(bytes));
        let request = Recorded {
            method: method.to_owned(),
            path,
            named_path: named_path.clone(),
            query: query.clone(),
            body: body.as_ref().and_then(|body| body.as_ref().ok().cloned()),
            user: actor.as_ref().ok().and_then(|actor| actor.login().map(str::to_owned)),
            route: found.as_ref().map(|(route, _)| route.template),
            status: None,
            answer: None,
        };
        if found.is_none() {
            self.unknown.push(format!("{method} {}", request.path));
        }
        if request.is_write() {
            self.bodies_sent.extend(request.body.iter().flat_map(texts_of));
        }
        let effects = self.faults.strike(&request);
        let index = self.forgotten + self.requests.len();
        let route = found.as_ref().map(|(route, _)| *route);
        let caller = actor.as_ref().ok().cloned().unwrap_or(Actor::Anonymous);
        let call = match (actor, &body) {
            _ if text("user-agent").is_none() => Err(Answer::message(
                403,
                "Request forbidden by administrative rules. Please make sure your request has a User-Agent header.",
            )),
            (Err(refusal), _) => Err(refusal),
            (Ok(_), Some(Err(_))) => Err(Answer::message(400, "Problems parsing JSON")),
            (Ok(actor), _) => Ok(Call {
                method: method.to_owned(),
                named_path,
                query,
                body: request.body.clone(),
                params: found.map(|(_, params)| params).unwrap_or_default(),
                actor,
                accept: text("accept").unwrap_or_default(),
                git: git.unwrap_or_default(),
                repo: None,
            }),
        };
        self.requests.push(request);
        (Arrived { route, call, actor: caller, if_none_match: text("if-none-match"), index }, effects)
    }

    /// Applies the change if required and makes the answer; `None` cuts the connection.
    fn settle(&mut self, arrived: &Arrived, effects: Vec<Effect>) -> Option<(Answer, Vec<u8>)> {
        let index = arrived.index;
        let mut headers = Vec::new();
        let mut rewriters = Vec::new();
        let mut truncated = false;
        let mut answer = None;
        for effect in effects {
            match effect {
                Effect::Headers(more) => headers.extend(more),
                Effect::Rewrite(rewriter) => rewriters.push(rewriter),
                Effect::Truncate => truncated = true,
                Effect::Answer(given) => answer = Some(self.dressed(given, &arrived.actor)),
                Effect::Drop => return None,
                Effect::ApplyAndDrop => {
                    self.apply(arrived);
                    return None;
                }
                Effect::ApplyAndAnswer(given) => {
                    self.apply(arrived);
                    answer = Some(self.dressed(given, &arrived.actor));
                }
                Effect::ApplyLate(late, given) => {
                    self.late.push((late, arrived.clone()));
                    let given = given?;
                    answer = Some(self.dressed(given, &arrived.actor));
                }
                Effect::Stale(age) => {
                    let mut past = self.past(age);
                    std::mem::swap(&mut past, &mut self.world);
                    let given = self.apply(arrived);
                    std::mem::swap(&mut past, &mut self.world);
                    self.world.rate = past.rate;
                    answer = Some(given);
                }
                Effect::Hold(..) | Effect::Hang(_) => {}
            }
        }
        let mut answer = answer.unwrap_or_else(|| self.apply(arrived));
        answer.headers.extend(headers);
        if let Some(body) = &mut answer.body {
            rewriters.iter().for_each(|rewriter| rewriter.rewrite(body));
        }
        let mut bytes = match (&answer.raw, &answer.body) {
            (Some(raw), _) => raw.to_vec(),
            (None, Some(body)) => body.to_string().into_bytes(),
            (None, None) => Vec::new(),
        };
        self.condition(&mut answer, &mut bytes, arrived);
        if truncated {
            bytes.truncate(bytes.len() / 2);
        }
        let keeps = self.keeps_answers;
        let place = index.checked_sub(self.forgotten);
        if let Some(record) = place.and_then(|place| self.requests.get_mut(place)) {
            record.status = Some(answer.status);
            if keeps {
                record.answer.clone_from(&answer.body);
            }
        }
        Some((answer, bytes))
    }

    /// Serves a request from the current world.
    fn apply(&mut self, arrived: &Arrived) -> Answer {
        let before = (self.history.is_some() && arrived.route.is_some_and(|route| route.method != "GET"))
            .then(|| self.world.clone());
        let answer = self.handle(arrived).unwrap_or_else(|refusal| refusal);
        if let Some(before) = before {
            self.remember(before);
        }
        self.dressed(answer, &arrived.actor)
    }

    fn handle(&mut self, arrived: &Arrived) -> Result<Answer, Answer> {
        let mut call = arrived.call.clone()?;
        let Some(route) = arrived.route else { return Err(Answer::not_found()) };
        if route.template != "/rate_limit" && !route.is_git() && !route.is_sign_in() {
            self.world.charge(&arrived.actor)?;
        }
        if route.writes(call.body.as_ref()) && !route.template.starts_with("/app/") {
            self.world.charge_write()?;
        }
        routes::dispatch(&mut self.world, route, &mut call)
    }

    fn dressed(&self, mut answer: Answer, actor: &Actor) -> Answer {
        answer.headers.extend(self.world.rate_headers(actor));
        let date = self.world.now.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
        answer.headers.push((String::from("date"), date));
        let content =
            if answer.raw.is_some() { "application/vnd.github.raw+json" } else { "application/json; charset=utf-8" };
        if !answer.headers.iter().any(|(name, _)| name == "content-type") {
            answer.headers.push((String::from("content-type"), content.to_owned()));
        }
        if let Actor::Token(Token { kind: TokenKind::Classic { scopes }, .. }) = actor {
            let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
            answer.headers.push((String::from("x-oauth-scopes"), scopes.join(", ")));
        }
        answer
    }

    /// Adds the ETag to a successful GET. If the caller already has this version, the answer becomes a 304, which
    /// costs nothing.
    fn condition(&mut self, answer: &mut Answer, bytes: &mut Vec<u8>, arrived: &Arrived) {
        let reads = arrived.route.is_some_and(|route| route.method == "GET" && !route.is_git());
        if !reads || answer.status != 200 {
            return;
        }
        let digits: String = Sha256::digest(&*bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        let etag = format!("W/\"{digits}\"");
        let strong = etag.trim_start_matches("W/").to_owned();
        answer.headers.push((String::from("etag"), etag));
        let known = arrived.if_none_match.as_deref().unwrap_or_default();
        if known.split(',').any(|tag| tag.trim().trim_start_matches("W/") == strong) {
            self.world.refund(&arrived.actor);
            answer.status = 304;
            answer.body = None;
            bytes.clear();
            let fresh = self.world.rate_headers(&arrived.actor);
            answer.headers.retain(|(name, _)| !name.starts_with("x-ratelimit-"));
            answer.headers.extend(fresh);
        }
    }

    fn count_down(&mut self) {
        for (late, _) in &mut self.late {
            if let Late::AfterRequests(left) = late {
                *left = left.saturating_sub(1);
            }
        }
    }

    /// Applies the late changes that are due.
    pub(crate) fn apply_due(&mut self) {
        let now = self.world.now;
        let due = |late: &Late| match late {
            Late::AfterRequests(left) => *left == 0,
            Late::At(at) => *at <= now,
        };
        let (ready, waiting) = std::mem::take(&mut self.late).into_iter().partition(|(late, _)| due(late));
        self.late = waiting;
        let ready: Vec<(Late, Arrived)> = ready;
        for (_, arrived) in ready {
            self.apply(&arrived);
        }
    }

    /// Keeps the world from before a change, if there was one.
    pub(crate) fn remember(&mut self, before: World) {
        let changed = before.revision != self.world.revision;
        let now = self.world.now;
        let Some(history) = self.history.as_mut().filter(|_| changed) else { return };
        if history.len() == HISTORY {
            history.pop_front();
        }
        history.push_back((now, before));
    }

    /// An earlier world, with the current clock, tokens and limits.
    fn past(&self, age: Age) -> World {
        let history = self.history.as_ref();
        let old = match age {
            Age::Changes(count) => history.and_then(|history| history.get(history.len().saturating_sub(count))),
            Age::Seconds(seconds) => {
                let then = self.world.now - SignedDuration::from_secs(seconds);
                history.and_then(|history| history.iter().find(|(at, _)| *at > then))
            }
        };
        let mut world = old.map_or_else(|| self.world.clone(), |(_, world)| world.clone());
        world.now = self.world.now;
        world.tokens.clone_from(&self.world.tokens);
        world.rate.clone_from(&self.world.rate);
        world
    }
}

fn read_query(text: &str) -> Vec<(String, String)> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(name, true), decode(value, true))
        })
        .collect()
}
