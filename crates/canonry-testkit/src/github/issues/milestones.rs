//! Milestones of a repository.

use serde_json::{Value, json};

use crate::github::issues::issue::time;
use crate::github::issues::issue_list::{numbered_under_repo, read_state};
use crate::github::people::accounts::ISSUES_OR_PULLS;
use crate::github::repos::repositories::Repo;
use crate::github::serve::call::{Call, Reply};
use crate::github::world::{Milestone, State, World};

/// `GET …/milestones`
pub(crate) fn list(world: &mut World, call: &Call) -> Reply {
    world.may_read(call, ISSUES_OR_PULLS)?;
    let state = read_state(call)?;
    let repo = call.repo(world);
    let matching = |milestone: &&Milestone| state.is_none_or(|state| milestone.state == state);
    let milestones: Vec<&Milestone> = repo.milestones.values().filter(matching).collect();
    Ok(numbered_under_repo(world, call, &milestones, |milestone| world.milestone_json(repo, milestone)))
}

impl World {
    /// Creates a milestone and returns its number.
    pub fn milestone(&mut self, repo: &str, title: &str) -> u64 {
        let id = self.fresh_id();
        let created_at = self.stamp();
        let milestones = &mut self.get_mut(repo).milestones;
        let number = milestones.last_key_value().map_or(1, |(last, _)| last + 1);
        let milestone = Milestone { id, number, title: title.to_owned(), state: State::Open, created_at };
        milestones.insert(number, milestone);
        number
    }

    pub(crate) fn milestone_json(&self, repo: &Repo, milestone: &Milestone) -> Value {
        let api = format!("{}/milestones/{}", repo.api(&self.api_url), milestone.number);
        let count = |state: State| {
            let belongs = |issue: &&crate::github::world::Issue| issue.milestone == Some(milestone.number);
            repo.issues.values().filter(belongs).filter(|issue| issue.state == state).count()
        };
        json!({
            "id": milestone.id,
            "node_id": format!("MI_{}", milestone.id),
            "number": milestone.number,
            "title": milestone.title,
            "description": null,
            "state": milestone.state.as_str(),
            "creator": self.user_json(&repo.owner),
            "open_issues": count(State::Open),
            "closed_issues": count(State::Closed),
            "url": api,
            "labels_url": format!("{api}/labels"),
            "html_url": format!("https://github.com/{}/milestone/{}", repo.full_name(), milestone.number),
            "created_at": time(milestone.created_at),
            "updated_at": time(milestone.created_at),
            "closed_at": null,
            "due_on": null,
        })
    }
}
