//! Check runs: created by Apps, concluded once, listed by commit.

use canonry_testkit::github::Emulator;
use serde_json::{Value, json};

use crate::client::{Client, jwt};
use crate::github::pulls::{PULL, world_with_pull};
use crate::github::setting::REPO;

const RUNS: &str = "/repos/acme/widgets/check-runs";

async fn started(granted: &[(&str, &str)]) -> (Emulator, Client, String) {
    let mut world = world_with_pull();
    world.add_app(77, "canonry");
    let installation = world.install_app("acme", granted);
    let head = world.pull(REPO, PULL).head_sha.clone();
    let emulator = Emulator::start(world).await;
    let jwt = jwt(&emulator.world(), 60);
    let path = format!("/app/installations/{installation}/access_tokens");
    let token = Client::new(&emulator, Some(&jwt)).write("POST", &path, json!({})).await.json();
    let bot = Client::new(&emulator, token["token"].as_str());
    (emulator, bot, head)
}

fn begun(head: &str, id: &str) -> Value {
    json!({ "name": "Canonry", "head_sha": head, "status": "in_progress", "external_id": id })
}

#[tokio::test]
async fn only_apps_that_may_write_checks_make_them() {
    let (emulator, bot, head) = started(&[("checks", "read")]).await;
    assert_eq!(bot.write("POST", RUNS, begun(&head, "a")).await.status, 403);
    let maint = Client::new(&emulator, Some("maint-token"));
    let refused = maint.write("POST", RUNS, begun(&head, "a")).await;
    assert_eq!((refused.status, &refused.json()["message"]), (403, &json!("You must authenticate via a GitHub App.")));
    assert!(emulator.world().get(REPO).check_runs.is_empty());
}

#[tokio::test]
async fn a_run_is_concluded_and_can_begin_again() {
    let (emulator, bot, head) = started(&[("checks", "write")]).await;
    assert_eq!(bot.write("POST", RUNS, begun(&"d".repeat(40), "a")).await.status, 422, "no such commit");
    let run = bot.write("POST", RUNS, begun(&head, "a")).await.json();
    let path = format!("{RUNS}/{}", run["id"]);
    assert_eq!((&run["pull_requests"][0]["number"], &run["conclusion"]), (&json!(PULL), &Value::Null));
    let incomplete = json!({ "status": "completed" });
    assert_eq!(bot.write("PATCH", &path, incomplete).await.status, 422, "completed how?");
    for output in [json!({ "title": "t" }), json!({ "title": "t", "summary": "x".repeat(65_536) })] {
        assert_eq!(bot.write("PATCH", &path, json!({ "output": output })).await.status, 422);
    }
    let output = json!({ "title": "Two findings", "summary": "See below." });
    let done = bot.write("PATCH", &path, json!({ "conclusion": "neutral", "output": output })).await.json();
    assert_eq!((&done["status"], &done["completed_at"]), (&json!("completed"), &json!("2026-01-15T12:00:00Z")));
    let again = bot.write("PATCH", &path, json!({ "status": "in_progress" })).await.json();
    assert_eq!((&again["conclusion"], &again["output"]["title"]), (&Value::Null, &json!("Two findings")));
    let text = emulator.world().conversation(REPO, PULL);
    assert!(
        text.contains(&format!("## check Canonry on {}: in_progress\nTwo findings\nSee below.\n", &head[..7])),
        "{text}"
    );
    let sent = emulator.bodies_sent();
    assert!(sent.iter().any(|text| text == "Two findings") && sent.iter().any(|text| text == "See below."), "{sent:?}");
}

#[tokio::test]
async fn a_commit_lists_the_newest_of_each_name_unless_all_are_asked_for() {
    let (emulator, bot, head) = started(&[("checks", "write")]).await;
    for id in ["a", "b"] {
        bot.write("POST", RUNS, begun(&head, id)).await;
    }
    bot.write("POST", RUNS, json!({ "name": "Other", "head_sha": head, "conclusion": "success" })).await;
    let ids = |list: &Value| -> Vec<String> {
        let runs = list["check_runs"].as_array().cloned().unwrap_or_default();
        runs.iter().map(|run| run["external_id"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let list = format!("/repos/acme/widgets/commits/{head}/check-runs");
    let newest = bot.get(&format!("{list}?check_name=Canonry")).await.json();
    assert_eq!((ids(&newest), &newest["total_count"]), (vec![String::from("b")], &json!(1)));
    let all = bot.get(&format!("{list}?check_name=Canonry&filter=all&per_page=1")).await;
    assert_eq!((ids(&all.json()), &all.json()["total_count"]), (vec![String::from("b")], &json!(2)));
    let next = all.next().expect("a second page");
    assert_eq!(ids(&bot.get(&next).await.json()), ["a"]);
    assert_eq!(bot.get(&format!("{list}?app_id=78")).await.json()["total_count"], 0);
    assert_eq!(bot.get("/repos/acme/widgets/commits/topic/check-runs?filter=all").await.json()["total_count"], 3);

    let run = emulator.world().get(REPO).check_runs[0].id;
    let mut world = emulator.world();
    world.send_webhooks_to("http://127.0.0.1:1/nobody", "s3cret");
    world.rerequest_check_run(REPO, run, "maint");
    world.rerequest_check_suite(REPO, &head, "maint");
    drop(world);
    let told = emulator.pending_deliveries();
    assert_eq!((told[0].event.as_str(), told[1].event.as_str()), ("check_run", "check_suite"));
    assert_eq!(told[0].payload["check_run"]["app"]["slug"], "canonry");
    assert_eq!(told[1].payload["check_suite"]["pull_requests"][0]["number"], PULL);
}
