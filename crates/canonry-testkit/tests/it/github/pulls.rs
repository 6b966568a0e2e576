//! Pull requests with git behind them: opened, pushed to, force-pushed, retargeted.

use canonry_testkit::github::{Emulator, NewPull, World};
use serde_json::{Value, json};

use crate::client::Client;
use crate::github::setting::{REPO, small_world};

pub(crate) const PULL: u64 = 4;
const NEW: &str = "one\ntwo\nthree\nfour\n";

/// A pull request of `author` that adds `src/a.rs` with four lines and changes the last of 40 lines of `long.txt`.
pub(crate) fn world_with_pull() -> World {
    let mut world = small_world();
    world.token("author-token", "author");
    world.get_mut(REPO).file("long.txt", &numbered(""));
    world.commit(REPO, "topic", &[("src/a.rs", Some(NEW)), ("long.txt", Some(&numbered("!")))]);
    let number = world.open_pull(REPO, "author", "topic", NewPull::new("Add a"));
    assert_eq!(number, PULL);
    world
}

/// Forty lines; `end` is appended to the last.
fn numbered(end: &str) -> String {
    let lines: String = (1..40).map(|line| format!("line {line}\n")).collect();
    format!("{lines}line 40{end}\n")
}

fn sent(emulator: &Emulator) -> Vec<(String, String, Value)> {
    let deliveries = emulator.pending_deliveries().into_iter();
    deliveries.map(|one| (one.event, one.action.unwrap_or_default(), one.payload)).collect()
}

#[tokio::test]
async fn commits_have_the_same_shas_in_every_run() {
    let shas = |world: &World| (world.pull(REPO, PULL).head_sha.clone(), world.pull(REPO, PULL).base_sha.clone());
    let (first, second) = (world_with_pull(), world_with_pull());
    assert_eq!(shas(&first), shas(&second));
    assert_eq!(shas(&first).0, "9561fd7e91bfc05dd27a4b28b92719c41ce22cff");
}

#[tokio::test]
async fn files_come_from_git_with_real_patches_except_binary_and_huge_ones() {
    let mut world = world_with_pull();
    let huge = "x\n".repeat(200 * 1024);
    world.push_pull(
        REPO,
        PULL,
        "author",
        &[
            ("long.txt", None),
            ("moved.txt", Some(&numbered("!"))),
            ("logo.png", Some("\u{0}\u{1}")),
            ("huge.txt", Some(&huge)),
        ],
    );
    let emulator = Emulator::start(world).await;
    let client = Client::new(&emulator, Some("maint-token"));
    let files = client.get(&format!("/repos/acme/widgets/pulls/{PULL}/files")).await.json();
    let rows: Vec<Value> = files
        .as_array()
        .expect("a list")
        .iter()
        .map(|file| {
            json!([file["filename"], file["status"], file["additions"], file["previous_filename"], file["patch"]])
        })
        .collect();
    assert_eq!(
        json!(rows),
        json!([
            ["huge.txt", "added", 204_800, null, null],
            ["logo.png", "added", 0, null, null],
            [
                "moved.txt",
                "renamed",
                1,
                "long.txt",
                "@@ -37,4 +37,4 @@ line 36\n line 37\n line 38\n line 39\n-line 40\n+line 40!"
            ],
            ["src/a.rs", "added", 4, null, "@@ -0,0 +1,4 @@\n+one\n+two\n+three\n+four"],
        ])
    );
    let pull = client.get(&format!("/repos/acme/widgets/pulls/{PULL}")).await.json();
    assert_eq!((&pull["commits"], &pull["changed_files"]), (&json!(2), &json!(4)));
}

#[tokio::test]
async fn the_contents_are_those_of_the_branch_and_of_each_commit() {
    let mut world = world_with_pull();
    let before = world.pull(REPO, PULL).head_sha.clone();
    world.push_pull(REPO, PULL, "author", &[("src/a.rs", Some("changed\n"))]);
    let emulator = Emulator::start(world).await;
    let client = Client::new(&emulator, Some("maint-token"));
    let raw = [("accept", "application/vnd.github.raw+json")];
    for (git_ref, status, text) in [("topic", 200, "changed\n"), (&before, 200, NEW), ("main", 404, "")] {
        let path = format!("/repos/acme/widgets/contents/src/a.rs?ref={git_ref}");
        let reply = client.send_with("GET", &path, None, &raw).await.expect("an answer");
        assert_eq!(reply.status, status, "{git_ref}");
        assert!(status == 404 || reply.text == text, "{git_ref}: {}", reply.text);
    }
}

#[tokio::test]
async fn pushes_are_told_with_both_heads_and_a_lost_webhook_still_moves_the_head() {
    let mut world = world_with_pull();
    world.send_webhooks_to("http://127.0.0.1:1/nobody", "s3cret");
    let before = world.pull(REPO, PULL).head_sha.clone();
    let pushed = world.push_pull(REPO, PULL, "author", &[("b.txt", Some("b\n"))]);
    let forced = world.force_push_pull(REPO, PULL, "author", &[("c.txt", Some("c\n"))]);
    let silent = world.commit(REPO, "topic", &[("d.txt", Some("d\n"))]);
    assert_eq!(world.pull(REPO, PULL).head_sha, silent);
    assert_eq!(world.pull(REPO, PULL).commits.len(), 2, "the history of before is gone");
    world.convert_to_draft(REPO, PULL, "author");
    world.ready_for_review(REPO, PULL, "author");
    world.request_review(REPO, PULL, "author", "maint");
    let main = world.pull(REPO, PULL).base_sha.clone();
    world.commit(REPO, "release", &[("d.txt", Some("d\n"))]);
    world.retarget(REPO, PULL, "author", "release");
    let emulator = Emulator::start(world).await;
    let told = sent(&emulator);
    let names: Vec<(&str, &str)> = told.iter().map(|(event, action, _)| (event.as_str(), action.as_str())).collect();
    assert_eq!(
        names,
        [
            ("push", ""),
            ("pull_request", "synchronize"),
            ("push", ""),
            ("pull_request", "synchronize"),
            ("pull_request", "converted_to_draft"),
            ("pull_request", "ready_for_review"),
            ("pull_request", "review_requested"),
            ("pull_request", "edited"),
        ]
    );
    let ends = |index: usize| (told[index].2["before"].clone(), told[index].2["after"].clone());
    assert_eq!(ends(1), (json!(before), json!(pushed)));
    assert_eq!(ends(3), (json!(pushed), json!(forced)));
    assert_eq!((&told[0].2["forced"], &told[2].2["forced"]), (&json!(false), &json!(true)));
    assert_eq!(told[4].2["pull_request"]["draft"], true);
    assert_eq!(told[6].2["requested_reviewer"]["login"], "maint");
    assert_eq!(told[7].2["changes"]["base"], json!({ "ref": { "from": "main" }, "sha": { "from": main } }));
    assert_eq!(told[7].2["pull_request"]["base"]["ref"], "release");
}

#[tokio::test]
async fn a_fork_has_its_own_head_and_sends_no_push() {
    let mut world = small_world();
    world.send_webhooks_to("http://127.0.0.1:1/nobody", "s3cret");
    world.commit(REPO, "evil", &[(".github/canonry.yml", Some("review: {}\n"))]);
    let new = NewPull { fork: Some(String::from("mallory")), draft: true, ..NewPull::new("Hello") };
    let number = world.open_pull(REPO, "mallory", "evil", new);
    world.push_pull(REPO, number, "mallory", &[("x", Some("x\n"))]);
    assert!(!world.get(REPO).branches.contains_key("evil"));
    let emulator = Emulator::start(world).await;
    let told = sent(&emulator);
    let names: Vec<&str> = told.iter().map(|(_, action, _)| action.as_str()).collect();
    assert_eq!(names, ["opened", "synchronize"]);
    let head = &told[0].2["pull_request"]["head"];
    assert_eq!((&head["label"], &head["repo"]["full_name"]), (&json!("mallory:evil"), &json!("mallory/widgets")));
    assert_eq!(head["repo"]["fork"], true);
    assert_eq!(told[0].2["pull_request"]["base"]["repo"]["full_name"], "acme/widgets");
}
