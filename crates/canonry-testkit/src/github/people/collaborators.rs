//! The rights in a repository, as the API shows them.

use serde_json::json;

use crate::github::issues::issue_list::numbered_under_repo;
use crate::github::people::accounts::{Account, Actor, METADATA, Permission, TokenKind};
use crate::github::serve::call::{Answer, Call, Reply};
use crate::github::world::World;

/// `GET …/collaborators`: people need push access to see the list, an App's installation needs nothing more.
pub(crate) fn list(world: &mut World, call: &Call) -> Reply {
    world.may_read(call, METADATA)?;
    may_see(world, call)?;
    let least = match call.query("permission") {
        None => Permission::Read,
        Some(word) => {
            Permission::from_filter(word).ok_or_else(|| Answer::invalid("Repository", "permission", "invalid"))?
        }
    };
    let repo = call.repo(world);
    let mut people: Vec<(String, Permission)> =
        repo.collaborators.iter().map(|(login, permission)| (login.clone(), *permission)).collect();
    let owner = world.users.get(&repo.owner.to_ascii_lowercase());
    if owner.is_some_and(|owner| owner.account != Account::Organization) {
        people.push((repo.owner.clone(), Permission::Admin));
    }
    people.retain(|(_, permission)| *permission >= least);
    Ok(numbered_under_repo(world, call, &people, |(login, permission)| {
        let mut user = world.user_json(login);
        user["permissions"] = permission.json();
        user["role_name"] = json!(permission.role_name());
        user
    }))
}

/// `GET …/collaborators/{username}/permission`
pub(crate) fn show_permission(world: &mut World, call: &Call) -> Reply {
    world.may_read(call, METADATA)?;
    may_see(world, call)?;
    let login = call.param("username");
    let mut user = world.user_json(login);
    if user.is_null() {
        return Err(Answer::message(404, &format!("{login} is not a user")));
    }
    let permission = world.permission_of(call.repo(world), login);
    user["permissions"] = permission.json();
    user["role_name"] = json!(permission.role_name());
    Ok(Answer::ok(json!({
        "permission": permission.legacy_name(),
        "role_name": permission.role_name(),
        "user": user,
    })))
}

fn may_see(world: &World, call: &Call) -> Result<(), Answer> {
    let Actor::Token(token) = &call.actor else { return Err(Answer::message(401, "Requires authentication")) };
    let repo = call.repo(world);
    let allowed = match token.kind {
        TokenKind::Installation { installation, .. } => world.installation_covers(installation, repo),
        _ => world.permission_of(repo, &token.login) >= Permission::Write,
    };
    if allowed { Ok(()) } else { Err(Answer::message(403, "Must have push access to view repository collaborators.")) }
}
