//! Primary and secondary rate limits.

use std::collections::{BTreeMap, VecDeque};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::github::people::accounts::Actor;
use crate::github::serve::call::{Answer, Call, Reply};
use crate::github::world::World;

/// How long a window of the primary limit lasts.
const WINDOW: SignedDuration = SignedDuration::from_hours(1);

/// The limits and their current use.
#[derive(Debug, Clone)]
pub struct RateLimits {
    pub limit: u64,
    pub anonymous_limit: u64,
    /// The status of a refusal: GitHub uses 403 and 429.
    pub exhausted_status: u16,
    /// The limit on content writes; off by default, because the world's clock stands still.
    pub secondary: Option<SecondaryLimit>,
    used: BTreeMap<String, Window>,
    writes: VecDeque<Timestamp>,
}

/// A limit on requests that create or change content.
#[derive(Debug, Clone)]
pub struct SecondaryLimit {
    /// Writes within 60 seconds; GitHub documents 80.
    pub per_minute: usize,
    /// Writes within an hour; GitHub documents 500.
    pub per_hour: usize,
    /// The status of a refusal: 403 or 429.
    pub status: u16,
    /// Seconds in `retry-after`; GitHub sometimes leaves the header out.
    pub retry_after: Option<u64>,
}

impl Default for SecondaryLimit {
    fn default() -> Self {
        Self { per_minute: 80, per_hour: 500, status: 403, retry_after: Some(60) }
    }
}

#[derive(Debug, Clone, Copy)]
struct Window {
    used: u64,
    reset: Timestamp,
}

impl Default for RateLimits {
    fn default() -> Self {
        Self {
            limit: 5_000,
            anonymous_limit: 60,
            exhausted_status: 403,
            secondary: None,
            used: BTreeMap::new(),
            writes: VecDeque::new(),
        }
    }
}

impl World {
    /// Leaves `login` (or `anonymous`) this many requests until an hour from now.
    pub fn leave_requests(&mut self, login: &str, remaining: u64) {
        let limit = if login == "anonymous" { self.rate.anonymous_limit } else { self.rate.limit };
        let window = Window { used: limit.saturating_sub(remaining), reset: self.stamp() + WINDOW };
        self.rate.used.insert(login.to_ascii_lowercase(), window);
    }

    /// How many requests `login` (or `anonymous`) has used in the current window.
    pub fn requests_used(&self, login: &str) -> u64 {
        self.window(&login.to_ascii_lowercase()).used
    }

    /// Charges one request to the caller's limit, or refuses it.
    pub(crate) fn charge(&mut self, actor: &Actor) -> Result<(), Answer> {
        let key = key(actor);
        let mut window = self.window(&key);
        if window.used >= self.limit_of(actor) {
            let message = "API rate limit exceeded. Check the x-ratelimit-reset header.";
            return Err(Answer::message(self.rate.exhausted_status, message));
        }
        window.used += 1;
        self.rate.used.insert(key, window);
        Ok(())
    }

    /// Refunds a request: a 304 costs nothing.
    pub(crate) fn refund(&mut self, actor: &Actor) {
        if let Some(window) = self.rate.used.get_mut(&key(actor)) {
            window.used = window.used.saturating_sub(1);
        }
    }

    /// Counts a content write, or refuses it because of the secondary limit.
    pub(crate) fn charge_write(&mut self) -> Result<(), Answer> {
        let now = self.now;
        let Some(limit) = self.rate.secondary.clone() else { return Ok(()) };
        let writes = &mut self.rate.writes;
        while writes.front().is_some_and(|at| now.duration_since(*at) >= WINDOW) {
            writes.pop_front();
        }
        let minute = SignedDuration::from_mins(1);
        let recent = writes.iter().filter(|at| now.duration_since(**at) < minute).count();
        if recent < limit.per_minute && writes.len() < limit.per_hour {
            writes.push_back(now);
            return Ok(());
        }
        let message = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.";
        let answer = Answer::message(limit.status, message);
        Err(match limit.retry_after {
            Some(seconds) => answer.header("retry-after", &seconds.to_string()),
            None => answer,
        })
    }

    pub(crate) fn rate_headers(&self, actor: &Actor) -> Vec<(String, String)> {
        let window = self.window(&key(actor));
        let limit = self.limit_of(actor);
        let pairs = [
            ("x-ratelimit-limit", limit.to_string()),
            ("x-ratelimit-remaining", limit.saturating_sub(window.used).to_string()),
            ("x-ratelimit-used", window.used.to_string()),
            ("x-ratelimit-reset", window.reset.as_second().to_string()),
            ("x-ratelimit-resource", String::from("core")),
        ];
        pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn window(&self, key: &str) -> Window {
        match self.rate.used.get(key) {
            Some(window) if window.reset > self.now => *window,
            _ => Window { used: 0, reset: self.stamp() + WINDOW },
        }
    }

    fn limit_of(&self, actor: &Actor) -> u64 {
        match actor {
            Actor::Anonymous => self.rate.anonymous_limit,
            Actor::App | Actor::Token(_) => self.rate.limit,
        }
    }
}

/// `GET /rate_limit`, which costs nothing.
pub(crate) fn show(world: &mut World, call: &Call) -> Reply {
    let window = world.window(&key(&call.actor));
    let limit = world.limit_of(&call.actor);
    let core = json!({
        "limit": limit,
        "used": window.used,
        "remaining": limit.saturating_sub(window.used),
        "reset": window.reset.as_second(),
    });
    let search: Value = json!({ "limit": 30, "used": 0, "remaining": 30, "reset": window.reset.as_second() });
    Ok(Answer::ok(json!({ "resources": { "core": core, "search": search }, "rate": core })))
}

fn key(actor: &Actor) -> String {
    match actor {
        Actor::Anonymous => String::from("anonymous"),
        Actor::App => String::from("app"),
        Actor::Token(token) => token.login.to_ascii_lowercase(),
    }
}
