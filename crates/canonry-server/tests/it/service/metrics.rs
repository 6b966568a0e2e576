//! `/metrics`: in the exact format, complete, and hidden from strangers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use canonry_domain::{ContentVersion, ItemNumber, ItemRecord, ItemType, StateReason};
use canonry_github::{Auth, ClientOptions, Clock, GitHub, ManualClock, Secret, SystemClock};
use canonry_server::{
    JobError, JobHandler, LeasedJob, Metrics, Operations, Schedules, ServeParts, ServiceOptions, operations_routes,
    serve,
};
use canonry_store::{
    BrakeKind, DeliveryFilter, DeliveryState, JobCaps, JobKind, JobScope, NewGrace, NewLlmCall, NewObjection,
    ObjectionKind, Store,
};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{Emulator, World, loopback_client};
use canonry_testkit::on_both_engines;
use futures_util::future::BoxFuture;
use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::{SignedDuration, Timestamp};
use reqwest::StatusCode;
use sha2::Sha256;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::service::exposition_page::Page;
use crate::service::lessons::{repository, teach};

const SECRET: &str = "the tide comes in";
/// A name that tries to begin a line of its own.
const LABEL: &str = "area/q\"uo\\te\n# TYPE canonry_forged gauge";

fn now() -> Timestamp {
    "2026-01-15T12:00:00Z".parse().expect("valid")
}

/// Serves only these routes; returns the address.
pub(crate) async fn serve_routes(routes: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    let routes = routes.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, routes).await });
    url
}

fn operations(store: &Store, clock: Arc<dyn Clock>) -> Operations {
    Operations { store: store.clone(), github: None, clock, metrics: Metrics::new(), metrics_token: None }
}

async fn open(database: &TestDatabase) -> Store {
    Store::open(&database.url().parse().expect("a URL"), now()).await.expect("opens")
}

async fn page(url: &str) -> Page {
    let answer = loopback_client().get(format!("{url}/metrics")).send().await.expect("answers");
    assert_eq!(answer.status(), StatusCode::OK);
    let kind = answer.headers()["content-type"].to_str().expect("text").to_owned();
    assert_eq!(kind, "text/plain; version=0.0.4; charset=utf-8");
    Page::read(&answer.text().await.expect("text"))
}

/// Ends with the result that the delivery's body names.
struct Scripted;

impl JobHandler for Scripted {
    fn handle<'a>(&'a self, work: &'a LeasedJob) -> BoxFuture<'a, Result<(), JobError>> {
        Box::pin(async move {
            let (_, body) = work.delivery.as_ref().expect("every job here has one");
            match () {
                () if body.contains("hopeless") => Err(JobError::Hopeless("never".to_owned())),
                () if body.contains("panic") => panic!("the handler broke"),
                () if body.contains("nothing") => Err(JobError::Ignored("nothing to do".to_owned())),
                () => Ok(()),
            }
        })
    }
}

on_both_engines! {
    async fn webhooks_and_jobs_are_counted_where_they_happen(database: TestDatabase) {
        let store = open(&database).await;
        let (metrics, clock): (Metrics, Arc<dyn Clock>) = (Metrics::new(), Arc::new(SystemClock));
        let routes = operations_routes(Operations { metrics: metrics.clone(), ..operations(&store, Arc::clone(&clock)) });
        let parts = ServeParts { metrics, routes, ..ServeParts::new(Arc::new(Scripted)) };
        let caps = JobCaps { per_repo: 2, in_all: 8 };
        let options = ServiceOptions { secret: Secret::new(SECRET), workers: 1, caps, tries: 1, schedules: Schedules::Off, trusted_proxies: Vec::new() };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let (stop, stopped) = oneshot::channel::<()>();
        let (served, until) = (store.clone(), async move { stopped.await.expect("told") });
        let task = tokio::spawn(async move { serve(listener, served, parts, clock, options, Box::pin(until)).await });
        for (at, what) in ["done", "done", "nothing", "hopeless", "panic"].iter().enumerate() {
            let body = format!(r#"{{"action":"opened","what":"{what}","issue":{{"id":1,"number":7}},"repository":{{"id":1,"full_name":"tide/pool"}}}}"#);
            assert_eq!(post(&url, &format!("d{at}"), body).await, StatusCode::ACCEPTED);
        }
        assert_eq!(post(&url, "bad", "payload=".to_owned()).await, StatusCode::BAD_REQUEST);
        let forged = loopback_client().post(format!("{url}/webhooks/github")).body("{}").send().await.expect("answers");
        assert_eq!(forged.status(), StatusCode::UNAUTHORIZED);
        settled(&store).await;
        let told = page(&url).await;
        for (status, count) in [("202", 5.0), ("400", 1.0), ("401", 1.0)] {
            assert_eq!(told.value("canonry_webhooks_total", &[("status", status)]), Some(count), "{status}");
        }
        for (result, count) in [("done", 2.0), ("ignored", 1.0), ("hopeless", 1.0), ("stopped", 1.0)] {
            let labels = [("kind", "webhook"), ("result", result)];
            assert_eq!(told.value("canonry_job_seconds_count", &labels), Some(count), "{result}");
        }
        assert_eq!(told.kind("canonry_job_seconds"), Some("histogram"));
        for (state, count) in [("queued", 0.0), ("running", 0.0), ("dead", 2.0)] {
            assert_eq!(told.value("canonry_jobs", &[("state", state)]), Some(count), "{state}");
        }
        for (state, count) in [("done", 2.0), ("ignored", 1.0), ("dead", 2.0)] {
            assert_eq!(told.value("canonry_deliveries", &[("state", state)]), Some(count), "{state}");
        }
        stop.send(()).expect("it listens");
        task.await.expect("runs").expect("serves");
        store.disconnect().await;
    }

    async fn what_was_learned_and_spent_is_read_from_the_database(database: TestDatabase) {
        let store = open(&database).await;
        let (good, bad) = (repository(&store, "tide/pool", 1, now()).await, repository(&store, "tide/lab", 2, now()).await);
        teach(&store, &good, 2..82, &[], StateReason::Duplicate, now()).await;
        teach(&store, &good, 100..120, &[LABEL], StateReason::Duplicate, now()).await;
        teach(&store, &bad, 2..22, &[], StateReason::Completed, now()).await;
        let call = NewLlmCall {
            purpose: "detect", provider: "openai", model: "a \"model\"".to_owned(), input_tokens: Some(1_000),
            output_tokens: Some(20), cost_usd: Some(0.25), latency: Duration::from_millis(10), error: None,
        };
        let failed = NewLlmCall { error: Some("no answer".to_owned()), input_tokens: None, output_tokens: None, cost_usd: None, ..call.clone() };
        store.models().record_calls(Some(good.id), "run", &[call.clone(), call, failed], now()).await.expect("noted");

        let clock = Arc::new(ManualClock::new(now()));
        let url = serve_routes(operations_routes(operations(&store, clock.clone()))).await;
        let told = page(&url).await;
        let of = |name: &str, labels: &[(&str, &str)]| told.value(name, labels);
        assert_eq!(of("canonry_triage_outcomes_total", &[("repo", "tide/pool"), ("kind", "confirmed")]), Some(100.0));
        assert_eq!(of("canonry_triage_outcomes_total", &[("repo", "tide/lab"), ("kind", "false_positive")]), Some(20.0));
        let component = LABEL.strip_prefix("area/").expect("a component");
        assert_eq!(of("canonry_triage_threshold", &[("repo", "tide/pool"), ("component", "")]), Some(85.0));
        assert_eq!(of("canonry_triage_threshold", &[("repo", "tide/pool"), ("component", component)]), Some(85.0));
        assert_eq!(of("canonry_triage_threshold", &[("repo", "tide/lab"), ("component", "")]), Some(101.0));
        assert_eq!(of("canonry_triage_threshold_samples", &[("repo", "tide/pool"), ("component", component)]), Some(20.0));
        // Beta(101, 1) after a hundred right predictions.
        let variance = of("canonry_triage_threshold_variance", &[("repo", "tide/pool"), ("component", "")]).expect("told");
        assert!((variance - 101.0 / (102.0 * 102.0 * 103.0)).abs() < 1e-12, "{variance}");
        let model = [("repo", "tide/pool"), ("provider", "openai"), ("model", "a \"model\"")];
        let figures = ["calls", "failed_calls", "input_tokens", "output_tokens", "cost_usd"];
        let spent: Vec<_> = figures.iter().map(|figure| of(&format!("canonry_llm_{figure}_total"), &model)).collect();
        assert_eq!(spent, [Some(3.0), Some(1.0), Some(2_000.0), Some(40.0), Some(0.5)]);
        assert_eq!((of("canonry_database_up", &[]), of("canonry_repos", &[])), (Some(1.0), Some(2.0)));
        assert!(!told.families().contains(&"canonry_forged"), "{told:?}");

        // The database is not read for each request.
        teach(&store, &bad, 22..23, &[], StateReason::Completed, now()).await;
        let samples = |told: &Page| told.value("canonry_triage_threshold_samples", &[("repo", "tide/lab"), ("component", "")]);
        assert_eq!(samples(&page(&url).await), Some(20.0));
        clock.advance(SignedDuration::from_secs(5));
        assert_eq!(samples(&page(&url).await), Some(21.0));

        // Without the database, the process's own metrics are still shown.
        clock.advance(SignedDuration::from_secs(5));
        store.disconnect().await;
        let told = page(&url).await;
        assert_eq!((told.value("canonry_database_up", &[]), samples(&told)), (Some(0.0), None));
    }

    async fn graces_that_are_held_back_brakes_and_objections_are_told(database: TestDatabase) {
        let store = open(&database).await;
        let repo = repository(&store, "tide/pool", 1, now()).await;
        let number = |number| ItemNumber::new(number).expect("valid");
        let records = (1..=4).map(|at| ItemRecord::new(ItemType::Issue, number(at), "It stops")).collect();
        store.corpus().upsert_items(&repo, records, now()).await.expect("stored");
        for (at, due) in [(2, 1), (3, -1), (4, -1)] {
            let new = NewGrace {
                item_type: ItemType::Issue,
                number: number(at),
                target: number(1),
                triage_id: None,
                comment_key: None,
                approved_by: None,
                content_version: ContentVersion::FIRST,
                began_at: now() - SignedDuration::from_hours(72),
                due_at: now() + SignedDuration::from_hours(due),
            };
            assert!(store.close().begin_grace(repo.id, &new).await.expect("begun"));
        }
        let held = store.close().waiting_grace(repo.id, ItemType::Issue, number(3)).await.expect("reads").expect("waits");
        store.close().note_grace(held.id, Some("daily_limit")).await.expect("noted");
        assert!(store.close().set_brake(repo.id, BrakeKind::Breaker, None, "enough", now()).await.expect("pulled"));
        let objection = NewObjection {
            item_type: ItemType::Issue,
            number: number(4),
            close_key: "close:1:issue:4",
            kind: ObjectionKind::Reaction,
            by: None,
            at: now(),
        };
        assert!(store.close().record_objection(repo.id, &objection).await.expect("noted"));
        assert!(!store.close().record_objection(repo.id, &objection).await.expect("noted"), "one for each close");
        let url = serve_routes(operations_routes(operations(&store, Arc::new(ManualClock::new(now()))))).await;
        let (told, name) = (page(&url).await, repo.name.to_string());
        for state in ["running", "daily_limit", "due"] {
            assert_eq!(told.value("canonry_graces", &[("repo", &name), ("state", state)]), Some(1.0), "{state}");
        }
        assert_eq!(told.value("canonry_brake", &[("repo", &name), ("kind", "breaker")]), Some(1.0));
        assert_eq!(told.value("canonry_brake", &[("repo", &name), ("kind", "pause")]), None);
        assert_eq!(told.value("canonry_close_objections_total", &[("repo", &name)]), Some(1.0));
    }

    async fn the_age_of_the_queue_is_that_of_its_oldest_due_job(database: TestDatabase) {
        let store = open(&database).await;
        let clock = Arc::new(ManualClock::new(now()));
        let url = serve_routes(operations_routes(operations(&store, clock.clone()))).await;
        let age = |told: &Page| told.value("canonry_job_oldest_age_seconds", &[]);
        assert_eq!(age(&page(&url).await), Some(0.0));
        let payload = serde_json::json!({});
        let job = canonry_store::NewJob { key: "a", repo: None, kind: JobKind::Sync, payload: &payload };
        store.jobs().enqueue(&job, now() + SignedDuration::from_secs(60), now()).await.expect("queued");
        clock.advance(SignedDuration::from_secs(30));
        let told = page(&url).await;
        assert_eq!((age(&told), told.value("canonry_jobs", &[("state", "queued")])), (Some(0.0), Some(1.0)));
        clock.advance(SignedDuration::from_secs(120));
        let told = page(&url).await;
        assert_eq!((age(&told), told.value("canonry_job_running_seconds", &[])), (Some(90.0), Some(0.0)));
        let (caps, until) = (JobCaps { per_repo: 2, in_all: 8 }, clock.now() + SignedDuration::from_hours(1));
        store.jobs().lease("w", caps, JobScope::All, clock.now(), until).await.expect("leases").expect("a job");
        clock.advance(SignedDuration::from_secs(45));
        let told = page(&url).await;
        assert_eq!((age(&told), told.value("canonry_job_running_seconds", &[])), (Some(0.0), Some(45.0)));
        store.disconnect().await;
    }

    async fn a_database_that_failed_is_left_alone_for_a_while(database: TestDatabase) {
        let store = open(&database).await;
        let clock = Arc::new(ManualClock::new(now()));
        let url = serve_routes(operations_routes(operations(&store, clock.clone()))).await;
        let is_up = async || page(&url).await.value("canonry_database_up", &[]);
        assert_eq!(is_up().await, Some(1.0));
        clock.advance(SignedDuration::from_secs(5));
        database.execute("ALTER TABLE deliveries RENAME TO hidden").await;
        assert_eq!(is_up().await, Some(0.0));
        // The database would answer again, and is not asked yet.
        database.execute("ALTER TABLE hidden RENAME TO deliveries").await;
        clock.advance(SignedDuration::from_secs(4));
        assert_eq!(is_up().await, Some(0.0));
        clock.advance(SignedDuration::from_secs(1));
        assert_eq!(is_up().await, Some(1.0));
        store.disconnect().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_through_a_proxy_needs_the_token() {
    let database = TestDatabase::sqlite();
    let store = open(&database).await;
    let parts = operations(&store, Arc::new(ManualClock::new(now())));
    let open = serve_routes(operations_routes(parts)).await;
    let parts = operations(&store, Arc::new(ManualClock::new(now())));
    let parts = Operations { metrics_token: Some(Secret::new("for-prometheus")), ..parts };
    let closed = serve_routes(operations_routes(parts)).await;
    let proxied = |url: &str| loopback_client().get(format!("{url}/metrics")).header("x-forwarded-for", "127.0.0.1");
    let answer = proxied(&open).send().await.expect("answers");
    assert_eq!(answer.status(), StatusCode::FORBIDDEN);
    let words = "the metrics are for this machine alone until CANONRY_METRICS_TOKEN is set; then they are for whoever \
        shows that token\n";
    assert_eq!(answer.text().await.expect("text"), words);
    assert_eq!(page(&open).await.value("canonry_database_up", &[]), Some(1.0));
    // A page in a local browser whose own domain points here.
    for (host, status) in [
        ("tide.example:8080", StatusCode::MISDIRECTED_REQUEST),
        ("127.0.0.1.tide.example", StatusCode::MISDIRECTED_REQUEST),
        ("LocalHost:8080", StatusCode::OK),
        ("[::1]:8080", StatusCode::OK),
    ] {
        let asked =
            loopback_client().get(format!("{open}/metrics")).header("host", host).send().await.expect("answers");
        assert_eq!(asked.status(), status, "{host}");
    }
    let answer = proxied(&closed).bearer_auth("for-prometheus").send().await.expect("answers");
    assert_eq!(answer.status(), StatusCode::OK);
    store.disconnect().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn github_budget_and_the_token_of_the_metrics() {
    let database = TestDatabase::sqlite();
    let store = open(&database).await;
    let mut world = World::new();
    world.repo("tide/pool");
    world.token("the-services-own-token", "mona");
    world.user("mona");
    let emulator = Emulator::start(world).await;
    let clock = Arc::new(ManualClock::new(now()));
    let github = GitHub::new(ClientOptions {
        api: emulator.url().parse().expect("a URL"),
        clock: clock.clone(),
        ..ClientOptions::new(Auth::Token(Secret::new("the-services-own-token")))
    });
    let github = github.expect("a client");
    github.repo(&"tide/pool".parse().expect("a name")).await.expect("answers");
    let left = github.rates_left();
    let parts = operations(&store, clock.clone());
    let parts = Operations { github: Some(github), metrics_token: Some(Secret::new("for-prometheus")), ..parts };
    let url = serve_routes(operations_routes(parts)).await;
    let ask = |token: Option<&str>| {
        let request = loopback_client().get(format!("{url}/metrics"));
        let request = match token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        async move {
            let answer = request.send().await.expect("answers");
            (answer.status().as_u16(), answer.text().await.expect("text"))
        }
    };
    for token in [None, Some("for-prometheus2"), Some("for-prometheu"), Some("the-services-own-token")] {
        let (status, text) = ask(token).await;
        assert_eq!((status, text.as_str()), (401, "the metrics need the token from CANONRY_METRICS_TOKEN\n"));
    }
    let (_, shown) = ask(Some("for-prometheus")).await;
    assert!(shown.contains("\ncanonry_github_clock_skew_seconds "), "{shown}");
    let (status, text) = ask(Some("for-prometheus")).await;
    assert_eq!(status, 200);
    assert!(!text.contains("for-prometheus") && !text.contains("the-services-own-token"), "{text}");
    let told = Page::read(&text);
    assert_eq!(left.len(), 1);
    let remaining = told.value("canonry_github_rate_remaining", &[("account", "token")]);
    assert_eq!(remaining, Some(left[0].1.remaining as f64));
    assert_eq!(told.value("canonry_github_rate_limit", &[("account", "token")]), Some(left[0].1.limit as f64));
    // An hour later the value has expired.
    clock.advance(SignedDuration::from_hours(2));
    let told = Page::read(&ask(Some("for-prometheus")).await.1);
    assert_eq!(told.value("canonry_github_rate_remaining", &[("account", "token")]), None);
    store.disconnect().await;
}

async fn post(url: &str, id: &str, body: String) -> StatusCode {
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).expect("any key");
    mac.update(body.as_bytes());
    let digits = canonry_domain::hex_digits(mac.finalize().into_bytes());
    let request = loopback_client().post(format!("{url}/webhooks/github")).body(body);
    let request = request.header("x-github-event", "issues").header("x-github-delivery", id);
    request.header("x-hub-signature-256", format!("sha256={digits}")).send().await.expect("answers").status()
}

/// Waits until nothing is queued.
async fn settled(store: &Store) {
    let queued = DeliveryFilter { state: Some(DeliveryState::Queued), ..DeliveryFilter::default() };
    let looking = async {
        while !store.deliveries().list(&queued, 1).await.expect("reads").is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), looking).await.expect("it settles");
}
