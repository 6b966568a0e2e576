//! Transfers of issues, and renames of repositories.

use serde_json::json;

use crate::github::people::accounts::Account;
use crate::github::world::{Comment, Gone, World};

impl World {
    pub fn delete(&mut self, repo: &str, number: u64, by: &str) {
        let position = self.position(repo);
        self.queue_issue_event("deleted", position, number, by, json!({}));
        self.remove(position, number, Gone::Deleted);
    }

    pub fn convert_to_discussion(&mut self, repo: &str, number: u64, by: &str) {
        let position = self.position(repo);
        self.queue_issue_event("deleted", position, number, by, json!({}));
        self.remove(position, number, Gone::Converted);
    }

    /// Moves an issue to another repository and returns its number there.
    pub fn transfer(&mut self, repo: &str, number: u64, by: &str, to: &str) -> u64 {
        let from = self.position(repo);
        let target = self.position(to);
        let mut issue = self.issue(repo, number).clone();
        issue.id = self.fresh_id();
        issue.number = self.repos[target].take_number();
        issue.updated_at = self.stamp();
        issue.labels.clear();
        let moved = issue.number;
        let comments: Vec<Comment> = self.comments(repo, number).into_iter().cloned().collect();
        self.repos[target].issues.insert(moved, issue);
        for mut comment in comments {
            comment.issue = moved;
            self.repos[target].comments.insert(comment.id, comment);
        }
        let new_issue = self.issue_json(&self.repos[target], &self.repos[target].issues[&moved]);
        let new_repository = self.repo_json(&self.repos[target]);
        let changes = json!({ "changes": { "new_issue": new_issue, "new_repository": new_repository } });
        self.queue_issue_event("transferred", from, number, by, changes);
        let repo_id = self.repos[target].id;
        self.remove(from, number, Gone::Transferred { repo_id, number: moved });
        moved
    }

    /// Renames a repository or moves it to another owner; the old name then redirects.
    pub fn rename_repo(&mut self, repo: &str, new_full_name: &str, by: &str) {
        let (owner, name) = new_full_name.split_once('/').expect("a repository is named owner/name");
        self.account(owner, Account::Organization);
        let position = self.position(repo);
        let repository = &mut self.repos[position];
        let old = repository.full_name();
        let from = repository.name.clone();
        repository.old_names.push(old);
        repository.owner = owner.to_owned();
        repository.name = name.to_owned();
        let changes = json!({ "changes": { "repository": { "name": { "from": from } } } });
        self.queue_event("repository", Some("renamed"), Some(position), Some(by), changes);
    }

    fn remove(&mut self, position: usize, number: u64, gone: Gone) {
        let repo = &mut self.repos[position];
        repo.issues.remove(&number).expect("the issue exists");
        repo.comments.retain(|_, comment| comment.issue != number);
        repo.gone.insert(number, gone);
    }
}
