//! Commits that people push, and the routes that show and compare them.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::github::issues::issue::time;
use crate::github::issues::issue_list::numbered_under_repo;
use crate::github::people::accounts::{CONTENTS, PULLS};
use crate::github::pulls::pull::file_json;
use crate::github::pulls::pull_diff::changed_files;
use crate::github::repos::git_repositories::{CommitParts, GitRepository};
use crate::github::repos::repositories::Repo;
use crate::github::serve::call::{Answer, Call, Reply};
use crate::github::world::World;

/// The time of the first commit. Each further commit of a repository is one second later, so that SHAs are the same
/// in every run.
const FIRST_COMMIT: i64 = 1_767_225_600;
/// The author of all commits: Canonry uses GitHub accounts, never names in commits.
const COMMITTER: &str = "committer";

#[derive(Debug, Clone)]
pub struct Commit {
    pub parent: Option<String>,
    pub message: String,
    pub at: Timestamp,
}

impl World {
    /// Commits files (path → text, or `None` to delete) on top of a branch and returns the SHA. A new branch starts
    /// at the default branch. A text with a NUL is a binary file. No webhook is sent, as if it were lost. Pull
    /// requests of the branch follow it.
    pub fn commit(&mut self, repo: &str, branch: &str, files: &[(&str, Option<&str>)]) -> String {
        let position = self.position(repo);
        self.begin_branch(position, branch);
        self.write_files(position, branch, files);
        let parent = self.repos[position].branches.get(branch).cloned();
        let sha = self.save(position, branch, parent);
        self.follow_branch(position, branch);
        sha
    }

    /// The same on a branch that restarts at the default branch, as after a force-push.
    pub fn recommit(&mut self, repo: &str, branch: &str, files: &[(&str, Option<&str>)]) -> String {
        let position = self.position(repo);
        assert_ne!(branch, self.repos[position].default_branch, "the default branch has nothing to begin at");
        self.repos[position].branches.remove(branch);
        self.repos[position].files.retain(|(other, _), _| other != branch);
        self.commit(repo, branch, files)
    }

    /// The repository's git, which starts with the files written to the default branch so far.
    pub(crate) fn git_of(&mut self, position: usize) -> GitRepository {
        let default = self.repos[position].default_branch.clone();
        if self.repos[position].git.is_none() {
            self.repos[position].git = Some(GitRepository::empty(&default));
            self.save(position, &default, None);
        } else if self.repos[position].unsaved.contains(&default) {
            let parent = self.repos[position].branches.get(&default).cloned();
            self.save(position, &default, parent);
        }
        self.repos[position].git.clone().expect("invariant: just made")
    }

    /// Creates a branch from the default branch unless it exists.
    fn begin_branch(&mut self, position: usize, branch: &str) {
        self.git_of(position);
        let repo = &mut self.repos[position];
        if repo.branches.contains_key(branch) {
            return;
        }
        let tip = repo.branches[&repo.default_branch].clone();
        repo.branches.insert(branch.to_owned(), tip);
        let of_default = repo.files.iter().filter(|((other, _), _)| *other == repo.default_branch);
        let copies: Vec<((String, String), Vec<u8>)> =
            of_default.map(|((_, path), bytes)| ((branch.to_owned(), path.clone()), bytes.clone())).collect();
        // Files that a test wrote directly to the branch stay.
        for (key, bytes) in copies {
            repo.files.entry(key).or_insert(bytes);
        }
    }

    fn write_files(&mut self, position: usize, branch: &str, files: &[(&str, Option<&str>)]) {
        let repo = &mut self.repos[position];
        for (path, text) in files {
            let key = (branch.to_owned(), (*path).to_owned());
            match text {
                Some(text) => repo.files.insert(key, text.as_bytes().to_vec()),
                None => repo.files.remove(&key),
            };
        }
    }

    /// Commits the current files of a branch.
    fn save(&mut self, position: usize, branch: &str, parent: Option<String>) -> String {
        self.revision += 1;
        let repo = &mut self.repos[position];
        let git = repo.git.clone().expect("invariant: callers made it");
        let at = FIRST_COMMIT + i64::try_from(repo.commits.len()).unwrap_or(i64::MAX);
        let of_branch = repo.files.iter().filter(|((other, _), _)| other == branch);
        let files = of_branch.map(|((_, path), bytes)| (path.as_str(), bytes.as_slice())).collect();
        let message = format!("Commit {}", repo.commits.len() + 1);
        let parts = CommitParts { branch, parent: parent.as_deref(), author: COMMITTER, at, message: &message, files };
        let sha = git.commit(&parts);
        let at = Timestamp::from_second(at).expect("invariant: within range");
        repo.commits.insert(sha.clone(), Commit { parent, message, at });
        repo.branches.insert(branch.to_owned(), sha.clone());
        repo.unsaved.remove(branch);
        sha
    }
}

impl Repo {
    /// The SHA that a branch, a tag, a reference or a SHA names.
    pub(crate) fn commit_named(&self, name: &str) -> Option<String> {
        let branch = name.strip_prefix("refs/heads/").or(name.strip_prefix("heads/")).unwrap_or(name);
        if let Some(sha) = self.branches.get(branch) {
            return Some(sha.clone());
        }
        if let Some(release) = self.releases.iter().find(|release| release.tag == name) {
            return Some(release.sha.clone());
        }
        self.has_commit(name).then(|| name.to_owned())
    }

    /// Whether this commit is known; without git, the heads of pull requests are known.
    pub(crate) fn has_commit(&self, sha: &str) -> bool {
        let is_end = |pull: &crate::github::pulls::pull::Pull| pull.head_sha == sha || pull.base_sha == sha;
        self.commits.contains_key(sha) || self.issues.values().filter_map(|issue| issue.pull.as_ref()).any(is_end)
    }
}

/// `GET …/commits/{ref}`
pub(crate) fn show(world: &mut World, call: &Call) -> Reply {
    world.may_read(call, CONTENTS)?;
    let name = call.param("ref").to_owned();
    let repo = call.repo(world);
    let known = repo.commit_named(&name).and_then(|sha| Some((repo.commits.get(&sha)?, sha)));
    let (commit, sha) = known.ok_or_else(|| Answer::message(422, &format!("No commit found for SHA: {name}")))?;
    let git = repo.git.as_ref().ok_or_else(Answer::not_found)?;
    let files = changed_files(git, commit.parent.as_deref(), &sha);
    let (additions, deletions) =
        files.iter().fold((0, 0), |(added, removed), file| (added + file.additions, removed + file.deletions));
    let mut shown = commit_json(world, repo, git, &sha).ok_or_else(Answer::not_found)?;
    shown["stats"] = json!({ "additions": additions, "deletions": deletions, "total": additions + deletions });
    shown["files"] = files.iter().map(|file| file_json(world, repo, &sha, file)).collect();
    Ok(Answer::ok(shown))
}

/// `GET …/commits`: the history of a branch or a commit, the newest first.
pub(crate) fn list(world: &mut World, call: &Call) -> Reply {
    world.may_read(call, CONTENTS)?;
    let git = world.git_of(call.repo_position());
    let repo = call.repo(world);
    let name = call.query("sha").unwrap_or(&repo.default_branch);
    let mut at = repo.commit_named(name);
    if at.is_none() {
        return Err(Answer::not_found());
    }
    let mut behind = Vec::new();
    while let Some(commit) = at.as_ref().and_then(|sha| repo.commits.get(sha)) {
        behind.extend(at.take());
        at.clone_from(&commit.parent);
    }
    Ok(numbered_under_repo(world, call, &behind, |sha| commit_json(world, repo, &git, sha).unwrap_or_default()))
}

/// `GET …/pulls/{pull_number}/commits`: the oldest first.
pub(crate) fn list_of_pull(world: &mut World, call: &Call) -> Reply {
    world.may_read(call, PULLS)?;
    let git = world.git_of(call.repo_position());
    let repo = call.repo(world);
    let issue = repo.issues.get(&call.number("pull_number")?).ok_or_else(Answer::not_found)?;
    let pull = issue.pull.as_ref().ok_or_else(Answer::not_found)?;
    let of_git = repo.commits.contains_key(&pull.head_sha) && repo.commits.contains_key(&pull.base_sha);
    let mut commits = if of_git { git.between(&pull.base_sha, &pull.head_sha) } else { Vec::new() };
    commits.sort_by_key(|sha| repo.commits.get(sha).map(|commit| commit.at));
    Ok(numbered_under_repo(world, call, &commits, |sha| commit_json(world, repo, &git, sha).unwrap_or_default()))
}

/// `GET …/compare/{base}...{head}`
pub(crate) fn compare(world: &mut World, call: &Call) -> Reply {
    world.may_read(call, CONTENTS)?;
    let git = world.git_of(call.repo_position());
    let repo = call.repo(world);
    let (base, head) = call.param("basehead").split_once("...").ok_or_else(Answer::not_found)?;
    let named = |name: &str| repo.commit_named(name).filter(|sha| repo.commits.contains_key(sha));
    let (base, head) = named(base).zip(named(head)).ok_or_else(Answer::not_found)?;
    let common = git.merge_base(&base, &head);
    let mut ahead = git.between(&base, &head);
    ahead.sort_by_key(|sha| repo.commits.get(sha).map(|commit| commit.at));
    let behind = git.between(&head, &base).len();
    let status = match (ahead.len(), behind) {
        (0, 0) => "identical",
        (_, 0) => "ahead",
        (0, _) => "behind",
        _ => "diverged",
    };
    let (api, pair) = (repo.api(&world.api_url), format!("{base}...{head}"));
    let html = format!("https://github.com/{}/compare/{pair}", repo.full_name());
    let shown = |sha: &String| commit_json(world, repo, &git, sha).unwrap_or_default();
    let files = changed_files(&git, Some(&common), &head);
    Ok(Answer::ok(json!({
        "url": format!("{api}/compare/{pair}"),
        "html_url": html,
        "permalink_url": html,
        "diff_url": format!("{html}.diff"),
        "patch_url": format!("{html}.patch"),
        "base_commit": shown(&base),
        "merge_base_commit": shown(&common),
        "status": status,
        "ahead_by": ahead.len(),
        "behind_by": behind,
        "total_commits": ahead.len(),
        "commits": ahead.iter().map(shown).collect::<Vec<Value>>(),
        "files": files.iter().map(|file| file_json(world, repo, &head, file)).collect::<Vec<Value>>(),
    })))
}

/// A commit as in lists; `None` if it is not known.
fn commit_json(world: &World, repo: &Repo, git: &GitRepository, sha: &str) -> Option<Value> {
    let commit = repo.commits.get(sha)?;
    let api = repo.api(&world.api_url);
    let html = format!("https://github.com/{}/commit", repo.full_name());
    let who = json!({ "name": COMMITTER, "email": format!("{COMMITTER}@users.example.com"), "date": time(commit.at) });
    let tree = git.tree(sha);
    let parents: Vec<Value> = commit
        .parent
        .iter()
        .map(|parent| json!({ "sha": parent, "url": format!("{api}/commits/{parent}"), "html_url": format!("{html}/{parent}") }))
        .collect();
    Some(json!({
        "sha": sha,
        "node_id": format!("C_{sha}"),
        "url": format!("{api}/commits/{sha}"),
        "html_url": format!("{html}/{sha}"),
        "comments_url": format!("{api}/commits/{sha}/comments"),
        "commit": {
            "url": format!("{api}/git/commits/{sha}"),
            "author": who,
            "committer": who,
            "message": commit.message,
            "comment_count": 0,
            "tree": { "sha": tree, "url": format!("{api}/git/trees/{tree}") },
        },
        "author": null,
        "committer": null,
        "parents": parents,
    }))
}
