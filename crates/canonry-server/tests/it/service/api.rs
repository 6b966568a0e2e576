//! Who may read the thresholds of a repository, and the answers.

use std::sync::Arc;

use canonry_domain::StateReason;
use canonry_github::{ManualClock, Secret};
use canonry_retrieval::RetrievalMode;
use canonry_server::{ApiAccess, ApiParts, api_routes, threshold_report};
use canonry_store::Store;
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{Emulator, Fault, Permission, World, loopback_client};
use canonry_triage::{FixIndexes, LOOKUPS_AT_ONCE, Lookup};
use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::service::lessons::{repository, teach};
use crate::service::metrics::serve_routes;
use crate::world::plain::Plain;

const READER: &str = "ghp_of0a0reader";
const STRANGER: &str = "ghp_of0a0stranger";
const OPERATOR: &str = "token-of-the-operator";
const NOT_HERE: &str = "no such repository, or this token cannot see it";

struct Setting {
    // Keeps the database until the end of the test.
    _database: TestDatabase,
    emulator: Emulator,
    store: Store,
    clock: Arc<ManualClock>,
    url: String,
}

fn now() -> Timestamp {
    "2026-01-15T12:00:00Z".parse().expect("valid")
}

impl Setting {
    /// A private repository that one account may read and another may not, and a repository that Canonry does not
    /// know.
    async fn new() -> Self {
        let database = TestDatabase::sqlite();
        let store = Store::open(&database.url().parse().expect("a URL"), now()).await.expect("opens");
        let mut world = World::new();
        world.repo("tide/pool").private = true;
        world.repo("tide/unknown");
        for login in ["reader", "stranger"] {
            world.user(login);
            world.token(&format!("ghp_of0a0{login}"), login);
        }
        world.collaborator("tide/pool", "reader", Permission::Read);
        let id = i64::try_from(world.get("tide/pool").id).expect("small");
        let repo = repository(&store, "tide/pool", id, now()).await;
        teach(&store, &repo, 2..22, &[], StateReason::Completed, now()).await;
        let emulator = Emulator::start(world).await;
        let clock = Arc::new(ManualClock::new(now()));
        let api = emulator.url().parse().expect("a URL");
        let access = ApiAccess::new(store.clone(), api, Some(Secret::new(OPERATOR)), clock.clone());
        let lookup = Lookup {
            store: store.clone(),
            detectors: Arc::new(Plain::new()),
            clock: clock.clone(),
            mode: RetrievalMode::Hybrid,
            fixes: FixIndexes::default(),
            places: Semaphore::new(LOOKUPS_AT_ONCE),
        };
        let routes = api_routes(ApiParts { access: Arc::new(access), lookup: Arc::new(lookup) });
        let url = serve_routes(routes).await;
        Self { _database: database, emulator, store, clock, url }
    }

    async fn ask(&self, repo: &str, token: Option<&str>) -> (u16, Value) {
        let request = loopback_client().get(format!("{}/api/repos/{repo}/triage/threshold-state", self.url));
        let request = match token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        let answer = request.send().await.expect("answers");
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        assert_eq!(headers["cache-control"], "no-store");
        assert_eq!(headers.contains_key("www-authenticate"), status == 401);
        let text = answer.text().await.expect("text");
        for secret in [READER, STRANGER, OPERATOR, "A secret reasoning."] {
            assert!(!text.contains(secret), "{text}");
        }
        (status, serde_json::from_str(&text).expect("JSON"))
    }

    async fn refusal(&self, repo: &str, token: Option<&str>) -> (u16, String) {
        let (status, document) = self.ask(repo, token).await;
        (status, document["error"]["message"].as_str().expect("a message").to_owned())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_and_the_operator_are_told_what_the_command_tells() {
    let setting = Setting::new().await;
    let (status, document) = setting.ask("Tide/Pool", Some(READER)).await;
    assert_eq!(status, 200, "{document}");
    let repo = setting.store.repos().find(&"tide/pool".parse().expect("a name")).await.expect("reads").expect("known");
    let report = threshold_report(&setting.store, &repo).await.expect("reads");
    // Through text, like the document: the last digit of a fraction may differ after that.
    let report: Value = serde_json::from_str(&json!(report).to_string()).expect("JSON");
    assert_eq!(document["thresholds"], report["thresholds"]);
    assert_eq!(document["adjustments"], report["adjustments"]);
    let keys: Vec<&str> = document.as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(keys, ["schema_version", "command", "run_id", "repo", "stats", "settings", "thresholds", "adjustments"]);
    assert_eq!((&document["command"], &document["repo"]), (&json!("thresholds"), &json!("tide/pool")));
    // Twenty wrong predictions and no right one: it is silent.
    let own = &document["thresholds"][0];
    let told = [&own["component"], &own["current"], &own["source"], &own["false_positives"], &own["total"]];
    assert_eq!(told, [&json!(null), &json!(null), &json!("learned"), &json!(20), &json!(20)]);
    assert_eq!(document["adjustments"][0]["new_threshold"], json!(null));
    let (status, of_operator) = setting.ask("tide/pool", Some(OPERATOR)).await;
    assert_eq!((status, &of_operator["thresholds"]), (200, &document["thresholds"]));
    setting.store.disconnect().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn others_are_told_nothing() {
    let setting = Setting::new().await;
    let no_token = "send a GitHub token that may read the repository, as `Authorization: Bearer TOKEN`";
    let bad = "GitHub does not accept this token";
    for (repo, token, status, words) in [
        ("tide/pool", None, 401, no_token),
        ("tide/none", None, 401, no_token),
        ("tide/po%20ol", None, 401, no_token),
        ("tide/pool", Some("made-up"), 401, bad),
        ("tide/pool", Some("ghp_made0up"), 401, bad),
        ("tide/pool", Some("token-of-the-operato"), 401, bad),
        ("tide/pool", Some("ü".repeat(300).as_str()), 401, no_token),
        ("tide/pool", Some("t".repeat(300).as_str()), 401, bad),
        // The same answer, whether the repository is hidden, unknown to Canonry, or does not exist.
        ("tide/pool", Some(STRANGER), 404, NOT_HERE),
        ("tide/unknown", Some(READER), 404, NOT_HERE),
        ("tide/none", Some(READER), 404, NOT_HERE),
        ("tide/po%20ol", Some(READER), 404, NOT_HERE),
        ("tide/none", Some(OPERATOR), 404, NOT_HERE),
    ] {
        assert_eq!(setting.refusal(repo, token).await, (status, words.to_owned()), "{repo} {token:?}");
    }
    setting.emulator.fault(Fault::on("GET", "/repos/**").times(1).answer(403));
    let forbidden = (403, "this token may not read the repository".to_owned());
    assert_eq!(setting.refusal("tide/pool", Some(READER)).await, forbidden);
    setting.store.clone().disconnect().await;
    let (status, words) = setting.refusal("tide/pool", Some(OPERATOR)).await;
    assert_eq!((status, words.as_str()), (503, "the database does not answer; try again later"));
}

#[tokio::test(flavor = "multi_thread")]
async fn githubs_word_holds_for_a_minute() {
    let setting = Setting::new().await;
    setting.emulator.forget_requests();
    for _ in 0..5 {
        assert_eq!(setting.ask("tide/pool", Some(READER)).await.0, 200);
    }
    let asked = setting.emulator.requests();
    assert_eq!(asked.iter().map(|asked| asked.user.clone()).collect::<Vec<_>>(), [Some("reader".to_owned())]);
    setting.emulator.world().collaborator("tide/pool", "reader", Permission::None);
    assert_eq!(setting.ask("tide/pool", Some(READER)).await.0, 200);
    setting.clock.advance(SignedDuration::from_secs(60));
    assert_eq!(setting.refusal("tide/pool", Some(READER)).await, (404, NOT_HERE.to_owned()));
    // An outage of GitHub is not cached.
    setting.clock.advance(SignedDuration::from_secs(60));
    setting.emulator.world().collaborator("tide/pool", "reader", Permission::Read);
    let fault = setting.emulator.fault(Fault::on("GET", "/repos/**").times(1).answer(503));
    let down = (502, "GitHub does not answer; try again later".to_owned());
    assert_eq!(setting.refusal("tide/pool", Some(READER)).await, down);
    assert_eq!(fault.hits(), 1);
    assert_eq!(setting.ask("tide/pool", Some(READER)).await.0, 200);
    setting.store.disconnect().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn github_is_not_shown_one_wrong_token_after_the_other() {
    let setting = Setting::new().await;
    let slow = "too many tokens were checked in the last minute; try again in a minute";
    assert_eq!(setting.ask("tide/pool", Some(READER)).await.0, 200);
    setting.emulator.forget_requests();
    // A token that is not GitHub's is not sent to it.
    for guess in ["hunter2", "ghp_", "ghx_0123456789", "eyJhbGciOiJub25lIn0.e30.", &"z".repeat(40)] {
        assert_eq!(setting.ask("tide/pool", Some(guess)).await.0, 401, "{guess}");
    }
    assert_eq!(setting.emulator.requests().len(), 0);
    // All at once: with five possibly wrong tokens under way, the others wait for their results.
    let guesses: Vec<String> = (0..20).map(|guess| format!("ghp_guess{guess}")).collect();
    let answers = join_all(guesses.iter().map(|guess| setting.ask("tide/pool", Some(guess)))).await;
    let count = |status| answers.iter().filter(|answer| answer.0 == status).count();
    assert_eq!((count(401), count(429)), (5, 15));
    assert_eq!(setting.refusal("tide/pool", Some("ghp_another")).await, (429, slow.to_owned()));
    assert_eq!(setting.refusal("tide/pool", Some(STRANGER)).await, (429, slow.to_owned()), "nobody knows it yet");
    assert_eq!(setting.emulator.requests().len(), 5);
    // This does not lock out the operator and a reader whom GitHub knows.
    assert_eq!(setting.ask("tide/pool", Some(OPERATOR)).await.0, 200);
    assert_eq!(setting.ask("tide/pool", Some(READER)).await.0, 200);
    assert_eq!(setting.refusal("tide/unknown", Some(READER)).await.0, 404);
    assert_eq!(setting.emulator.requests().len(), 6);
    setting.clock.advance(SignedDuration::from_secs(60));
    assert_eq!(setting.refusal("tide/pool", Some("ghp_another")).await.0, 401);
    assert_eq!(setting.refusal("tide/pool", Some(STRANGER)).await.0, 404);
    setting.store.disconnect().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn even_a_reader_asks_at_most_sixty_times_a_minute() {
    let setting = Setting::new().await;
    for at in 0..60 {
        assert_eq!(setting.ask(&format!("tide/none{at}"), Some(READER)).await.0, 404, "{at}");
    }
    assert_eq!(setting.refusal("tide/pool", Some(READER)).await.0, 429);
    assert_eq!(setting.refusal("tide/none7", Some(READER)).await.0, 404, "GitHub's word is known");
    setting.clock.advance(SignedDuration::from_secs(60));
    assert_eq!(setting.ask("tide/pool", Some(READER)).await.0, 200);
    setting.store.disconnect().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_is_known_by_its_id_and_not_by_its_name() {
    let setting = Setting::new().await;
    setting.emulator.world().rename_repo("tide/pool", "tide/basin", "reader");
    let (status, document) = setting.ask("tide/pool", Some(READER)).await;
    assert_eq!((status, &document["repo"]), (200, &json!("tide/pool")));
    assert_eq!(setting.ask("tide/basin", Some(READER)).await.0, 200);
    // Another repository takes the name, and every account can read it.
    setting.emulator.world().repo("tide/pool");
    assert_eq!(setting.refusal("tide/pool", Some(STRANGER)).await, (404, NOT_HERE.to_owned()));
    setting.store.disconnect().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operators_token_cannot_be_guessed_fast() {
    let setting = Setting::new().await;
    for guess in 0..10 {
        assert_eq!(setting.refusal("tide/pool", Some(&format!("guess-{guess}"))).await.0, 401);
    }
    let enough = (429, "too many tokens were checked in the last minute; try again in a minute".to_owned());
    assert_eq!(setting.refusal("tide/pool", Some("guess-10")).await, enough);
    assert_eq!(setting.refusal("tide/pool", Some(OPERATOR)).await, enough, "not even the right one is looked at");
    assert_eq!(setting.ask("tide/pool", Some(READER)).await.0, 200, "GitHub's are not held up by that");
    setting.clock.advance(SignedDuration::from_mins(1));
    assert_eq!(setting.ask("tide/pool", Some(OPERATOR)).await.0, 200);
    setting.store.disconnect().await;
}
