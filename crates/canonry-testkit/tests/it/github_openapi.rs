//! Checks every route of the emulator, with successes and refusals, against GitHub's own description.

use std::collections::BTreeSet;

use canonry_testkit::github::{CloseReason, Emulator, NewIssue, NewPull, Permission, Pull, Recorded, World, routes};
use canonry_testkit::openapi::OpenApi;
use serde_json::{Value, json};

use crate::client::{Client, jwt};

/// Operations whose answers the description gets wrong, with the error.
const MISDESCRIBED: &[(&str, &str, &str)] =
    &[("GET", "/app/installations", "asks that an account be a user and an enterprise at once")];

const REPO: &str = "acme/widgets";
const PULL: u64 = 8;

fn world() -> World {
    let mut world = World::new();
    world.repo(REPO).file("README.md", "# Widgets\n").file("docs/use.md", "Use it.\n");
    world.repo("acme/other");
    world.repo("acme/secret").private = true;
    world.collaborator(REPO, "maint", Permission::Admin);
    world.collaborator(REPO, "helper", Permission::Triage);
    world.token("maint-token", "maint");
    world.token("stranger-token", "stranger");
    world.token("scopeless", "maint").scopes(&[]);
    world.token("reader", "maint").fine_grained(&[("issues", "read")]);
    world.add_app(77, "canonry");
    let granted = [("issues", "write"), ("pull_requests", "write"), ("contents", "read"), ("checks", "write")];
    world.install_app("acme", &granted);
    world.send_webhooks_to("http://127.0.0.1:1/nobody", "s3cret");
    world.milestone(REPO, "1.0");
    world.open(REPO, "stranger", NewIssue::new("Crash on start", "It crashes.").label("bug"));
    world.open(REPO, "stranger", NewIssue::new("Crashes when started", "Same as #1."));
    world.open(
        REPO,
        "helper",
        NewIssue::new("Fix the crash", "Closes #1").pull(Pull::default().file("a.rs", "@@ -1 +1 @@\n-a\n+b\n")),
    );
    world.open(REPO, "stranger", NewIssue::new("Deleted", ""));
    world.open(REPO, "stranger", NewIssue::new("Moved", ""));
    world.open(REPO, "stranger", NewIssue::new("Discussed", ""));
    world.delete(REPO, 4, "maint");
    world.transfer(REPO, 5, "maint", "acme/other");
    world.convert_to_discussion(REPO, 6, "maint");
    world.open(REPO, "stranger", NewIssue::new("Merged", "").pull(Pull::default()));
    world.merge(REPO, 7, "maint");
    world.pin(REPO, 1, "maint", true);
    world.comment(REPO, 2, "maint", "Duplicate of #1");
    world.commit(REPO, "topic", &[("src/a.rs", Some("one\ntwo\nthree\n")), ("docs/use.md", None)]);
    let pull = NewPull { fork: Some(String::from("helper")), ..NewPull::new("From a fork") };
    assert_eq!(world.open_pull(REPO, "helper", "topic", pull), PULL);
    world.release(REPO, "main", "v1.0");
    world.request_review(REPO, PULL, "helper", "maint");
    world.close(REPO, 2, "maint", CloseReason::NotPlanned);
    world.reopen(REPO, 2, "maint");
    world
}

#[tokio::test]
async fn every_answer_fits_the_description() {
    let api = OpenApi::load();
    let emulator = Emulator::start(world()).await;
    emulator.keep_answers();
    drive_issues(&emulator).await;
    drive_reading(&emulator).await;
    drive_refusals(&emulator).await;
    drive_app(&emulator).await;
    drive_reviews(&emulator).await;
    drive_checks(&emulator).await;

    let mut problems = Vec::new();
    let mut succeeded = BTreeSet::new();
    for request in emulator.requests() {
        let Recorded { method, path, .. } = &request;
        let status = request.status.expect("an answer");
        let misdescribed = |(other, route, _): &(&str, &str, &str)| method == other && request.route == Some(route);
        if !MISDESCRIBED.iter().any(misdescribed) {
            problems.extend(api.check_answer(method, path, status, request.answer.as_ref()));
        }
        if status < 300 {
            problems.extend(api.check_request(method, path, &request.query, request.body.as_ref()));
            succeeded.insert((method.clone(), request.route));
        }
    }
    for route in routes().iter().filter(|route| route.is_rest()) {
        if !api.describes(route.method, route.template) {
            problems.push(format!("{} {} is not GitHub's", route.method, route.template));
        }
        if !succeeded.contains(&(route.method.to_owned(), Some(route.template))) {
            problems.push(format!("{} {} was not driven", route.method, route.template));
        }
    }
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

async fn expect(client: &Client, status: u16, method: &str, path: &str, body: Option<Value>) -> Value {
    let reply = client.send(method, path, body).await.expect("an answer");
    assert_eq!(reply.status, status, "{method} {path}: {}", reply.text);
    if reply.text.is_empty() { Value::Null } else { reply.json() }
}

async fn drive_issues(emulator: &Emulator) {
    let maint = Client::new(emulator, Some("maint-token"));
    let base = "/repos/acme/widgets";
    let made = json!({ "title": "New", "body": "See #1", "labels": ["bug"], "assignees": ["maint"] });
    let made = expect(&maint, 201, "POST", &format!("{base}/issues"), Some(made)).await;
    let target = expect(&maint, 200, "GET", &format!("{base}/issues/1"), None).await;
    let issue = format!("{base}/issues/{}", made["number"]);
    let patch = json!({ "title": "Newer", "body": "Text", "milestone": 1, "labels": ["bug", "p1"], "assignees": [] });
    expect(&maint, 200, "PATCH", &issue, Some(patch)).await;
    let close = json!({ "state": "closed", "state_reason": "duplicate", "duplicate_issue_id": target["id"] });
    let closed = expect(&maint, 200, "PATCH", &issue, Some(close)).await;
    assert_eq!(closed["state_reason"], "duplicate");
    expect(&maint, 200, "PATCH", &issue, Some(json!({ "state": "open" }))).await;
    expect(&maint, 200, "PATCH", &issue, Some(json!({ "milestone": null }))).await;
    expect(&maint, 204, "PUT", &format!("{issue}/lock"), Some(json!({ "lock_reason": "resolved" }))).await;
    expect(&maint, 200, "GET", &issue, None).await;
    expect(&maint, 204, "DELETE", &format!("{issue}/lock"), None).await;
    expect(&maint, 200, "GET", &format!("{issue}/labels"), None).await;
    expect(&maint, 200, "POST", &format!("{issue}/labels"), Some(json!({ "labels": ["p2"] }))).await;
    expect(&maint, 200, "PUT", &format!("{issue}/labels"), Some(json!({ "labels": ["p3"] }))).await;
    expect(&maint, 200, "DELETE", &format!("{issue}/labels/p3"), None).await;
    expect(&maint, 201, "POST", &format!("{issue}/assignees"), Some(json!({ "assignees": ["helper"] }))).await;
    expect(&maint, 200, "DELETE", &format!("{issue}/assignees"), Some(json!({ "assignees": ["helper"] }))).await;
    let label = json!({ "name": "area/ui", "color": "ff0000", "description": "The screen" });
    expect(&maint, 201, "POST", &format!("{base}/labels"), Some(label)).await;
    let thumbs = json!({ "content": "-1" });
    let reaction = expect(&maint, 201, "POST", &format!("{issue}/reactions"), Some(thumbs.clone())).await;
    expect(&maint, 200, "POST", &format!("{issue}/reactions"), Some(thumbs.clone())).await;
    expect(&maint, 200, "GET", &format!("{issue}/reactions?content=-1"), None).await;
    expect(&maint, 204, "DELETE", &format!("{issue}/reactions/{}", reaction["id"]), None).await;
    let comment = expect(&maint, 201, "POST", &format!("{issue}/comments"), Some(json!({ "body": "Hello" }))).await;
    let comment = format!("{base}/issues/comments/{}", comment["id"]);
    expect(&maint, 200, "GET", &comment, None).await;
    expect(&maint, 200, "PATCH", &comment, Some(json!({ "body": "Hello again" }))).await;
    let reaction = expect(&maint, 201, "POST", &format!("{comment}/reactions"), Some(thumbs)).await;
    expect(&maint, 200, "GET", &format!("{comment}/reactions"), None).await;
    expect(&maint, 204, "DELETE", &format!("{comment}/reactions/{}", reaction["id"]), None).await;
    expect(&maint, 200, "GET", &format!("{issue}/comments?since=2020-01-01T00:00:00Z"), None).await;
    expect(&maint, 200, "GET", &format!("{base}/issues/comments?sort=updated&direction=desc"), None).await;
    expect(&maint, 204, "DELETE", &comment, None).await;
    expect(
        &maint,
        200,
        "PATCH",
        &format!("{base}/pulls/3"),
        Some(json!({ "title": "Fix", "body": "b", "state": "closed" })),
    )
    .await;
    expect(&maint, 200, "PATCH", &format!("{base}/pulls/3"), Some(json!({ "state": "open" }))).await;
    let merged = maint.write("PATCH", &format!("{base}/issues/7"), json!({ "state": "open" })).await;
    assert_eq!(merged.status, 422, "{}", merged.text);
    for number in [1, 2, 3, 7, 8, 9] {
        expect(&maint, 200, "GET", &format!("{base}/issues/{number}/timeline?per_page=100"), None).await;
        expect(&maint, 200, "GET", &format!("{base}/issues/{number}/events"), None).await;
    }
}

async fn drive_reading(emulator: &Emulator) {
    let maint = Client::new(emulator, Some("maint-token"));
    let base = "/repos/acme/widgets";
    let list = "issues?state=all&sort=updated&direction=asc&since=2020-01-01T00:00:00Z&per_page=2";
    let first = maint.get(&format!("{base}/{list}")).await;
    assert_eq!(first.status, 200);
    let next = first.next().expect("more pages");
    assert!(next.contains("/repositories/"), "{next}");
    assert_eq!(maint.get(&next).await.status, 200);
    for path in [
        "",
        "/labels",
        "/labels/bug",
        "/milestones?state=all",
        "/assignees",
        "/collaborators?permission=push",
        "/collaborators/helper/permission",
        "/collaborators/stranger/permission",
        "/contents/README.md?ref=main",
        "/contents/docs",
        "/pulls?state=all",
        "/pulls/3",
        "/pulls/7",
        "/pulls/3/files",
        "/pulls/8",
        "/pulls/8/files",
        "/pulls/8/requested_reviewers",
        "/commits/main",
        "/commits?per_page=1",
        "/compare/main...main",
        "/readme",
        "/releases?per_page=100",
        "/pulls/8/commits",
        "/issues/7",
        "/issues?labels=bug&creator=stranger",
    ] {
        expect(&maint, 200, "GET", &format!("{base}{path}"), None).await;
    }
    let found = "/search/issues?q=repo%3Aacme%2Fwidgets+is%3Aissue";
    for path in ["/user", "/users/stranger", "/rate_limit", found] {
        expect(&maint, 200, "GET", path, None).await;
    }
}

async fn drive_refusals(emulator: &Emulator) {
    let base = "/repos/acme/widgets";
    let maint = Client::new(emulator, Some("maint-token"));
    for (status, path) in
        [(410, "/issues/4"), (301, "/issues/5"), (404, "/issues/6"), (404, "/issues/99"), (404, "/contents/none")]
    {
        expect(&maint, status, "GET", &format!("{base}{path}"), None).await;
    }
    let too_long = "x".repeat(65_537);
    for (method, path, body) in [
        ("POST", "/issues", json!({ "title": "" })),
        ("PATCH", "/issues/1", json!({ "state": "shut" })),
        ("PATCH", "/issues/1", json!({ "state": "closed", "state_reason": "duplicate", "duplicate_issue_id": 5 })),
        ("PATCH", "/issues/1", json!({ "milestone": 9 })),
        ("PATCH", "/pulls/7", json!({ "state": "open" })),
        ("POST", "/issues/1/comments", json!({})),
        ("POST", "/issues/1/comments", json!({ "body": too_long })),
        ("POST", "/issues/1/reactions", json!({ "content": "shrug" })),
        ("POST", "/labels", json!({ "name": "BUG" })),
        ("PUT", "/issues/1/lock", json!({ "lock_reason": "boring" })),
    ] {
        expect(&maint, 422, method, &format!("{base}{path}"), Some(body)).await;
    }
    expect(&maint, 404, "DELETE", &format!("{base}/issues/1/labels/none"), None).await;
    expect(&maint, 422, "GET", &format!("{base}/issues?after=nonsense"), None).await;

    let stranger = Client::new(emulator, Some("stranger-token"));
    expect(&stranger, 404, "GET", "/repos/acme/secret", None).await;
    expect(&stranger, 403, "GET", &format!("{base}/collaborators"), None).await;
    expect(&stranger, 403, "POST", &format!("{base}/issues/1/labels"), Some(json!({ "labels": ["x"] }))).await;
    expect(&stranger, 403, "PATCH", &format!("{base}/issues/3"), Some(json!({ "state": "closed" }))).await;
    let scopeless = Client::new(emulator, Some("scopeless"));
    expect(&scopeless, 404, "POST", &format!("{base}/issues/1/comments"), Some(json!({ "body": "x" }))).await;
    let reader = Client::new(emulator, Some("reader"));
    expect(&reader, 403, "POST", &format!("{base}/issues/1/comments"), Some(json!({ "body": "x" }))).await;
    let wrong = Client::new(emulator, Some("wrong"));
    expect(&wrong, 401, "GET", &format!("{base}/issues"), None).await;
    let nobody = Client::new(emulator, None);
    expect(&nobody, 401, "POST", &format!("{base}/issues/1/comments"), Some(json!({ "body": "x" }))).await;
    expect(&nobody, 401, "GET", "/user", None).await;
}

async fn drive_app(emulator: &Emulator) {
    emulator.deliver_pending().await;
    let (jwt, delivery) = {
        let world = emulator.world();
        (jwt(&world, 540), world.deliveries[0].id)
    };
    let app = Client::new(emulator, Some(&jwt));
    expect(&app, 200, "GET", "/app", None).await;
    let nobody = Client::new(emulator, None);
    expect(&nobody, 201, "POST", "/app-manifests/manifest-1/conversions", None).await;
    expect(&nobody, 404, "POST", "/app-manifests/another/conversions", None).await;
    expect(&app, 200, "GET", "/app/installations", None).await;
    let installation = expect(&app, 200, "GET", "/repos/acme/widgets/installation", None).await;
    let installation = format!("/app/installations/{}", installation["id"]);
    expect(&app, 200, "GET", &installation, None).await;
    let narrow = json!({ "permissions": { "issues": "read" } });
    expect(&app, 201, "POST", &format!("{installation}/access_tokens"), Some(narrow)).await;
    let token = expect(&app, 201, "POST", &format!("{installation}/access_tokens"), None).await;
    expect(&app, 200, "GET", "/app/hook/deliveries?per_page=2&status=failure", None).await;
    expect(&app, 200, "GET", &format!("/app/hook/deliveries/{delivery}"), None).await;
    expect(&app, 202, "POST", &format!("/app/hook/deliveries/{delivery}/attempts"), None).await;
    let bot = Client::new(emulator, token["token"].as_str());
    expect(&bot, 200, "GET", "/installation/repositories", None).await;
    let comment = json!({ "body": "Closing as duplicate of #1." });
    let comment = expect(&bot, 201, "POST", "/repos/acme/widgets/issues/2/comments", Some(comment)).await;
    assert_eq!(comment["user"]["login"], "canonry[bot]");
    assert_eq!(comment["user"]["type"], "Bot");
    expect(&bot, 403, "GET", "/user", None).await;
}

async fn drive_reviews(emulator: &Emulator) {
    let maint = Client::new(emulator, Some("maint-token"));
    let pull = format!("/repos/acme/widgets/pulls/{PULL}");
    let reviews = format!("{pull}/reviews");
    let line = json!({ "path": "src/a.rs", "line": 2, "start_line": 1, "side": "RIGHT", "body": "Here." });
    let pending = expect(&maint, 200, "POST", &reviews, Some(json!({ "comments": [line] }))).await;
    assert_eq!((&pending["state"], &pending["submitted_at"]), (&json!("PENDING"), &Value::Null));
    expect(&maint, 422, "POST", &reviews, Some(json!({ "body": "Twice", "event": "COMMENT" }))).await;
    let review = format!("{reviews}/{}", pending["id"]);
    expect(&maint, 200, "GET", &review, None).await;
    expect(&maint, 200, "PUT", &review, Some(json!({ "body": "In all" }))).await;
    let submitted = expect(&maint, 200, "POST", &format!("{review}/events"), Some(json!({ "event": "COMMENT" }))).await;
    assert_eq!((&submitted["state"], &submitted["body"]), (&json!("COMMENTED"), &json!("In all")));
    expect(&maint, 422, "POST", &format!("{review}/events"), Some(json!({ "event": "COMMENT" }))).await;
    expect(&maint, 422, "DELETE", &review, None).await;
    let second = expect(&maint, 200, "POST", &reviews, Some(json!({ "body": "Gone soon" }))).await;
    expect(&maint, 200, "DELETE", &format!("{reviews}/{}", second["id"]), None).await;
    expect(&maint, 404, "GET", &format!("{reviews}/{}", second["id"]), None).await;
    let far = json!({ "path": "src/a.rs", "line": 9, "body": "x" });
    expect(&maint, 422, "POST", &reviews, Some(json!({ "comments": [far], "event": "COMMENT" }))).await;
    expect(&maint, 200, "GET", &reviews, None).await;
    expect(&maint, 200, "GET", &format!("{pull}/comments?sort=updated&direction=desc"), None).await;
    let comments = expect(&maint, 200, "GET", &format!("{review}/comments"), None).await;
    let id = &comments[0]["id"];
    let answer = json!({ "body": "Why?" });
    let reply = expect(&maint, 201, "POST", &format!("{pull}/comments/{id}/replies"), Some(answer)).await;
    assert_eq!(&reply["in_reply_to_id"], id);
    let comment = format!("/repos/acme/widgets/pulls/comments/{id}");
    expect(&maint, 200, "GET", &comment, None).await;
    expect(&maint, 200, "PATCH", &comment, Some(json!({ "body": "There." }))).await;
    expect(&maint, 422, "PATCH", &comment, Some(json!({ "body": " " }))).await;
    let thumbs = json!({ "content": "-1" });
    let reaction = expect(&maint, 201, "POST", &format!("{comment}/reactions"), Some(thumbs.clone())).await;
    expect(&maint, 200, "POST", &format!("{comment}/reactions"), Some(thumbs)).await;
    expect(&maint, 200, "GET", &format!("{comment}/reactions"), None).await;
    expect(&maint, 204, "DELETE", &format!("{comment}/reactions/{}", reaction["id"]), None).await;
    expect(&maint, 204, "DELETE", &comment, None).await;
    expect(&maint, 404, "GET", &comment, None).await;
    let asked = json!({ "reviewers": ["maint"] });
    expect(&maint, 201, "POST", &format!("{pull}/requested_reviewers"), Some(asked)).await;
    let own = json!({ "reviewers": ["helper"] });
    expect(&maint, 422, "POST", &format!("{pull}/requested_reviewers"), Some(own)).await;
}

async fn drive_checks(emulator: &Emulator) {
    let base = "/repos/acme/widgets";
    let maint = Client::new(emulator, Some("maint-token"));
    let (jwt, installation, head) = {
        let world = emulator.world();
        (jwt(&world, 540), world.installations[0].id, world.pull(REPO, PULL).head_sha.clone())
    };
    let app = Client::new(emulator, Some(&jwt));
    let token = expect(&app, 201, "POST", &format!("/app/installations/{installation}/access_tokens"), None).await;
    let bot = Client::new(emulator, token["token"].as_str());
    let begun = json!({ "name": "Canonry", "head_sha": head, "status": "in_progress", "external_id": "a" });
    expect(&maint, 403, "POST", &format!("{base}/check-runs"), Some(begun.clone())).await;
    let run = expect(&bot, 201, "POST", &format!("{base}/check-runs"), Some(begun)).await;
    let run = format!("{base}/check-runs/{}", run["id"]);
    let output = json!({ "title": "Nothing found", "summary": "All read." });
    let done = json!({ "status": "completed", "conclusion": "success", "output": output });
    let done = expect(&bot, 200, "PATCH", &run, Some(done)).await;
    assert_eq!((&done["status"], &done["output"]["title"]), (&json!("completed"), &json!("Nothing found")));
    expect(&maint, 200, "GET", &run, None).await;
    let named = "check_name=Canonry&filter=all&app_id=77&status=completed";
    expect(&maint, 200, "GET", &format!("{base}/commits/{head}/check-runs?{named}"), None).await;
    let long = json!({ "output": { "title": "t", "summary": "x".repeat(65_536) } });
    expect(&bot, 422, "PATCH", &run, Some(long)).await;
    expect(&maint, 200, "GET", &format!("{base}/commits/{head}"), None).await;
    expect(&maint, 422, "GET", &format!("{base}/commits/{}", "d".repeat(40)), None).await;
    let compared = expect(&maint, 200, "GET", &format!("{base}/compare/main...{head}"), None).await;
    assert_eq!((&compared["status"], compared["files"].as_array().map(Vec::is_empty)), (&json!("ahead"), Some(false)));
    let listed = expect(&maint, 200, "GET", &format!("{base}/commits?sha={head}"), None).await;
    assert_eq!((&listed[0]["sha"], &listed[1]["sha"]), (&json!(head), &compared["merge_base_commit"]["sha"]));
    expect(&maint, 404, "GET", &format!("{base}/compare/main...nothing"), None).await;
    expect(&maint, 422, "GET", "/search/issues?q=is%3Amystery", None).await;
}
