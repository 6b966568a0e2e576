//! When the service stops, the running job is finished, and nothing new begins.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use canonry_github::{Secret, SystemClock};
use canonry_server::{JobError, JobHandler, LeasedJob, Schedules, ServeParts, ServeSummary, ServiceOptions, serve};
use canonry_store::{
    DeliveryAction, DeliveryReceipt, DeliveryState, JobCaps, JobKind, NewDelivery, NewJob, PackedText, Store,
};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// Signals when it begins, and ends when the test lets it.
#[derive(Default)]
struct Gate {
    begun: Notify,
    open: Notify,
}

impl JobHandler for Gate {
    fn handle<'a>(&'a self, _: &'a LeasedJob) -> BoxFuture<'a, Result<(), JobError>> {
        Box::pin(async move {
            self.begun.notify_one();
            self.open.notified().await;
            Ok(())
        })
    }
}

/// A connection that has had one answer and is kept open.
async fn answered_connection(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: canonry\r\n\r\n").await.expect("it reads");
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.expect("it answers");
    assert_eq!(&answer, b"HTTP/1.1 200");
    stream
}

on_both_engines! {
    async fn the_job_in_hand_is_done_and_no_other_is_begun(database: TestDatabase) {
        let store = Store::open(&database.url().parse().expect("a URL"), Timestamp::now()).await.expect("opens");
        for id in ["d1", "d2"] {
            let job = NewJob { key: "tide/pool#1", repo: None, kind: JobKind::Webhook, payload: &Value::Null };
            let new = NewDelivery { id, event: "issues", action: None, repo: None, number: None, payload: &PackedText::pack("{}"), fate: DeliveryAction::Job(job) };
            assert_eq!(store.deliveries().accept(&new, Timestamp::now()).await.expect("stored"), DeliveryReceipt::Queued);
        }
        let gate = Arc::new(Gate::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let options = ServiceOptions { secret: Secret::new("s"), workers: 1, caps: JobCaps { per_repo: 2, in_all: 8 }, tries: 3, schedules: Schedules::Off, trusted_proxies: Vec::new() };
        let (connected, told) = (Notify::new(), Notify::new());
        let stop = async {
            gate.begun.notified().await;
            // Dropping a listener resets connections that it has not accepted yet.
            connected.notified().await;
            told.notify_one();
        };
        // Both in one task: the gate opens only after the service has seen the stop.
        let serving = serve(listener, store.clone(), ServeParts::new(gate.clone()), Arc::new(SystemClock), options, Box::pin(stop));
        let opening = async {
            let idle = answered_connection(address).await;
            connected.notify_one();
            told.notified().await;
            gate.open.notify_one();
            idle
        };
        let both = async { tokio::join!(serving, opening) };
        let (served, _idle) = tokio::time::timeout(Duration::from_secs(60), both).await.expect("it ends");
        let served = served.expect("serves");
        assert_eq!(served, ServeSummary { tries: 1, drained: true });
        for (id, state) in [("d1", DeliveryState::Done), ("d2", DeliveryState::Queued)] {
            assert_eq!(store.deliveries().get(id).await.expect("reads").expect("known").state, state, "{id}");
        }
        store.disconnect().await;
    }
}
