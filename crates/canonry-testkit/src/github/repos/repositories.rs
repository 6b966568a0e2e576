//! Repositories and their files.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::github::issues::issue::time;
use crate::github::people::accounts::{Actor, CONTENTS, METADATA, Permission};
use crate::github::pulls::check_runs::CheckRun;
use crate::github::pulls::commits::Commit;
use crate::github::repos::git_repositories::GitRepository;
use crate::github::repos::releases::PublishedRelease;
use crate::github::serve::call::{Answer, Call, Reply};
use crate::github::world::{Comment, Gone, Issue, Label, Milestone, State, World};

/// A repository; its id stays the same when its name changes.
#[derive(Debug, Clone)]
pub struct Repo {
    pub id: u64,
    pub owner: String,
    pub name: String,
    /// Former full names, which redirect.
    pub old_names: Vec<String>,
    pub private: bool,
    pub archived: bool,
    /// Whether issues are enabled; if not, GitHub answers 410.
    pub issues_enabled: bool,
    pub default_branch: String,
    pub created_at: Timestamp,
    /// File contents by branch (or commit) and path.
    pub files: BTreeMap<(String, String), Vec<u8>>,
    pub issues: BTreeMap<u64, Issue>,
    pub comments: BTreeMap<u64, Comment>,
    pub labels: BTreeMap<String, Label>,
    pub milestones: BTreeMap<u64, Milestone>,
    pub collaborators: BTreeMap<String, Permission>,
    /// What happened to former issues, by number.
    pub gone: BTreeMap<u64, Gone>,
    pub last_number: u64,
    pub fork: bool,
    /// The commits of branches, by name; those of a fork are named `owner:branch` in the original repository.
    pub branches: BTreeMap<String, String>,
    pub commits: BTreeMap<String, Commit>,
    /// Releases, oldest first.
    pub releases: Vec<PublishedRelease>,
    /// Check runs, oldest first.
    pub check_runs: Vec<CheckRun>,
    /// The git repository, once something was committed.
    pub git: Option<GitRepository>,
    /// Branches whose files were written and not committed since.
    pub(crate) unsaved: BTreeSet<String>,
}

impl Repo {
    pub(crate) fn new(id: u64, owner: &str, name: &str, created_at: Timestamp) -> Self {
        Self {
            id,
            owner: owner.to_owned(),
            name: name.to_owned(),
            old_names: Vec::new(),
            private: false,
            archived: false,
            issues_enabled: true,
            default_branch: String::from("main"),
            created_at,
            files: BTreeMap::new(),
            issues: BTreeMap::new(),
            comments: BTreeMap::new(),
            labels: BTreeMap::new(),
            milestones: BTreeMap::new(),
            collaborators: BTreeMap::new(),
            gone: BTreeMap::new(),
            last_number: 0,
            fork: false,
            branches: BTreeMap::new(),
            commits: BTreeMap::new(),
            releases: Vec::new(),
            check_runs: Vec::new(),
            git: None,
            unsaved: BTreeSet::new(),
        }
    }

    /// `owner/name`.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.owner, self.name)
    }

    /// Writes a file on the default branch.
    pub fn file(&mut self, path: &str, text: &str) -> &mut Self {
        let branch = self.default_branch.clone();
        self.file_at(&branch, path, text)
    }

    /// Writes a file on a branch or at a commit.
    pub fn file_at(&mut self, git_ref: &str, path: &str, text: &str) -> &mut Self {
        self.files.insert((git_ref.to_owned(), path.to_owned()), text.as_bytes().to_vec());
        self.unsaved.insert(git_ref.to_owned());
        self
    }

    /// The next number; issues and pull requests share one sequence.
    pub(crate) fn take_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    pub(crate) fn api(&self, base: &str) -> String {
        format!("{base}/repos/{}/{}", self.owner, self.name)
    }
}

/// `GET /repos/{owner}/{repo}`
pub(crate) fn show(world: &mut World, call: &Call) -> Reply {
    world.may_read(call, METADATA)?;
    let repo = call.repo(world);
    let mut value = world.repo_json(repo);
    value["network_count"] = json!(0);
    value["subscribers_count"] = json!(0);
    if let Actor::Token(token) = &call.actor {
        value["permissions"] = world.permission_of(repo, &token.login).json();
    }
    Ok(Answer::ok(value))
}

/// `GET …/contents/{path}`: a file, or the list of a folder.
pub(crate) fn contents(world: &mut World, call: &Call) -> Reply {
    world.may_read(call, CONTENTS)?;
    let repo = call.repo(world);
    let path = call.param("path").trim_matches('/');
    let git_ref = call.query("ref").unwrap_or(&repo.default_branch);
    let git_ref = git_ref.strip_prefix("refs/heads/").unwrap_or(git_ref);
    let written = repo.files.get(&(git_ref.to_owned(), path.to_owned())).cloned();
    let committed = || repo.git.as_ref().filter(|_| repo.commits.contains_key(git_ref))?.file_at(git_ref, path);
    if let Some(bytes) = &written.or_else(committed) {
        if call.accept.contains("raw") {
            let mut answer = Answer::empty(200);
            answer.raw = Some(bytes.clone().into());
            return Ok(answer);
        }
        let mut value = entry_json(world, repo, git_ref, path, Some(bytes));
        value["encoding"] = json!("base64");
        value["content"] = json!(wrapped(&STANDARD.encode(bytes)));
        return Ok(Answer::ok(value));
    }
    let prefix = if path.is_empty() { String::new() } else { format!("{path}/") };
    let mut entries: BTreeMap<String, Option<&Vec<u8>>> = BTreeMap::new();
    for ((branch, file), bytes) in &repo.files {
        let Some(rest) = file.strip_prefix(&prefix).filter(|_| branch == git_ref) else { continue };
        match rest.split_once('/') {
            Some((folder, _)) => entries.insert(format!("{prefix}{folder}"), None),
            None => entries.insert(file.clone(), Some(bytes)),
        };
    }
    if entries.is_empty() {
        return Err(Answer::not_found());
    }
    let entries = entries.iter().map(|(path, bytes)| entry_json(world, repo, git_ref, path, bytes.map(Vec::as_slice)));
    Ok(Answer::ok(entries.collect()))
}

/// `GET …/readme`: the file that GitHub shows below a repository's files.
pub(crate) fn readme(world: &mut World, call: &Call) -> Reply {
    world.may_read(call, CONTENTS)?;
    let repo = call.repo(world);
    let git_ref = call.query("ref").unwrap_or(&repo.default_branch);
    let is_readme = |path: &str| !path.contains('/') && path.to_ascii_lowercase().starts_with("readme");
    let found = repo.files.keys().find(|(branch, path)| branch == git_ref && is_readme(path));
    let path = found.map(|(_, path)| path.clone()).ok_or_else(Answer::not_found)?;
    let mut of_file = call.clone();
    of_file.params.push(("path", path));
    contents(world, &of_file)
}

/// GitHub breaks base64 into lines of 60 characters.
fn wrapped(encoded: &str) -> String {
    let mut text = String::new();
    for (index, character) in encoded.chars().enumerate() {
        text.push(character);
        if index % 60 == 59 {
            text.push('\n');
        }
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

fn entry_json(world: &World, repo: &Repo, git_ref: &str, path: &str, bytes: Option<&[u8]>) -> Value {
    let sha: String =
        Sha256::digest(bytes.unwrap_or(path.as_bytes())).iter().take(20).map(|byte| format!("{byte:02x}")).collect();
    let (kind, word) = if bytes.is_some() { ("file", "blob") } else { ("dir", "tree") };
    let api = repo.api(&world.api_url);
    let url = format!("{api}/contents/{path}?ref={git_ref}");
    let git_url = format!("{api}/git/{word}s/{sha}");
    let html_url = format!("https://github.com/{}/{word}/{git_ref}/{path}", repo.full_name());
    json!({
        "name": path.rsplit('/').next(),
        "path": path,
        "sha": sha,
        "size": bytes.map_or(0, <[u8]>::len),
        "url": url,
        "html_url": html_url,
        "git_url": git_url,
        "download_url": bytes.map(|_| format!("https://raw.githubusercontent.com/{}/{git_ref}/{path}", repo.full_name())),
        "type": kind,
        "_links": { "self": url, "git": git_url, "html": html_url },
    })
}

impl World {
    /// A repository as other objects contain it.
    pub(crate) fn repo_json(&self, repo: &Repo) -> Value {
        let api = repo.api(&self.api_url);
        let html = format!("https://github.com/{}", repo.full_name());
        let open = repo.issues.values().filter(|issue| issue.state == State::Open).count();
        let mut value = json!({
            "id": repo.id,
            "node_id": format!("R_{}", repo.id),
            "name": repo.name,
            "full_name": repo.full_name(),
            "private": repo.private,
            "visibility": if repo.private { "private" } else { "public" },
            "owner": self.user_json(&repo.owner),
            "html_url": html,
            "description": null,
            "fork": repo.fork,
            "url": api,
            "clone_url": format!("{html}.git"),
            "git_url": format!("git://github.com/{}.git", repo.full_name()),
            "ssh_url": format!("git@github.com:{}.git", repo.full_name()),
            "svn_url": html,
            "default_branch": repo.default_branch,
            "archived": repo.archived,
            "has_issues": repo.issues_enabled,
            "open_issues": open,
            "open_issues_count": open,
            "created_at": time(repo.created_at),
            "updated_at": time(repo.created_at),
            "pushed_at": time(repo.created_at),
        });
        for key in ["mirror_url", "homepage", "language", "license"] {
            value[key] = Value::Null;
        }
        for key in ["disabled", "has_projects", "has_wiki", "has_pages", "has_downloads", "is_template"] {
            value[key] = json!(false);
        }
        for key in ["forks", "forks_count", "stargazers_count", "watchers", "watchers_count", "size"] {
            value[key] = json!(0);
        }
        value["has_discussions"] = json!(true);
        for (key, tail) in REPO_URLS {
            value[*key] = json!(format!("{api}/{tail}"));
        }
        value
    }
}

/// The URL templates in the JSON of every repository.
const REPO_URLS: &[(&str, &str)] = &[
    ("archive_url", "{archive_format}{/ref}"),
    ("assignees_url", "assignees{/user}"),
    ("blobs_url", "git/blobs{/sha}"),
    ("branches_url", "branches{/branch}"),
    ("collaborators_url", "collaborators{/collaborator}"),
    ("comments_url", "comments{/number}"),
    ("commits_url", "commits{/sha}"),
    ("compare_url", "compare/{base}...{head}"),
    ("contents_url", "contents/{+path}"),
    ("contributors_url", "contributors"),
    ("deployments_url", "deployments"),
    ("downloads_url", "downloads"),
    ("events_url", "events"),
    ("forks_url", "forks"),
    ("git_commits_url", "git/commits{/sha}"),
    ("git_refs_url", "git/refs{/sha}"),
    ("git_tags_url", "git/tags{/sha}"),
    ("hooks_url", "hooks"),
    ("issue_comment_url", "issues/comments{/number}"),
    ("issue_events_url", "issues/events{/number}"),
    ("issues_url", "issues{/number}"),
    ("keys_url", "keys{/key_id}"),
    ("labels_url", "labels{/name}"),
    ("languages_url", "languages"),
    ("merges_url", "merges"),
    ("milestones_url", "milestones{/number}"),
    ("notifications_url", "notifications{?since,all,participating}"),
    ("pulls_url", "pulls{/number}"),
    ("releases_url", "releases{/id}"),
    ("stargazers_url", "stargazers"),
    ("statuses_url", "statuses/{sha}"),
    ("subscribers_url", "subscribers"),
    ("subscription_url", "subscription"),
    ("tags_url", "tags"),
    ("teams_url", "teams"),
    ("trees_url", "git/trees{/sha}"),
];
