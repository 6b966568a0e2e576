//! Tests processes that are really killed: a child processes the outbox and sends itself SIGKILL at a point, or is
//! killed while its request is running; the next child continues.

use std::ops::ControlFlow;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use canonry_domain::WriteKey;
use canonry_github::outbox::{Outbox, Unconditional, Write};
use canonry_github::{Auth, ClientOptions, Clock, GitHub, ManualClock, Secret};
use canonry_store::{OutboxState, Store};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{Fault, Recorded};
use canonry_testkit::on_both_engines;
use jiff::{SignedDuration, Timestamp};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::outbox::setting::{CLOSING, Setting, TOKEN, close, comment};

const DATABASE: &str = "CANONRY_OUTBOX_CHILD_DATABASE";
const API: &str = "CANONRY_OUTBOX_CHILD_API";
const NOW: &str = "CANONRY_OUTBOX_CHILD_NOW";
const POINTS: &str = "CANONRY_OUTBOX_CHILD_POINTS";

/// Longer than one child can wait on its clock, so that time never goes back.
const BETWEEN_CHILDREN: SignedDuration = SignedDuration::from_hours(24);

/// The child: runs until no write is pending, or until its last point.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the process that the other tests of this file kill"]
async fn child() {
    let read = |name: &str| std::env::var(name).expect("told by the parent");
    let clock = Arc::new(ManualClock::new(read(NOW).parse().expect("a time")));
    let points: usize = read(POINTS).parse().expect("a number");
    let store = Store::open(&read(DATABASE).parse().expect("a URL"), clock.now()).await.expect("opens");
    let options = ClientOptions {
        api: read(API).parse().expect("a URL"),
        clock: Arc::<ManualClock>::clone(&clock),
        ..ClientOptions::new(Auth::Token(Secret::new(TOKEN)))
    };
    let passed = AtomicUsize::new(0);
    let checkpoint = move |_| {
        if passed.fetch_add(1, Ordering::SeqCst) >= points {
            kill(Pid::this(), Signal::SIGKILL).expect("killed");
        }
        ControlFlow::Continue(())
    };
    let outbox = Outbox::open(store, GitHub::new(options).expect("a client"), [7; 32]).await.expect("an outbox");
    let outbox = outbox.with_checkpoint(Arc::new(checkpoint));
    while let Some(next) = outbox.publish_due(&Unconditional).await.expect("worked on") {
        clock.sleep_until(next).await;
    }
}

fn spawn(url: &str, setting: &Setting, points: usize) -> std::process::Child {
    let now: Timestamp = {
        let mut world = setting.emulator.world();
        world.now += BETWEEN_CHILDREN;
        world.now
    };
    Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "outbox::sigkill::child", "--ignored", "--test-threads", "1"])
        .env(DATABASE, url)
        .env(API, setting.emulator.url())
        .env(NOW, now.to_string())
        .env(POINTS, points.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a child")
}

fn was_killed(status: ExitStatus) -> bool {
    assert!(status.success() || status.signal() == Some(9), "the child failed: {status}");
    !status.success()
}

/// Enqueues three writes to each of a few items.
async fn owe(setting: &Setting, round: usize) -> Vec<canonry_domain::ItemNumber> {
    let outbox = setting.outbox().await;
    let mut items = Vec::new();
    for _ in 0..2 {
        let item = setting.open_issue();
        for (key, write) in [
            ("comment", comment("Hello")),
            ("label", Write::Label { name: "possible-duplicate".to_owned() }),
            ("close", close(setting)),
        ] {
            outbox
                .enqueue(setting.repo.id, item, &WriteKey::other(&format!("{key} {item} {round}")), write)
                .await
                .expect("stored");
        }
        items.push(item);
    }
    items
}

async fn all_arrived(setting: &Setting, items: &[canonry_domain::ItemNumber]) {
    for &item in items {
        for entry in setting.store.outbox().of_item(setting.repo.id, item).await.expect("reads") {
            assert_eq!(entry.state, OutboxState::Sent, "{entry:?}");
        }
        assert_eq!(setting.own_comments(item), ["Hello", CLOSING]);
        assert_eq!(setting.closes(item), (1, true));
    }
}

fn soaking() -> bool {
    std::env::var_os("CANONRY_SOAK").is_some()
}

on_both_engines! {
    async fn children_that_kill_themselves_lose_and_double_nothing(database: TestDatabase) {
        let url = database.url().to_owned();
        let setting = Setting::new(database).await;
        let (mut kills, wanted) = (0, if soaking() { 1500 } else { 8 });
        let mut round = 0;
        while kills < wanted {
            let items = owe(&setting, round).await;
            let writes = Fault::on("*", "/repos/**").when(Recorded::is_write);
            setting.emulator.fault(writes.nth(1 + round % 6).apply_and_drop());
            // Few points at a time, so that each round is interrupted many times, and at different points.
            let mut points = 3 + round % 5;
            while was_killed(spawn(&url, &setting, points).wait().expect("ends")) {
                kills += 1;
                points += 4;
                assert!(points < 200, "round {round} does not end");
            }
            all_arrived(&setting, &items).await;
            setting.emulator.clear_faults();
            setting.emulator.forget_requests();
            round += 1;
        }
    }

    async fn children_killed_during_a_request_lose_and_double_nothing(database: TestDatabase) {
        let url = database.url().to_owned();
        let setting = Setting::new(database).await;
        for round in 0..if soaking() { 300 } else { 4 } {
            let items = owe(&setting, round).await;
            let writes = Fault::on("*", "/repos/**").when(Recorded::is_write).nth(1 + round / 2 % 6);
            // Before GitHub has applied it, or after.
            let (fault, mut gate) = if round % 2 == 0 { writes.hold() } else { writes.hold_answer() };
            setting.emulator.fault(fault);
            let mut victim = spawn(&url, &setting, usize::MAX);
            gate.arrived().await;
            victim.kill().expect("killed");
            assert!(was_killed(victim.wait().expect("ends")));
            gate.release();
            setting.emulator.clear_faults();
            assert!(!was_killed(spawn(&url, &setting, usize::MAX).wait().expect("ends")));
            all_arrived(&setting, &items).await;
            setting.emulator.forget_requests();
        }
    }
}
