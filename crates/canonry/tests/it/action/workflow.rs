//! The workflow file that docs/action.md tells people to copy.

use std::collections::BTreeSet;

use canonry_github::APP_EVENTS;
use serde_json::{Value, json};

use crate::packages::{ACTION, text, yaml};

/// The first YAML block of the document.
fn documented() -> String {
    let document = text("docs/action.md");
    let block = document.split("```yaml\n").nth(1).and_then(|rest| rest.split("\n```").next());
    block.expect("a YAML block").to_owned()
}

#[test]
fn the_documented_workflow_is_short_and_asks_for_little() {
    let source = documented();
    assert!(source.lines().count() <= 20, "{}", source.lines().count());
    let workflow: Value = serde_saphyr::from_str(&source).expect("YAML");
    assert_eq!(workflow["permissions"], json!({"contents": "write", "issues": "write", "pull-requests": "write"}));
    let job = &workflow["jobs"]["canonry"];
    assert_eq!(
        job["steps"],
        json!([{"uses": format!("canonry/canonry@v{}", env!("CARGO_PKG_VERSION"))}]),
        "nothing else runs"
    );
    assert!(job["permissions"].is_null() && job["env"].is_null() && job["timeout-minutes"].is_number());
    assert_eq!(yaml(ACTION)["inputs"]["command"]["default"], "run", "which needs no input");

    // Each event is one that the service handles too.
    let events: BTreeSet<&str> = workflow["on"].as_object().expect("events").keys().map(String::as_str).collect();
    let expected = ["issue_comment", "issues", "pull_request_review_comment", "pull_request_target", "schedule"];
    assert_eq!(events, expected.into());
    for event in events.into_iter().filter(|event| *event != "schedule") {
        assert!(APP_EVENTS.contains(&event.trim_end_matches("_target")), "{event}");
        assert!(workflow["on"][event]["types"].is_array(), "{event} would also run for types that lead to nothing");
    }
    // This event's token is read-only in pull requests from forks: such a run would fail.
    let condition = job["if"].as_str().expect("a condition");
    assert!(condition.starts_with("github.event_name != 'pull_request_review_comment' || "), "{condition}");
}
