//! Who an issue is assigned to.

use crate::github::issues::issue::{names, require};
use crate::github::issues::issue_list::numbered_under_repo;
use crate::github::people::accounts::{ISSUES_OR_PULLS, Permission};
use crate::github::serve::call::{Answer, Call, Reply};
use crate::github::world::World;

/// The maximum number of assignees of an issue on GitHub.
const MOST_ASSIGNEES: usize = 10;

/// `GET …/assignees`: people who can be assigned.
pub(crate) fn list(world: &mut World, call: &Call) -> Reply {
    world.may_read(call, ISSUES_OR_PULLS)?;
    let repo = call.repo(world);
    let people: Vec<&String> = repo
        .collaborators
        .iter()
        .filter(|(_, permission)| **permission >= Permission::Read)
        .map(|(login, _)| login)
        .collect();
    Ok(numbered_under_repo(world, call, &people, |login| world.user_json(login)))
}

/// `POST …/issues/{issue_number}/assignees`
pub(crate) fn add(world: &mut World, call: &Call) -> Reply {
    let (repo, number) = writable(world, call)?;
    for login in names(call.field("assignees"), "login") {
        // GitHub silently drops names that it cannot assign, and those after the tenth.
        let known = world.users.contains_key(&login.to_ascii_lowercase());
        if known && world.issue(&repo, number).assignees.len() < MOST_ASSIGNEES {
            world.assign(&repo, number, &call.login(), &login);
        }
    }
    let issue = world.find_issue(call)?;
    Ok(Answer::json(201, world.issue_json(call.repo(world), issue)))
}

/// `DELETE …/issues/{issue_number}/assignees`
pub(crate) fn remove(world: &mut World, call: &Call) -> Reply {
    let (repo, number) = writable(world, call)?;
    for login in names(call.field("assignees"), "login") {
        world.unassign(&repo, number, &call.login(), &login);
    }
    let issue = world.find_issue(call)?;
    Ok(Answer::ok(world.issue_json(call.repo(world), issue)))
}

fn writable(world: &World, call: &Call) -> Result<(String, u64), Answer> {
    let number = world.find_issue(call)?.number;
    let permission = world.may_write(call, ISSUES_OR_PULLS)?;
    require(permission, Permission::Triage)?;
    Ok((call.repo(world).full_name(), number))
}
