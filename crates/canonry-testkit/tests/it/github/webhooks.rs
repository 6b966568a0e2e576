//! Webhooks: signed, delivered on demand, listed, redelivered.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use canonry_testkit::github::{CloseReason, Emulator, NewIssue, Pull};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha2::Sha256;

use crate::client::{Client, jwt};
use crate::github::setting::{REPO, small_world};

type Log = Arc<Mutex<Vec<(String, String, Value)>>>;

/// Refuses the first delivery and checks the signature of each.
async fn receive(State(log): State<Log>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let text = |name: &str| headers[name].to_str().expect("a text").to_owned();
    let mut mac = Hmac::<Sha256>::new_from_slice(b"s3cret").expect("a key");
    mac.update(&body);
    let digits: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(text("x-hub-signature-256"), format!("sha256={digits}"));
    let payload: Value = serde_json::from_slice(&body).expect("JSON");
    let mut log = log.lock().expect("the log");
    log.push((text("x-github-event"), text("x-github-delivery"), payload));
    if log.len() == 1 { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::ACCEPTED }
}

async fn receiver() -> (String, Log) {
    let log = Log::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/hook", listener.local_addr().expect("an address"));
    let router = Router::new().route("/hook", post(receive)).with_state(Arc::clone(&log));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, log)
}

#[tokio::test]
async fn failed_deliveries_are_listed_and_delivered_again() {
    let (url, log) = receiver().await;
    let mut world = small_world();
    world.add_app(77, "canonry");
    world.send_webhooks_to(&url, "s3cret");
    world.install_app("acme", &[("issues", "write")]);
    let emulator = Emulator::start(world).await;
    {
        let mut world = emulator.world();
        world.label(REPO, 1, "maint", "bug");
        world.comment(REPO, 1, "stranger", "Any news?");
    }
    let delivered = emulator.deliver_pending().await;
    let statuses: Vec<Option<u16>> =
        delivered.iter().map(|delivery| delivery.attempt.as_ref().map(|attempt| attempt.status)).collect();
    assert_eq!(statuses, [Some(500), Some(202), Some(202)]);

    let jwt = jwt(&emulator.world(), 300);
    let app = Client::new(&emulator, Some(&jwt));
    let failed = app.get("/app/hook/deliveries?status=failure").await.json();
    assert_eq!(failed.as_array().map(Vec::len), Some(1));
    assert_eq!((failed[0]["event"].as_str(), failed[0]["status_code"].as_u64()), (Some("installation"), Some(500)));
    let path = format!("/app/hook/deliveries/{}/attempts", failed[0]["id"]);
    assert_eq!(app.send("POST", &path, None).await.map(|reply| reply.status), Some(202));
    assert_eq!(emulator.deliver_pending().await.len(), 1);

    let page = app.get("/app/hook/deliveries?per_page=3").await;
    assert_eq!(page.json()[0]["redelivery"], true);
    assert_eq!(app.get(&page.next().expect("more")).await.json().as_array().map(Vec::len), Some(1));
    let log = log.lock().expect("the log");
    assert_eq!(log[0].1, log[3].1, "the delivery id stays");
    let events: Vec<(&str, Option<&str>)> =
        log.iter().map(|(event, _, payload)| (event.as_str(), payload["action"].as_str())).collect();
    let installed = ("installation", Some("created"));
    assert_eq!(events, [installed, ("issues", Some("labeled")), ("issue_comment", Some("created")), installed]);
    assert_eq!(log[1].2["label"]["name"], "bug");
    assert_eq!(log[2].2["comment"]["user"]["login"], "stranger");
    assert_eq!(log[2].2["installation"]["id"], log[0].2["installation"]["id"]);
}

#[tokio::test]
async fn each_change_has_its_event() {
    let mut world = small_world();
    world.send_webhooks_to("http://127.0.0.1:1/", "s3cret");
    world.ping();
    world.open(REPO, "stranger", NewIssue::new("Four", ""));
    world.edit_body(REPO, 4, "stranger", "Now with text");
    world.close(REPO, 4, "maint", CloseReason::Completed);
    world.reopen(REPO, 4, "stranger");
    world.label(REPO, 4, "maint", "bug");
    world.unlabel(REPO, 4, "maint", "bug");
    world.assign(REPO, 4, "maint", "maint");
    let comment = world.comment(REPO, 4, "maint", "One");
    world.edit_comment(REPO, comment, "maint", "Two");
    world.delete_comment(REPO, comment, "maint");
    world.transfer(REPO, 4, "maint", "acme/other");
    world.delete(REPO, 3, "maint");
    world.open(REPO, "stranger", NewIssue::new("Five", "").pull(Pull::default()));
    world.rename_repo(REPO, "acme/gadgets", "maint");
    let events: Vec<String> = world
        .deliveries
        .iter()
        .map(|delivery| format!("{}.{}", delivery.event, delivery.action.as_deref().unwrap_or("-")))
        .collect();
    assert_eq!(
        events,
        [
            "ping.-",
            "issues.opened",
            "issues.edited",
            "issues.closed",
            "issues.reopened",
            "issues.labeled",
            "issues.unlabeled",
            "issues.assigned",
            "issue_comment.created",
            "issue_comment.edited",
            "issue_comment.deleted",
            "issues.transferred",
            "issues.deleted",
            "pull_request.opened",
            "repository.renamed",
        ]
    );
}
