//! Faults apply to the requests for which they were set, and to no others.

use std::time::Duration;

use canonry_testkit::github::{Age, Emulator, Fault, Late};
use jiff::SignedDuration;
use serde_json::json;

use crate::client::Client;
use crate::github::setting::{ISSUES, REPO, small, small_world};

const COMMENTS: &str = "/repos/acme/widgets/issues/1/comments";

fn count(emulator: &Emulator) -> usize {
    emulator.world().comments(REPO, 1).len()
}

async fn say(client: &Client, text: &str) -> Option<u16> {
    client.send("POST", COMMENTS, Some(json!({ "body": text }))).await.map(|reply| reply.status)
}

#[tokio::test]
async fn the_nth_request_fails() {
    let (emulator, client) = small().await;
    let fault = emulator.fault(Fault::on("POST", "/**/comments").nth(2).times(2).answer(503));
    let mut statuses = Vec::new();
    for text in ["a", "b", "c", "d"] {
        statuses.push(say(&client, text).await);
    }
    assert_eq!(statuses, [Some(201), Some(503), Some(503), Some(201)]);
    assert_eq!((count(&emulator), fault.hits()), (2, 2));
}

#[tokio::test]
async fn a_dropped_request_is_applied_or_not_as_told() {
    let (emulator, client) = small().await;
    emulator.fault(Fault::on("POST", "/**/comments").drop_connection());
    assert_eq!(say(&client, "lost").await, None);
    assert_eq!(count(&emulator), 0);
    emulator.clear_faults();
    emulator.fault(Fault::on("POST", "/**/comments").apply_and_drop());
    assert_eq!(say(&client, "written").await, None);
    assert_eq!(count(&emulator), 1);
    emulator.clear_faults();
    emulator.fault(Fault::on("POST", "/**/comments").apply_and_answer(502));
    assert_eq!(say(&client, "written too").await, Some(502));
    assert_eq!(count(&emulator), 2);
    let statuses: Vec<Option<u16>> = emulator.requests().iter().map(|request| request.status).collect();
    assert_eq!(statuses, [None, None, Some(502)], "a client without retries sends each once");
}

#[tokio::test]
async fn a_late_change_shows_up_when_its_time_comes() {
    let (emulator, client) = small().await;
    emulator.fault(Fault::on("POST", "/**/comments").drop_and_apply_late(Late::AfterRequests(2)));
    assert_eq!(say(&client, "late").await, None);
    assert_eq!(client.get(COMMENTS).await.json(), json!([]));
    assert_eq!(client.get(COMMENTS).await.json()[0]["body"], "late");

    let at = emulator.world().now + SignedDuration::from_secs(30);
    emulator.fault(Fault::on("POST", "/**/comments").answer_and_apply_late(502, Late::At(at)));
    assert_eq!(say(&client, "later").await, Some(502));
    assert_eq!(count(&emulator), 1);
    emulator.world().advance(30);
    assert_eq!(count(&emulator), 2);
}

#[tokio::test]
async fn a_stale_list_shows_the_past() {
    let (emulator, client) = small().await;
    emulator.fault(Fault::on("GET", "/**/comments").nth(2).stale(Age::Changes(1)));
    emulator.fault(Fault::on("GET", "/**/comments").nth(3).stale(Age::Seconds(20)));
    say(&client, "first").await;
    emulator.world().advance(60);
    say(&client, "second").await;
    let mut lengths = Vec::new();
    for _ in 0..4 {
        lengths.push(client.get(COMMENTS).await.json().as_array().map_or(0, Vec::len));
    }
    assert_eq!(lengths, [2, 1, 1, 2]);
}

#[tokio::test]
async fn a_held_request_waits_for_its_gate() {
    let (emulator, client) = small().await;
    let (fault, mut gate) = Fault::on("PATCH", "/repos/*/*/issues/1").hold();
    emulator.fault(fault);
    let patch = json!({ "state": "closed" });
    let request = tokio::spawn(async move { client.write("PATCH", &format!("{ISSUES}/1"), patch).await });
    gate.arrived().await;
    assert!(emulator.world().issue(REPO, 1).closed_at.is_none());
    emulator.world().edit_title(REPO, 1, "stranger", "Changed meanwhile");
    gate.release();
    let reply = request.await.expect("the request");
    assert_eq!((reply.status, &reply.json()["title"]), (200, &json!("Changed meanwhile")));
}

#[tokio::test]
async fn a_held_answer_is_applied_already() {
    let (emulator, client) = small().await;
    let (fault, mut gate) = Fault::on("POST", "/**/comments").hold_answer();
    emulator.fault(fault);
    let request = tokio::spawn(async move { say(&client, "here").await });
    gate.arrived().await;
    assert_eq!(count(&emulator), 1);
    request.abort();
}

#[tokio::test]
async fn bodies_can_end_early_and_headers_can_be_added() {
    let (emulator, client) = small().await;
    emulator.fault(Fault::on("GET", "/**").truncate());
    let reply = client.get(ISSUES).await;
    assert!(serde_json::from_str::<serde_json::Value>(&reply.text).is_err());
    emulator.fault(Fault::on("GET", "/**").with_headers(&[("x-accepted-github-permissions", "issues=write")]));
    assert_eq!(client.get(ISSUES).await.header("x-accepted-github-permissions"), "issues=write");
}

#[test]
fn a_test_may_block() {
    let emulator = Emulator::start_blocking(small_world());
    let address = emulator.url().replace("http://", "");
    let mut stream = std::net::TcpStream::connect(&address).expect("a connection");
    let request = "GET /rate_limit HTTP/1.1\r\nhost: x\r\nuser-agent: t\r\nconnection: close\r\n\r\n";
    std::io::Write::write_all(&mut stream, request.as_bytes()).expect("sent");
    let text = std::io::read_to_string(stream).expect("an answer");
    assert!(text.starts_with("HTTP/1.1 200 OK"), "{text}");
    assert!(text.contains("date: Thu, 15 Jan 2026 12:00:00 GMT"), "{text}");
}

#[tokio::test]
async fn a_hanging_request_is_applied_or_not_as_told() {
    let (emulator, client) = small().await;
    for (fault, applied) in
        [(Fault::on("POST", "/**/comments").hang(), 0), (Fault::on("POST", "/**/comments").apply_and_hang(), 1)]
    {
        let struck = emulator.fault(fault);
        let hung = tokio::time::timeout(Duration::from_secs(3), say(&client, "hung")).await;
        assert!(hung.is_err(), "{hung:?}");
        assert_eq!((count(&emulator), struck.hits()), (applied, 1));
        emulator.clear_faults();
    }
    assert_eq!(say(&client, "answered").await, Some(201));
}

#[tokio::test]
async fn a_chance_strikes_some_requests() {
    let (emulator, client) = small().await;
    let struck = emulator.fault(Fault::on("GET", "/**").sometimes(0.3, 7).answer(500));
    let mut failed = 0;
    for _ in 0..60 {
        failed += usize::from(client.get(ISSUES).await.status == 500);
    }
    assert!(failed == struck.hits() && (8..30).contains(&failed), "{failed}");
}
