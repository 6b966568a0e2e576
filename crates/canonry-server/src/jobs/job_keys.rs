//! The keys of jobs, all of them: one job of a key runs at a time, and they go in order. A key is never read to decide
//! anything.

use canonry_domain::{GithubId, ItemNumber, RepoName};
use canonry_store::Repo;

/// Which repository a key is about: by GitHub's id where it has one, as a name may be another's tomorrow.
#[derive(Debug, Clone, Copy)]
pub(crate) enum KeyedRepo<'a> {
    Id(GithubId),
    Name(Option<&'a RepoName>),
}

impl<'a> KeyedRepo<'a> {
    pub(crate) fn new(id: Option<GithubId>, name: Option<&'a RepoName>) -> Self {
        id.map_or(Self::Name(name), Self::Id)
    }
}

impl<'a> From<&'a Repo> for KeyedRepo<'a> {
    fn from(repo: &'a Repo) -> Self {
        Self::new(repo.github_id, Some(&repo.name))
    }
}

impl std::fmt::Display for KeyedRepo<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Id(id) => id.0.fmt(formatter),
            Self::Name(name) => name.map(RepoName::key).unwrap_or_default().fmt(formatter),
        }
    }
}

/// What webhooks tell of an item, and what a person orders about it.
pub(crate) fn item_key(repo: KeyedRepo<'_>, number: ItemNumber) -> String {
    format!("repo/{repo}#{number}")
}

pub(crate) fn repo_key(repo: KeyedRepo<'_>) -> String {
    format!("repo/{repo}")
}

pub(crate) fn installation_key(installation: i64) -> String {
    format!("installation/{installation}")
}

pub(crate) fn delivery_key(delivery: &str) -> String {
    format!("delivery/{delivery}")
}

/// Not the repository's own: a first sync may take an hour, and webhooks about the repository must not wait for it.
pub(crate) fn sync_key(repo: KeyedRepo<'_>) -> String {
    format!("sync/{repo}")
}

/// Its own: what else is told about the item does not wait for it.
pub(crate) fn triage_key(repo: GithubId, number: ItemNumber) -> String {
    format!("triage/{}#{number}", repo.0)
}

pub(crate) fn review_key(repo: GithubId, number: ItemNumber) -> String {
    format!("review/{}#{number}", repo.0)
}

/// One of these at a time: a plan that is made while another is carried out would end that one.
pub(crate) fn closing_key(repo: KeyedRepo<'_>) -> String {
    format!("repo/{repo}/closing")
}

/// Not the same: an apply may take hours, and what it did wrong must not wait for that. The close lease keeps the two
/// apart.
pub(crate) fn reopening_key(repo: KeyedRepo<'_>) -> String {
    format!("repo/{repo}/reopening")
}

/// The repository of a webhook's job whose payload does not say it.
pub(crate) fn webhook_repo(key: &str) -> Option<GithubId> {
    key.strip_prefix("repo/")?.split('#').next()?.parse().ok().map(GithubId)
}
