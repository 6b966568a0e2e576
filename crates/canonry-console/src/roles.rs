//! What somebody is to a repository: GitHub's word, believed for a minute by pages, and a yes asked for again by deeds.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use canonry_domain::{GithubId, Login, RepoName};
use canonry_github::GitHubError;
use canonry_github::api::Permission;
use canonry_store::{ConsoleSession, Repo};
use jiff::{SignedDuration, Timestamp};

use crate::console::Console;
use crate::errors::PageError;

/// How long GitHub's word is believed: a reader who lost access reads for this much longer.
const BELIEVED: SignedDuration = SignedDuration::from_mins(1);
/// Words that are kept; when there are more, all are asked for again.
const MOST_KEPT: usize = 10_000;

/// What somebody may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// See.
    Reader,
    /// See, and change what Canonry does in the repository.
    Maintainer,
    /// Everything: whoever holds the admin token.
    Operator,
}

/// What GitHub said and when, by login and repository.
type Known = HashMap<(Login, RepoName), (Timestamp, Option<Role>)>;

/// What GitHub said, kept for a while.
#[derive(Default)]
pub(crate) struct Roles {
    known: Mutex<Known>,
}

impl Roles {
    /// What the session's person is to the repository; to strangers there is no such page. Before a deed GitHub is
    /// asked again, unless it has just said no: else any account could use up what the service may ask.
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
        let key = (login, repo.name.clone());
        let now = console.now();
        let known = self.lock().get(&key).copied();
        let role = match known {
            Some((at, role))
                if at.duration_until(now).abs() < BELIEVED && (!is_deed || role < Some(Role::Maintainer)) =>
            {
                role
            }
            _ => {
                let role = ask(console, &key.0, account, repo).await?;
                let mut known = self.lock();
                if known.len() >= MOST_KEPT {
                    known.clear();
                }
                known.insert(key, (now, role));
                role
            }
        };
        role.ok_or(PageError::NotFound)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// GitHub's word now. Nothing for whoever may not even read, and for a name that is another repository's by now.
async fn ask(console: &Console, login: &Login, account: GithubId, repo: &Repo) -> Result<Option<Role>, PageError> {
    let Some(github) = &console.github else {
        return Err(PageError::Forbidden(
            "operators, as this service has no credentials to ask GitHub who may see what",
        ));
    };
    let asked = tokio::try_join!(github.repo(&repo.name), github.permission_of_account(&repo.name, login, account));
    let (there, permission) = match asked {
        Ok(answers) => answers,
        Err(GitHubError::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(PageError::Github(error.to_string())),
    };
    if repo.github_id.is_some_and(|id| id != there.github_id()) {
        return Ok(None);
    }
    Ok(match permission {
        Permission::None => None,
        Permission::Read | Permission::Triage => Some(Role::Reader),
        Permission::Write | Permission::Maintain | Permission::Admin => Some(Role::Maintainer),
    })
}
