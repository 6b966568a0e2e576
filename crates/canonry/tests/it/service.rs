//! The service as a process that receives webhooks, is killed, stopped, and queried.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{Emulator, World, loopback_client};
use canonry_testkit::on_both_engines;
use futures_util::StreamExt as _;
use hmac::{Hmac, KeyInit as _, Mac as _};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use reqwest::Client;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::Sha256;

use crate::place::{Place, Ran};

pub(crate) const SECRET: &str = "the tide comes in and goes out";

/// npm `@octokit/webhooks-examples`, `api.github.com/index.json`.
const EXAMPLES: &str = "CANONRY_TEST_WEBHOOK_EXAMPLES";

/// How many deliveries are sent at once.
const SENDERS: usize = 8;

/// A running `canonry serve`, which is killed at the end of its test.
pub(crate) struct Service {
    /// `None` after it was stopped.
    running: Option<(Child, JoinHandle<String>)>,
    pub(crate) url: String,
}

impl Drop for Service {
    fn drop(&mut self) {
        if let Some((mut child, _)) = self.running.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Service {
    fn start(place: &Place, database: &TestDatabase) -> Self {
        let command = place.command(&["serve", "--listen", "127.0.0.1:0", "--db", database.url(), "-vv"]);
        Self::spawn(command)
    }

    /// Starts the command, which is a `serve`; returns when it listens.
    pub(crate) fn spawn(mut command: Command) -> Self {
        command.env("CANONRY_WEBHOOK_SECRET", SECRET).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let mut errors = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut log = String::new();
        let url = loop {
            let mut line = String::new();
            assert!(errors.read_line(&mut line).expect("text") > 0, "it ended: {log}");
            log += &line;
            if let Some((_, rest)) = line.split_once("listening at ") {
                let end = rest.find(|character: char| character.is_whitespace() || character == '"');
                break rest[..end.unwrap_or(rest.len())].to_owned();
            }
        };
        let log = std::thread::spawn(move || {
            errors.read_to_string(&mut log).expect("text");
            log
        });
        Self { running: Some((child, log)), url }
    }

    /// The status of the answer; `None` if there was none.
    async fn post(&self, client: &Client, id: &str, event: &str, body: String) -> Option<u16> {
        let signature = sign(body.as_bytes());
        let request = client.post(format!("{}/webhooks/github", self.url)).body(body);
        let request = request.header("x-github-event", event).header("x-github-delivery", id);
        let answer = request.header("x-hub-signature-256", signature).send().await.ok()?;
        Some(answer.status().as_u16())
    }

    pub(crate) fn send(&self, signal: Signal) {
        let (child, _) = self.running.as_ref().expect("it runs");
        let id = i32::try_from(child.id()).expect("process ids are small");
        kill(Pid::from_raw(id), signal).expect("our child is there");
    }

    /// Kills it and returns its log.
    pub(crate) fn killed(mut self) -> String {
        self.send(Signal::SIGKILL);
        let (mut child, log) = self.running.take().expect("it runs");
        assert_eq!(child.wait().expect("it has ended").code(), None);
        log.join().expect("read")
    }

    /// Stops it and returns its output and its log.
    pub(crate) fn stopped(mut self) -> (String, String) {
        self.send(Signal::SIGTERM);
        let (child, log) = self.running.take().expect("it runs");
        let ran = Ran::of(child.wait_with_output().expect("it ends")).succeeded();
        (ran.stdout, log.join().expect("read"))
    }
}

fn sign(body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).expect("any key");
    mac.update(body);
    let digits = canonry_domain::hex_digits(mac.finalize().into_bytes());
    format!("sha256={digits}")
}

#[derive(Deserialize)]
struct Examples {
    name: String,
    examples: Vec<Value>,
}

fn examples() -> Vec<(String, String)> {
    let path =
        std::env::var(EXAMPLES).unwrap_or_else(|_| panic!("{EXAMPLES} is not set: run through `cargo xtask test`"));
    let all: Vec<Examples> = serde_json::from_slice(&std::fs::read(path).expect("reads")).expect("JSON");
    let of_event = |event: Examples| event.examples.into_iter().map(move |body| (event.name.clone(), body.to_string()));
    all.into_iter().flat_map(of_event).collect()
}

fn listed(place: &Place, database: &TestDatabase, arguments: &[&str]) -> Vec<Value> {
    let arguments = [arguments, &["--json", "--limit", "10000", "--db", database.url()]].concat();
    let document = place.canonry(&arguments).succeeded().json();
    document[arguments[0]].as_array().expect("a list").clone()
}

/// Returns when nothing is queued any more; a job of a killed process waits until its lease expires.
pub(crate) async fn settled(place: &Place, database: &TestDatabase) {
    let looking = async {
        while !listed(place, database, &["deliveries", "list", "--state", "queued"]).is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(90), looking).await.expect("it settles");
}

on_both_engines! {
    async fn every_example_is_accepted_and_comes_to_an_end(database: TestDatabase) {
        let (place, client, examples) = (Place::new(), loopback_client(), examples());
        let service = Service::start(&place, &database);
        let examples: Vec<(usize, (String, String))> = examples.into_iter().enumerate().collect();
        // All examples are about one repository. Events that end Canonry's access come last; otherwise the rest would
        // be ignored.
        let (ends, rest): (Vec<_>, Vec<_>) =
            examples.into_iter().partition(|(_, (event, _))| event.starts_with("installation") || event == "repository");
        assert_eq!(ends.len() + rest.len(), 329);
        // Each is sent twice, because GitHub may redeliver.
        for part in [&rest, &rest, &ends, &ends] {
            let posts = part.iter().map(|(at, (event, body))| {
                let (service, client) = (&service, &client);
                async move { (event, service.post(client, &format!("example-{at}"), event, body.clone()).await) }
            });
            let answers: Vec<_> = futures_util::stream::iter(posts).buffer_unordered(SENDERS).collect().await;
            let refused: Vec<_> = answers.iter().filter(|(_, status)| *status != Some(202)).collect();
            assert!(refused.is_empty(), "{refused:?}");
            settled(&place, &database).await;
        }
        let deliveries = listed(&place, &database, &["deliveries", "list"]);
        // An item that was edited right after it was processed is rechecked by a separate job.
        let mut jobs = listed(&place, &database, &["jobs", "list"]);
        jobs.retain(|job| !job["delivery"].is_null());
        assert_eq!(deliveries.len(), 329);
        let count = |state: &str| deliveries.iter().filter(|delivery| delivery["state"] == state).count();
        let (done, ignored) = (count("done"), count("ignored"));
        assert_eq!((done + ignored, jobs.len()), (329, 137), "{:?}", deliveries.iter().find(|delivery| delivery["state"] == "dead"));
        assert!(done > 50, "{done} were acted on");
        for delivery in deliveries.iter().filter(|delivery| delivery["state"] == "ignored") {
            assert!(delivery["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{delivery}");
        }
        let (stdout, log) = service.stopped();
        let again: Vec<&Value> = jobs.iter().filter(|job| job["state"] != "done" || job["attempts"] != 1).collect();
        assert!(again.is_empty(), "{again:?}\n{log}");
        assert_eq!(stdout, "Stopped after 137 jobs.\n");
        assert!(log.contains("a job is done"), "{log}");
        // A sentence of the examples' issues, and the secret.
        for hidden in ["accidently spelled", SECRET] {
            assert!(!log.contains(hidden), "{hidden}");
        }
    }

    async fn a_kill_loses_nothing_that_was_accepted(database: TestDatabase) {
        const DELIVERIES: usize = 400;
        let (place, client) = (Place::new(), loopback_client());
        let body = |number: usize| json!({
            "action": "edited", "issue": { "id": number, "number": number % 20 + 1 }, "repository": { "id": 1, "full_name": "tide/pool" },
        }).to_string();
        let kills = if std::env::var_os("CANONRY_SOAK").is_some() { 12 } else { 2 };
        let mut accepted: HashSet<String> = HashSet::new();
        for round in 0..kills {
            let service = Service::start(&place, &database);
            // It is killed while the others are pending.
            let enough = accepted.len() + DELIVERIES / (kills + 1);
            let fresh: Vec<usize> = (0..DELIVERIES).filter(|number| !accepted.contains(&format!("d{number}"))).collect();
            let posts = fresh.into_iter().map(|number| {
                let (service, client, id) = (&service, &client, format!("d{number}"));
                async move { service.post(client, &id, "issues", body(number)).await.map(|status| (id, status)) }
            });
            let mut answers = futures_util::stream::iter(posts).buffer_unordered(SENDERS);
            while accepted.len() < enough {
                let (id, status) = answers.next().await.flatten().expect("an answer");
                assert_eq!(status, 202, "round {round}");
                accepted.insert(id);
            }
            service.send(Signal::SIGKILL);
            // Deliveries that were answered before the kill count; others may have been stored all the same.
            while let Some(answer) = answers.next().await {
                accepted.extend(answer.map(|(id, _)| id));
            }
            drop(answers);
            service.killed();
            let stored: HashSet<String> = listed(&place, &database, &["deliveries", "list"]).iter().map(|delivery| delivery["id"].as_str().expect("an id").to_owned()).collect();
            assert!(accepted.is_subset(&stored), "lost: {:?}", accepted.difference(&stored));
        }
        let service = Service::start(&place, &database);
        for number in 0..DELIVERIES {
            assert_eq!(service.post(&client, &format!("d{number}"), "issues", body(number)).await, Some(202));
        }
        settled(&place, &database).await;
        service.stopped();
        let deliveries = listed(&place, &database, &["deliveries", "list"]);
        let unended: Vec<&Value> = deliveries.iter().filter(|delivery| delivery["state"] != "done" && delivery["state"] != "ignored").collect();
        assert_eq!((deliveries.len(), unended), (DELIVERIES, vec![]));
        let jobs = listed(&place, &database, &["jobs", "list"]);
        let of: HashSet<&str> = jobs.iter().filter(|job| job["state"] == "done").filter_map(|job| job["delivery"].as_str()).collect();
        assert_eq!((jobs.len(), of.len()), (DELIVERIES, DELIVERIES));
    }

    async fn two_processes_share_the_work_and_do_nothing_twice(database: TestDatabase) {
        let (place, client) = (Place::new(), loopback_client());
        let services = [Service::start(&place, &database), Service::start(&place, &database)];
        let posts = (0..200_usize).map(|turn| {
            // Each delivery goes to both services at the same time.
            let (service, client, number) = (&services[turn % 2], &client, turn / 2);
            let body = json!({ "issue": { "id": 1, "number": number % 9 + 1 }, "repository": { "id": 1, "full_name": "tide/pool" } });
            async move { service.post(client, &format!("d{number}"), "issues", body.to_string()).await }
        });
        let answers: Vec<_> = futures_util::stream::iter(posts).buffer_unordered(SENDERS).collect().await;
        assert_eq!(answers, vec![Some(202); 200]);
        settled(&place, &database).await;
        let stopped = services.map(|service| service.stopped().0);
        let count = |text: &String| text.split(' ').nth(2).and_then(|count| count.parse::<u32>().ok()).unwrap_or_else(|| panic!("{text}"));
        assert_eq!(stopped.iter().map(count).sum::<u32>(), 100, "{stopped:?}");
        let jobs = listed(&place, &database, &["jobs", "list"]);
        assert_eq!(jobs.iter().filter(|job| job["state"] == "done" && job["attempts"] == 1).count(), 100);
    }

    async fn deliveries_and_jobs_are_shown_and_queued_again(database: TestDatabase) {
        let (place, client) = (Place::new(), loopback_client());
        let service = Service::start(&place, &database);
        let issue = r#"{"action":"opened","issue":{"id":1,"number":7},"repository":{"id":1,"full_name":"Tide/Pool"}}"#;
        for (id, event, body, status) in [
            ("first", "issues", issue.to_owned(), 202),
            ("second", "star", "{}".to_owned(), 202),
            ("three", "issues", "payload=".to_owned(), 400),
            ("four", "issues", " ".repeat(25 * 1024 * 1024 + 1), 413),
        ] {
            assert_eq!(service.post(&client, id, event, body).await, Some(status), "{id}");
        }
        let forged = client.post(format!("{}/webhooks/github", service.url)).header("x-hub-signature-256", sign(b"another body"));
        assert_eq!(forged.body(issue).send().await.expect("answers").status(), 401);
        settled(&place, &database).await;
        service.stopped();

        let run = |arguments: &[&str]| place.canonry(&[arguments, &["--db", database.url()]].concat());
        let shown = run(&["deliveries", "show", "first", "--json"]).succeeded().json();
        assert_eq!((&shown["delivery"]["repo"], &shown["delivery"]["number"], &shown["payload"]["action"]), (&json!("tide/pool"), &json!(7), &json!("opened")));
        let job = shown["jobs"][0]["id"].to_string();
        assert_eq!(shown["jobs"][0]["key"], "repo/1#7");
        let listed = run(&["deliveries", "list", "--event", "star"]).succeeded().stdout;
        assert!(listed.contains("second") && listed.contains("ignored") && !listed.contains("first"), "{listed}");
        assert_eq!(run(&["deliveries", "list", "--repo", "tide/lab"]).succeeded().stdout, "No deliveries.\n");
        let listed = run(&["jobs", "list", "--repo", "Tide/Pool", "--state", "done"]).succeeded().stdout;
        assert!(listed.contains("tide/pool#7"), "{listed}");
        assert_eq!(run(&["jobs", "show", &job, "--json"]).succeeded().json()["job"]["payload"], json!({"event": "issues", "action": "opened", "github_id": 1}));
        assert_eq!(run(&["jobs", "retry", &job]).failed(), format!("job {job} is done; to run it again: canonry deliveries replay first"));
        assert_eq!(run(&["deliveries", "replay", "first"]).succeeded().stdout, "Queued the delivery first again.\n");
        assert_eq!(run(&["deliveries", "replay", "first"]).failed(), "delivery first is already queued");
        assert_eq!(run(&["jobs", "retry", &job]).succeeded().stdout, format!("Queued job {job} again.\n"));
        assert_eq!(run(&["jobs", "retry", "--state", "queued", "--repo", "Tide/Pool"]).succeeded().stdout, "Queued 1 job again.\n");
        assert_eq!(run(&["jobs", "retry", "--state", "dead"]).succeeded().stdout, "Queued 0 jobs again.\n");
        let refused = run(&["jobs", "retry", "--state", "done"]);
        assert!(refused.exit == Some(2) && refused.stderr.contains("done jobs cannot be retried; use dead or queued"), "{refused:?}");
        assert_eq!(run(&["deliveries", "replay", "none"]).failed(), "there is no delivery none; see `canonry deliveries list`");
        assert_eq!(run(&["jobs", "show", "999"]).failed(), "there is no job 999; see `canonry jobs list`");
        // The next process does the pending work.
        let service = Service::start(&place, &database);
        settled(&place, &database).await;
        assert_eq!(service.stopped().0, "Stopped after 1 job.\n");
    }
}

#[test]
fn without_a_secret_or_an_address_nothing_is_served() {
    let place = Place::new();
    let refused = place.canonry(&["serve"]);
    assert_eq!(
        refused.failed(),
        "CANONRY_WEBHOOK_SECRET is not set; set it to the webhook's secret. Without an App yet, any long random text does: \
         /setup creates the App and shows the secret"
    );
    assert!(!place.database().exists(), "a database was made by looking");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("bound").to_string();
    let mut command = place.command(&["serve", "--listen", &address]);
    let busy = Ran::of(command.env("CANONRY_WEBHOOK_SECRET", SECRET).output().expect("the program starts"));
    assert!(busy.failed().starts_with(&format!("cannot listen at {address}; choose another address with --listen")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_persons_token_is_warned_about() {
    let mut world = World::new();
    world.user("mona");
    world.token("ghp_emulatedTokenOfMona0123456789abcdefg", "mona");
    let emulator = Emulator::start(world).await;
    let place = Place::new();
    let mut command = place.command(&["serve", "--listen", "127.0.0.1:0", "--workers", "0"]);
    command
        .env("CANONRY_GITHUB_API_URL", emulator.url())
        .env("GITHUB_TOKEN", "ghp_emulatedTokenOfMona0123456789abcdefg");
    let service = Service::spawn(command);
    let asking = async {
        while emulator.requests().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), asking).await.expect("it asks who it is");
    let (_, log) = service.stopped();
    let warning = log.lines().find(|line| line.contains("everything this account does counts as done by Canonry"));
    assert!(warning.is_some_and(|line| line.contains(r#""account":"mona""#) && line.contains("WARN")), "{log}");
}
