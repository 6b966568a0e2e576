//! Reads releases, and finds the first one that contains a commit.

use canonry_boxed::boxed;
use canonry_domain::{FixRelease, RepoName};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::api::lenient;
use crate::auth::credentials::Scope;
use crate::http::client::GitHub;
use crate::http::error::GitHubError;
use crate::http::pages::{PER_PAGE, Pages};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestRelease {
    pub tag_name: String,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub draft: bool,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub prerelease: bool,
    /// Null for a draft.
    #[serde(default, deserialize_with = "lenient::moment")]
    pub published_at: Option<Timestamp>,
}

/// How two commits are related; the rest of the answer is not read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct RestComparison {
    /// `ahead`, `behind`, `identical` or `diverged`, of the second commit.
    #[serde(default, deserialize_with = "lenient::or_default")]
    status: String,
}

/// Releases that are compared with a commit. The first one after a merge usually contains it, unless it belongs to
/// another branch.
const COMPARED: usize = 3;
/// Releases on a page of the list.
const LISTED: usize = 100;

#[boxed]
impl GitHub {
    /// The first release since `merged_at` that contains a commit, in at most four requests. It is unknown if the
    /// repository makes no releases, or if so many followed that the first ones are not listed or compared.
    pub async fn first_release_with(
        &self,
        repo: &RepoName,
        commit: &str,
        merged_at: Timestamp,
    ) -> Result<FixRelease, GitHubError> {
        let url = self.url(&["repos", repo.owner(), repo.name(), "releases"], &[PER_PAGE]);
        let mut pages: Pages<RestRelease> = Pages::new(self, Scope::Repo(repo.clone()), url);
        let listed = pages.next().await?.map(|page| page.items).unwrap_or_default();
        let is_cut = listed.len() >= LISTED && listed.iter().all(|release| release.published_at >= Some(merged_at));
        let is_release = |release: &RestRelease| !release.draft && !release.prerelease;
        if is_cut || !listed.iter().any(is_release) {
            return Ok(FixRelease::Unknown);
        }
        let mut later: Vec<(Timestamp, String)> = listed
            .into_iter()
            .filter(is_release)
            .filter_map(|release| Some((release.published_at.filter(|at| *at >= merged_at)?, release.tag_name)))
            .collect();
        later.sort();
        let mut are_all_compared = later.len() <= COMPARED;
        for (_, tag) in later.into_iter().take(COMPARED) {
            match self.contains(repo, &tag, commit).await? {
                Some(true) => return Ok(FixRelease::First(tag)),
                Some(false) => {}
                None => are_all_compared = false,
            }
        }
        Ok(if are_all_compared { FixRelease::NotYet } else { FixRelease::Unknown })
    }

    /// Whether a commit is part of the history of another one; `None` if one of them is gone.
    async fn contains(&self, repo: &RepoName, head: &str, commit: &str) -> Result<Option<bool>, GitHubError> {
        let pair = format!("{commit}...{head}");
        // Only the first page contains the changed files with their diffs, which may be large.
        let short = [("per_page", "1"), ("page", "2")];
        let url = self.url(&["repos", repo.owner(), repo.name(), "compare", &pair], &short);
        let compared: RestComparison = match self.get_json(&Scope::Repo(repo.clone()), url).await {
            Err(GitHubError::NotFound { .. }) => return Ok(None),
            answer => answer?,
        };
        Ok(Some(matches!(compared.status.as_str(), "ahead" | "identical")))
    }
}
