//! The keys of all jobs. Jobs with the same key run one at a time and in order. No decision is based on parsing a
//! key.

use canonry_domain::{GithubId, ItemNumber, RepoName};
use canonry_store::Repo;

/// The repository of a key: by GitHub's id if it has one, because its name may belong to another repository tomorrow.
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

/// For an item's webhooks and for a person's orders about the item.
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

/// Not the repository's own key: a first sync may take an hour, and webhooks about the repository must not wait for
/// it.
pub(crate) fn sync_key(repo: KeyedRepo<'_>) -> String {
    format!("sync/{repo}")
}

/// A separate key, so that other jobs about the item do not wait for triage.
pub(crate) fn triage_key(repo: GithubId, number: ItemNumber) -> String {
    format!("triage/{}#{number}", repo.0)
}

pub(crate) fn review_key(repo: GithubId, number: ItemNumber) -> String {
    format!("review/{}#{number}", repo.0)
}

/// One at a time: a plan made while another is being applied would end that one.
pub(crate) fn closing_key(repo: KeyedRepo<'_>) -> String {
    format!("repo/{repo}/closing")
}

/// Not the closing key: an apply may take hours, and an undo of its mistakes must not wait. The close lease keeps the
/// two apart.
pub(crate) fn reopening_key(repo: KeyedRepo<'_>) -> String {
    format!("repo/{repo}/reopening")
}

/// The repository of a webhook job whose payload does not contain it.
pub(crate) fn webhook_repo(key: &str) -> Option<GithubId> {
    key.strip_prefix("repo/")?.split('#').next()?.parse().ok().map(GithubId)
}
