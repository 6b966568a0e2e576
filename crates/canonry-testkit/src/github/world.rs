//! The state of the emulated GitHub: plain data that tests build, change and inspect.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::issues::reactions::Reaction;
use super::issues::timeline::Event;
use super::people::accounts::{Account, Permission, Token, TokenKind, User};
use super::people::app::{App, Installation};
use super::people::oauth::OauthApp;
use super::pulls::pull::Pull;
use super::repos::repositories::Repo;
use super::serve::rate_limit::RateLimits;
use super::serve::webhooks::{Delivery, Webhook};

#[derive(Debug, Clone)]
pub struct World {
    /// The time on GitHub's clock; every `created_at` and `updated_at` comes from here.
    pub now: Timestamp,
    /// If true, `now` is set to the machine's clock at each request (for real processes and the demo).
    pub follows_wall_clock: bool,
    /// The base of all API URLs in answers; set when the emulator starts.
    pub api_url: String,
    pub users: BTreeMap<String, User>,
    /// Tokens that are valid (or were, see [`Token::expires_at`]), by their text.
    pub tokens: BTreeMap<String, Token>,
    /// The only GitHub App, if the test has one.
    pub app: Option<App>,
    /// The OAuth app for signing in to other programs, if the test has one.
    pub oauth: Option<OauthApp>,
    pub installations: Vec<Installation>,
    pub repos: Vec<Repo>,
    pub rate: RateLimits,
    /// The receiver of webhooks; without it no deliveries are made.
    pub webhook: Option<Webhook>,
    /// Deliveries in the order of creation, attempted or not.
    pub deliveries: Vec<Delivery>,
    /// `page=` may not go beyond this many entries of an issue list: GitHub requires cursors there.
    pub deepest_offset: usize,
    /// The start time and the factor by which its clock runs faster than the machine's.
    pub(super) faster: Option<(Timestamp, u32)>,
    pub(super) next_id: u64,
    /// Increases with every change, so that the server knows whether a request changed anything.
    pub(super) revision: u64,
}

/// An issue or, with [`Issue::pull`], a pull request.
#[derive(Debug, Clone)]
pub struct Issue {
    pub id: u64,
    /// The number within its repository, shared with pull requests.
    pub number: u64,
    /// Login of the author; shown as `null` if no such user exists any more.
    pub author: String,
    pub title: String,
    /// The body; GitHub shows `null` if there is none.
    pub body: Option<String>,
    pub state: State,
    /// `completed`, `not_planned`, `duplicate` or `reopened`.
    pub state_reason: Option<String>,
    /// Id of the issue of which this one was closed as a duplicate; REST does not show it.
    pub duplicate_of: Option<u64>,
    /// Names of its labels, in the order they were set.
    pub labels: Vec<String>,
    pub assignees: Vec<String>,
    pub milestone: Option<u64>,
    /// Whether only people with write access may comment.
    pub locked: bool,
    pub lock_reason: Option<String>,
    /// The number of comments, updated by the changes.
    pub comments: u64,
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When it was closed, while it is closed.
    pub closed_at: Option<Timestamp>,
    /// Login of the user who closed it, while it is closed.
    pub closed_by: Option<String>,
    pub reactions: Vec<Reaction>,
    /// The events, oldest first, without comments.
    pub events: Vec<Event>,
    pub pull: Option<Pull>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Open,
    Closed,
}

impl State {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
        }
    }
}

/// A comment on an issue or a pull request.
#[derive(Debug, Clone)]
pub struct Comment {
    pub id: u64,
    pub issue: u64,
    pub author: String,
    pub body: String,
    pub created_at: Timestamp,
    /// When it was last edited.
    pub updated_at: Timestamp,
    pub reactions: Vec<Reaction>,
}

#[derive(Debug, Clone)]
pub struct Label {
    pub id: u64,
    /// The name as first written.
    pub name: String,
    pub color: String,
    pub description: Option<String>,
}

#[derive(Debug, Clone)]
pub struct Milestone {
    pub id: u64,
    pub number: u64,
    pub title: String,
    pub state: State,
    pub created_at: Timestamp,
}

/// Why a number no longer leads to an issue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gone {
    /// Deleted: answers 410.
    Deleted,
    /// Moved to another repository (by id) under another number: answers 301.
    Transferred { repo_id: u64, number: u64 },
    /// Converted to a discussion: answers 404.
    Converted,
}

impl World {
    /// An empty world at noon of 15 January 2026.
    pub fn new() -> Self {
        Self {
            now: Timestamp::from_second(1_768_478_400).expect("invariant: a valid second"),
            follows_wall_clock: false,
            api_url: String::from("https://api.github.com"),
            users: BTreeMap::new(),
            tokens: BTreeMap::new(),
            app: None,
            oauth: None,
            installations: Vec::new(),
            repos: Vec::new(),
            rate: RateLimits::default(),
            webhook: None,
            deliveries: Vec::new(),
            deepest_offset: 10_000,
            faster: None,
            next_id: 1_000,
            revision: 0,
        }
    }

    pub fn advance(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    /// From `anchor` on, the clock runs `factor` times faster than the machine's. Processes that use the same two
    /// values agree with it.
    pub fn runs_faster(&mut self, anchor: Timestamp, factor: u32) {
        self.faster = Some((anchor, factor));
        self.tick();
    }

    /// Sets the clock, unless it stands still.
    pub(super) fn tick(&mut self) {
        if let Some((anchor, factor)) = self.faster {
            let passed = Timestamp::now().duration_since(anchor);
            self.now = anchor + passed.saturating_mul(i32::try_from(factor).unwrap_or(i32::MAX));
        } else if self.follows_wall_clock {
            self.now = Timestamp::now();
        }
    }

    pub fn user(&mut self, login: &str) -> &mut User {
        self.account(login, Account::User)
    }

    /// Adds a bot by its full login (`stale[bot]`).
    pub fn bot(&mut self, login: &str) -> &mut User {
        self.account(login, Account::Bot)
    }

    /// Adds a user with that kind of account, or returns the existing one.
    pub fn account(&mut self, login: &str, account: Account) -> &mut User {
        let id = self.fresh_id();
        self.users.entry(login.to_ascii_lowercase()).or_insert_with(|| User { login: login.to_owned(), id, account })
    }

    /// Adds a classic token of `login` (who is also added) with scope `repo`.
    pub fn token(&mut self, text: &str, login: &str) -> &mut Token {
        self.user(login);
        let kind = TokenKind::Classic { scopes: BTreeSet::from([String::from("repo")]) };
        self.tokens.insert(text.to_owned(), Token { login: login.to_owned(), kind, expires_at: None });
        self.tokens.get_mut(text).expect("invariant: just inserted")
    }

    /// Adds a public repository `owner/name`; an unknown owner becomes an organisation.
    pub fn repo(&mut self, full_name: &str) -> &mut Repo {
        let (owner, name) = full_name.split_once('/').expect("a repository is named owner/name");
        self.account(owner, Account::Organization);
        let repo = Repo::new(self.fresh_id(), owner, name, self.stamp());
        self.repos.push(repo);
        self.repos.last_mut().expect("invariant: just pushed")
    }

    /// Gives `login` (who is also added) a role in a repository.
    pub fn collaborator(&mut self, repo: &str, login: &str, permission: Permission) {
        self.user(login);
        self.get_mut(repo).collaborators.insert(login.to_ascii_lowercase(), permission);
    }

    /// A repository by its current name.
    ///
    /// # Panics
    /// If there is none.
    pub fn get(&self, repo: &str) -> &Repo {
        &self.repos[self.position(repo)]
    }

    /// A repository by its current name, for a change.
    ///
    /// # Panics
    /// If there is none.
    pub fn get_mut(&mut self, repo: &str) -> &mut Repo {
        let position = self.position(repo);
        &mut self.repos[position]
    }

    /// An existing issue or pull request.
    ///
    /// # Panics
    /// If it does not exist.
    pub fn issue(&self, repo: &str, number: u64) -> &Issue {
        let found = self.get(repo).issues.get(&number);
        found.unwrap_or_else(|| panic!("{repo}#{number} is not in the emulated GitHub"))
    }

    /// The comments of an issue, oldest first.
    pub fn comments(&self, repo: &str, number: u64) -> Vec<&Comment> {
        self.get(repo).comments.values().filter(|comment| comment.issue == number).collect()
    }

    /// The comments that `login` wrote under an issue, oldest first.
    pub fn comments_by(&self, repo: &str, number: u64, login: &str) -> Vec<&Comment> {
        self.comments(repo, number).into_iter().filter(|comment| comment.author.eq_ignore_ascii_case(login)).collect()
    }

    pub(super) fn position(&self, repo: &str) -> usize {
        let found = self.repos.iter().position(|candidate| candidate.full_name().eq_ignore_ascii_case(repo));
        found.unwrap_or_else(|| panic!("{repo} is not in the emulated GitHub"))
    }

    pub(super) fn fresh_id(&mut self) -> u64 {
        self.revision += 1;
        self.next_id += 1;
        self.next_id
    }

    /// The current time in whole seconds, as GitHub stores it.
    pub(super) fn stamp(&self) -> Timestamp {
        Timestamp::from_second(self.now.as_second()).expect("invariant: within range")
    }
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}
