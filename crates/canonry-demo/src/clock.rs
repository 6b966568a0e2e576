//! The demo's clock: a week that passes as fast as its jobs are done, and then the machine's own time.

use std::sync::Arc;
use std::time::Duration;

use canonry_github::Clock;
use canonry_testkit::github::Emulator;
use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};

/// How many times more often loops poll for work while the week is played.
const HASTE: u32 = 200;
/// How often a waiting task checks the time, once time passes by itself.
const LOOK: Duration = Duration::from_millis(250);
/// The step by which a task that waits in the middle of its work moves the time, and the pause after it: half of a
/// lease, and long enough for other tasks to renew theirs.
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

    /// Uses the machine's own time from now on.
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

    /// The waiting task moves the time, unless it passes by itself: nothing else moves it while a job is running.
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
