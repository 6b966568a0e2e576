//! Rights of people and tokens.

use canonry_testkit::github::{Emulator, NewIssue, Permission, State};
use serde_json::json;

use crate::client::{Client, jwt};
use crate::github::setting::{ISSUES, REPO, small, small_world};

#[tokio::test]
async fn a_token_expires_by_the_worlds_clock() {
    let mut world = small_world();
    let end = world.now + jiff::SignedDuration::from_secs(60);
    world.token("short", "maint").expires_at = Some(end);
    let emulator = Emulator::start(world).await;
    let client = Client::new(&emulator, Some("short"));
    assert_eq!(client.get("/user").await.json()["login"], "maint");
    emulator.world().advance(60);
    let refused = client.get("/user").await;
    assert_eq!((refused.status, &refused.json()["message"]), (401, &json!("Bad credentials")));
}

#[tokio::test]
async fn an_app_signs_in_and_its_token_lives_an_hour() {
    let mut world = small_world();
    world.add_app(77, "canonry");
    let installation = world.install_app("acme", &[("issues", "write")]);
    let emulator = Emulator::start(world).await;
    let path = format!("/app/installations/{installation}/access_tokens");
    for (lives, status) in [(601, 401), (-1, 401), (600, 201)] {
        let jwt = jwt(&emulator.world(), lives);
        let reply = Client::new(&emulator, Some(&jwt)).write("POST", &path, json!({})).await;
        assert_eq!(reply.status, status, "{}", reply.text);
        if status == 201 {
            let token = reply.json();
            assert_eq!(token["expires_at"], "2026-01-15T13:00:00Z");
            let bot = Client::new(&emulator, token["token"].as_str());
            let comment = json!({ "body": "Hi" });
            let comment = bot.write("POST", &format!("{ISSUES}/1/comments"), comment).await.json();
            assert_eq!(comment["user"]["login"], "canonry[bot]");
            emulator.world().advance(3_600);
            assert_eq!(bot.get(ISSUES).await.status, 401);
        }
    }
    let forged = Client::new(&emulator, Some("a.b.c"));
    assert_eq!(forged.get("/app").await.status, 401);
}

#[tokio::test]
async fn an_app_without_the_permission_is_told_which() {
    let mut world = small_world();
    world.add_app(77, "canonry");
    let installation = world.install_app("acme", &[("issues", "read")]);
    let emulator = Emulator::start(world).await;
    let jwt = jwt(&emulator.world(), 60);
    let path = format!("/app/installations/{installation}/access_tokens");
    let token = Client::new(&emulator, Some(&jwt)).write("POST", &path, json!({})).await.json();
    let bot = Client::new(&emulator, token["token"].as_str());
    let refused = bot.write("PATCH", &format!("{ISSUES}/1"), json!({ "state": "closed" })).await;
    assert_eq!(refused.status, 403);
    assert_eq!(refused.header("x-accepted-github-permissions"), "issues=write");
}

#[tokio::test]
async fn authors_close_their_own_and_strangers_nothing() {
    let (emulator, maint) = small().await;
    let author = Client::new(&emulator, Some("stranger-token"));
    let close = json!({ "state": "closed", "labels": ["wish"] });
    assert_eq!(author.write("PATCH", &format!("{ISSUES}/1"), close).await.status, 200);
    {
        let mut world = emulator.world();
        let issue = world.issue(REPO, 1);
        assert_eq!((issue.state, issue.labels.len()), (State::Closed, 0), "labels are dropped silently");
        world.open(REPO, "maint", NewIssue::new("Theirs", ""));
    }
    let refused = author.write("PATCH", &format!("{ISSUES}/4"), json!({ "state": "closed" })).await;
    assert_eq!(refused.status, 403);
    maint.write("PATCH", &format!("{ISSUES}/2"), json!({ "state": "closed" })).await;
    let refused = author.write("PATCH", &format!("{ISSUES}/2"), json!({ "state": "open" })).await;
    assert_eq!(refused.status, 403, "somebody else closed it");
}

#[tokio::test]
async fn a_locked_issue_takes_comments_of_writers_only() {
    let (emulator, maint) = small().await;
    emulator.world().lock(REPO, 1, "maint", Some("too heated"));
    let author = Client::new(&emulator, Some("stranger-token"));
    let comment = json!({ "body": "But" });
    let refused = author.write("POST", &format!("{ISSUES}/1/comments"), comment.clone()).await;
    assert_eq!(refused.status, 403);
    assert_eq!(maint.write("POST", &format!("{ISSUES}/1/comments"), comment).await.status, 201);
}

#[tokio::test]
async fn private_repositories_are_hidden() {
    let mut world = small_world();
    world.get_mut(REPO).private = true;
    world.token("narrow", "maint").scopes(&["public_repo"]);
    let emulator = Emulator::start(world).await;
    for (token, status) in
        [(Some("maint-token"), 200), (Some("narrow"), 404), (Some("stranger-token"), 404), (None, 404)]
    {
        assert_eq!(Client::new(&emulator, token).get(ISSUES).await.status, status, "{token:?}");
    }
}

#[tokio::test]
async fn collaborators_are_listed_to_those_who_push() {
    let (emulator, client) = small().await;
    emulator.world().collaborator(REPO, "triager", Permission::Triage);
    let base = "/repos/acme/widgets/collaborators";
    let pushers = client.get(&format!("{base}?permission=push")).await.json();
    assert_eq!((pushers.as_array().map(Vec::len), &pushers[0]["login"]), (Some(1), &json!("maint")));
    let triager = client.get(&format!("{base}/triager/permission")).await.json();
    assert_eq!((&triager["permission"], &triager["role_name"]), (&json!("read"), &json!("triage")));
    let stranger = Client::new(&emulator, Some("stranger-token"));
    assert_eq!(stranger.get(base).await.status, 403);
}

#[tokio::test]
async fn a_duplicate_close_wants_the_id_and_hides_it_in_the_timeline() {
    let (emulator, client) = small().await;
    let (target, pull_free) = (emulator.world().issue(REPO, 1).id, format!("{ISSUES}/2"));
    let close = |id: u64| json!({ "state": "closed", "state_reason": "duplicate", "duplicate_issue_id": id });
    assert_eq!(client.write("PATCH", &pull_free, close(1)).await.status, 422, "a number is no id");
    let own = emulator.world().issue(REPO, 2).id;
    assert_eq!(client.write("PATCH", &pull_free, close(own)).await.status, 422);
    assert_eq!(client.write("PATCH", &pull_free, close(target)).await.status, 200);
    assert_eq!(emulator.world().issue(REPO, 2).duplicate_of, Some(target));
    let timeline = client.get(&format!("{ISSUES}/2/timeline")).await.json();
    let events: Vec<&str> =
        timeline.as_array().expect("a list").iter().filter_map(|event| event["event"].as_str()).collect();
    assert_eq!(events, ["marked_as_duplicate", "closed"]);
    assert!(!timeline[0].to_string().contains(&target.to_string()));
    assert_eq!(timeline[1]["state_reason"], "duplicate");
}
