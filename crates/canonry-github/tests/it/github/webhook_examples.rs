//! Tests GitHub's own example payloads: each is parsed or kept as ignored, none is an error.

use std::collections::BTreeMap;

use canonry_github::webhook::{EventBody, parse_event};
use serde::Deserialize;
use serde_json::Value;

/// npm `@octokit/webhooks-examples`, `api.github.com/index.json`.
const FILE: &str = "CANONRY_TEST_WEBHOOK_EXAMPLES";

#[derive(Deserialize)]
struct Examples {
    name: String,
    examples: Vec<Value>,
}

#[test]
fn all_examples_are_read_or_ignored() {
    let path = std::env::var(FILE).unwrap_or_else(|_| panic!("{FILE} is not set: run through `cargo xtask test`"));
    let file = std::fs::read(&path).expect("the examples can be read");
    let all: Vec<Examples> = serde_json::from_slice(&file).expect("the examples are JSON");
    let mut typed: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut total = 0;
    for Examples { name, examples } in all {
        for example in examples {
            total += 1;
            let body = serde_json::to_vec(&example).expect("JSON");
            let event = parse_event(&name, &body).expect("an example is JSON");
            assert_eq!(event.action.as_deref(), example["action"].as_str(), "{name}");
            assert_eq!(
                event.sender.map(|sender| sender.login).as_deref(),
                example["sender"]["login"].as_str(),
                "{name}"
            );
            assert_eq!(event.repository.map(|repo| repo.id), example["repository"]["id"].as_i64(), "{name}");
            assert_eq!(event.installation_id, example["installation"]["id"].as_i64(), "{name}");
            assert_eq!(event.raw, example, "{name}");
            if event.body != EventBody::Ignored {
                typed.entry(name.clone()).or_default().0 += 1;
            } else if typed_name(&name) {
                typed.entry(name.clone()).or_default().1 += 1;
            }
        }
    }
    let table: Vec<String> =
        typed.iter().map(|(name, (typed, ignored))| format!("{name}: {typed} typed, {ignored} ignored")).collect();
    insta::assert_snapshot!(format!("{total} examples\n{}", table.join("\n")), @"
    329 examples
    check_run: 9 typed, 0 ignored
    check_suite: 9 typed, 0 ignored
    installation: 7 typed, 0 ignored
    installation_repositories: 3 typed, 0 ignored
    issue_comment: 9 typed, 0 ignored
    issues: 29 typed, 0 ignored
    label: 6 typed, 0 ignored
    ping: 4 typed, 0 ignored
    pull_request: 29 typed, 0 ignored
    pull_request_review: 4 typed, 0 ignored
    pull_request_review_comment: 5 typed, 0 ignored
    pull_request_review_thread: 3 typed, 0 ignored
    push: 7 typed, 0 ignored
    repository: 13 typed, 0 ignored
    ");
}

fn typed_name(name: &str) -> bool {
    matches!(name, "issues" | "issue_comment" | "push" | "installation" | "repository" | "label" | "ping")
        || name.starts_with("pull_request")
        || name.starts_with("check_")
        || name.starts_with("installation_")
}
