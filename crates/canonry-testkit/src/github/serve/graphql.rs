//! The part of GraphQL that REST does not offer: conversations on lines, and resolving them.

use serde_json::{Map, Value, json};

use crate::github::people::accounts::{Account, Actor, PULLS, Permission, TokenKind, grants};
use crate::github::pulls::pull::Pull;
use crate::github::pulls::review_comments::ReviewComment;
use crate::github::pulls::review_threads::ReviewThread;
use crate::github::repos::repositories::Repo;
use crate::github::serve::call::{Answer, Call, Reply};
use crate::github::serve::graphql_document::{Operation, Selection, parse};
use crate::github::world::{Issue, World};

/// The maximum number of entries per page of a list.
const LARGEST_PAGE: u64 = 100;
/// The field of an object that represents a paginated list.
const ALL: &str = "(all)";

/// An error in place of a value.
enum Refusal {
    /// The document does not fit the schema: there is no data at all.
    Document { code: &'static str, message: String },
    /// A field is `null`, with the reason.
    Field { kind: &'static str, below: Option<String>, message: String },
}

fn misread(code: &'static str, message: String) -> Refusal {
    Refusal::Document { code, message }
}

fn refusal(kind: &'static str, message: String) -> Refusal {
    Refusal::Field { kind, below: None, message }
}

/// `POST /graphql`: 200 with `data`, `errors` or both.
pub(crate) fn answer(world: &mut World, call: &Call) -> Reply {
    if !matches!(call.actor, Actor::Token(_)) {
        return Err(Answer::message(401, "This endpoint requires you to be authenticated."));
    }
    let query = call.field("query").and_then(Value::as_str).unwrap_or_default();
    let operation = match parse(query, call.field("variables").unwrap_or(&Value::Null)) {
        Ok(operation) => operation,
        Err(message) => return Ok(Answer::ok(json!({ "errors": [{ "message": message }] }))),
    };
    let (mut data, mut errors) = (Map::new(), Vec::new());
    let locations = json!([{ "line": 1, "column": 1 }]);
    for field in &operation.fields {
        let value = match root(world, call, &operation, field) {
            Ok(value) => value,
            Err(Refusal::Document { code, message }) => {
                let error = json!({ "path": [field.key], "extensions": { "code": code }, "locations": locations, "message": message });
                return Ok(Answer::ok(json!({ "errors": [error] })));
            }
            Err(Refusal::Field { kind, below, message }) => {
                let path: Vec<&String> = [&field.key].into_iter().chain(&below).collect();
                errors.push(json!({ "type": kind, "path": path, "locations": locations, "message": message }));
                below.map_or(Value::Null, |below| json!({ below: null }))
            }
        };
        data.insert(field.key.clone(), value);
    }
    let mut body = json!({ "data": data });
    if !errors.is_empty() {
        body["errors"] = Value::Array(errors);
    }
    Ok(Answer::ok(body))
}

fn root(world: &mut World, call: &Call, operation: &Operation, field: &Selection) -> Result<Value, Refusal> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    match (operation.mutation, field.name.as_str()) {
        (false, "viewer") => project(&user(world, call.actor.login().unwrap_or_default()), "User", &field.fields),
        (false, "repository") => {
            let (owner, name) = (text(field.arguments.get("owner")), text(field.arguments.get("name")));
            let full_name = format!("{owner}/{name}");
            let missing =
                || refusal("NOT_FOUND", format!("Could not resolve to a Repository with the name '{full_name}'."));
            let found = world.repos.iter().position(|repo| repo.full_name().eq_ignore_ascii_case(&full_name));
            let position = found.filter(|position| sees(world, call, *position)).ok_or_else(missing)?;
            repository(world, call, &world.repos[position], &field.fields)
        }
        (false, "node") => {
            let id = text(field.arguments.get("id"));
            let (position, number, thread) = find_thread(world, call, &id)?;
            let repo = &world.repos[position];
            project(&thread_of(world, call, repo, number, thread)?, "PullRequestReviewThread", &field.fields)
        }
        (true, name @ ("resolveReviewThread" | "unresolveReviewThread")) => {
            let input = field.arguments.get("input").unwrap_or(&Value::Null);
            let (position, number, thread) = find_thread(world, call, &text(input.get("threadId")))?;
            let mutation = if name == "resolveReviewThread" { "ResolveReviewThread" } else { "UnresolveReviewThread" };
            may_resolve(world, call, position, number)
                .map_err(|said| refusal("FORBIDDEN", said.replace("{}", mutation)))?;
            let repo = world.repos[position].full_name();
            let by = call.login();
            let pull = world.pull(&repo, number);
            let comment = pull.threads.iter().find(|known| known.id == thread).map_or(0, |known| known.comment);
            if name == "resolveReviewThread" {
                world.resolve_thread(&repo, comment, &by);
            } else {
                world.unresolve_thread(&repo, comment, &by);
            }
            let thread = thread_of(world, call, &world.repos[position], number, thread)?;
            let payload = json!({ "thread": thread, "clientMutationId": input.get("clientMutationId") });
            project(&payload, &format!("{mutation}Payload"), &field.fields)
        }
        (mutation, name) => Err(undefined(name, if mutation { "Mutation" } else { "Query" })),
    }
}

fn undefined(name: &str, kind: &str) -> Refusal {
    misread("undefinedField", format!("Field '{name}' doesn't exist on type '{kind}'"))
}

/// A repository, with a pull request selected by number.
fn repository(world: &World, call: &Call, repo: &Repo, fields: &[Selection]) -> Result<Value, Refusal> {
    let mut value = json!({ "id": format!("R_{}", repo.id), "databaseId": repo.id, "name": repo.name, "nameWithOwner": repo.full_name() });
    let mut plain = Map::new();
    for field in fields {
        if field.name != "pullRequest" {
            plain.insert(field.key.clone(), one(&value, "Repository", field)?);
            continue;
        }
        let number = field.arguments.get("number").and_then(Value::as_u64).unwrap_or_default();
        let missing = || Refusal::Field {
            kind: "NOT_FOUND",
            below: Some(field.key.clone()),
            message: format!("Could not resolve to a PullRequest with the number of {number}."),
        };
        let issue = repo.issues.get(&number).ok_or_else(missing)?;
        let pull = issue.pull.as_ref().ok_or_else(missing)?;
        value["pullRequest"] = pull_value(world, call, repo, issue, pull);
        plain.insert(field.key.clone(), project(&value["pullRequest"], "PullRequest", &field.fields)?);
    }
    Ok(Value::Object(plain))
}

fn pull_value(world: &World, call: &Call, repo: &Repo, issue: &Issue, pull: &Pull) -> Value {
    let seen = |thread: &&ReviewThread| visible(pull, call, thread.comment);
    let threads: Vec<Value> =
        pull.threads.iter().filter(seen).map(|thread| thread_value(world, call, repo, issue, pull, thread)).collect();
    json!({
        "id": format!("PR_{}", issue.id),
        "databaseId": issue.id,
        "number": issue.number,
        "title": issue.title,
        "isDraft": pull.draft,
        "headRefOid": pull.head_sha,
        "baseRefOid": pull.base_sha,
        "author": user(world, &issue.author),
        "reviewThreads": { ALL: threads },
    })
}

fn thread_of(world: &World, call: &Call, repo: &Repo, number: u64, thread: u64) -> Result<Value, Refusal> {
    let found = repo.issues.get(&number).and_then(|issue| {
        let pull = issue.pull.as_ref()?;
        let thread = pull.threads.iter().find(|candidate| candidate.id == thread)?;
        Some(thread_value(world, call, repo, issue, pull, thread))
    });
    found.ok_or_else(|| refusal("NOT_FOUND", String::from("Could not resolve to a node")))
}

fn thread_value(world: &World, call: &Call, repo: &Repo, issue: &Issue, pull: &Pull, thread: &ReviewThread) -> Value {
    let comments = pull.comments_of(thread);
    let first = comments.first();
    let position = world.position(&repo.full_name());
    let may = may_resolve(world, call, position, issue.number).is_ok();
    let resolved = thread.resolved_by.is_some();
    let shown: Vec<Value> = comments
        .iter()
        .filter(|comment| pull.shows(comment.review, call.actor.login()))
        .map(|comment| comment_value(world, repo, issue.number, comment))
        .collect();
    json!({
        "__typename": "PullRequestReviewThread",
        "id": thread.node_id(),
        "isResolved": resolved,
        "isOutdated": first.is_none_or(|comment| comment.line.is_none()),
        "isCollapsed": resolved,
        "resolvedBy": thread.resolved_by.as_ref().map(|login| user(world, login)),
        "path": first.map(|comment| &comment.path),
        "line": first.and_then(|comment| comment.line),
        "startLine": first.and_then(|comment| comment.start_line),
        "originalLine": first.map(|comment| comment.original_line),
        "originalStartLine": first.and_then(|comment| comment.original_start_line),
        "diffSide": first.map(|comment| comment.side.as_str()),
        "subjectType": "LINE",
        "viewerCanResolve": may && !resolved,
        "viewerCanUnresolve": may && resolved,
        "viewerCanReply": true,
        "comments": { ALL: shown },
    })
}

fn comment_value(world: &World, repo: &Repo, number: u64, comment: &ReviewComment) -> Value {
    let named = |id: u64| json!({ "id": format!("PRRC_{id}"), "databaseId": id, "fullDatabaseId": id.to_string() });
    json!({
        "__typename": "PullRequestReviewComment",
        "id": format!("PRRC_{}", comment.id),
        "databaseId": comment.id,
        // Ids exceed 32 bits, so this one is a text.
        "fullDatabaseId": comment.id.to_string(),
        "author": user(world, &comment.author),
        "authorAssociation": world.association(repo, &comment.author),
        "body": comment.body,
        "path": comment.path,
        "line": comment.line,
        "originalLine": comment.original_line,
        "outdated": comment.line.is_none(),
        "createdAt": crate::github::issues::issue::time(comment.created_at),
        "updatedAt": crate::github::issues::issue::time(comment.updated_at),
        "url": format!("https://github.com/{}/pull/{number}#discussion_r{}", repo.full_name(), comment.id),
        "replyTo": comment.in_reply_to.map(named),
        "commit": { "oid": comment.commit_id },
        "originalCommit": { "oid": comment.original_commit_id },
        "pullRequestReview": { "id": format!("PRR_{}", comment.review), "databaseId": comment.review },
    })
}

/// A user; GraphQL writes the login of an App's bot without `[bot]`.
fn user(world: &World, login: &str) -> Value {
    let Some(user) = world.users.get(&login.to_ascii_lowercase()) else { return Value::Null };
    let kind = match user.account {
        Account::User => "User",
        Account::Bot => "Bot",
        Account::Organization => "Organization",
    };
    let login = user.login.strip_suffix("[bot]").unwrap_or(&user.login);
    json!({ "__typename": kind, "id": format!("U_{}", user.id), "databaseId": user.id, "login": login })
}

fn sees(world: &World, call: &Call, position: usize) -> bool {
    world.may_read(&Call { repo: Some(position), ..call.clone() }, PULLS).is_ok()
}

fn visible(pull: &Pull, call: &Call, comment: u64) -> bool {
    let found = pull.review_comments.iter().find(|candidate| candidate.id == comment);
    found.is_some_and(|comment| pull.shows(comment.review, call.actor.login()))
}

/// The repository, the pull request and the number of a conversation by its node id.
fn find_thread(world: &World, call: &Call, node: &str) -> Result<(usize, u64, u64), Refusal> {
    let missing = || refusal("NOT_FOUND", format!("Could not resolve to a node with the global id of '{node}'"));
    let id: u64 = node.strip_prefix("PRRT_").and_then(|id| id.parse().ok()).ok_or_else(missing)?;
    let has = |pull: &Pull| pull.threads.iter().any(|thread| thread.id == id && visible(pull, call, thread.comment));
    let found = world.repos.iter().enumerate().find_map(|(position, repo)| {
        let issue = repo.issues.values().find(|issue| issue.pull.as_ref().is_some_and(has))?;
        Some((position, issue.number))
    });
    let (position, number) = found.filter(|(position, _)| sees(world, call, *position)).ok_or_else(missing)?;
    Ok((position, number, id))
}

/// Users with write access and the pull request's author may resolve; an App also needs write permission for
/// contents. `{}` is replaced by the mutation.
fn may_resolve(world: &World, call: &Call, position: usize, number: u64) -> Result<(), String> {
    let repo = &world.repos[position];
    let Actor::Token(token) = &call.actor else { return Err(String::from("Resource not accessible")) };
    let both = |permissions| grants(permissions, PULLS, true) && grants(permissions, &["contents"], true);
    match &token.kind {
        TokenKind::Installation { installation, permissions } => {
            let allowed = world.installation_covers(*installation, repo) && both(permissions);
            return if allowed { Ok(()) } else { Err(String::from("Resource not accessible by integration")) };
        }
        TokenKind::FineGrained { permissions } if !both(permissions) => {
            return Err(String::from("Resource not accessible by personal access token"));
        }
        TokenKind::FineGrained { .. } | TokenKind::Classic { .. } => {}
    }
    let author = repo.issues.get(&number).is_some_and(|issue| issue.author.eq_ignore_ascii_case(&token.login));
    if author || world.permission_of(repo, &token.login) >= Permission::Write {
        return Ok(());
    }
    Err(format!("{} does not have the correct permissions to execute `{{}}`", token.login))
}

/// The requested fields of an object; an unknown field is an error, as in GitHub's schema.
fn project(value: &Value, kind: &str, fields: &[Selection]) -> Result<Value, Refusal> {
    let Some(object) = value.as_object() else { return Ok(value.clone()) };
    let actual = object.get("__typename").and_then(Value::as_str).unwrap_or(kind);
    if fields.is_empty() {
        let why = format!("Field must have selections (returns {actual} but has no selections.)");
        return Err(misread("selectionMismatch", why));
    }
    let mut chosen = Map::new();
    for field in fields {
        match &field.on {
            Some(on) if on == actual => {
                let part = project(value, kind, &field.fields)?;
                chosen.extend(part.as_object().cloned().unwrap_or_default());
            }
            Some(_) => {}
            None => {
                chosen.insert(field.key.clone(), one(value, actual, field)?);
            }
        }
    }
    Ok(Value::Object(chosen))
}

fn one(value: &Value, kind: &str, field: &Selection) -> Result<Value, Refusal> {
    if field.name == "__typename" {
        return Ok(json!(kind));
    }
    let found = value.get(&field.name).ok_or_else(|| undefined(&field.name, kind))?;
    match found.get(ALL).and_then(Value::as_array) {
        Some(entries) => project(&page(entries, field)?, &format!("{}Connection", field.name), &field.fields),
        None => match found {
            Value::Array(entries) => entries.iter().map(|entry| project(entry, kind, &field.fields)).collect(),
            Value::Object(_) => project(found, &field.name, &field.fields),
            scalar => Ok(scalar.clone()),
        },
    }
}

/// One page of a list: `first` is required, `after` is a cursor of this list.
fn page(entries: &[Value], field: &Selection) -> Result<Value, Refusal> {
    let first = field.arguments.get("first").and_then(Value::as_u64).ok_or_else(|| {
        let why =
            format!("You must provide a `first` or `last` value to properly paginate the `{}` connection.", field.name);
        refusal("MISSING_PAGINATION_BOUNDARIES", why)
    })?;
    if first > LARGEST_PAGE {
        let why = format!(
            "Requesting {first} records on the `{}` connection exceeds the `first` limit of {LARGEST_PAGE} records.",
            field.name
        );
        return Err(refusal("EXCESSIVE_PAGINATION", why));
    }
    let start = match field.arguments.get("after").and_then(Value::as_str) {
        None => 0,
        Some(cursor) => {
            let place = cursor.strip_prefix("Y3Vyc29y").and_then(|digits| digits.parse::<usize>().ok());
            place.ok_or_else(|| {
                refusal("INVALID_CURSOR_ARGUMENTS", format!("`{cursor}` does not appear to be a valid cursor."))
            })?
        }
    };
    let start = start.min(entries.len());
    let end = start.saturating_add(usize::try_from(first).unwrap_or(usize::MAX)).min(entries.len());
    let cursor = |place: usize| (start < end).then(|| format!("Y3Vyc29y{place}"));
    Ok(json!({
        "totalCount": entries.len(),
        "nodes": entries[start..end],
        "pageInfo": {
            "hasNextPage": end < entries.len(),
            "hasPreviousPage": start > 0,
            "startCursor": cursor(start + 1),
            "endCursor": cursor(end),
        },
    }))
}
