//! The program running as an App: it suggests, is killed in the middle, continues, learns, and explains itself.

use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{
    CloseReason, Emulator, Fault, NewIssue, Permission, TEST_APP_PRIVATE_KEY, World, loopback_client,
};
use canonry_testkit::models::{CONTROL_WORD, ModelRequest, ModelServer, vectors_with_cosines};
use canonry_testkit::on_both_engines;
use serde_json::{Value, json};

use crate::place::Place;
use crate::service::{SECRET, Service, settled};

const REPO: &str = "tide/pool";
const OWN: &str = "canonry[bot]";
const KEY: &str = "sk-zanzikey0123456789abcdef0123456789";
/// This word occurs in every text and in every secret, and nowhere else.
const CANARY: &str = "zanzi";

/// An App on one repository with issue #1, of which three more reports will be opened.
fn world() -> World {
    let mut world = World::new();
    world.follows_wall_clock = true;
    world.now = jiff::Timestamp::now();
    world.repo(REPO).file(".canonry.yml", "triage:\n  mode: suggest\n");
    world.collaborator(REPO, "maint", Permission::Maintain);
    world.user("ann");
    world.open(REPO, "maint", report(0));
    world.add_app(77, "canonry");
    world.send_webhooks_to("http://127.0.0.1:9/told-later", SECRET);
    world.install_app("tide", &[("issues", "write"), ("contents", "read"), ("metadata", "read")]);
    world
}

fn report(which: usize) -> NewIssue {
    NewIssue::new(&format!("zanzititle {which}"), &format!("zanzibody {which}: it stops at the third wave."))
}

/// The similarity of each report to the first one, and a judge that sees one problem in all of them.
fn models() -> ModelServer {
    let models = ModelServer::start_blocking();
    let (first, others) = vectors_with_cosines([0.95, 0.96, 0.8]);
    models.vector_for("zanzititle 0", first);
    for (at, vector) in others.into_iter().enumerate() {
        models.vector_for(&format!("zanzititle {}", at + 1), vector);
    }
    models.answer_by(|request: &ModelRequest| {
        let prompt = request.prompt();
        if prompt.contains(CONTROL_WORD) {
            let no = json!({ "is_duplicate": false, "duplicate_of": 0, "confidence": 0, "reasoning": "Unrelated." });
            return Some(no.to_string());
        }
        assert!(prompt.contains("Candidate 1,"), "{prompt}");
        let answer = json!({
            "is_duplicate": true, "duplicate_of": 1, "confidence": 0.97, "reasoning": "zanzireason: the third wave.",
            "relation": "same_instance", "root_cause_match": "same", "scope_relation": "same_scope",
            "path_match": "same", "certainty": "sure",
        });
        Some(answer.to_string())
    });
    models
}

/// The service of one test, which is started and stopped.
struct Running<'a> {
    place: &'a Place,
    database: &'a TestDatabase,
    emulator: &'a Emulator,
    models: &'a ModelServer,
    log: String,
}

impl Running<'_> {
    fn start(&self) -> Service {
        let (api, base) = (self.emulator.url(), self.models.base_url());
        let mut command = self.place.command(&["serve", "--listen", "127.0.0.1:0", "-vv", "--retrieval", "dense"]);
        command.args(["--db", self.database.url(), "--github-api", &api]);
        command.args(["--embedder", "openai", "--embed-base-url", &base]);
        command.args(["--provider", "openai", "--model", "judge-1", "--base-url", &base]);
        command
            .env("OPENAI_API_KEY", KEY)
            .env("CANONRY_APP_ID", "77")
            .env("CANONRY_APP_PRIVATE_KEY", TEST_APP_PRIVATE_KEY);
        let service = Service::spawn(command);
        self.emulator.world().send_webhooks_to(&format!("{}/webhooks/github", service.url), SECRET);
        service
    }

    /// Sends GitHub's deliveries until all are processed and no new ones appear.
    async fn settle(&self) {
        loop {
            self.deliver().await;
            settled(self.place, self.database).await;
            if self.emulator.pending_deliveries().is_empty() {
                return;
            }
        }
    }

    async fn deliver(&self) {
        for delivery in self.emulator.deliver_pending().await {
            assert_eq!(delivery.attempt.map(|attempt| attempt.status), Some(202), "{}", delivery.event);
        }
    }

    /// Returns when Canonry has commented on the issue and labelled it.
    async fn heard(&self, number: u64) {
        let looking = async {
            while self.said(number) != (1, true) {
                tokio::task::yield_now().await;
            }
        };
        let found = tokio::time::timeout(std::time::Duration::from_secs(60), looking).await;
        assert!(found.is_ok(), "#{number}: {:?}", self.said(number));
        self.settle().await;
    }

    /// The number of our comments on an issue, and whether it is labelled.
    fn said(&self, number: u64) -> (usize, bool) {
        let world = self.emulator.world();
        let labelled = world.issue(REPO, number).labels.iter().any(|label| label == "possible-duplicate");
        (world.comments_by(REPO, number, OWN).len(), labelled)
    }

    fn run(&self, arguments: &[&str]) -> Value {
        let arguments = [arguments, &["--repo", REPO, "--db", self.database.url(), "--json"]].concat();
        self.place.canonry(&arguments).succeeded().json()
    }
}

on_both_engines! {
    async fn it_suggests_survives_a_kill_and_explains_what_it_learned(database: TestDatabase) {
        let (place, emulator, models) = (Place::new(), Emulator::start_blocking(world()), models());
        let mut running = Running { place: &place, database: &database, emulator: &emulator, models: &models, log: String::new() };
        let service = running.start();
        running.settle().await;
        let first = emulator.world().open(REPO, "ann", report(1));
        running.settle().await;
        running.heard(first).await;

        // It is killed while it processes the next issue. Its lease must expire before another process may continue.
        let (fault, mut gate) = Fault::on("GET", "/repos/*/*/issues/3").hold();
        emulator.fault(fault);
        let second = emulator.world().open(REPO, "ann", report(2));
        running.deliver().await;
        gate.arrived().await;
        running.log += &service.killed();
        gate.release();
        let service = running.start();
        let below = emulator.world().open(REPO, "ann", report(3));
        running.settle().await;
        running.heard(second).await;
        assert_eq!(running.said(below), (0, false), "0.80 is below 85");

        let original = emulator.world().issue(REPO, 1).id;
        emulator.world().close(REPO, first, "maint", CloseReason::Duplicate(Some(original)));
        emulator.world().close(REPO, second, "maint", CloseReason::Completed);
        running.settle().await;
        let metrics = loopback_client().get(format!("{}/metrics", service.url)).send().await.expect("answers").text().await.expect("text");
        for line in [r#"canonry_triage_outcomes_total{repo="tide/pool",kind="confirmed"} 1"#, r#"canonry_triage_outcomes_total{repo="tide/pool",kind="false_positive"} 1"#] {
            assert!(metrics.contains(line), "{line}: {metrics}");
        }
        running.log += &service.stopped().1;
        for number in [first, second] {
            assert_eq!(running.said(number), (1, true), "#{number}");
        }
        explains(&running, [first, second, below]);
        let key = TEST_APP_PRIVATE_KEY.lines().nth(1).expect("a key has lines");
        let tokens: Vec<String> = emulator.world().tokens.keys().cloned().collect();
        for hidden in [CANARY, SECRET, key, "eyJ"].into_iter().chain(tokens.iter().map(String::as_str)) {
            let line = running.log.lines().chain(metrics.lines()).find(|line| line.contains(hidden));
            assert_eq!(line, None, "{hidden}");
        }
    }
}

/// `show` shows the prediction, the comment, the outcome and the lesson; `thresholds` sums them up.
fn explains(running: &Running<'_>, [first, second, below]: [u64; 3]) {
    let show = |number: u64| running.run(&["show", "--type", "issue", "--number", &number.to_string()]);
    for (number, outcome, lesson) in [(first, "duplicate", "confirmed"), (second, "completed", "false_positive")] {
        let shown = show(number);
        let triage = &shown["triage"];
        // No audit has proven this model here, so its yes is a maybe, which is also posted.
        assert_eq!((&triage["verdict"], &triage["duplicate_of"]), (&json!("maybe_duplicate"), &json!(1)), "{shown:#}");
        assert_eq!(
            (&triage["action"]["mode"], &triage["action"]["action"]),
            (&json!("suggest"), &json!("commented")),
            "{shown:#}"
        );
        assert_eq!(triage["action"]["threshold"], json!(85), "{shown:#}");
        assert_eq!(
            (&shown["outcome"]["kind"], &shown["outcome"]["lesson"]["kind"]),
            (&json!(outcome), &json!(lesson)),
            "{shown:#}"
        );
        assert_eq!(
            (&shown["outcome"]["evidence"], &shown["outcome"]["actor"]),
            (&json!("state_reason"), &json!("maint")),
            "{shown:#}"
        );
    }
    let shown = show(below);
    assert_eq!(shown["triage"]["action"]["reason"], json!("below_threshold"), "{shown:#}");
    let told = running.run(&["thresholds", "--check"]);
    let row = &told["thresholds"][0];
    assert_eq!(
        (&row["component"], &row["current"], &row["source"]),
        (&json!(null), &json!(85), &json!("configured")),
        "{told:#}"
    );
    assert_eq!(
        (&row["confirmed"], &row["false_positives"], &row["total"]),
        (&json!(1), &json!(1), &json!(2)),
        "{told:#}"
    );
}
