//! Labels of a repository and of an issue.

use serde_json::{Value, json};

use crate::github::issues::issue::{names, replace_labels, require};
use crate::github::issues::issue_list::numbered_under_repo;
use crate::github::people::accounts::{ISSUES, ISSUES_OR_PULLS, Permission};
use crate::github::repos::repositories::Repo;
use crate::github::serve::call::{Answer, Call, Reply, required_text};
use crate::github::world::{Label, World};

/// The maximum length of a label name on GitHub, in characters.
const LONGEST_NAME: usize = 50;

/// `GET …/labels`
pub(crate) fn list_all(world: &mut World, call: &Call) -> Reply {
    world.may_read(call, ISSUES_OR_PULLS)?;
    let repo = call.repo(world);
    let labels: Vec<&Label> = repo.labels.values().collect();
    Ok(numbered_under_repo(world, call, &labels, |label| world.label_json(repo, &label.name)))
}

/// `GET …/labels/{name}`
pub(crate) fn show(world: &mut World, call: &Call) -> Reply {
    world.may_read(call, ISSUES_OR_PULLS)?;
    let repo = call.repo(world);
    let label = repo.labels.get(&call.param("name").to_lowercase()).ok_or_else(Answer::not_found)?;
    Ok(Answer::ok(world.label_json(repo, &label.name)))
}

/// `POST …/labels`
pub(crate) fn create(world: &mut World, call: &Call) -> Reply {
    let permission = world.may_write(call, ISSUES_OR_PULLS)?;
    require(permission, Permission::Write)?;
    let name = required_text(call, "Label", "name")?;
    if name.chars().count() > LONGEST_NAME {
        return Err(Answer::invalid_because("Label", "name", "name is too long (maximum is 50 characters)"));
    }
    if call.repo(world).labels.contains_key(&name.to_lowercase()) {
        return Err(Answer::invalid("Label", "name", "already_exists"));
    }
    let color = call.field("color").and_then(Value::as_str).unwrap_or("ededed").to_owned();
    if color.len() != 6 || !color.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(Answer::invalid("Label", "color", "invalid"));
    }
    let description = call.field("description").and_then(Value::as_str).map(str::to_owned);
    let label = Label { id: world.fresh_id(), name: name.clone(), color, description };
    call.repo_mut(world).labels.insert(name.to_lowercase(), label);
    Ok(Answer::json(201, world.label_json(call.repo(world), &name)))
}

/// `GET …/issues/{issue_number}/labels`
pub(crate) fn list(world: &mut World, call: &Call) -> Reply {
    world.may_read(call, ISSUES_OR_PULLS)?;
    let issue = world.find_issue(call)?;
    let repo = call.repo(world);
    Ok(numbered_under_repo(world, call, &issue.labels, |name| world.label_json(repo, name)))
}

/// `POST …/issues/{issue_number}/labels`
pub(crate) fn add(world: &mut World, call: &Call) -> Reply {
    let (repo, number) = writable(world, call)?;
    for name in read_names(call)? {
        world.label(&repo, number, &call.login(), &name);
    }
    all_of(world, call)
}

/// `PUT …/issues/{issue_number}/labels`
pub(crate) fn replace(world: &mut World, call: &Call) -> Reply {
    let (repo, number) = writable(world, call)?;
    let labels = read_names(call)?;
    replace_labels(world, &repo, number, &call.login(), &labels);
    all_of(world, call)
}

/// `DELETE …/issues/{issue_number}/labels/{name}`
pub(crate) fn remove(world: &mut World, call: &Call) -> Reply {
    let (repo, number) = writable(world, call)?;
    let name = call.param("name");
    if !world.issue(&repo, number).labels.iter().any(|label| label.eq_ignore_ascii_case(name)) {
        return Err(Answer::message(404, "Label does not exist"));
    }
    world.unlabel(&repo, number, &call.login(), name);
    all_of(world, call)
}

impl World {
    pub(crate) fn label_json(&self, repo: &Repo, name: &str) -> Value {
        let label = repo.labels.get(&name.to_lowercase());
        let id = label.map_or(0, |label| label.id);
        json!({
            "id": id,
            "node_id": format!("LA_{id}"),
            "url": format!("{}/labels/{name}", repo.api(&self.api_url)),
            "name": name,
            "color": label.map_or("ededed", |label| label.color.as_str()),
            "default": false,
            "description": label.and_then(|label| label.description.as_deref()),
        })
    }
}

fn writable(world: &World, call: &Call) -> Result<(String, u64), Answer> {
    let issue = world.find_issue(call)?;
    let areas = if issue.pull.is_some() { ISSUES_OR_PULLS } else { ISSUES };
    let permission = world.may_write(call, areas)?;
    require(permission, Permission::Triage)?;
    Ok((call.repo(world).full_name(), issue.number))
}

/// The body is `{"labels": […]}` or the bare array.
fn read_names(call: &Call) -> Result<Vec<String>, Answer> {
    let list = call.field("labels").or(call.body.as_ref()).filter(|value| value.is_array());
    let Some(list) = list else { return Err(Answer::invalid("Label", "labels", "missing_field")) };
    let names = names(Some(list), "name");
    if names.iter().any(|name| name.is_empty() || name.chars().count() > LONGEST_NAME) {
        return Err(Answer::invalid("Label", "name", "invalid"));
    }
    Ok(names)
}

fn all_of(world: &World, call: &Call) -> Reply {
    let issue = world.find_issue(call)?;
    let repo = call.repo(world);
    Ok(Answer::ok(issue.labels.iter().map(|name| world.label_json(repo, name)).collect()))
}
