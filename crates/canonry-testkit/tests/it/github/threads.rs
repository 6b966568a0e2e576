//! Conversations on lines: replies, reactions, and resolving them through GraphQL.

use canonry_testkit::github::{Emulator, World};
use serde_json::{Value, json};

use crate::client::{Client, jwt};
use crate::github::pulls::{PULL, world_with_pull};
use crate::github::setting::REPO;

const THREADS: &str =
    "query($size: Int!, $after: String) { repository(owner: \"acme\", name: \"widgets\") { pullRequest(number: 4) {
    reviewThreads(first: $size, after: $after) { totalCount pageInfo { hasNextPage endCursor }
      nodes { id isResolved isOutdated path line resolvedBy { login } viewerCanResolve
        comments(first: 10) { nodes { databaseId author { __typename login } } } } } } } }";
const RESOLVE: &str =
    "mutation($thread: ID!) { resolveReviewThread(input: { threadId: $thread }) { thread { id isResolved } } }";

/// A world with three comments of the App on lines, and their ids.
fn world_with_threads() -> (World, Vec<u64>) {
    let mut world = world_with_pull();
    world.add_app(77, "canonry");
    let ids = (1..=3).map(|line| world.comment_on_line(REPO, PULL, "canonry[bot]", "src/a.rs", line, "Hm.")).collect();
    (world, ids)
}

async fn ask(client: &Client, query: &str, variables: Value) -> Value {
    let reply = client.write("POST", "/graphql", json!({ "query": query, "variables": variables })).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    reply.json()
}

async fn bot(emulator: &Emulator) -> Client {
    let (jwt, installation) = {
        let world = emulator.world();
        (jwt(&world, 60), world.installations[0].id)
    };
    let path = format!("/app/installations/{installation}/access_tokens");
    let token = Client::new(emulator, Some(&jwt)).write("POST", &path, json!({})).await.json();
    Client::new(emulator, token["token"].as_str())
}

#[tokio::test]
async fn threads_are_listed_in_pages_with_their_comments() {
    let (mut world, ids) = world_with_threads();
    let reply = world.reply_in_thread(REPO, ids[0], "author", "Why?");
    world.resolve_thread(REPO, ids[2], "author");
    let emulator = Emulator::start(world).await;
    let maint = Client::new(&emulator, Some("maint-token"));
    let first = ask(&maint, THREADS, json!({ "size": 2 })).await;
    let threads = &first["data"]["repository"]["pullRequest"]["reviewThreads"];
    assert_eq!((&threads["totalCount"], &threads["pageInfo"]["hasNextPage"]), (&json!(3), &json!(true)));
    let comments = json!([
        { "databaseId": ids[0], "author": { "__typename": "Bot", "login": "canonry" } },
        { "databaseId": reply, "author": { "__typename": "User", "login": "author" } },
    ]);
    assert_eq!(threads["nodes"][0]["comments"]["nodes"], comments);
    let cursor = threads["pageInfo"]["endCursor"].clone();
    let rest = ask(&maint, THREADS, json!({ "size": 2, "after": cursor })).await;
    let rest = &rest["data"]["repository"]["pullRequest"]["reviewThreads"];
    assert_eq!((rest["nodes"].as_array().map(Vec::len), &rest["pageInfo"]["hasNextPage"]), (Some(1), &json!(false)));
    let last = &rest["nodes"][0];
    assert_eq!((&last["isResolved"], &last["resolvedBy"]["login"]), (&json!(true), &json!("author")));
    assert!(emulator.writes().is_empty(), "a question is no change");
}

#[tokio::test]
async fn resolving_needs_both_permissions_of_an_app() {
    for (granted, allowed) in [
        (vec![("pull_requests", "write"), ("contents", "read")], false),
        (vec![("pull_requests", "read"), ("contents", "write")], false),
        (vec![("pull_requests", "write"), ("contents", "write")], true),
    ] {
        let (mut world, ids) = world_with_threads();
        world.install_app("acme", &granted);
        world.send_webhooks_to("http://127.0.0.1:1/nobody", "s3cret");
        let node = world.pull(REPO, PULL).threads[0].node_id();
        let emulator = Emulator::start(world).await;
        let bot = bot(&emulator).await;
        let answer = ask(&bot, RESOLVE, json!({ "thread": node })).await;
        let resolved_by = emulator.world().pull(REPO, PULL).threads[0].resolved_by.clone();
        if allowed {
            assert_eq!(
                answer,
                json!({ "data": { "resolveReviewThread": { "thread": { "id": node, "isResolved": true } } } })
            );
            assert_eq!(resolved_by.as_deref(), Some("canonry[bot]"));
            let told = emulator.pending_deliveries();
            assert_eq!(
                (told[0].event.as_str(), told[0].action.as_deref()),
                ("pull_request_review_thread", Some("resolved"))
            );
            assert_eq!(told[0].payload["thread"]["comments"][0]["id"], json!(ids[0]));
            assert_eq!(emulator.writes().last().and_then(|write| write.route), Some("/graphql"));
        } else {
            assert_eq!(answer["data"]["resolveReviewThread"], Value::Null);
            let error = &answer["errors"][0];
            assert_eq!((&error["type"], &error["path"]), (&json!("FORBIDDEN"), &json!(["resolveReviewThread"])));
            assert_eq!((&error["message"], resolved_by), (&json!("Resource not accessible by integration"), None));
        }
    }
}

#[tokio::test]
async fn people_resolve_as_writers_or_as_the_author() {
    let (world, ids) = world_with_threads();
    let nodes: Vec<String> = world.pull(REPO, PULL).threads.iter().map(|thread| thread.node_id()).collect();
    let emulator = Emulator::start(world).await;
    for (token, error) in [("stranger-token", Some("FORBIDDEN")), ("author-token", None), ("maint-token", None)] {
        let client = Client::new(&emulator, Some(token));
        let answer = ask(&client, RESOLVE, json!({ "thread": nodes[0] })).await;
        assert_eq!(answer["errors"][0]["type"].as_str(), error, "{token}: {answer}");
        emulator.world().unresolve_thread(REPO, ids[0], "maint");
    }
}

#[tokio::test]
async fn what_is_not_there_or_not_asked_well_is_an_error_with_status_200() {
    let (mut world, _) = world_with_threads();
    world.repo("acme/secret").private = true;
    let emulator = Emulator::start(world).await;
    let maint = Client::new(&emulator, Some("maint-token"));
    let missing = ask(&maint, RESOLVE, json!({ "thread": "PRRT_1" })).await;
    assert_eq!(missing["errors"][0]["type"], "NOT_FOUND");
    for name in ["secret", "none"] {
        let query = format!("{{ repository(owner: \"acme\", name: \"{name}\") {{ id }} }}");
        let answer = ask(&maint, &query, json!({})).await;
        assert_eq!((&answer["data"]["repository"], &answer["errors"][0]["type"]), (&Value::Null, &json!("NOT_FOUND")));
    }
    let query = "{ repository(owner: \"acme\", name: \"widgets\") { pullRequest(number: 1) { id } } }";
    let answer = ask(&maint, query, json!({})).await;
    assert_eq!(
        (&answer["data"]["repository"], &answer["errors"][0]["path"]),
        (&json!({ "pullRequest": null }), &json!(["repository", "pullRequest"]))
    );
    let wrong = ask(&maint, "{ viewer { log_in } }", json!({})).await;
    assert_eq!(wrong["errors"][0]["message"], "Field 'log_in' doesn't exist on type 'User'");
    assert!(wrong.get("data").is_none());
    for (arguments, kind) in [("", "MISSING_PAGINATION_BOUNDARIES"), ("(first: 101)", "EXCESSIVE_PAGINATION")] {
        let query = format!(
            "{{ repository(owner: \"acme\", name: \"widgets\") {{ pullRequest(number: 4) {{ reviewThreads{arguments} {{ totalCount }} }} }} }}"
        );
        assert_eq!(ask(&maint, &query, json!({})).await["errors"][0]["type"], kind);
    }
    let nobody =
        Client::new(&emulator, None).write("POST", "/graphql", json!({ "query": "{ viewer { login } }" })).await;
    assert_eq!(nobody.status, 401);
}

#[tokio::test]
async fn replies_and_reactions_belong_to_the_comment_that_began_the_thread() {
    let (mut world, ids) = world_with_threads();
    world.send_webhooks_to("http://127.0.0.1:1/nobody", "s3cret");
    let emulator = Emulator::start(world).await;
    let author = Client::new(&emulator, Some("author-token"));
    let replies = |id: u64| format!("/repos/acme/widgets/pulls/{PULL}/comments/{id}/replies");
    let reply = author.write("POST", &replies(ids[1]), json!({ "body": "No." })).await.json();
    assert_eq!((&reply["in_reply_to_id"], &reply["line"]), (&json!(ids[1]), &json!(2)));
    let id = reply["id"].as_u64().expect("an id");
    let nested = author.write("POST", &replies(id), json!({ "body": "No." })).await;
    assert_eq!(nested.status, 422, "an answer has no answers");
    let told: Vec<String> = emulator.pending_deliveries().into_iter().map(|one| one.event).collect();
    assert_eq!(told, ["pull_request_review", "pull_request_review_comment"]);
    let reactions = format!("/repos/acme/widgets/pulls/comments/{}/reactions", ids[1]);
    let down = json!({ "content": "-1" });
    let statuses = (
        author.write("POST", &reactions, down.clone()).await.status,
        author.write("POST", &reactions, down).await.status,
    );
    assert_eq!(statuses, (201, 200), "a second one is the first");
    emulator.world().unreact_to_review_comment(REPO, ids[1], "author", "-1");
    assert_eq!(author.get(&reactions).await.json(), json!([]));
    let waiting = json!({ "body": "Later" });
    author.write("POST", &format!("/repos/acme/widgets/pulls/{PULL}/reviews"), waiting).await;
    let refused = author.write("POST", &replies(ids[0]), json!({ "body": "Now" })).await;
    assert_eq!(refused.json()["errors"], json!(["User can only have one pending review per pull request"]));
}
