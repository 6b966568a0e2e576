//! The demo's time: a week that passes as fast as its work is done, and then the machine's own.

use std::sync::Arc;
use std::time::Duration;

use canonry_github::Clock;
use canonry_testkit::github::Emulator;
use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};

/// How many times more often loops look for work while the story is told.
const HASTE: u32 = 200;
/// How often somebody who waits looks whether the time has come, once it passes by itself.
const LOOK: Duration = Duration::from_millis(250);
/// By how much the time moves at once for somebody who waits in the middle of their work: half of what a lease lasts, and
/// long enough for others to renew theirs.
const STEP: (SignedDuration, Duration) = (SignedDuration::from_secs(10), Duration::from_millis(40));

/// The emulated GitHub's clock, so that both sides agree.
pub(crate) struct DemoClock {
    emulator: Arc<Emulator>,
}

impl DemoClock {
    pub(crate) fn new(emulator: Arc<Emulator>) -> Self {
        Self { emulator }
    }

    pub(crate) fn move_to(&self, until: Timestamp) {
        let mut world = self.emulator.world();
        world.now = world.now.max(until);
    }

    /// From now on it is the machine's own.
    pub(crate) fn follow_the_machine(&self) {
        self.emulator.world().follows_wall_clock = true;
    }

    fn passes_by_itself(&self) -> bool {
        self.emulator.world().follows_wall_clock
    }
}

impl Clock for DemoClock {
    fn now(&self) -> Timestamp {
        self.emulator.world().now
    }

    /// Whoever waits moves it, unless it passes by itself: nobody else does while there is work in hand.
    fn sleep_until(&self, until: Timestamp) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let mut is_first = true;
            while self.now() < until {
                if self.passes_by_itself() {
                    tokio::time::sleep(LOOK).await;
                    continue;
                }
                if !is_first {
                    tokio::time::sleep(STEP.1).await;
                }
                is_first = false;
                self.move_to(until.min(self.now() + STEP.0));
            }
        })
    }

    fn beat(&self, length: SignedDuration) -> BoxFuture<'_, ()> {
        let haste = if self.passes_by_itself() { 1 } else { HASTE };
        Box::pin(tokio::time::sleep(length.unsigned_abs() / haste))
    }
}
