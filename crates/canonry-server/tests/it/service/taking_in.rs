//! Which webhooks are accepted, and what is stored of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use canonry_github::{Secret, SystemClock};
use canonry_server::{
    JobError, JobHandler, LeasedJob, Schedules, ServeParts, ServeSummary, ServiceOptions, replay, serve,
};
use canonry_store::{DeliveryFilter, DeliveryState, JobCaps, JobFilter, Store};
use canonry_testkit::database::{Engine, TestDatabase};
use canonry_testkit::github::loopback_client;
use canonry_testkit::on_both_engines;
use futures_util::future::{BoxFuture, join_all};
use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::Timestamp;
use reqwest::{RequestBuilder, StatusCode};
use sha2::Sha256;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

const SECRET: &str = "the tide comes in";
const ISSUE: &str = r#"{"action":"opened","issue":{"id":1,"number":7},"repository":{"id":1,"full_name":"Tide/Pool"}}"#;

/// Has no handler for any job, and says so.
struct Idle;

impl JobHandler for Idle {
    fn handle<'a>(&'a self, work: &'a LeasedJob) -> BoxFuture<'a, Result<(), JobError>> {
        let event = work.delivery.as_ref().map(|(delivery, _)| delivery.event.clone()).unwrap_or_default();
        Box::pin(async move { Err(JobError::Ignored(format!("nobody cares about the event {event}"))) })
    }
}

struct Service {
    url: String,
    store: Store,
    stop: oneshot::Sender<()>,
    task: JoinHandle<std::io::Result<ServeSummary>>,
}

impl Service {
    async fn start(database: &TestDatabase, workers: u32) -> Self {
        let store = Store::open(&database.url().parse().expect("a URL"), Timestamp::now()).await.expect("opens");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let caps = JobCaps { per_repo: 2, in_all: 8 };
        let secret = Secret::new(SECRET);
        let options =
            ServiceOptions { secret, workers, caps, tries: 3, schedules: Schedules::Off, trusted_proxies: Vec::new() };
        let (stop, stopped) = oneshot::channel::<()>();
        let served = store.clone();
        let task = tokio::spawn(async move {
            let stopped = async move { stopped.await.expect("told") };
            serve(listener, served, ServeParts::new(Arc::new(Idle)), Arc::new(SystemClock), options, Box::pin(stopped))
                .await
        });
        Self { url, store, stop, task }
    }

    fn request(&self, id: &str, event: &str, body: impl Into<Vec<u8>>) -> RequestBuilder {
        let body = body.into();
        let signature = sign(SECRET, &body);
        self.bare(body)
            .header("x-github-event", event)
            .header("x-github-delivery", id)
            .header("x-hub-signature-256", signature)
    }

    fn bare(&self, body: Vec<u8>) -> RequestBuilder {
        loopback_client().post(format!("{}/webhooks/github", self.url)).body(body)
    }

    async fn status(&self, path: &str) -> StatusCode {
        loopback_client().get(format!("{}{path}", self.url)).send().await.expect("answers").status()
    }

    /// Waits until `/readyz` answers with this status, which may take as long as an answer is cached. `/healthz`
    /// answers all the time.
    async fn becomes(&self, wanted: StatusCode) {
        let looking = async {
            while self.status("/readyz").await != wanted {
                assert_eq!(self.status("/healthz").await, StatusCode::OK);
            }
        };
        tokio::time::timeout(Duration::from_secs(30), looking).await.unwrap_or_else(|_| panic!("never {wanted}"));
    }

    async fn count(&self) -> usize {
        self.store.deliveries().list(&DeliveryFilter::default(), 100).await.expect("reads").len()
    }

    async fn stop(self) -> ServeSummary {
        self.stop.send(()).expect("it listens");
        let served = self.task.await.expect("runs").expect("serves");
        self.store.disconnect().await;
        served
    }
}

fn sign(secret: &str, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("any key");
    mac.update(body);
    let digits = canonry_domain::hex_digits(mac.finalize().into_bytes());
    format!("sha256={digits}")
}

async fn answer(request: RequestBuilder) -> (u16, String) {
    let answer = request.send().await.expect("answers");
    (answer.status().as_u16(), answer.text().await.expect("text"))
}

on_both_engines! {
    async fn what_is_signed_is_stored_before_it_is_accepted(database: TestDatabase) {
        let service = Service::start(&database, 0).await;
        assert_eq!(answer(service.request("d1", "issues", ISSUE)).await, (202, r#"{"state":"queued"}"#.to_owned()));
        let stored = service.store.deliveries().get("d1").await.expect("reads").expect("stored");
        let about = (stored.repo.map(|repo| repo.key()), stored.number.map(|number| number.get()), stored.action, stored.state);
        assert_eq!(about, (Some("tide/pool".to_owned()), Some(7), Some("opened".to_owned()), DeliveryState::Queued));
        assert_eq!(service.store.deliveries().payload("d1").await.expect("reads").as_deref(), Some(ISSUE));
        // Sent again, even with another body, it is the same delivery.
        assert_eq!(answer(service.request("d1", "issues", "{}")).await, (202, r#"{"state":"queued"}"#.to_owned()));
        assert_eq!(answer(service.request("d2", "star", "{}")).await, (202, r#"{"state":"ignored"}"#.to_owned()));
        assert_eq!(answer(service.request("d3", "issues", r#"{"zero":"\u0000"}"#)).await, (202, r#"{"state":"ignored"}"#.to_owned()));
        assert_eq!(service.count().await, 3);
        let reason = service.store.deliveries().get("d2").await.expect("reads").expect("stored").reason.expect("a reason");
        assert_eq!(reason, "Canonry does not handle this star event");
        service.stop().await;
    }

    async fn githubs_form_is_taken_as_well(database: TestDatabase) {
        let service = Service::start(&database, 0).await;
        let issue = ISSUE.replace(r#""number":7"#, r#""title":"1 + 1 = 2 & é 🦀","number":7"#);
        let form = |text: &str| {
            let payload: String = url::form_urlencoded::Serializer::new(String::new()).append_pair("payload", text).finish();
            payload
        };
        let post = |id: &str, body: String| {
            let media_type = "application/x-www-form-urlencoded; charset=utf-8";
            service.request(id, "issues", body).header("content-type", media_type)
        };
        assert_eq!(answer(post("d1", form(&issue))).await, (202, r#"{"state":"queued"}"#.to_owned()));
        assert_eq!(service.store.deliveries().payload("d1").await.expect("reads"), Some(issue));
        let stored = service.store.deliveries().get("d1").await.expect("reads").expect("stored");
        assert_eq!(stored.number.map(|number| number.get()), Some(7));
        for (id, body) in [("d2", "other=1".to_owned()), ("d3", form("no JSON")), ("d4", String::new())] {
            assert_eq!(answer(post(id, body)).await.0, 400, "{id}");
        }
        // The signature is over the form, not over its contents.
        let forged = service.bare(form(ISSUE).into_bytes()).header("content-type", "application/x-www-form-urlencoded");
        let forged = forged.header("x-github-event", "issues").header("x-github-delivery", "d5");
        assert_eq!(answer(forged.header("x-hub-signature-256", sign(SECRET, ISSUE.as_bytes()))).await.0, 401);
        assert_eq!(service.count().await, 1);
        service.stop().await;
    }

    async fn what_is_not_githubs_is_refused_and_not_stored(database: TestDatabase) {
        let service = Service::start(&database, 0).await;
        let headers = |request: RequestBuilder| request.header("x-github-event", "issues").header("x-github-delivery", "d1");
        let signed = |body: &[u8]| sign(SECRET, body);
        for (what, request, status) in [
            ("no signature", headers(service.bare(ISSUE.into())), 401),
            ("another secret", headers(service.bare(ISSUE.into())).header("x-hub-signature-256", sign("guessed", ISSUE.as_bytes())), 401),
            ("another body", headers(service.bare(b"{}".to_vec())).header("x-hub-signature-256", signed(ISSUE.as_bytes())), 401),
            ("no event", service.bare(ISSUE.into()).header("x-github-delivery", "d1").header("x-hub-signature-256", signed(ISSUE.as_bytes())), 400),
            ("no id", service.bare(ISSUE.into()).header("x-github-event", "issues").header("x-hub-signature-256", signed(ISSUE.as_bytes())), 400),
            ("an endless id", service.request(&"d".repeat(101), "issues", ISSUE), 400),
            ("not JSON", service.request("d1", "issues", "payload=%7B%7D"), 400),
            ("not UTF-8", service.request("d1", "issues", b"\"\xff\"".to_vec()), 400),
            ("nothing", service.request("d1", "issues", ""), 400),
            ("too much", service.request("d1", "issues", vec![b' '; 25 * 1024 * 1024 + 1]), 413),
        ] {
            let (given, text) = answer(request).await;
            assert_eq!(given, status, "{what}: {text}");
            assert!(text.starts_with(r#"{"error":"#) && !text.contains(SECRET), "{what}: {text}");
        }
        let mut largest = ISSUE.as_bytes().to_vec();
        largest.resize(25 * 1024 * 1024, b' ');
        assert_eq!(answer(service.request("d1", "issues", largest)).await.0, 202);
        assert_eq!(service.status("/webhooks/github").await, StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(service.count().await, 1);
        service.stop().await;
    }

    async fn what_has_no_handler_ends_as_ignored_and_can_be_replayed(database: TestDatabase) {
        let service = Service::start(&database, 2).await;
        for number in 0..20 {
            let body = ISSUE.replace('7', &(number % 3 + 1).to_string());
            assert_eq!(answer(service.request(&format!("d{number}"), "issues", body)).await.0, 202);
        }
        settled(&service.store).await;
        let reason = service.store.deliveries().get("d0").await.expect("reads").expect("stored").reason.expect("a reason");
        assert_eq!(reason, "nobody cares about the event issues");
        replay(&service.store, "d0", Timestamp::now()).await.expect("queued");
        settled(&service.store).await;
        let error = replay(&service.store, "d99", Timestamp::now()).await.expect_err("unknown").to_string();
        assert_eq!(error, "there is no delivery d99; see `canonry deliveries list`");
        assert_eq!(service.stop().await, ServeSummary { tries: 21, drained: true });
    }

    async fn a_crowd_is_stored_once_each_and_in_its_order(database: TestDatabase) {
        let service = Service::start(&database, 0).await;
        // Ten senders, each for its own item, and each delivery twice at the same time.
        let sender = |item: usize| {
            let service = &service;
            async move {
                for chapter in 0..5 {
                    let body = ISSUE.replace('7', &(item + 1).to_string());
                    let id = format!("d{item}-{chapter}");
                    let post = || answer(service.request(&id, "issues", body.clone()));
                    for (status, text) in <[_; 2]>::from(tokio::join!(post(), post())) {
                        assert_eq!((status, text.as_str()), (202, r#"{"state":"queued"}"#), "{id}");
                    }
                }
            }
        };
        join_all((0..10).map(sender)).await;
        assert_eq!(service.count().await, 50);
        let mut jobs = service.store.jobs().list(&JobFilter::default(), 1000).await.expect("reads");
        assert_eq!(jobs.len(), 50);
        jobs.sort_by_key(|job| job.id);
        jobs.sort_by(|left, right| left.key.cmp(&right.key));
        for item in jobs.chunks(5) {
            let ids: Vec<&str> = item.iter().filter_map(|job| job.delivery_id.as_deref()).collect();
            assert!(ids.is_sorted() && item.iter().all(|job| job.key == item[0].key), "{ids:?}");
        }
        service.stop().await;
    }

    async fn one_that_cannot_be_stored_does_not_refuse_the_others(database: TestDatabase) {
        let service = Service::start(&database, 0).await;
        database.execute(match database.engine() {
            Engine::Sqlite => "CREATE TRIGGER refuse BEFORE INSERT ON deliveries WHEN NEW.id = 'd13' BEGIN SELECT RAISE(ABORT, 'no'); END",
            Engine::Postgres => "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$;
                CREATE TRIGGER refuse BEFORE INSERT ON deliveries FOR EACH ROW WHEN (NEW.id = 'd13') EXECUTE FUNCTION refuse()",
        }).await;
        let posts = (0..40).map(|number| answer(service.request(&format!("d{number}"), "issues", ISSUE)));
        for (number, (status, text)) in join_all(posts).await.into_iter().enumerate() {
            assert_eq!(status, if number == 13 { 503 } else { 202 }, "d{number}: {text}");
        }
        assert_eq!(service.count().await, 39);
        service.stop().await;
    }

    async fn what_was_accepted_before_the_end_is_stored(database: TestDatabase) {
        let service = Service::start(&database, 0).await;
        let (accepted, store) = (Arc::new(AtomicUsize::new(0)), service.store.clone());
        let senders: Vec<_> = (0..8).map(|sender| {
            let (accepted, url) = (Arc::clone(&accepted), service.url.clone());
            tokio::spawn(async move {
                let client = loopback_client();
                // Until the service no longer listens.
                for number in 0..10_000 {
                    let request = client.post(format!("{url}/webhooks/github")).body(ISSUE);
                    let request = request.header("x-github-event", "issues").header("x-github-delivery", format!("d{sender}-{number}"));
                    match request.header("x-hub-signature-256", sign(SECRET, ISSUE.as_bytes())).send().await {
                        Ok(answer) if answer.status() == StatusCode::ACCEPTED => accepted.fetch_add(1, Ordering::SeqCst),
                        _ => return,
                    };
                }
            })
        }).collect();
        let under_way = async { while accepted.load(Ordering::SeqCst) < 50 { tokio::task::yield_now().await; } };
        tokio::time::timeout(Duration::from_secs(30), under_way).await.expect("they are accepted");
        service.stop.send(()).expect("it listens");
        assert!(service.task.await.expect("runs").expect("serves").drained);
        for sender in senders {
            sender.await.expect("ends");
        }
        let stored = store.deliveries().list(&DeliveryFilter::default(), 100_000).await.expect("reads").len();
        let accepted = accepted.load(Ordering::SeqCst);
        assert!((accepted..=accepted + 8).contains(&stored), "{accepted} were accepted and {stored} are stored");
        store.disconnect().await;
    }

    async fn readiness_follows_the_database(database: TestDatabase) {
        let service = Service::start(&database, 1).await;
        service.becomes(StatusCode::OK).await;
        if database.engine() == Engine::Sqlite {
            let file = database.folder().expect("a folder").join("canonry.db");
            let aside = file.with_extension("aside");
            std::fs::rename(&file, &aside).expect("moved");
            service.becomes(StatusCode::SERVICE_UNAVAILABLE).await;
            std::fs::rename(&aside, &file).expect("moved back");
            service.becomes(StatusCode::OK).await;
            // SQLite's cache of the file would still work.
            for part in ["canonry.db", "canonry.db-wal"].map(|name| file.with_file_name(name)) {
                let length = std::fs::metadata(&part).expect("there").len();
                let mut file = std::fs::OpenOptions::new().write(true).open(&part).expect("opens");
                std::io::Write::write_all(&mut file, &vec![0xaa; usize::try_from(length).expect("small")]).expect("written");
            }
            service.becomes(StatusCode::SERVICE_UNAVAILABLE).await;
        } else {
            // It answers, and refuses writes.
            database.execute("ALTER TABLE schedules RENAME TO aside").await;
            service.becomes(StatusCode::SERVICE_UNAVAILABLE).await;
            database.execute("ALTER TABLE aside RENAME TO schedules").await;
            service.becomes(StatusCode::OK).await;
            service.store.clone().disconnect().await;
            service.becomes(StatusCode::SERVICE_UNAVAILABLE).await;
            // A webhook that cannot be stored is not accepted.
            assert_eq!(answer(service.request("d1", "issues", ISSUE)).await.0, 503);
        }
        service.stop().await;
    }
}

/// A stranger who has found the address sends requests without a signature whose bodies never come.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn slow_strangers_do_not_hold_up_health_checks() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpSocket, TcpStream};

    let database = TestDatabase::sqlite();
    let service = Service::start(&database, 0).await;
    let address = service.url.trim_start_matches("http://").parse().expect("an address");
    let head = b"POST /webhooks/github HTTP/1.1\r\nHost: tide\r\nContent-Length: 100\r\nX-Hub-Signature-256: sha256=00\r\n\r\n";
    let mut slow = Vec::new();
    for _ in 0..200 {
        let mut stream = TcpStream::connect(address).await.expect("connected");
        // Connections beyond the limit may already be closed.
        let _ = stream.write_all(head).await;
        slow.push(stream);
    }
    // An operator's probe comes from another address.
    let probe = TcpSocket::new_v4().expect("a socket");
    probe.bind("127.0.0.2:0".parse().expect("an address")).expect("bound");
    let mut probe = probe.connect(address).await.expect("connected");
    probe.write_all(b"GET /healthz HTTP/1.1\r\nHost: tide\r\nConnection: close\r\n\r\n").await.expect("sent");
    let mut told = String::new();
    let hears = tokio::time::timeout(Duration::from_secs(5), probe.read_to_string(&mut told));
    hears.await.expect("it is answered meanwhile").expect("reads");
    assert!(told.starts_with("HTTP/1.1 200 ") && told.ends_with("ok\n"), "{told:?}");
    let mut last = slow.pop().expect("two hundred");
    let mut told = String::new();
    let _ = last.read_to_string(&mut told).await;
    assert!(told.is_empty() || told.starts_with("HTTP/1.1 503 "), "{told:?}");
    drop(slow);
    service.stop().await;
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
