//! Releases: tags of the default branch that people published.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::github::issues::issue::time;
use crate::github::issues::issue_list::numbered_under_repo;
use crate::github::people::accounts::CONTENTS;
use crate::github::repos::repositories::Repo;
use crate::github::serve::call::{Call, Reply};
use crate::github::world::World;

#[derive(Debug, Clone)]
pub struct PublishedRelease {
    pub id: u64,
    pub tag: String,
    /// The commit of the tag.
    pub sha: String,
    pub prerelease: bool,
    pub published_at: Timestamp,
}

/// `GET …/releases`: the newest first.
pub(crate) fn list(world: &mut World, call: &Call) -> Reply {
    world.may_read(call, CONTENTS)?;
    let repo = call.repo(world);
    let newest_first: Vec<&PublishedRelease> = repo.releases.iter().rev().collect();
    Ok(numbered_under_repo(world, call, &newest_first, |release| world.release_json(repo, release)))
}

impl World {
    /// Publishes the tip of a branch under a tag.
    pub fn release(&mut self, repo: &str, branch: &str, tag: &str) -> &mut PublishedRelease {
        let (id, published_at) = (self.fresh_id(), self.stamp());
        self.git_of(self.position(repo));
        let repo = self.get_mut(repo);
        let sha = repo.branches.get(branch).expect("the branch exists").clone();
        repo.releases.push(PublishedRelease { id, tag: tag.to_owned(), sha, prerelease: false, published_at });
        repo.releases.last_mut().expect("invariant: just pushed")
    }

    fn release_json(&self, repo: &Repo, release: &PublishedRelease) -> Value {
        let api = format!("{}/releases/{}", repo.api(&self.api_url), release.id);
        let html = format!("https://github.com/{}", repo.full_name());
        json!({
            "id": release.id,
            "node_id": format!("RE_{}", release.id),
            "tag_name": release.tag,
            "target_commitish": repo.default_branch,
            "name": release.tag,
            "body": null,
            "draft": false,
            "prerelease": release.prerelease,
            "created_at": time(release.published_at),
            "published_at": time(release.published_at),
            "author": self.user_json(&repo.owner),
            "assets": [],
            "url": api,
            "assets_url": format!("{api}/assets"),
            "upload_url": format!("{api}/assets{{?name,label}}"),
            "html_url": format!("{html}/releases/tag/{}", release.tag),
            "tarball_url": format!("{html}/tarball/{}", release.tag),
            "zipball_url": format!("{html}/zipball/{}", release.tag),
        })
    }
}
