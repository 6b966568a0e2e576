//! `maintainers refresh`: asks GitHub who may push.

use canonry_boxed::boxed;
use canonry_domain::RepoName;
use canonry_github::GitHub;
use canonry_store::{MaintainerList, MaintainerSource, Store};
use jiff::{SignedDuration, Timestamp};

use crate::corpus::identify::{identify, remember};
use crate::corpus::sync::SyncError;

/// How long a list from GitHub is fresh enough for a plan; closing fetches it again.
const COUNTS_FOR: SignedDuration = SignedDuration::from_hours(24);

/// Whether a plan may use this list without asking GitHub again. A list that a person set is always valid.
pub fn counts_for_a_plan(list: &MaintainerList, now: Timestamp) -> bool {
    list.source == MaintainerSource::Set || now.duration_since(list.written_at).abs() < COUNTS_FOR
}

/// Replaces the list of maintainers by the collaborators with push access or more. If GitHub does not answer, the
/// list stays as it was.
#[boxed]
pub async fn refresh_maintainers(
    store: &Store,
    github: &GitHub,
    asked: &RepoName,
) -> Result<MaintainerList, SyncError> {
    let identified = identify(store, github, asked).await?;
    let logins = github.maintainers(&identified.name).await?;
    let repo = remember(store, asked, &identified, github.now()).await?;
    Ok(store.repos().set_maintainers(repo.id, MaintainerSource::Github, &logins, github.now()).await?)
}
