//! A process whose database goes away reports it, refuses what it cannot store, and recovers with the database.

use std::time::Duration;

use canonry_store::{DeliveryState, Store};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{Emulator, NewIssue, loopback_client};
use canonry_testkit::on_both_engines;
use canonry_testkit::proxy::Proxy;
use jiff::Timestamp;

use crate::chaos::kills::post;
use crate::chaos::life::{REPOS, world};
use crate::chaos::replica::{Replica, Told};

/// Longer than it may take to notice the outage or to reconnect.
const PATIENCE: Duration = Duration::from_secs(30);

/// The connection between the process and its database.
enum Way {
    File(std::path::PathBuf),
    Server(Proxy),
}

impl Way {
    fn cut(&self) {
        match self {
            Self::File(file) => std::fs::rename(file, file.with_extension("aside")).expect("moved"),
            Self::Server(proxy) => proxy.cut(),
        }
    }

    fn restore(&self) {
        match self {
            Self::File(file) => std::fs::rename(file.with_extension("aside"), file).expect("moved back"),
            Self::Server(proxy) => proxy.restore(),
        }
    }
}

on_both_engines! {
    async fn readiness_follows_the_database(database: TestDatabase) {
        let (way, url) = match database.folder() {
            Some(folder) => (Way::File(folder.join("canonry.db")), database.url().to_owned()),
            None => {
                let (proxy, url) = database.proxied().await;
                (Way::Server(proxy), url)
            }
        };
        let anchor = Timestamp::now();
        let emulator = Emulator::start(world(anchor)).await;
        let logs = tempfile::tempdir().expect("a folder");
        let told = Told { database: url, api: emulator.url(), anchor: anchor.to_string(), logs: logs.path().to_owned() };
        let replica = Replica::start(&told, 0).await;
        becomes(&replica, 200).await;
        for round in 0..2 {
            way.cut();
            becomes(&replica, 503).await;
            assert_eq!(status(&replica, "/healthz").await, 200, "the process lives");
            assert_eq!(status(&replica, "/metrics").await, 200, "and tells what it can");
            let delivery = {
                let mut world = emulator.world();
                world.open(REPOS[0], "ann", NewIssue::new("zanzititle", "zanzibody"));
                world.deliveries.last().expect("one").clone()
            };
            if let Way::Server(_) = way {
                // A moved file is still open, and writes to it are there when it is moved back.
                assert_eq!(post(&loopback_client(), &replica.url, &delivery).await, 503, "what cannot be stored is not accepted");
            }
            way.restore();
            becomes(&replica, 200).await;
            assert_eq!(post(&loopback_client(), &replica.url, &delivery).await, 202, "round {round}");
        }
        replica.kill();
    }
}

/// The file system refuses writes for a while. SQLite writes to its log first.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_waited_out() {
    let database = TestDatabase::sqlite();
    let anchor = Timestamp::now();
    let emulator = Emulator::start(world(anchor)).await;
    let logs = tempfile::tempdir().expect("a folder");
    let told = Told {
        database: database.url().to_owned(),
        api: emulator.url(),
        anchor: anchor.to_string(),
        logs: logs.path().to_owned(),
    };
    let replica = Replica::start(&told, 0).await;
    let issue = || {
        let mut world = emulator.world();
        world.open(REPOS[0], "ann", NewIssue::new("zanzititle", "zanzibody"));
        world.deliveries.last().expect("one").clone()
    };
    let (client, mut accepted) = (loopback_client(), Vec::new());
    for round in 0..2 {
        becomes(&replica, 200).await;
        let log = database.folder().expect("a folder").join("canonry.db-wal");
        replica.limit_files(Some(std::fs::metadata(log).expect("there").len() + 100_000));
        let refused = loop {
            let delivery = issue();
            match post(&client, &replica.url, &delivery).await {
                202 => accepted.push(delivery),
                status => {
                    assert_eq!(status, 503, "round {round}");
                    break delivery;
                }
            }
        };
        becomes(&replica, 503).await;
        assert_eq!(status(&replica, "/healthz").await, 200, "the process lives");
        // Enough requests that each database connection has met the error.
        for _ in 0..20 {
            assert_eq!(post(&client, &replica.url, &refused).await, 503, "round {round}");
        }
        replica.limit_files(None);
        becomes(&replica, 200).await;
        assert_eq!(post(&client, &replica.url, &refused).await, 202, "round {round}");
        accepted.push(refused);
    }
    let store = Store::open_existing(&database.url().parse().expect("a URL")).await.expect("opens");
    for delivery in &accepted {
        let ending = async {
            loop {
                let stored =
                    store.deliveries().get(&delivery.guid).await.expect("reads").expect("what was accepted is kept");
                match stored.state {
                    DeliveryState::Queued => tokio::time::sleep(Duration::from_millis(20)).await,
                    ended => break ended,
                }
            }
        };
        let ended = tokio::time::timeout(2 * PATIENCE, ending).await.expect("it is worked on");
        assert_eq!(ended, DeliveryState::Done);
    }
    replica.kill();
}

async fn status(replica: &Replica, path: &str) -> u16 {
    let answer = loopback_client().get(format!("{}{path}", replica.url)).send().await.expect("it answers");
    answer.status().as_u16()
}

/// Waits until `/readyz` answers with this status.
async fn becomes(replica: &Replica, wanted: u16) {
    let looking = async {
        while status(replica, "/readyz").await != wanted {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.unwrap_or_else(|_| panic!("/readyz does not become {wanted}"));
}
