//! Every request is recorded, and a request without a route fails the test.

use crate::github::setting::{ISSUES, small};

#[tokio::test]
#[should_panic(expected = "the emulator has no route for: GET /repos/acme/widgets/zen")]
async fn an_unknown_route_fails_the_test() {
    let (emulator, client) = small().await;
    assert_eq!(client.get("/repos/acme/widgets/zen").await.status, 404);
    drop(emulator);
}

#[tokio::test]
async fn every_request_is_recorded() {
    let (emulator, client) = small().await;
    client.get(&format!("{ISSUES}?state=all&since=2026-01-01T00%3A00%3A00Z")).await;
    client.write("POST", &format!("{ISSUES}/1/comments"), serde_json::json!({ "body": "Hi" })).await;
    let requests = emulator.requests();
    assert_eq!(requests[0].query("since"), Some("2026-01-01T00:00:00Z"));
    let writes = emulator.writes();
    assert_eq!(writes.len(), 1);
    assert_eq!(writes[0].user.as_deref(), Some("maint"));
    assert_eq!(writes[0].status, Some(201));
    assert_eq!(writes[0].field("body"), Some(&serde_json::json!("Hi")));
    assert_eq!(writes[0].route, Some("/repos/{owner}/{repo}/issues/{issue_number}/comments"));
    emulator.forget_requests();
    assert!(emulator.requests().is_empty());
}
