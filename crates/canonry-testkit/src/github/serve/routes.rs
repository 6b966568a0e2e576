//! The table of routes, named by GitHub's own path templates, and the dispatch to handlers.

use serde_json::Value;

use crate::github::issues::{
    assignees, comments, issue as issues, issue_list, labels, milestones, reactions, search, timeline,
};
use crate::github::people::accounts::METADATA;
use crate::github::people::{accounts as people, app, collaborators, oauth};
use crate::github::pulls::{check_runs, commits, pull as pulls, review_comments, reviews};
use crate::github::repos::{releases, repositories, smart_http};
use crate::github::serve::call::{Answer, Call, Reply};
use crate::github::serve::{graphql, rate_limit, webhooks};
use crate::github::world::World;

#[derive(Debug, Clone, Copy)]
pub struct Route {
    pub method: &'static str,
    /// The path template as in GitHub's description.
    pub template: &'static str,
    handler: fn(&mut World, &Call) -> Reply,
}

impl Route {
    /// Whether git itself calls it: no JSON, no rate limit.
    pub(crate) fn is_git(&self) -> bool {
        self.template.starts_with("/{owner}/{repo}/")
    }

    /// Whether it is a page for signing in: not part of the API, and no rate limit.
    pub(crate) fn is_sign_in(&self) -> bool {
        self.template.starts_with("/login/")
    }

    /// Whether a request to it may change something: git fetches and GraphQL queries are POST requests too.
    pub(crate) fn writes(&self, body: Option<&Value>) -> bool {
        let query = body.and_then(|body| body["query"].as_str()).unwrap_or_default();
        match self.template {
            "/graphql" => query.trim_start().starts_with("mutation"),
            _ => self.method != "GET" && !self.is_git() && !self.is_sign_in(),
        }
    }

    /// Whether it is part of the REST API in GitHub's description; GraphQL and git are not.
    pub fn is_rest(&self) -> bool {
        !self.is_git() && !self.is_sign_in() && self.template != "/graphql"
    }
}

/// Every route. Routes under `/repos/{owner}/{repo}` also answer under `/repositories/{id}`.
pub fn routes() -> &'static [Route] {
    ROUTES
}

macro_rules! routes {
    ($($method:literal $template:literal => $handler:path,)*) => {
        &[$(Route { method: $method, template: $template, handler: $handler }),*]
    };
}

// The first match wins, so fixed words come before parameters.
const ROUTES: &[Route] = routes![
    "GET" "/rate_limit" => rate_limit::show,
    "GET" "/login/oauth/authorize" => oauth::authorize,
    "POST" "/login/oauth/access_token" => oauth::access_token,
    "GET" "/user" => people::show_me,
    "GET" "/users/{username}" => people::show_user,
    "GET" "/app" => app::show,
    "POST" "/app-manifests/{code}/conversions" => app::convert_manifest,
    "GET" "/app/installations" => app::list_installations,
    "GET" "/app/installations/{installation_id}" => app::show_installation,
    "POST" "/app/installations/{installation_id}/access_tokens" => app::create_token,
    "GET" "/installation/repositories" => app::list_repositories,
    "GET" "/app/hook/deliveries" => webhooks::list,
    "GET" "/app/hook/deliveries/{delivery_id}" => webhooks::show,
    "POST" "/app/hook/deliveries/{delivery_id}/attempts" => webhooks::redeliver,
    "GET" "/repos/{owner}/{repo}" => repositories::show,
    "GET" "/repos/{owner}/{repo}/installation" => app::show_installation_of_repo,
    "GET" "/repos/{owner}/{repo}/contents/{path}" => repositories::contents,
    "GET" "/repos/{owner}/{repo}/readme" => repositories::readme,
    "GET" "/repos/{owner}/{repo}/releases" => releases::list,
    "GET" "/search/issues" => search::issues,
    "GET" "/repos/{owner}/{repo}/collaborators" => collaborators::list,
    "GET" "/repos/{owner}/{repo}/collaborators/{username}/permission" => collaborators::show_permission,
    "GET" "/repos/{owner}/{repo}/assignees" => assignees::list,
    "GET" "/repos/{owner}/{repo}/milestones" => milestones::list,
    "GET" "/repos/{owner}/{repo}/labels" => labels::list_all,
    "POST" "/repos/{owner}/{repo}/labels" => labels::create,
    "GET" "/repos/{owner}/{repo}/labels/{name}" => labels::show,
    "GET" "/repos/{owner}/{repo}/issues" => issue_list::list,
    "POST" "/repos/{owner}/{repo}/issues" => issues::create,
    "GET" "/repos/{owner}/{repo}/issues/comments" => comments::list_all,
    "GET" "/repos/{owner}/{repo}/issues/comments/{comment_id}" => comments::show,
    "PATCH" "/repos/{owner}/{repo}/issues/comments/{comment_id}" => comments::edit,
    "DELETE" "/repos/{owner}/{repo}/issues/comments/{comment_id}" => comments::delete,
    "GET" "/repos/{owner}/{repo}/issues/comments/{comment_id}/reactions" => reactions::list_of_comment,
    "POST" "/repos/{owner}/{repo}/issues/comments/{comment_id}/reactions" => reactions::react_to_comment,
    "DELETE" "/repos/{owner}/{repo}/issues/comments/{comment_id}/reactions/{reaction_id}" => reactions::delete_from_comment,
    "GET" "/repos/{owner}/{repo}/issues/{issue_number}" => issues::show,
    "PATCH" "/repos/{owner}/{repo}/issues/{issue_number}" => issues::patch,
    "PUT" "/repos/{owner}/{repo}/issues/{issue_number}/lock" => issues::lock,
    "DELETE" "/repos/{owner}/{repo}/issues/{issue_number}/lock" => issues::unlock,
    "GET" "/repos/{owner}/{repo}/issues/{issue_number}/comments" => comments::list,
    "POST" "/repos/{owner}/{repo}/issues/{issue_number}/comments" => comments::create,
    "GET" "/repos/{owner}/{repo}/issues/{issue_number}/labels" => labels::list,
    "POST" "/repos/{owner}/{repo}/issues/{issue_number}/labels" => labels::add,
    "PUT" "/repos/{owner}/{repo}/issues/{issue_number}/labels" => labels::replace,
    "DELETE" "/repos/{owner}/{repo}/issues/{issue_number}/labels/{name}" => labels::remove,
    "POST" "/repos/{owner}/{repo}/issues/{issue_number}/assignees" => assignees::add,
    "DELETE" "/repos/{owner}/{repo}/issues/{issue_number}/assignees" => assignees::remove,
    "GET" "/repos/{owner}/{repo}/issues/{issue_number}/reactions" => reactions::list_of_issue,
    "POST" "/repos/{owner}/{repo}/issues/{issue_number}/reactions" => reactions::react_to_issue,
    "DELETE" "/repos/{owner}/{repo}/issues/{issue_number}/reactions/{reaction_id}" => reactions::delete_from_issue,
    "GET" "/repos/{owner}/{repo}/issues/{issue_number}/timeline" => timeline::timeline,
    "GET" "/repos/{owner}/{repo}/issues/{issue_number}/events" => timeline::events,
    "GET" "/repos/{owner}/{repo}/pulls" => pulls::list,
    "GET" "/repos/{owner}/{repo}/pulls/comments/{comment_id}" => review_comments::show,
    "PATCH" "/repos/{owner}/{repo}/pulls/comments/{comment_id}" => review_comments::edit,
    "DELETE" "/repos/{owner}/{repo}/pulls/comments/{comment_id}" => review_comments::delete,
    "GET" "/repos/{owner}/{repo}/pulls/comments/{comment_id}/reactions" => reactions::list_of_review_comment,
    "POST" "/repos/{owner}/{repo}/pulls/comments/{comment_id}/reactions" => reactions::react_to_review_comment,
    "DELETE" "/repos/{owner}/{repo}/pulls/comments/{comment_id}/reactions/{reaction_id}" => reactions::delete_from_review_comment,
    "GET" "/repos/{owner}/{repo}/pulls/{pull_number}" => pulls::show,
    "PATCH" "/repos/{owner}/{repo}/pulls/{pull_number}" => pulls::patch,
    "GET" "/repos/{owner}/{repo}/pulls/{pull_number}/files" => pulls::files,
    "GET" "/repos/{owner}/{repo}/pulls/{pull_number}/requested_reviewers" => pulls::list_requested,
    "POST" "/repos/{owner}/{repo}/pulls/{pull_number}/requested_reviewers" => pulls::request,
    "GET" "/repos/{owner}/{repo}/pulls/{pull_number}/comments" => review_comments::list,
    "POST" "/repos/{owner}/{repo}/pulls/{pull_number}/comments/{comment_id}/replies" => review_comments::reply,
    "GET" "/repos/{owner}/{repo}/pulls/{pull_number}/reviews" => reviews::list,
    "POST" "/repos/{owner}/{repo}/pulls/{pull_number}/reviews" => reviews::create,
    "GET" "/repos/{owner}/{repo}/pulls/{pull_number}/reviews/{review_id}" => reviews::show,
    "PUT" "/repos/{owner}/{repo}/pulls/{pull_number}/reviews/{review_id}" => reviews::edit,
    "DELETE" "/repos/{owner}/{repo}/pulls/{pull_number}/reviews/{review_id}" => reviews::delete,
    "GET" "/repos/{owner}/{repo}/pulls/{pull_number}/reviews/{review_id}/comments" => reviews::comments,
    "POST" "/repos/{owner}/{repo}/pulls/{pull_number}/reviews/{review_id}/events" => reviews::submit,
    "POST" "/repos/{owner}/{repo}/check-runs" => check_runs::create,
    "GET" "/repos/{owner}/{repo}/check-runs/{check_run_id}" => check_runs::show,
    "PATCH" "/repos/{owner}/{repo}/check-runs/{check_run_id}" => check_runs::update,
    "GET" "/repos/{owner}/{repo}/commits" => commits::list,
    "GET" "/repos/{owner}/{repo}/compare/{basehead}" => commits::compare,
    "GET" "/repos/{owner}/{repo}/pulls/{pull_number}/commits" => commits::list_of_pull,
    "GET" "/repos/{owner}/{repo}/commits/{ref}" => commits::show,
    "GET" "/repos/{owner}/{repo}/commits/{ref}/check-runs" => check_runs::list_of_commit,
    "POST" "/graphql" => graphql::answer,
    "GET" "/{owner}/{repo}/info/refs" => smart_http::info_refs,
    "POST" "/{owner}/{repo}/git-upload-pack" => smart_http::upload_pack,
];

/// The route of a request, or `None` if there is none.
pub(crate) fn find(method: &str, path: &str) -> Option<(&'static Route, Vec<(&'static str, String)>)> {
    ROUTES.iter().filter(|route| route.method == method).find_map(|route| Some((route, bind(route.template, path)?)))
}

/// `/repositories/{id}/…` as `/repos/{owner}/{repo}/…`.
pub(crate) fn by_name(world: &World, path: &str) -> String {
    let Some(rest) = path.strip_prefix("/repositories/") else { return path.to_owned() };
    let (id, tail) = rest.split_once('/').map_or((rest, ""), |(id, tail)| (id, tail));
    let repo = world.repos.iter().find(|repo| repo.id.to_string() == id);
    let name = repo.map_or_else(|| format!("unknown/{id}"), crate::github::repos::repositories::Repo::full_name);
    if tail.is_empty() { format!("/repos/{name}") } else { format!("/repos/{name}/{tail}") }
}

/// Finds the repository of a call and runs the handler. It does not follow redirects: an old name gets an answer with
/// the new URL.
pub(crate) fn dispatch(world: &mut World, route: &Route, call: &mut Call) -> Reply {
    if !route.template.starts_with("/repos/{owner}/{repo}") {
        return (route.handler)(world, call);
    }
    let full_name = format!("{}/{}", call.param("owner"), call.param("repo"));
    let is = |name: &String| name.eq_ignore_ascii_case(&full_name);
    call.repo = world.repos.iter().position(|repo| is(&repo.full_name()));
    if call.repo.is_none() {
        let Some(repo) = world.repos.iter().find(|repo| repo.old_names.iter().any(is)) else {
            return Err(Answer::not_found());
        };
        let tail = call.named_path.get("/repos/".len() + full_name.len()..).unwrap_or_default();
        let status = if call.method == "GET" { 301 } else { 307 };
        return Err(Answer::moved(status, &format!("{}/repositories/{}{tail}", world.api_url, repo.id)));
    }
    // An App's JWT gives access to this one route of a repository.
    if !route.template.ends_with("/installation") {
        world.may_read(call, METADATA)?;
    }
    (route.handler)(world, call)
}

fn bind(template: &'static str, path: &str) -> Option<Vec<(&'static str, String)>> {
    let mut params = Vec::new();
    let mut rest = path.strip_prefix('/')?;
    let mut parts = template.trim_start_matches('/').split('/').peekable();
    while let Some(part) = parts.next() {
        let name = part.strip_prefix('{').and_then(|part| part.strip_suffix('}'));
        if name == Some("path") {
            params.push(("path", crate::github::serve::paging::decode(rest, false)));
            return Some(params);
        }
        let (segment, tail) = rest.split_once('/').map_or((rest, None), |(segment, tail)| (segment, Some(tail)));
        match name {
            Some(name) if !segment.is_empty() => {
                params.push((name, crate::github::serve::paging::decode(segment, false)));
            }
            None if segment == part => {}
            _ => return None,
        }
        match (tail, parts.peek().is_some()) {
            (Some(tail), true) => rest = tail,
            (None, false) => return Some(params),
            // The root folder of a repository has an empty path.
            (None, true) if parts.peek() == Some(&"{path}") => rest = "",
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_words_win_over_parameters() {
        let (route, params) = find("GET", "/repos/acme/widgets/issues/comments").expect("a route");
        assert_eq!(route.template, "/repos/{owner}/{repo}/issues/comments");
        assert_eq!(params, [("owner", String::from("acme")), ("repo", String::from("widgets"))]);
    }

    #[test]
    fn a_file_path_keeps_its_slashes() {
        let (_, params) = find("GET", "/repos/acme/widgets/contents/a/b%20c.yml").expect("a route");
        assert_eq!(params.last(), Some(&("path", String::from("a/b c.yml"))));
    }

    #[test]
    fn what_nobody_serves_is_unknown() {
        assert!(find("GET", "/repos/acme/widgets/nonsense").is_none());
        assert!(find("DELETE", "/repos/acme/widgets").is_none());
    }
}
