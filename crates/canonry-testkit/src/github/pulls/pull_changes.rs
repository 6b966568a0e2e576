//! Changes of pull requests: opening, pushing, retargeting, marking as ready, requesting reviews.

use serde_json::json;

use crate::github::issues::changes::NewIssue;
use crate::github::pulls::pull::{Pull, PullCommit};
use crate::github::pulls::pull_diff::{Side, bare_changes, changed_files, moved_line, shown_line};
use crate::github::world::{State, World};

#[derive(Debug, Clone, Default)]
pub struct NewPull {
    pub title: String,
    pub body: Option<String>,
    /// The target branch; by default the default branch.
    pub base: Option<String>,
    pub draft: bool,
    pub fork: Option<String>,
}

impl NewPull {
    /// A pull request that is not a draft, from the same repository to the default branch.
    pub fn new(title: &str) -> Self {
        Self { title: title.to_owned(), ..Self::default() }
    }
}

impl World {
    /// Opens a pull request for a branch with commits, and returns its number.
    ///
    /// # Panics
    /// If there is no such branch.
    pub fn open_pull(&mut self, repo: &str, by: &str, branch: &str, new: NewPull) -> u64 {
        let position = self.position(repo);
        let git = self.git_of(position);
        if let Some(owner) = &new.fork {
            self.move_to_fork(position, owner, branch);
        }
        let mut pull = Pull { draft: new.draft, fork: new.fork, head_ref: branch.to_owned(), ..Pull::default() };
        pull.base_ref = new.base.unwrap_or_else(|| self.repos[position].default_branch.clone());
        self.measure(position, &mut pull);
        let head = pull.head_sha.clone();
        let issue = NewIssue { title: new.title, body: new.body, pull: Some(pull), ..NewIssue::default() };
        let number = self.open(repo, by, issue);
        git.point(&format!("refs/pull/{number}/head"), &head);
        number
    }

    /// Pushes a commit to the branch of a pull request.
    pub fn push_pull(&mut self, repo: &str, number: u64, by: &str, files: &[(&str, Option<&str>)]) -> String {
        let branch = self.pull(repo, number).head_branch();
        let before = self.pull(repo, number).head_sha.clone();
        let after = self.commit(repo, &branch, files);
        self.tell_push(repo, number, by, &before, files, false);
        after
    }

    /// Replaces the branch of a pull request by one commit on the default branch. GitHub then shows earlier reviews
    /// as reviews of the new head.
    pub fn force_push_pull(&mut self, repo: &str, number: u64, by: &str, files: &[(&str, Option<&str>)]) -> String {
        let branch = self.pull(repo, number).head_branch();
        let before = self.pull(repo, number).head_sha.clone();
        let after = self.recommit(repo, &branch, files);
        self.tell_push(repo, number, by, &before, files, true);
        after
    }

    pub fn ready_for_review(&mut self, repo: &str, number: u64, by: &str) {
        self.pull_mut(repo, number).draft = false;
        self.queue_issue_event("ready_for_review", self.position(repo), number, by, json!({}));
    }

    pub fn convert_to_draft(&mut self, repo: &str, number: u64, by: &str) {
        self.pull_mut(repo, number).draft = true;
        self.queue_issue_event("converted_to_draft", self.position(repo), number, by, json!({}));
    }

    pub fn request_review(&mut self, repo: &str, number: u64, by: &str, reviewer: &str) {
        let pull = self.pull_mut(repo, number);
        if !pull.requested_reviewers.iter().any(|login| login.eq_ignore_ascii_case(reviewer)) {
            pull.requested_reviewers.push(reviewer.to_owned());
        }
        let user = self.user_json(reviewer);
        let extra = json!({ "requested_reviewer": user });
        self.queue_issue_event("review_requested", self.position(repo), number, by, extra);
    }

    /// Changes the target branch of a pull request.
    pub fn retarget(&mut self, repo: &str, number: u64, by: &str, base: &str) {
        let position = self.position(repo);
        let old = self.pull(repo, number).clone();
        let mut pull = Pull { base_ref: base.to_owned(), ..old.clone() };
        self.measure(position, &mut pull);
        place_comments(&mut pull, |_, _| true);
        *self.pull_mut(repo, number) = pull;
        let changes = json!({ "base": { "ref": { "from": old.base_ref }, "sha": { "from": old.base_sha } } });
        self.queue_issue_event("edited", position, number, by, json!({ "changes": changes }));
    }

    /// An existing pull request.
    ///
    /// # Panics
    /// If it does not exist.
    pub fn pull(&self, repo: &str, number: u64) -> &Pull {
        self.issue(repo, number).pull.as_ref().unwrap_or_else(|| panic!("{repo}#{number} is no pull request"))
    }

    /// Returns a pull request for a change and sets its `updated_at`.
    pub(crate) fn pull_mut(&mut self, repo: &str, number: u64) -> &mut Pull {
        let pull = self.change(repo, number).pull.as_mut();
        pull.unwrap_or_else(|| panic!("{repo}#{number} is no pull request"))
    }

    /// Moves the open pull requests of a branch to its tip.
    pub(crate) fn follow_branch(&mut self, position: usize, branch: &str) {
        let repo = self.repos[position].full_name();
        let commits = &self.repos[position].commits;
        // A pull request that a test built directly has no commits, whatever its branch is called.
        let of_branch = |pull: &Pull| pull.head_branch() == branch && commits.contains_key(&pull.head_sha);
        let open = self.repos[position].issues.values().filter(|issue| issue.state == State::Open);
        let numbers: Vec<u64> =
            open.filter(|issue| issue.pull.as_ref().is_some_and(of_branch)).map(|issue| issue.number).collect();
        let git = self.git_of(position);
        for number in numbers {
            let mut pull = self.pull(&repo, number).clone();
            let before = pull.head_sha.clone();
            self.measure(position, &mut pull);
            let changes = bare_changes(&git, &before, &pull.head_sha);
            place_comments(&mut pull, |path, line| {
                let moved = moved_line(&changes, path, *line);
                *line = moved.unwrap_or(*line);
                moved.is_some()
            });
            let gone: Vec<usize> = (0..pull.reviews.len())
                .filter(|&index| pull.files_at(&pull.reviews[index].commit_id).is_none())
                .collect();
            for index in gone {
                pull.reviews[index].commit_id.clone_from(&pull.head_sha);
            }
            git.point(&format!("refs/pull/{number}/head"), &pull.head_sha);
            *self.pull_mut(&repo, number) = pull;
        }
    }

    /// Reads from git what a pull request changes.
    fn measure(&mut self, position: usize, pull: &mut Pull) {
        let git = self.git_of(position);
        let tip = |branch: &str| {
            let found = self.repos[position].branches.get(branch).cloned();
            found.unwrap_or_else(|| panic!("there is no branch {branch}: commit to it first"))
        };
        pull.head_sha = tip(&pull.head_branch());
        let base = tip(&pull.base_ref);
        let known = if base == pull.base_sha { std::mem::take(&mut pull.commits) } else { Vec::new() };
        pull.base_sha = base;
        let start = git.merge_base(&pull.base_sha, &pull.head_sha);
        let measured = |sha: String| {
            let files = known.iter().find(|commit| commit.sha == sha).map(|commit| commit.files.clone());
            let files = files.unwrap_or_else(|| changed_files(&git, Some(&start), &sha));
            PullCommit { sha, files }
        };
        pull.commits = git.between(&start, &pull.head_sha).into_iter().map(measured).collect();
        pull.files = pull.commits.last().map(|commit| commit.files.clone()).unwrap_or_default();
    }

    /// Moves a branch from the repository to a user's fork of it.
    fn move_to_fork(&mut self, position: usize, owner: &str, branch: &str) {
        self.user(owner);
        let fork = format!("{owner}/{}", self.repos[position].name);
        if !self.repos.iter().any(|repo| repo.full_name().eq_ignore_ascii_case(&fork)) {
            self.repo(&fork).fork = true;
        }
        let key = format!("{owner}:{branch}");
        let repo = &mut self.repos[position];
        if repo.branches.contains_key(&key) {
            return;
        }
        let Some(sha) = repo.branches.remove(branch) else { return };
        let files = std::mem::take(&mut repo.files);
        let renamed = |(name, path): (String, String)| (if name == branch { key.clone() } else { name }, path);
        repo.files = files.into_iter().map(|(place, bytes)| (renamed(place), bytes)).collect();
        if let Some(git) = &repo.git {
            git.point(&format!("refs/forks/{owner}/{branch}"), &sha);
            git.forget_branch(branch);
        }
        repo.branches.insert(key, sha);
    }

    fn tell_push(
        &mut self,
        repo: &str,
        number: u64,
        by: &str,
        before: &str,
        files: &[(&str, Option<&str>)],
        forced: bool,
    ) {
        let position = self.position(repo);
        let pull = self.pull(repo, number);
        let (after, branch, fork) = (pull.head_sha.clone(), pull.head_ref.clone(), pull.fork.is_some());
        if !fork {
            let paths: Vec<&str> = files.iter().map(|(path, _)| *path).collect();
            self.queue_push(position, &branch, by, Some(before), &after, &paths, forced);
        }
        let extra = json!({ "before": before, "after": after });
        self.queue_issue_event("synchronize", position, number, by, extra);
    }
}

/// Moves the comments to the current positions of their lines. A comment whose line changed, or is no longer in the
/// diff, becomes outdated and stays at the last commit for which its line was right.
fn place_comments(pull: &mut Pull, moves: impl Fn(&str, &mut u64) -> bool) {
    let (files, head) = (&pull.files, &pull.head_sha);
    for comment in &mut pull.review_comments {
        let Some(mut line) = comment.line else { continue };
        let mut start = comment.start_line;
        // Lines of the old side belong to the base, which a push does not change.
        let stays = comment.side == Side::Left
            || (moves(&comment.path, &mut line) && start.as_mut().is_none_or(|start| moves(&comment.path, start)));
        let patch = files.iter().find(|file| file.path == comment.path).and_then(|file| file.patch.as_deref());
        let shown = patch.and_then(|patch| shown_line(patch, comment.side, line));
        if stays && shown.is_some() {
            (comment.line, comment.start_line) = (Some(line), start);
            comment.commit_id.clone_from(head);
        } else {
            (comment.line, comment.start_line) = (None, None);
        }
    }
}
