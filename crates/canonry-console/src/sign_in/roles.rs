//! A person's role in a repository: GitHub's answer, cached for a while for pages; before an action a cached yes is
//! confirmed again.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use canonry_domain::{GithubId, Login, RepoName};
use canonry_github::api::Permission;
use canonry_github::{GitHub, GitHubError};
use canonry_store::{ConsoleSession, Repo};
use jiff::{SignedDuration, Timestamp};

use crate::console::Console;
use crate::layout::errors::PageError;

/// How long GitHub's yes is cached: a reader who lost access can read for this much longer.
const BELIEVED: SignedDuration = SignedDuration::from_mins(1);
/// How long its no is cached. A person who just got access waits for this time; a stranger who reloads a page costs
/// no request meanwhile.
const NO_BELIEVED: SignedDuration = SignedDuration::from_mins(10);
/// How long a request that GitHub did not answer is not repeated.
const NOT_ASKED_AGAIN: SignedDuration = SignedDuration::from_secs(10);
/// Requests are counted over this time. When the limit is reached, the role of the last answer within this time is
/// used.
const WINDOW: SignedDuration = SignedDuration::from_mins(10);
/// Requests in [`WINDOW`] about one account: four pages of the overview without cached roles.
const MOST_ABOUT_ONE: usize = 200;
/// Requests in [`WINDOW`] about all accounts: 2,400 an hour, half of the 5,000 requests that an installation has. The
/// other half is for the jobs.
const MOST_ABOUT_ALL: usize = 400;
/// Requests in [`WINDOW`] that other accounts cannot use up: one page of the overview.
const ALWAYS: usize = 50;
/// The most answers in the cache; beyond it, the cache is cleared.
const MOST_KEPT: usize = 10_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    Reader,
    /// May read, and change what Canonry does in the repository.
    Maintainer,
    /// May do everything: the holder of the admin token.
    Operator,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RoleAnswer {
    Said(Option<Role>),
    /// GitHub did not answer. Only a person who already knew that the repository exists may learn that.
    Away {
        knew: bool,
    },
}

impl RoleAnswer {
    fn role(self) -> Result<Role, PageError> {
        match self {
            Self::Said(Some(role)) => Ok(role),
            Self::Said(None) | Self::Away { knew: false } => Err(PageError::NotFound),
            Self::Away { knew: true } => Err(PageError::Github("it does not say what you may see here".to_owned())),
        }
    }

    fn is_believed(self, age: SignedDuration, is_deed: bool) -> bool {
        match self {
            Self::Said(None) => age < NO_BELIEVED,
            Self::Said(Some(role)) => age < BELIEVED && !(is_deed && role >= Role::Maintainer),
            Self::Away { .. } => age < NOT_ASKED_AGAIN,
        }
    }
}

/// GitHub's answers, cached for a while.
#[derive(Default)]
pub(crate) struct Roles {
    known: Mutex<CachedRole>,
}

#[derive(Default)]
struct CachedRole {
    words: HashMap<(Login, RepoName), (Timestamp, RoleAnswer)>,
    /// Repositories whose name was recently confirmed; this is the same for every person.
    identified: HashMap<RepoName, Timestamp>,
    /// The accounts that GitHub was asked about, the oldest request first.
    asked: VecDeque<(Timestamp, Login)>,
}

impl CachedRole {
    /// Whether the limit of requests about this account, or about all, is reached.
    fn is_enough(&mut self, login: &Login, now: Timestamp) -> bool {
        while self.asked.front().is_some_and(|(at, _)| at.duration_until(now).abs() >= WINDOW) {
            self.asked.pop_front();
        }
        let own = self.asked.iter().filter(|(_, whom)| whom == login).count();
        own >= MOST_ABOUT_ONE || (own >= ALWAYS && self.asked.len() >= MOST_ABOUT_ALL)
    }
}

impl Roles {
    /// The session's role in the repository; for strangers the page does not exist. Before an action GitHub is asked
    /// again, unless it has just said no: otherwise any account could use up the service's requests.
    pub(crate) async fn of(
        &self,
        console: &Console,
        session: &ConsoleSession,
        repo: &Repo,
        is_deed: bool,
    ) -> Result<Role, PageError> {
        if session.is_operator {
            return Ok(Role::Operator);
        }
        let (Some(login), Some(account)) = (session.login.clone(), session.github_id) else {
            return Err(PageError::NotFound);
        };
        let Some(github) = &console.github else {
            return Err(PageError::Forbidden(
                "operators, as this service has no credentials to ask GitHub who may see what",
            ));
        };
        let key = (login, repo.name.clone());
        let now = console.now();
        let knew = {
            let mut known = self.lock();
            let before = known.words.get(&key).map(|(at, word)| (at.duration_until(now).abs(), *word));
            if let Some((_, word)) = before.filter(|(age, word)| word.is_believed(*age, is_deed)) {
                return word.role();
            }
            let knew = matches!(before, Some((_, RoleAnswer::Said(Some(_)) | RoleAnswer::Away { knew: true })));
            // A maintainer's action is never delayed, and never based on an old answer.
            if known.is_enough(&key.0, now) && !(is_deed && knew) {
                let word = before.filter(|(age, _)| *age < WINDOW).map_or(RoleAnswer::Away { knew }, |(_, word)| word);
                return word.role();
            }
            knew
        };
        let word = match self.ask(github, &key.0, account, repo, (is_deed, knew), now).await {
            Ok(role) => RoleAnswer::Said(role),
            Err(error) => {
                tracing::warn!(repo = %repo.name, %error, "GitHub did not answer which repositories a person may see");
                RoleAnswer::Away { knew }
            }
        };
        let mut known = self.lock();
        if known.words.len() >= MOST_KEPT {
            known.words.clear();
        }
        known.words.insert(key, (now, word));
        word.role()
    }

    /// Whether the limit of requests about this person is reached, so that pages may omit repositories they could
    /// see.
    pub(crate) fn is_enough(&self, session: &ConsoleSession, now: Timestamp) -> bool {
        session.login.as_ref().is_some_and(|login| self.lock().is_enough(login, now))
    }

    /// GitHub's current answer. `None` for a person who may not even read, for a name that belongs to another
    /// repository by now, and for a repository that the App was removed from: there GitHub does not report
    /// permissions.
    async fn ask(
        &self,
        github: &GitHub,
        login: &Login,
        account: GithubId,
        repo: &Repo,
        (is_deed, knew): (bool, bool),
        now: Timestamp,
    ) -> Result<Option<Role>, GitHubError> {
        // Working through a plan sends a request with every key, which must not use up the requests for readers.
        if !(is_deed && knew) {
            self.lock().asked.push_back((now, login.clone()));
        }
        let permission = match github.permission_of_account(&repo.name, login, account).await {
            Ok(permission) => permission,
            Err(error) if is_no(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let role = match permission {
            Permission::None => return Ok(None),
            Permission::Read | Permission::Triage => Role::Reader,
            Permission::Write | Permission::Maintain | Permission::Admin => Role::Maintainer,
        };
        // The permission is requested by name. Whether the name still belongs to this repository is the same for
        // every person.
        let identified = self.lock().identified.get(&repo.name).copied();
        if is_deed || identified.is_none_or(|at| at.duration_until(now).abs() >= WINDOW) {
            match github.repo(&repo.name).await {
                Ok(there) if repo.github_id.is_some_and(|id| id != there.github_id()) => return Ok(None),
                Ok(_) => {}
                Err(error) if is_no(&error) => return Ok(None),
                Err(error) => return Err(error),
            }
            let mut known = self.lock();
            if known.identified.len() >= MOST_KEPT {
                known.identified.clear();
            }
            known.identified.insert(repo.name.clone(), now);
        }
        Ok(Some(role))
    }

    fn lock(&self) -> MutexGuard<'_, CachedRole> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether GitHub says that there is nothing to see, in any form.
fn is_no(error: &GitHubError) -> bool {
    matches!(
        error,
        GitHubError::NotFound { .. }
            | GitHubError::NotInstalled { .. }
            | GitHubError::Gone { .. }
            | GitHubError::Moved { .. }
    )
}
