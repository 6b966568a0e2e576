//! The emulated world's time: moved by a waiting task, or only by the test.

use std::sync::Arc;
use std::time::Duration;

use canonry_github::Clock;
use canonry_testkit::github::Emulator;
use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;

/// A task that waits for a moment moves the time. Loops beat by the machine's own time, or they would never rest.
pub(crate) struct WaitingMoves {
    emulator: Arc<Emulator>,
    /// How long every beat takes; `None` is a fiftieth of its length.
    beat: Option<Duration>,
}

impl WaitingMoves {
    pub(crate) fn new(emulator: &Arc<Emulator>, beat: Option<Duration>) -> Self {
        Self { emulator: Arc::clone(emulator), beat }
    }
}

impl Clock for WaitingMoves {
    fn now(&self) -> Timestamp {
        self.emulator.world().now
    }

    fn sleep_until(&self, until: Timestamp) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let mut world = self.emulator.world();
            world.now = world.now.max(until);
        })
    }

    fn beat(&self, length: SignedDuration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(self.beat.unwrap_or(length.unsigned_abs() / 50)))
    }
}

/// A sleeping task waits until the test has moved the time; loops poll often.
pub(crate) struct TestMoves {
    emulator: Arc<Emulator>,
    moved: watch::Sender<()>,
}

impl TestMoves {
    pub(crate) fn new(emulator: &Arc<Emulator>) -> Self {
        Self { emulator: Arc::clone(emulator), moved: watch::channel(()).0 }
    }

    /// Makes every sleeping task check the world's time.
    pub(crate) fn tell(&self) {
        self.moved.send_replace(());
    }

    pub(crate) fn is_anybody_asleep(&self) -> bool {
        self.moved.receiver_count() > 0
    }
}

impl Clock for TestMoves {
    fn now(&self) -> Timestamp {
        self.emulator.world().now
    }

    fn sleep_until(&self, until: Timestamp) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let mut moved = self.moved.subscribe();
            while self.now() < until {
                moved.changed().await.expect("the clock lives");
            }
        })
    }

    fn beat(&self, length: SignedDuration) -> BoxFuture<'_, ()> {
        Box::pin(async move { tokio::time::sleep(length.unsigned_abs() / 200).await })
    }
}
