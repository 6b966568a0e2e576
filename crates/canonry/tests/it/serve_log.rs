//! The log of a service: lines that programs can read, with ids, and without text from strangers.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStderr, Stdio};

use canonry_testkit::github::loopback_client;
use hmac::{Hmac, KeyInit as _, Mac as _};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use sha2::Sha256;

use crate::place::{Place, Ran};

const SECRET: &str = "the tide comes in and goes out";

/// A service in a place; its log is read up to the line with the URL.
struct Served {
    child: Child,
    errors: BufReader<ChildStderr>,
    log: String,
    url: String,
}

impl Served {
    fn start(place: &Place, arguments: &[&str]) -> Self {
        let mut command = place.command(&[&["serve", "--listen", "127.0.0.1:0"], arguments].concat());
        command.env("CANONRY_WEBHOOK_SECRET", SECRET).env("CANONRY_ADMIN_TOKEN", "the-operators-own-token");
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        let mut errors = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut log = String::new();
        let url = loop {
            assert!(errors.read_line(&mut log).expect("text") > 0, "it ended: {log}");
            if let Some((_, rest)) = log.split_once("listening at ") {
                break rest.split(['"', ' ', '\n']).next().unwrap_or_default().to_owned();
            }
        };
        Self { child, errors, log, url }
    }

    /// Stops it and returns its whole log.
    fn stopped(mut self) -> String {
        kill(Pid::from_raw(i32::try_from(self.child.id()).expect("small")), Signal::SIGTERM).expect("it is there");
        self.errors.read_to_string(&mut self.log).expect("text");
        Ran::of(self.child.wait_with_output().expect("it ends")).succeeded();
        self.log
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_services_log_is_json_with_ids_and_without_texts() {
    let place = Place::with_items();
    let served = Served::start(&place, &["-v"]);
    let body = json!({
        "action": "opened",
        "sender": { "login": "ann", "id": 5, "type": "User" },
        "issue": {
            "id": 99, "number": 9, "title": "A title that nobody logs", "body": "A body that nobody logs.",
            "state": "open", "user": { "login": "ann", "id": 5, "type": "User" }, "labels": [], "assignees": [],
            "comments": 0, "created_at": "2026-02-01T10:00:00Z", "updated_at": "2026-02-01T10:00:00Z",
        },
        "repository": { "id": 7, "full_name": "octo/cat" },
    });
    let body = body.to_string();
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).expect("any key");
    mac.update(body.as_bytes());
    let digits = canonry_domain::hex_digits(mac.finalize().into_bytes());
    let request = loopback_client().post(format!("{}/webhooks/github", served.url)).body(body);
    let request = request.header("x-github-event", "issues").header("x-github-delivery", "delivery-1");
    let answer = request.header("x-hub-signature-256", format!("sha256={digits}")).send().await.expect("answers");
    assert_eq!(answer.status(), 202);
    // A wrong token is refused and not logged.
    let api = format!("{}/api/repos/octo/cat/triage/threshold-state", served.url);
    let told = loopback_client().get(&api).bearer_auth("the-operators-own-token").send().await.expect("answers");
    assert_eq!(told.status(), 200);
    let told: Value = serde_json::from_str(&told.text().await.expect("text")).expect("JSON");
    assert_eq!((&told["command"], &told["thresholds"][0]["current"]), (&json!("thresholds"), &json!(85)));
    // It finishes what it has received before it ends.
    let log = served.stopped();
    for line in log.lines() {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"));
        for key in ["timestamp", "level", "message", "target"] {
            assert!(line[key].is_string(), "{key}: {line}");
        }
    }
    let shadow = "without GITHUB_TOKEN or an App everything is only recorded, as in the mode shadow";
    assert_eq!(log.matches(shadow).count(), 1, "{log}");
    let accepted = log.lines().find(|line| line.contains("a webhook is accepted")).expect("told");
    let accepted: Value = serde_json::from_str(accepted).expect("JSON");
    assert_eq!((&accepted["delivery"], &accepted["level"]), (&json!("delivery-1"), &json!("INFO")));
    for text in ["nobody logs", SECRET, "the-operators-own-token"] {
        assert!(!log.contains(text), "{text}: {log}");
    }
}

#[test]
fn a_person_can_have_plain_lines_or_none() {
    let place = Place::new();
    let log = Served::start(&place, &["--log-format", "text", "--workers", "0"]).stopped();
    assert!(log.lines().all(|line| serde_json::from_str::<Value>(line).is_err()), "{log}");
    assert!(log.contains(" INFO canonry::commands::operate::serve: listening at http://127.0.0.1:"), "{log}");
    let money = ["serve", "--monthly-cost", "5", "--input-price", "1", "--output-price", "2", "--quiet"];
    let refused = Ran::of(place.command(&money).env("CANONRY_WEBHOOK_SECRET", SECRET).output().expect("starts"));
    assert_eq!(refused.exit, Some(2));
    assert_eq!(
        refused.stderr,
        "error: --monthly-cost is for hosted models; name one with --provider, --extractor or --review-provider\n"
    );
}
